//! A sandbox, the raw guest, and an engine that answers everything at once and remembers it.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::id::{EventId, Operation};
use stepwell_core::journal::{EventMessage, Wake};
use stepwell_core::limits::Limits;
use stepwell_core::payload::{Failure, Payload};
use stepwell_core::retry::Options;
use stepwell_core::time::Timestamp;
use stepwell_sandbox::guest::{
    Activation, Asked, AttemptState, Completion, Component, Durable, Exit, LogLevel, LogSink,
    Moment, Outcome, RunInfo, Selected, StepAttempt, StepState, Stop, TaskCall, Trap,
};
use stepwell_sandbox::{Config, Sandbox};

/// The raw guest's bytes; the first call builds it.
pub(crate) fn raw_guest() -> Arc<[u8]> {
    static BYTES: OnceLock<Arc<[u8]>> = OnceLock::new();
    Arc::clone(BYTES.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let status = Command::new("cargo")
            .args([
                "build",
                "--quiet",
                "--release",
                "--target",
                "wasm32-wasip2",
                "--package",
                "raw-guest",
            ])
            .current_dir(&root)
            .status()
            .unwrap();
        assert!(status.success(), "the raw guest must build");
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
        std::fs::read(target.join("wasm32-wasip2/release/raw_guest.wasm"))
            .unwrap()
            .into()
    }))
}

/// One sandbox for all tests that have no wish of their own.
pub(crate) fn sandbox() -> Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX
        .get_or_init(|| {
            Sandbox::new(Config {
                instances_max: 100,
                ..Config::default()
            })
            .unwrap()
        })
        .clone()
}

/// The raw guest, compiled.
pub(crate) async fn guest() -> Arc<dyn Component> {
    guest_in(&sandbox()).await
}

pub(crate) async fn guest_in(sandbox: &Sandbox) -> Arc<dyn Component> {
    sandbox
        .check(raw_guest(), &Limits::default())
        .await
        .unwrap()
        .component
}

/// One activation of a workflow of the raw guest.
pub(crate) struct Run {
    pub(crate) activation: Activation,
    pub(crate) engine: Engine,
}

impl Run {
    pub(crate) fn of(workflow: &str) -> Self {
        let info = RunInfo {
            run_id: "run_1".to_owned(),
            tenant: "acme".to_owned(),
            workflow: workflow.to_owned(),
            version: "1.0".to_owned(),
            started_at: Timestamp::from_ms(1_000),
        };
        let activation = Activation {
            info,
            input: Payload::null(),
            seed: 42,
            environment: Vec::new(),
            limits: Limits::default(),
        };
        Self {
            activation,
            engine: Engine::default(),
        }
    }

    pub(crate) fn input(mut self, text: impl ToString) -> Self {
        self.activation.input = Payload::Json(text.to_string());
        self
    }

