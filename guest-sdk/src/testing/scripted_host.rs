//! A host that keeps the contract on a virtual clock, for one run and one thread.
//!
//! It plays what the script brings from outside, and answers operations in order of time; at one
//! time, in program order.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::script::{Script, Stimulus};
use super::transcript::{Answer, Call, Transcript};
use crate::bindings::stepwell::workflow::durable::{
    self, AttemptState, EventMessage, Operation, Outcome, Selected, StepAttempt, StepState, Wake,
};
use crate::bindings::stepwell::workflow::types::{
    self, AttemptEnd, Failure, Payload, StepError, StepOptions,
};
use crate::host::{Asked, Host};
use crate::retry::{Retry, Rules};

/// When a test's run begins: 2026-01-01T00:00:00Z.
pub(super) const START_MS: u64 = 1_767_225_600_000;

/// Ten years of 365.25 days, as in the real host.
const SLEEP_MS_MAX: u64 = 315_576_000_000;

pub(super) struct ScriptedHost {
    workflow: &'static str,
    state: RefCell<State>,
}

/// What a run did.
pub(super) struct Report {
    pub(super) attempts: Vec<String>,
    pub(super) published: BTreeMap<String, Value>,
    pub(super) replies: Vec<Result<Value, String>>,
    pub(super) withdrawn: Vec<String>,
    pub(super) elapsed: Duration,
    pub(super) transcript: Transcript,
}

struct State {
    script: Script,
    now: u64,
    operations: u32,
    open: BTreeMap<Operation, Open>,
    mailbox: Vec<(String, EventMessage)>,
    events: u32,
    /// The step whose body runs.
    running: Option<(Operation, StepOptions)>,
    cancel: Option<String>,
    replied: BTreeSet<String>,
    report: Report,
}

struct Open {
    name: String,
    kind: Kind,
    /// When it is answered at the latest, or its next attempt may begin.
    due: Option<u64>,
    woken: bool,
}

enum Kind {
    Sleep,
    Wait,
    Step {
        attempts: Attempts,
    },
    Task {
        attempts: Attempts,
        input: Payload,
        options: StepOptions,
    },
}

#[derive(Clone, Copy)]
struct Attempts {
    begun: u32,
    first_at: u64,
}

/// What follows a failed attempt.
enum Next {
    RetryAt(u64),
    GivenUp(StepError),
}

impl ScriptedHost {
    pub(super) fn new(workflow: &'static str, script: Script) -> Self {
        let report = Report {
            attempts: Vec::new(),
            published: BTreeMap::new(),
            replies: Vec::new(),
            withdrawn: Vec::new(),
            elapsed: Duration::ZERO,
            transcript: Transcript::default(),
        };
        let state = State {
            script,
            now: START_MS,
            operations: 0,
            open: BTreeMap::new(),
            mailbox: Vec::new(),
            events: 0,
            running: None,
            cancel: None,
            replied: BTreeSet::new(),
            report,
        };
        Self {
            workflow,
            state: RefCell::new(state),
        }
    }

    /// What the run did; taken out.
    pub(super) fn report(&self) -> Report {
        let mut state = self.state.borrow_mut();
        Report {
            attempts: std::mem::take(&mut state.report.attempts),
            published: std::mem::take(&mut state.report.published),
            replies: std::mem::take(&mut state.report.replies),
            withdrawn: std::mem::take(&mut state.report.withdrawn),
            elapsed: Duration::from_millis(state.now - START_MS),
            transcript: std::mem::take(&mut state.report.transcript),
        }
    }

    fn open(&self, call: Call, name: &str, kind: Kind, due: Option<u64>) -> Asked {
        let mut state = self.state.borrow_mut();
        let number = state.number();
        state.open.insert(
            number,
            Open {
                name: name.to_owned(),
                kind,
                due,
                woken: false,
            },
        );
        state.record(call, Answer::Asked(Ok(number)));
        Ok(number)
    }

