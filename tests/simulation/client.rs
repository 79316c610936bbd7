//! Plays a plan: hosts that come and go, and a client that asks again until it is answered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stepwell_core::id::{RunId, Sequence, TenantName};
use stepwell_core::payload::Payload;
use stepwell_core::run::Status;
use stepwell_core::time::Timestamp;
use stepwell_engine::clock::{Clock, VirtualClock};
use stepwell_engine::register::Registration;
use stepwell_engine::send::Send;
use stepwell_engine::start::Start;
use stepwell_engine::{Config, Engine, register, send, start};
use stepwell_sandbox::scripted::Scripted;
use stepwell_store::{Call, Delivered, Error, Fault, MemoryStore, Message, Run, Store};

use super::draws::Draws;
use super::guests::Guests;
use super::plan::{Faults, Plan};
use super::verdict;

/// Between two tries of the client.
const AGAIN: Duration = Duration::from_millis(20);
/// Between two looks at a run of which nothing was told.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// Of the simulated time; nothing here takes as long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(2 * 24 * 3_600);

pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) guests: Arc<Guests>,
    store: Arc<MemoryStore>,
    /// What the clock of the next host shows at first.
    now: Timestamp,
    client: Client,
}

/// What the client has been told. It survives the hosts.
#[derive(Default)]
struct Client {
    registered: usize,
    runs: Vec<RunId>,
    /// How many of its events each run has been sent.
    sent: BTreeMap<RunId, usize>,
    cancelled: BTreeMap<RunId, ()>,
}

fn tenant() -> TenantName {
    "acme".parse().unwrap()
}

impl World {
    pub(super) fn of(plan: Plan) -> Self {
        let scripts = plan
            .workflows
            .iter()
            .map(|workflow| Scripted::new(workflow.script.clone()));
        Self {
            guests: Arc::new(Guests::new(scripts)),
            store: Arc::new(MemoryStore::new()),
            now: Timestamp::from_ms(1_700_000_000_000),
            client: Client::default(),
            plan,
        }
    }

    /// Plays the plan to its end and judges what came of it. Returns how often the store was called.
    pub(super) fn play(mut self) -> u64 {
        self.script_faults();
        for kill in self.plan.kills.clone() {
            self.host(Some(kill));
        }
        self.host(None);
        self.store.faults().clear();
        verdict::judge(&self);
        self.store.faults().calls()
    }

    fn script_faults(&self) {
        let faults = self.store.faults();
        match self.plan.faults {
            Faults::None => {}
            Faults::At(call, fault) => faults.schedule([(call, fault)]),
            Faults::Away(from, span) => {
                let mut until = None;
                faults.script(move |call: Call| {
                    if call.number < from {
                        return None;
                    }
                    let now = tokio::time::Instant::now();
                    let until = *until.get_or_insert(now + span);
                    (now < until).then_some(Fault::FailBefore)
                });
            }
            Faults::SlowAppends(span) => {
                faults.script(move |call: Call| {
                    (call.method == "append").then_some(Fault::Slow(span))
                });
            }
            Faults::Drawn {
                seed,
                one_in,
                calls,
            } => {
                let mut draws = Draws::from_seed(seed);
                faults.script(move |call: Call| {
                    if call.number >= calls || !draws.one_in(one_in) {
                        return None;
                    }
                    Some(match draws.below(6) {
                        0 => Fault::FailBefore,
                        1 => Fault::FailAfter,
                        2 => Fault::Slow(Duration::from_millis(draws.below(2_000))),
                        3 => Fault::Yield(1 + u32::try_from(draws.below(30)).unwrap()),
                        4 => Fault::LoseLease,
                        _ => Fault::DiskFull,
                    })
                });
            }
        }
    }