    pub(crate) fn seed(mut self, seed: u128) -> Self {
        self.activation.seed = seed;
        self
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.activation.limits);
        self
    }

    pub(crate) fn engine(self, change: impl FnOnce(&mut State)) -> Self {
        change(&mut self.engine.0.lock().unwrap());
        self
    }

    pub(crate) async fn exit_in(self, guest: &dyn Component) -> Exit<Completion> {
        guest.run(self.activation, Box::new(self.engine)).await
    }

    pub(crate) async fn exit(self) -> Exit<Completion> {
        self.exit_in(&*guest().await).await
    }

    /// The text that the workflow returned.
    pub(crate) async fn output(self) -> String {
        match self.exit().await {
            Exit::Returned(Completion::Done(Payload::Json(text))) => text,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn trap(self) -> Trap {
        match self.exit().await {
            Exit::Trapped(trap) => trap,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn task(name: &str) -> TaskCall {
    TaskCall {
        task: name.to_owned(),
        input: Payload::Json("\"in\"".to_owned()),
        attempt: 3,
        key: "run_1/7".to_owned(),
        seed: 42,
        environment: Vec::new(),
        limits: Limits::default(),
    }
}

/// An engine without a journal: steps run, sleeps elapse, time moves on a minute a sleep.
#[derive(Clone, Default)]
pub(crate) struct Engine(pub(crate) Arc<Mutex<State>>);

/// What it does, and what it has seen.
#[derive(Default)]
pub(crate) struct State {
    /// Results of the first steps, as if from a journal.
    pub(crate) recorded: Vec<Payload>,
    /// Selects that are answered as if from a journal.
    pub(crate) recorded_naps: usize,
    /// What the first select answers instead of an answer.
    pub(crate) stop: Option<Stop>,
    /// The first select never answers.
    pub(crate) park: bool,
    pub(crate) parked: bool,
    /// A host function that panics.
    pub(crate) panics: bool,
    pub(crate) lines: Vec<(LogLevel, String)>,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) calls: Vec<String>,
    pub(crate) finished: Vec<Result<Payload, Failure>>,
    passed_ms: u64,
    operations: u32,
}

impl State {
    fn open(&mut self, call: String) -> Operation {
        self.calls.push(call);
        self.operations += 1;
        Operation(self.operations - 1)
    }
}

impl LogSink for Engine {
    fn log(&mut self, level: LogLevel, message: String, fields: Vec<(String, String)>) {
        let mut state = self.0.lock().unwrap();
        state.lines.push((level, message));
        state.fields.extend(fields);
    }
}

#[async_trait]
impl Durable for Engine {
    fn moment(&self) -> Moment {
        let state = self.0.lock().unwrap();
        Moment {
            now: Timestamp::from_ms(1_000 + state.passed_ms),
            replaying: !state.recorded.is_empty() || state.recorded_naps > 0,
        }
    }

    async fn step(&mut self, name: String, _: Options) -> Result<StepState, Stop> {
        let (operation, recorded) = {
            let mut state = self.0.lock().unwrap();
            assert!(!state.panics, "a bug of the host");
            let recorded = (!state.recorded.is_empty()).then(|| state.recorded.remove(0));
            (state.open(format!("step {name}")), recorded)
        };
        match recorded {
            Some(output) => Ok(StepState::Completed(output)),
            None => {
                tokio::task::yield_now().await;
                let key = format!("run_1/{operation}");
                Ok(StepState::Execute(StepAttempt {
                    step: operation,
                    number: 1,
                    key,
                }))
            }
        }
    }

    async fn retry_step(&mut self, step: Operation, _: Options) -> Result<StepState, Stop> {
        Err(Stop::Misuse(format!(
            "operation {step} was never given out"
        )))
    }

    fn finish_step(&mut self, outcome: Result<Payload, Failure>) -> Result<AttemptState, Stop> {
        let mut state = self.0.lock().unwrap();
        state.passed_ms += 1;
        state.finished.push(outcome);
        Ok(AttemptState::Completed)
    }

    fn sleep(&mut self, name: String, duration: Duration) -> Result<Asked, Stop> {
        Ok(Ok(self
            .0
            .lock()
            .unwrap()
            .open(format!("sleep {name} {duration:?}"))))
    }

    fn sleep_until(&mut self, name: String, at: Timestamp) -> Result<Asked, Stop> {
        Ok(Ok(self
            .0
            .lock()
            .unwrap()
            .open(format!("sleep-until {name} {}", at.as_ms()))))
    }

    fn wait_for_event(&mut self, event: String, timeout: Option<Duration>) -> Result<Asked, Stop> {
        Ok(Ok(self
            .0
            .lock()
            .unwrap()
            .open(format!("wait {event} {timeout:?}"))))
    }

    fn call_task(&mut self, task: String, input: Payload, _: Options) -> Result<Asked, Stop> {
        Ok(Ok(self
            .0
            .lock()
            .unwrap()
            .open(format!("task {task} {input:?}"))))
    }

    fn withdraw(&mut self, operation: Operation) -> Result<(), Stop> {
        self.0
            .lock()
            .unwrap()
            .calls
            .push(format!("withdraw {operation}"));
        Ok(())
    }

    async fn select(&mut self, among: Vec<Operation>, _: u64) -> Result<Selected, Stop> {
        let (stop, park) = {
            let mut state = self.0.lock().unwrap();
            state.calls.push(format!("select {among:?}"));
            state.parked = state.park;
            (state.stop.take(), state.park)
        };
        if let Some(stop) = stop {
            return Err(stop);
        }
        if park {
            std::future::pending::<()>().await;
        }
        let (is_live, waits) = {
            let mut state = self.0.lock().unwrap();
            state.passed_ms += 60_000;
            let is_live = state.recorded_naps == 0;
            state.recorded_naps = state.recorded_naps.saturating_sub(1);
            (
                is_live,
                state
                    .calls
                    .iter()
                    .any(|call| call.starts_with("wait"))
                    .then(|| among[among.len() - 1]),
            )
        };
        if is_live {
            tokio::task::yield_now().await;
        }
        Ok(match waits {
            Some(operation) => Selected::Answered(
                operation,
                Outcome::Event(EventMessage {
                    id: EventId(1),
                    payload: Payload::Json("\"hello\"".to_owned()),
                    sent_at: Timestamp::from_ms(5),
                }),
            ),
            None => Selected::Answered(among[0], Outcome::Slept(Wake::Elapsed)),
        })
    }

    fn reply(
        &mut self,
        event: String,
        answer: Result<Payload, Failure>,
    ) -> Result<Result<(), Failure>, Stop> {
        self.0
            .lock()
            .unwrap()
            .calls
            .push(format!("reply {event} {answer:?}"));
        Ok(Err(Failure::permanent("unknown-event", "nobody waits")))
    }

    fn publish(&mut self, key: String, value: Payload) -> Result<Result<(), Failure>, Stop> {
        self.0
            .lock()
            .unwrap()
            .calls
            .push(format!("publish {key} {value:?}"));
        Ok(Ok(()))
    }
}