    fn open_sleep(&self, name: &str, due: u64) -> Asked {
        let call = Call::Sleep(name.to_owned());
        let mut state = self.state.borrow_mut();
        if due.saturating_sub(state.now) <= SLEEP_MS_MAX {
            drop(state);
            return self.open(call, name, Kind::Sleep, Some(due));
        }
        state.number();
        let refused = Err(Failure {
            kind: "sleep-too-long".to_owned(),
            message: format!("sleep `{name}` ends more than ten years ahead"),
            retryable: false,
            retry_after: None,
            details: None,
        });
        state.record(call, Answer::Asked(refused.clone()));
        refused
    }
}

impl Host for ScriptedHost {
    fn info(&self) -> durable::RunInfo {
        info(self.workflow)
    }

    fn now(&self) -> types::InstantMs {
        self.state.borrow().now
    }

    fn step(&self, name: &str, options: StepOptions) -> StepState {
        let mut state = self.state.borrow_mut();
        state.play_script();
        let answer = match state.cancel.take() {
            Some(reason) => StepState::Cancelled(reason),
            None => {
                let number = state.number();
                let attempts = Attempts {
                    begun: 0,
                    first_at: state.now,
                };
                let open = Open {
                    name: name.to_owned(),
                    kind: Kind::Step { attempts },
                    due: None,
                    woken: false,
                };
                state.open.insert(number, open);
                state.execute(number, options)
            }
        };
        state.record(Call::Step(name.to_owned()), Answer::Step(answer.clone()));
        answer
    }

    fn retry_step(&self, step: Operation, options: StepOptions) -> StepState {
        let mut state = self.state.borrow_mut();
        let answer = state.execute(step, options);
        state.record(Call::RetryStep(step), Answer::Step(answer.clone()));
        answer
    }

    fn finish_step(&self, outcome: Result<&Payload, &Failure>) -> AttemptState {
        let mut state = self.state.borrow_mut();
        let Some((step, options)) = state.running.take() else {
            panic!("finish-step: no body runs")
        };
        let Some(Open {
            name,
            kind: Kind::Step { attempts },
            ..
        }) = state.open.remove(&step)
        else {
            panic!("finish-step: operation {step} is not an open step")
        };
        let (answer, replayed) = match outcome {
            Ok(output) => (
                AttemptState::Completed,
                StepState::Completed(output.clone()),
            ),
            Err(failure) => match state.after_failure(&name, attempts, &options, failure) {
                Next::RetryAt(due) => {
                    let kind = Kind::Step { attempts };
                    state.open.insert(
                        step,
                        Open {
                            name,
                            kind,
                            due: Some(due),
                            woken: false,
                        },
                    );
                    (AttemptState::Backoff(step), StepState::Backoff(step))
                }
                Next::GivenUp(error) => (
                    AttemptState::Failed(error.clone()),
                    StepState::Failed(error),
                ),
            },
        };
        let now = state.now;
        state.report.transcript.finish_step(replayed, now);
        answer
    }

    fn sleep(&self, name: &str, duration: types::DurationMs) -> Asked {
        let due = self.now().saturating_add(duration);
        self.open_sleep(name, due)
    }

    fn sleep_until(&self, name: &str, at: types::InstantMs) -> Asked {
        self.open_sleep(name, at)
    }

    fn wait_for_event(&self, event: &str, timeout: Option<types::DurationMs>) -> Asked {
        let due = timeout.map(|timeout| self.now().saturating_add(timeout));
        self.open(Call::Wait(event.to_owned()), event, Kind::Wait, due)
    }

    fn call_task(&self, task: &str, input: &Payload, options: StepOptions) -> Asked {
        let now = self.now();
        let attempts = Attempts {
            begun: 0,
            first_at: now,
        };
        let kind = Kind::Task {
            attempts,
            input: input.clone(),
            options,
        };
        self.open(
            Call::Task(task.to_owned(), input.clone()),
            task,
            kind,
            Some(now),
        )
    }

    fn withdraw(&self, operation: Operation) {
        let mut state = self.state.borrow_mut();
        let Some(withdrawn) = state.open.remove(&operation) else {
            panic!("withdraw: operation {operation} is not open")
        };
        state.report.withdrawn.push(withdrawn.name);
        state.record(Call::Withdraw(operation), Answer::Nothing);
    }

