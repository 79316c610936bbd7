//! An engine in this process, as `serve` wires it up, but without HTTP in front: the store's counts
//! can be read, and no request costs time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stepwell_core::id::{RunId, TenantName, VersionLabel, WorkflowName};
use stepwell_core::payload::Payload;
use stepwell_core::run::Status;
use stepwell_core::time::Timestamp;
use stepwell_engine::clock::SystemClock;
use stepwell_engine::register::Registration;
use stepwell_engine::start::Start;
use stepwell_engine::{Config, Engine};
use stepwell_sandbox::Sandbox;
use stepwell_store::{Counts, SqliteStore};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::error::Error;
use crate::guest::VERSION;

/// How often it is looked whether the engine is at rest. Not often, so that a run which is measured
/// has the cores for itself; what must be known to the microsecond is watched instead.
const LOOK: Duration = Duration::from_millis(20);
/// For the moment when many runs are done: a watch of each would be in their way.
const LOOK_CLOSELY: Duration = Duration::from_millis(1);
/// Nothing that is measured takes so long.
const PATIENCE: Duration = Duration::from_secs(600);

/// Store, sandbox and engine on a folder of their own.
#[derive(Debug)]
pub(crate) struct World {
    engine: Engine,
    runtime: Runtime,
    _folder: TempDir,
}

impl World {
    pub(crate) fn open(folder: TempDir, component: &Arc<[u8]>) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(Error::system("no threads can be had"))?;
        let store = Arc::new(SqliteStore::open(&folder.path().join("data"))?);
        let sandbox = Sandbox::new(stepwell_sandbox::Config::default())?;
        let engine = runtime.block_on(async {
            let (sandbox, clock) = (Arc::new(sandbox), Arc::new(SystemClock));
            let engine = Engine::launch(store, sandbox, clock, Config::default()).await?;
            let registration = Registration {
                tenant: named::<TenantName>("default")?,
                label: named::<VersionLabel>(VERSION)?,
                component: Arc::clone(component),
                environment: Vec::new(),
            };
            engine.register(registration).await?;
            Ok::<_, Error>(engine)
        })?;
        Ok(Self {
            engine,
            runtime,
            _folder: folder,
        })
    }

    /// Starts a run.
    pub(crate) fn start(&self, workflow: &str, input: u32) -> Result<RunId, Error> {
        let start = start(workflow, input, None)?;
        let started = self.runtime.block_on(self.engine.start(start))?;
        Ok(started.run)
    }

    /// Starts so many runs at once, to begin at this time.
    pub(crate) fn start_many(
        &self,
        count: u32,
        (workflow, input): (&str, u32),
        at: Option<Timestamp>,
    ) -> Result<Vec<RunId>, Error> {
        let start = start(workflow, input, at)?;
        self.runtime.block_on(async {
            let mut starting = JoinSet::new();
            for _ in 0..count {
                let (engine, start) = (self.engine.clone(), start.clone());
                starting.spawn(async move { engine.start(start).await });
            }
            let mut runs = Vec::new();
            while let Some(started) = starting.join_next().await {
                let started = started.map_err(|error| Error::unexpected(error.to_string()))?;
                runs.push(started?.run);
            }
            Ok(runs)
        })
    }

    /// Waits until all of these runs have completed.
    pub(crate) fn until_completed(&self, runs: &[RunId]) -> Result<(), Error> {
        self.look_until_completed(runs, LOOK).map(drop)
    }

    /// The same for many runs that begin now, and when it was, to the millisecond.
    pub(crate) fn completed_at(&self, runs: &[RunId]) -> Result<Instant, Error> {
        let began = Instant::now();
        while self.engine.driven() == 0 && !self.are_completed(runs)? {
            if began.elapsed() > PATIENCE {
                return Err(Error::unexpected("no run began"));
            }
            std::thread::sleep(LOOK_CLOSELY);
        }
        self.look_until_completed(runs, LOOK_CLOSELY)
    }

    /// A run is driven until its end is durable; so it is enough to look at how many are driven,
    /// which costs the engine nothing, and to look at the rows once.
    fn look_until_completed(&self, runs: &[RunId], pause: Duration) -> Result<Instant, Error> {
        let give_up = Instant::now() + PATIENCE;
        while Instant::now() < give_up {
            if self.engine.driven() > 0 {
                std::thread::sleep(pause);
                continue;
            }
            let at = Instant::now();
            if self.are_completed(runs)? {
                return Ok(at);
            }
        }
        Err(Error::unexpected("the runs did not complete"))
    }

    fn are_completed(&self, runs: &[RunId]) -> Result<bool, Error> {
        let tenant = named::<TenantName>("default")?;
        for run in runs {
            let found = self
                .runtime
                .block_on(self.engine.store().run(&tenant, *run))?
                .ok_or_else(|| Error::unexpected(format!("{run} is gone")))?;
            if found.status.is_final() && found.status != Status::Completed {
                return Err(Error::unexpected(format!(
                    "{run} did not complete: {found:?}"
                )));
            }
            if !found.status.is_final() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// When each change of a run becomes durable, from now on until what is returned is asked.
    pub(crate) fn watch(&self, run: RunId) -> Watch {
        let receiver = self.engine.store().watch(run);
        let (stop, stopped) = tokio::sync::oneshot::channel();
        Watch {
            task: self.runtime.spawn(note(receiver, stopped)),
            stop,
        }
    }

    /// What was seen.
    pub(crate) fn seen(&self, watch: Watch) -> Result<Vec<Seen>, Error> {
        let _ = watch.stop.send(());
        self.runtime
            .block_on(watch.task)
            .map_err(|error| Error::unexpected(error.to_string()))
    }

    /// What the store has done.
    pub(crate) fn counts(&self) -> Counts {
        self.engine.store().counts()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.runtime.block_on(self.engine.shutdown());
    }
}

/// A watch of one run.
#[derive(Debug)]
pub(crate) struct Watch {
    task: tokio::task::JoinHandle<Vec<Seen>>,
    stop: tokio::sync::oneshot::Sender<()>,
}

/// The change of this number was durable, and known to be, at this time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) change: u64,
    pub(crate) at: Instant,
}

async fn note(
    mut receiver: watch::Receiver<u64>,
    mut stopped: tokio::sync::oneshot::Receiver<()>,
) -> Vec<Seen> {
    let mut seen = Vec::new();
    loop {
        tokio::select! {
            biased;
            changed = receiver.changed() => match changed {
                Ok(()) => {
                    let at = Instant::now();
                    seen.push(Seen { change: *receiver.borrow_and_update(), at });
                }
                Err(_) => return seen,
            },
            _ = &mut stopped => return seen,
        }
    }
}

fn start(workflow: &str, input: u32, at: Option<Timestamp>) -> Result<Start, Error> {
    Ok(Start {
        tenant: named::<TenantName>("default")?,
        workflow: named::<WorkflowName>(workflow)?,
        label: None,
        input: Payload::Json(input.to_string()),
        idempotency_key: None,
        start_at: at,
    })
}

fn named<T: std::str::FromStr>(name: &str) -> Result<T, Error> {
    name.parse()
        .map_err(|_| Error::unexpected(format!("`{name}` is no name")))
}