    /// One host's life: until the client has seen the end of every run, or the host is lost.
    fn host(&mut self, kill: Option<Duration>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let store = Arc::clone(&self.store);
        let guests = Arc::clone(&self.guests);
        let client = &mut self.client;
        let plan = &self.plan;
        let began = self.now;
        self.now = runtime.block_on(async {
            let clock = Arc::new(VirtualClock::new(began));
            let life = async {
                let config = Config {
                    resident_for_max: if plan.evicts {
                        Duration::ZERO
                    } else {
                        Config::default().resident_for_max
                    },
                    ..Config::default()
                };
                let engine = loop {
                    let (store, guests) = (Arc::clone(&store), Arc::clone(&guests));
                    let clock: Arc<dyn Clock> = Arc::clone(&clock) as _;
                    match Engine::launch(store, guests, clock, config.clone()).await {
                        Ok(engine) => break engine,
                        Err(error) => again(&error).await,
                    }
                };
                client.ask(&engine, plan).await;
                engine.shutdown().await;
            };
            let set_clock = async {
                for set in &plan.clock {
                    tokio::time::sleep(set.at).await;
                    if set.is_forward {
                        clock.forward(set.span);
                    } else {
                        clock.back(set.span);
                    }
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = life => {}
                () = set_clock => {}
                () = tokio::time::sleep(kill.unwrap_or(PATIENCE)) => {
                    assert!(kill.is_some(), "{}: a run hangs: {:#?}", plan.name, client.runs);
                }
            }
            clock.now()
        });
        // Everything that the host was doing is gone, wherever it was.
        drop(runtime);
        self.store.expire_leases();
    }

    /// What the store shows of a workflow's run in the end, with its journal.
    pub(super) fn end_of(&self, number: usize) -> (Run, Vec<stepwell_core::journal::Entry>) {
        let id = self.client.runs[number];
        futures::executor::block_on(async {
            let run = self.store.run(&tenant(), id).await.unwrap().unwrap();
            let history = self
                .store
                .history(&tenant(), id, Sequence(0), 100_000)
                .await
                .unwrap()
                .unwrap();
            (run, history.into_iter().map(|(_, entry)| entry).collect())
        })
    }

    /// Every run that exists.
    pub(super) fn runs(&self) -> Vec<Run> {
        let filter = stepwell_store::RunFilter {
            limit: 1_000,
            ..Default::default()
        };
        futures::executor::block_on(self.store.runs(&tenant(), filter)).unwrap()
    }
}

async fn again(error: &Error) {
    assert!(
        matches!(error, Error::Unavailable { .. } | Error::Unknown { .. }),
        "{error}"
    );
    tokio::time::sleep(AGAIN).await;
}

impl Client {
    /// Asks for everything that is in the plan and has not been answered, then waits for the ends.
    async fn ask(&mut self, engine: &Engine, plan: &Plan) {
        while self.registered < plan.workflows.len() {
            self.register(engine).await;
        }
        while self.runs.len() < plan.workflows.len() {
            self.start(engine).await;
        }
        for (number, workflow) in plan.workflows.iter().enumerate() {
            let run = self.runs[number];
            while let Some(event) = workflow
                .events
                .get(self.sent.get(&run).copied().unwrap_or(0))
            {
                self.send(engine, run, event).await;
            }
            if workflow.is_cancelled {
                self.cancel(engine, run).await;
            }
        }
        for run in self.runs.clone() {
            self.end(engine, run, plan).await;
        }
    }

    async fn register(&mut self, engine: &Engine) {
        let number = u8::try_from(self.registered).unwrap();
        let registration = Registration {
            tenant: tenant(),
            label: "1".parse().unwrap(),
            component: Arc::from([number].as_slice()),
            environment: Vec::new(),
        };
        match engine.register(registration).await {
            Ok(_) => self.registered += 1,
            Err(register::Error::Store(error)) => again(&error).await,
            Err(other) => panic!("{other}"),
        }
    }

    async fn start(&mut self, engine: &Engine) {
        let number = self.runs.len();
        let start = Start {
            tenant: tenant(),
            workflow: format!("workflow-{number}").parse().unwrap(),
            label: None,
            input: Payload::null(),
            idempotency_key: Some(number.to_string()),
            start_at: None,
        };
        match engine.start(start).await {
            Ok(started) => self.runs.push(started.run),
            Err(start::Error::Store(error)) => again(&error).await,
            Err(other) => panic!("{other}"),
        }
    }

    async fn send(&mut self, engine: &Engine, run: RunId, event: &str) {
        let sent = self.sent.entry(run).or_default();
        let event = Send {
            name: event.to_owned(),
            payload: Payload::Json(sent.to_string()),
            delivery_key: Some(sent.to_string()),
        };
        match engine.send(&tenant(), run, event).await {
            Ok(Delivered::Accepted { .. } | Delivered::Already { .. }) => *sent += 1,
            // It has ended without: its at-most-once step was lost.
            Ok(Delivered::Refused { status }) if status.is_final() => *sent += 1,
            Ok(other) => panic!("{run}: {other:?}"),
            Err(send::Error::Store(error)) => again(&error).await,
            Err(other) => panic!("{other}"),
        }
    }

    async fn cancel(&mut self, engine: &Engine, run: RunId) {
        while !self.cancelled.contains_key(&run) {
            let cancel = Message::Cancel {
                reason: "as planned".to_owned(),
            };
            match engine.deliver(&tenant(), run, cancel).await {
                Ok(_) => {
                    self.cancelled.insert(run, ());
                }
                Err(error) => again(&error).await,
            }
        }
    }

    async fn end(&mut self, engine: &Engine, run: RunId, plan: &Plan) {
        let mut watch = engine.store().watch(run);
        loop {
            match engine.store().run(&tenant(), run).await {
                Ok(Some(row)) if row.status.is_final() => return,
                Ok(Some(row)) if row.status == Status::Stuck => {
                    // Enough faults in a row look like a run that takes its host down; the client
                    // is the operator too.
                    let is_drawn = matches!(plan.faults, Faults::Drawn { .. });
                    assert!(is_drawn, "{}: {run}: {:?}", plan.name, row.stuck_reason);
                    if let Err(error) = engine.deliver(&tenant(), run, Message::Resume).await {
                        again(&error).await;
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => panic!("{run} is gone, which was acknowledged"),
                Err(error) => again(&error).await,
            }
            // Nobody is told of what has timed out; then it looks again.
            let _ = tokio::time::timeout(LOOK_AGAIN, watch.changed()).await;
        }
    }
}