    fn select(&self, among: &[Operation]) -> Selected {
        let mut state = self.state.borrow_mut();
        assert!(!among.is_empty(), "select: the list is empty");
        let selected = loop {
            state.play_script();
            if let Some(reason) = state.cancel.take() {
                break Selected::Cancelled(reason);
            }
            let answered = among.iter().find_map(|&operation| {
                state
                    .answer(operation)
                    .map(|outcome| durable::Answer { operation, outcome })
            });
            if let Some(answer) = answered {
                break Selected::Answered(answer);
            }
            state.advance(among);
        };
        state.record(
            Call::Select(among.to_vec()),
            Answer::Selected(selected.clone()),
        );
        selected
    }

    fn reply(&self, event: &str, answer: Result<&Payload, &Failure>) -> Result<(), Failure> {
        let mut state = self.state.borrow_mut();
        state.number();
        let said = if state.replied.insert(event.to_owned()) {
            let reply = answer.map(value).map_err(|failure| failure.kind.clone());
            state.report.replies.push(reply);
            Ok(())
        } else {
            Err(Failure {
                kind: "already-answered".to_owned(),
                message: format!("the sender of event {event} has been answered"),
                retryable: false,
                retry_after: None,
                details: None,
            })
        };
        state.record(Call::Reply(event.to_owned()), Answer::Said(said.clone()));
        said
    }

    fn publish(&self, key: &str, published: &Payload) -> Result<(), Failure> {
        let mut state = self.state.borrow_mut();
        state.number();
        state
            .report
            .published
            .insert(key.to_owned(), value(published));
        state.record(Call::Publish(key.to_owned()), Answer::Said(Ok(())));
        Ok(())
    }
}

impl State {
    fn number(&mut self) -> Operation {
        assert!(
            self.running.is_none(),
            "an operation was asked for while a step's body runs"
        );
        self.operations += 1;
        self.operations - 1
    }

    fn record(&mut self, call: Call, answer: Answer) {
        let now = self.now;
        self.report.transcript.add(call, answer, now);
    }

    /// Lets everything happen that has happened by now.
    fn play_script(&mut self) {
        let elapsed = self.now - START_MS;
        while self
            .script
            .stimuli
            .front()
            .is_some_and(|(after, _)| *after <= elapsed)
        {
            match self.script.stimuli.pop_front() {
                Some((_, Stimulus::Event { name, payload })) => {
                    self.events += 1;
                    let id = format!("evt_{}", self.events);
                    self.mailbox.push((
                        name,
                        EventMessage {
                            id,
                            payload,
                            sent_at: self.now,
                        },
                    ));
                }
                Some((_, Stimulus::Cancel { reason })) => self.cancel = Some(reason),
                Some((_, Stimulus::Wake)) => {
                    let sleep = self
                        .open
                        .values_mut()
                        .find(|open| matches!(open.kind, Kind::Sleep));
                    let Some(sleep) = sleep else {
                        panic!("nothing sleeps that the test could wake")
                    };
                    sleep.woken = true;
                }
                None => {}
            }
        }
    }

    /// The answer to an operation if it is there by now.
    fn answer(&mut self, operation: Operation) -> Option<Outcome> {
        let Some(open) = self.open.get_mut(&operation) else {
            panic!("select: operation {operation} is not open")
        };
        let is_due = open.due.is_some_and(|due| due <= self.now);
        match &mut open.kind {
            Kind::Sleep if open.woken => {
                self.open.remove(&operation);
                Some(Outcome::Slept(Wake::Woken))
            }
            Kind::Sleep if is_due => {
                self.open.remove(&operation);
                Some(Outcome::Slept(Wake::Elapsed))
            }
            // Stays open: `retry-step` goes on with it.
            Kind::Step { .. } if is_due => Some(Outcome::Slept(Wake::Elapsed)),
            Kind::Wait => {
                if let Some(place) = self.mailbox.iter().position(|(name, _)| *name == open.name) {
                    self.open.remove(&operation);
                    return Some(Outcome::Event(self.mailbox.remove(place).1));
                }
                if is_due {
                    self.open.remove(&operation);
                    return Some(Outcome::TimedOut);
                }
                None
            }
            Kind::Task {
                attempts,
                input,
                options,
            } if is_due => {
                attempts.begun += 1;
                let (name, attempts, input, options) =
                    (open.name.clone(), *attempts, input.clone(), *options);
                let Some(run) = self.script.tasks.get(name.as_str()) else {
                    panic!(
                        "the test has no task `{name}`; add it with `TestRun::new().task({name})`"
                    )
                };
                self.report.attempts.push(name.clone());
                match run(&input, attempts.begun, format!("test/{operation}")) {
                    Ok(output) => {
                        self.open.remove(&operation);
                        Some(Outcome::Task(Ok(output)))
                    }
                    Err(failure) => match self.after_failure(&name, attempts, &options, &failure) {
                        Next::RetryAt(due) => {
                            if let Some(open) = self.open.get_mut(&operation) {
                                open.due = Some(due);
                            }
                            None
                        }
                        Next::GivenUp(error) => {
                            self.open.remove(&operation);
                            Some(Outcome::Task(Err(error)))
                        }
                    },
                }
            }
            Kind::Sleep | Kind::Step { .. } | Kind::Task { .. } => None,
        }
    }

