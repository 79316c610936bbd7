//! An engine in this process, on a real store and the real sandbox, for tests that need to look
//! inside.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use stepwell_core::id::{Operation, RunId, Sequence, TenantName};
use stepwell_core::journal::{Ending, Entry, Record};
use stepwell_core::payload::Payload;
use stepwell_core::run::Status;
use stepwell_engine::clock::SystemClock;
use stepwell_engine::register::Registration;
use stepwell_engine::start::Start;
use stepwell_engine::{Config, Engine};
use stepwell_sandbox::Sandbox;
use stepwell_store::{Delivered, LogRow, Message, Run, SqliteStore, Store};
use stepwell_tests::component;

/// Longer than anything here takes; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// An engine on a data folder of its own.
pub(crate) struct World {
    pub(crate) engine: Engine,
    config: Config,
    sandbox: Sandbox,
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Config::default()).await
    }

    /// Evicts at every wait.
    pub(crate) async fn evicting() -> Self {
        Self::with(Config {
            resident_for_max: Duration::ZERO,
            ..Config::default()
        })
        .await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sandbox = sandbox();
        let engine = launch(folder.path(), &sandbox, config.clone()).await;
        Self {
            engine,
            config,
            sandbox,
            folder,
        }
    }

    /// From the next restart on, no component is in memory.
    pub(crate) fn with_empty_sandbox(mut self) -> Self {
        self.sandbox = Sandbox::new(stepwell_sandbox::Config::default()).unwrap();
        self
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.engine.store()
    }

    /// Shuts the host down and starts another on the same folder.
    pub(crate) async fn restart(self) -> Self {
        self.restart_after(|_| {}).await
    }

    /// Does something to the folder between two hosts.
    pub(crate) async fn restart_after(self, act: impl FnOnce(&Path)) -> Self {
        let Self {
            engine,
            config,
            sandbox,
            folder,
        } = self;
        engine.shutdown().await;
        drop(engine);
        act(folder.path());
        let engine = launch(folder.path(), &sandbox, config.clone()).await;
        Self {
            engine,
            config,
            sandbox,
            folder,
        }
    }

    pub(crate) async fn register(&self, package: &str, label: &str, environment: &[(&str, &str)]) {
        self.register_for(&tenant(), package, label, environment)
            .await;
    }

    pub(crate) async fn register_for(
        &self,
        tenant: &TenantName,
        package: &str,
        label: &str,
        environment: &[(&str, &str)],
    ) {
        let registration = Registration {
            tenant: tenant.clone(),
            label: label.parse().unwrap(),
            component: std::fs::read(component(package)).unwrap().into(),
            environment: environment
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        self.engine.register(registration).await.unwrap();
    }

    pub(crate) async fn start(&self, workflow: &str, input: serde_json::Value) -> RunId {
        self.start_version(workflow, None, input).await
    }

    pub(crate) async fn start_version(
        &self,
        workflow: &str,
        label: Option<&str>,
        input: serde_json::Value,
    ) -> RunId {
        self.engine
            .start(start(workflow, label, input))
            .await
            .unwrap()
            .run
    }

    pub(crate) async fn deliver(&self, run: RunId, message: Message) -> Delivered {
        self.engine.deliver(&tenant(), run, message).await.unwrap()
    }

    pub(crate) async fn send(
        &self,
        run: RunId,
        name: &str,
        payload: serde_json::Value,
    ) -> Delivered {
        self.deliver(run, event(name, payload, None)).await
    }

    pub(crate) async fn run(&self, run: RunId) -> Run {
        self.store()
            .run(&tenant(), run)
            .await
            .unwrap()
            .expect("the run exists")
    }

    /// Waits until the run is in this status.
    pub(crate) async fn until(&self, run: RunId, status: Status) -> Run {
        self.until_that(run, &format!("status {status}"), |run| run.status == status)
            .await
    }

    /// Waits until the run has ended.
    pub(crate) async fn end(&self, run: RunId) -> Ending {
        self.until_that(run, "an end", |run| run.status.is_final())
            .await
            .ending
            .expect("an ended run has an ending")
    }

    /// Waits until the run has completed, and returns its result.
    pub(crate) async fn result(&self, run: RunId) -> serde_json::Value {
        match self.end(run).await {
            Ending::Completed(Payload::Json(text)) => serde_json::from_str(&text).unwrap(),
            other => panic!("{run} did not complete: {other:?}"),
        }
    }

    pub(crate) async fn until_that(
        &self,
        run: RunId,
        what: &str,
        is_met: impl Fn(&Run) -> bool,
    ) -> Run {
        let mut watch = self.store().watch(run);
        let wait = async {
            loop {
                let row = self.run(run).await;
                if is_met(&row) {
                    return row;
                }
                watch.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(PATIENCE, wait).await {
            Ok(row) => row,
            Err(_) => panic!(
                "{run} did not reach {what}: {:#?}\n{:#?}",
                self.run(run).await,
                self.history(run).await
            ),
        }
    }

    /// The entries of the run's newest journal.
    pub(crate) async fn history(&self, run: RunId) -> Vec<Entry> {
        let entries = self
            .store()
            .history(&tenant(), run, Sequence(0), 100_000)
            .await
            .unwrap()
            .expect("the run exists");
        entries.into_iter().map(|(_, entry)| entry).collect()
    }

    pub(crate) async fn records(&self, run: RunId) -> Vec<Record> {
        self.history(run)
            .await
            .into_iter()
            .map(|entry| entry.record)
            .collect()
    }

    pub(crate) async fn published(&self, run: RunId, key: &str) -> Option<serde_json::Value> {
        let published = self.store().published(&tenant(), run).await.unwrap();
        let value = published.into_iter().find(|value| value.key == key)?.value;
        Some(serde_json::from_slice(value.as_bytes()).unwrap())
    }

    /// Waits until a log line with this text has been kept.
    pub(crate) async fn log_line(&self, run: RunId, part: &str) -> LogRow {
        let give_up = tokio::time::Instant::now() + PATIENCE;
        loop {
            let lines = self.store().logs(&tenant(), run, 0, 1_000).await.unwrap();
            if let Some(row) = lines.iter().find(|row| row.line.message.contains(part)) {
                return row.clone();
            }
            assert!(
                tokio::time::Instant::now() < give_up,
                "no line with `{part}`: {lines:#?}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn launch(folder: &Path, sandbox: &Sandbox, config: Config) -> Engine {
    let give_up = tokio::time::Instant::now() + PATIENCE;
    let store = loop {
        match SqliteStore::open(folder) {
            Ok(store) => break Arc::new(store),
            // The host before may still be letting go of it.
            Err(stepwell_store::Error::InUse { .. }) if tokio::time::Instant::now() < give_up => {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            Err(error) => panic!("{error}"),
        }
    };
    Engine::launch(
        store,
        Arc::new(sandbox.clone()),
        Arc::new(SystemClock),
        config,
    )
    .await
    .unwrap()
}

/// One sandbox for all tests of the process: its pool is large, and each component compiles once.
pub(crate) fn sandbox() -> Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX
        .get_or_init(|| Sandbox::new(stepwell_sandbox::Config::default()).unwrap())
        .clone()
}

pub(crate) fn tenant() -> TenantName {
    "default".parse().unwrap()
}

pub(crate) fn start(workflow: &str, label: Option<&str>, input: serde_json::Value) -> Start {
    Start {
        tenant: tenant(),
        workflow: workflow.parse().unwrap(),
        label: label.map(|label| label.parse().unwrap()),
        input: Payload::Json(input.to_string()),
        idempotency_key: None,
        start_at: None,
    }
}

pub(crate) fn event(name: &str, payload: serde_json::Value, delivery_key: Option<&str>) -> Message {
    Message::Event {
        name: name.to_owned(),
        payload: Payload::Json(payload.to_string()),
        delivery_key: delivery_key.map(str::to_owned),
        mailbox_events_max: 1_000,
    }
}

pub(crate) fn cancel(reason: &str) -> Message {
    Message::Cancel {
        reason: reason.to_owned(),
    }
}

/// The attempts that a journal counts for an operation.
pub(crate) fn attempts(records: &[Record], wanted: Operation) -> u32 {
    records
        .iter()
        .filter(|record| record.operation() == Some(wanted))
        .map(|record| match record {
            Record::StepCompleted { attempts, .. } | Record::TaskCompleted { attempts, .. } => {
                *attempts
            }
            Record::StepFailed { error, .. } | Record::TaskFailed { error, .. } => error.attempts,
            _ => 0,
        })
        .max()
        .unwrap_or(0)
}