    /// Moves the clock to whatever happens next.
    fn advance(&mut self, among: &[Operation]) {
        let dues = among
            .iter()
            .filter_map(|operation| self.open.get(operation)?.due);
        let scripted = self
            .script
            .stimuli
            .front()
            .map(|(after, _)| START_MS + after);
        let Some(next) = dues.chain(scripted).min() else {
            let waits: Vec<&str> = among
                .iter()
                .filter_map(|operation| Some(self.open.get(operation)?.name.as_str()))
                .collect();
            panic!(
                "the run waits for {waits:?}, which nothing in the test's script will ever answer"
            )
        };
        self.now = self.now.max(next);
    }

    fn execute(&mut self, step: Operation, options: StepOptions) -> StepState {
        let Some(Open {
            name,
            kind: Kind::Step { attempts },
            ..
        }) = self.open.get_mut(&step)
        else {
            panic!("retry-step: operation {step} is not an open step")
        };
        attempts.begun += 1;
        let number = attempts.begun;
        self.report.attempts.push(name.clone());
        self.running = Some((step, options));
        StepState::Execute(StepAttempt {
            step,
            number,
            key: format!("test/{step}"),
        })
    }

    /// The retry rules without jitter, so that a test knows when what happens.
    fn after_failure(
        &self,
        name: &str,
        attempts: Attempts,
        options: &StepOptions,
        cause: &Failure,
    ) -> Next {
        let given_up = Next::GivenUp(StepError {
            step: name.to_owned(),
            attempts: attempts.begun,
            end: AttemptEnd::Failed,
            retryable: cause.retryable,
            cause: cause.clone(),
        });
        let default = || {
            Rules {
                retry: Some(Retry::default()),
                ..Rules::default()
            }
            .to_wire("")
            .ok()?
            .retry
        };
        let Some(policy) = options.retry.or_else(default) else {
            return given_up;
        };
        if !cause.retryable || attempts.begun >= policy.max_attempts {
            return given_up;
        }
        let growth = match policy.backoff {
            types::Backoff::Constant => 1.0,
            types::Backoff::Linear => f64::from(attempts.begun),
            types::Backoff::Exponential => policy
                .factor
                .powi(i32::try_from(attempts.begun - 1).unwrap_or(i32::MAX)),
        };
        let delay =
            Duration::try_from_secs_f64(Duration::from_millis(policy.delay).as_secs_f64() * growth);
        let delay = delay
            .map_or(policy.max_delay, crate::span::whole_ms)
            .min(policy.max_delay);
        let due = self.now.saturating_add(cause.retry_after.unwrap_or(delay));
        match options.deadline {
            Some(deadline) if due >= attempts.first_at.saturating_add(deadline) => given_up,
            _ => Next::RetryAt(due),
        }
    }
}

pub(super) fn info(workflow: &str) -> durable::RunInfo {
    durable::RunInfo {
        run_id: "run_00000000000000000000000000000001".to_owned(),
        tenant: "test".to_owned(),
        workflow: workflow.to_owned(),
        version: "test".to_owned(),
        started_at: START_MS,
    }
}

/// A payload as a test looks at it; bytes become an array of numbers.
fn value(payload: &Payload) -> Value {
    match payload {
        Payload::Json(text) => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
        }
        Payload::Binary(bytes) => Value::from(bytes.clone()),
    }
}
