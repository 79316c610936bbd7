//! The guest's side of a driven run: each call is matched to the journal, and performed only where
//! the journal ends.

use std::time::Duration;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use stepwell_core::id::{EventId, Operation};
use stepwell_core::journal::{Opening, OperationKind, Record};
use stepwell_core::payload::{Failure, Payload};
use stepwell_core::replay::{Ask, AttemptAnswer, Begin, Error, SelectAnswer, StepAnswer, StepAsk};
use stepwell_core::retry::Options;
use stepwell_core::time::Timestamp;
use stepwell_sandbox::guest::{
    Asked, AttemptState, Durable, LogLevel, LogSink, Moment, Outcome, Selected, StepAttempt,
    StepState, Stop,
};
use stepwell_store::Then;
use tokio::sync::OwnedMutexGuard;

use super::state::{Halt, RunState, draw};
use super::suspend::Suspended;
use super::tasks::AskedTask;

/// Holds the run's state for as long as the guest's instance lives.
pub(crate) struct GuestSide {
    pub(crate) state: OwnedMutexGuard<RunState>,
}

impl LogSink for GuestSide {
    fn log(&mut self, level: LogLevel, message: String, fields: Vec<(String, String)>) {
        self.state.log(level, message, fields);
    }
}

#[async_trait]
impl Durable for GuestSide {
    fn moment(&self) -> Moment {
        Moment {
            now: self.state.replay.now(),
            replaying: self.state.replay.is_replaying(),
        }
    }

    async fn step(&mut self, name: String, options: Options) -> Result<StepState, Stop> {
        let state = &mut *self.state;
        state.check_name("a step", &name)?;
        let asked = state.replay.step(&name);
        match state.known(asked)? {
            StepAsk::Recorded(answer) => return Ok(step_state(answer)),
            StepAsk::Attempt(operation) => return state.attempt(operation, options).await,
            StepAsk::New => {}
        }
        if !state.replay.is_attempt_lost(None, options, state.host_lost)
            && state.ready_for_operation().await?
        {
            let asked = state.replay.step(&name);
            if let StepAsk::Recorded(answer) = state.known(asked)? {
                return Ok(step_state(answer));
            }
        }
        state.check_journal()?;
        if let Err(cause) = check_options(options) {
            state.host_lost = false;
            let now = state.shared.now();
            let (entry, error) = state.replay.refuse_step(&name, cause, now);
            state.queue(entry);
            return Ok(StepState::Failed(error));
        }
        let operation = state.replay.open_step(&name);
        state.attempt(operation, options).await
    }

    async fn retry_step(&mut self, step: Operation, options: Options) -> Result<StepState, Stop> {
        let state = &mut *self.state;
        let asked = state.replay.retry_step(step);
        let operation = match state.known(asked)? {
            StepAsk::Recorded(answer) => return Ok(step_state(answer)),
            StepAsk::Attempt(operation) => operation,
            StepAsk::New => unreachable!("a step to retry has been opened"),
        };
        if !state
            .replay
            .is_attempt_lost(Some(operation), options, state.host_lost)
            && state.ready_for_operation().await?
        {
            let asked = state.replay.retry_step(step);
            if let StepAsk::Recorded(answer) = state.known(asked)? {
                return Ok(step_state(answer));
            }
        }
        state.check_journal()?;
        state.attempt(operation, options).await
    }

    fn finish_step(&mut self, outcome: Result<Payload, Failure>) -> Result<AttemptState, Stop> {
        let state = &mut *self.state;
        state.watch.attempt_ends();
        let now = state.shared.now();
        let limits = &state.shared.config.limits;
        let outcome = match outcome {
            Ok(output) => super::bounded(output, limits),
            Err(failure) => Err(super::bounded_failure(failure, limits)),
        };
        let (entry, answer) = match outcome {
            Ok(output) => (
                state.replay.complete_attempt(output, now),
                AttemptAnswer::Completed,
            ),
            Err((end, cause)) => state.replay.end_attempt(end, cause, now, draw()),
        };
        state.queue(entry);
        Ok(match answer {
            AttemptAnswer::Completed => AttemptState::Completed,
            AttemptAnswer::Backoff(operation) => AttemptState::Backoff(operation),
            AttemptAnswer::Failed(error) => AttemptState::Failed(error),
        })
    }

    fn sleep(&mut self, name: String, duration: Duration) -> Result<Asked, Stop> {
        let state = &mut *self.state;
        let max = state.shared.config.limits.sleep_max;
        state.open(OperationKind::Sleep, "a sleep", &name, None, |now| {
            let due = now.after(duration);
            check_sleep(duration, max).map(|()| Opening::Sleep { due })
        })
    }

    fn sleep_until(&mut self, name: String, at: Timestamp) -> Result<Asked, Stop> {
        let state = &mut *self.state;
        let max = state.shared.config.limits.sleep_max;
        state.open(OperationKind::Sleep, "a sleep", &name, None, |now| {
            check_sleep(at.since(now), max).map(|()| Opening::Sleep { due: at })
        })
    }

    fn wait_for_event(&mut self, event: String, timeout: Option<Duration>) -> Result<Asked, Stop> {
        let state = &mut *self.state;
        let max = state.shared.config.limits.sleep_max;
        state.open(OperationKind::Wait, "an event", &event, None, |now| {
            if let Some(timeout) = timeout {
                check_sleep(timeout, max)?;
            }
            Ok(Opening::Wait {
                timeout_at: timeout.map(|timeout| now.after(timeout)),
            })
        })
    }

    fn call_task(&mut self, task: String, input: Payload, options: Options) -> Result<Asked, Stop> {
        let state = &mut *self.state;
        let max = state.shared.config.limits.payload_bytes_max;
        let input_digest = input_digest(&input);
        let size = input.size_bytes();
        let asked = state.open(
            OperationKind::Task,
            "a task",
            &task,
            Some(input_digest),
            |_| {
                check_options(options)?;
                if size > max {
                    return Err(too_large("a task's input", size, max));
                }
                Ok(Opening::Task { input_digest })
            },
        )?;
        if let Ok(operation) = asked {
            state.tasks.ask(
                operation,
                AskedTask {
                    name: task,
                    input,
                    options,
                },
            );
        }
        Ok(asked)
    }

    fn withdraw(&mut self, operation: Operation) -> Result<(), Stop> {
        let state = &mut *self.state;
        let withdrawn = state.replay.withdraw(operation);
        state.known(withdrawn)?;
        state.tasks.forget(operation);
        Ok(())
    }

    async fn select(
        &mut self,
        among: Vec<Operation>,
        resident_bytes: u64,
    ) -> Result<Selected, Stop> {
        let state = &mut *self.state;
        let asked = state.replay.select(&among);
        if let Ask::Recorded(answer) = state.known(asked)? {
            return Ok(state.selected(answer));
        }
        // Whoever waits had no attempt under way.
        state.host_lost = false;
        let mut suspended = Suspended::new(resident_bytes);
        loop {
            state.look().await?;
            state.collect_tasks();
            state.deliver_cancel();
            let asked = state.replay.select(&among);
            if let Ask::Recorded(answer) = state.known(asked)? {
                return Ok(state.selected(answer));
            }
            if !state.is_paused() && state.record_choice(&among) {
                continue;
            }
            if state.replay.waits(&among).sleeps == 0 {
                state.drop_wake();
            }
            suspended.wait(state, &among).await?;
        }
    }

    fn reply(
        &mut self,
        event: String,
        answer: Result<Payload, Failure>,
    ) -> Result<Result<(), Failure>, Stop> {
        let state = &mut *self.state;
        let max = state.shared.config.limits.payload_bytes_max;
        let size = answer
            .as_ref()
            .map_or_else(Failure::size_bytes, Payload::size_bytes);
        state.check_name("an event", &event)?;
        let known = event
            .parse::<EventId>()
            .ok()
            .filter(|id| state.answerable.contains(id));
        state.immediate(OperationKind::Reply, &event, |operation, event| {
            let Some(id) = known else {
                let message =
                    format!("event `{event}` was not taken by this run, or has been answered");
                return Err(Failure::permanent("unknown-event", message));
            };
            if size > max {
                return Err(too_large("a reply", size, max));
            }
            Ok(Record::Replied {
                operation,
                event: id,
                answer,
            })
        })
    }

    fn publish(&mut self, key: String, value: Payload) -> Result<Result<(), Failure>, Stop> {
        let state = &mut *self.state;
        let max = state.shared.config.limits.payload_bytes_max;
        let size = value.size_bytes();
        state.check_name("a published value", &key)?;
        state.immediate(OperationKind::Publish, &key, |operation, key| {
            if size > max {
                return Err(too_large("a published value", size, max));
            }
            Ok(Record::Published {
                operation,
                key,
                value,
            })
        })
    }
}

impl RunState {
    /// What the replay says, or why the guest stops.
    fn known<T>(&mut self, asked: Result<T, Error>) -> Result<T, Stop> {
        match asked {
            Ok(answer) => Ok(answer),
            Err(Error::Diverged(diverged)) => Err(self.stop(Halt::Diverged(diverged))),
            Err(other) => Err(Stop::Misuse(other.to_string())),
        }
    }

    /// Before a new operation: looks outside, and gives the run up if it is held or the host shuts
    /// down. True if the guest must be told of a cancel instead.
    async fn ready_for_operation(&mut self) -> Result<bool, Stop> {
        self.look().await?;
        if self.is_paused() || self.signals.is_shutdown() {
            // Tasks in flight may finish, and are recorded.
            while self.tasks.running_count() > 0 && !self.signals.is_shutdown() {
                self.tasks.one_ended().await;
                self.collect_tasks();
            }
            self.flush_or_stop(Then::Release).await?;
            return Err(self.stop(Halt::Released));
        }
        Ok(self.deliver_cancel())
    }

    /// Begins the next attempt of a step: everything before it is durable when its body runs.
    async fn attempt(&mut self, operation: Operation, options: Options) -> Result<StepState, Stop> {
        let host_lost = std::mem::take(&mut self.host_lost);
        let now = self.shared.now();
        match self
            .replay
            .begin_attempt(operation, options, now, host_lost)
        {
            Begin::Lost { entry, answer } => {
                self.queue(entry);
                Ok(match answer {
                    AttemptAnswer::Backoff(operation) => StepState::Backoff(operation),
                    AttemptAnswer::Failed(error) => StepState::Failed(error),
                    AttemptAnswer::Completed => unreachable!("a lost attempt has no result"),
                })
            }
            Begin::Attempt { attempt, started } => {
                if let Some(entry) = started {
                    self.queue(entry);
                }
                self.barrier().await?;
                self.watch
                    .attempt_begins(attempt.allowance(self.shared.now()));
                let key = self.attempt_key(operation);
                Ok(StepState::Execute(StepAttempt {
                    step: operation,
                    number: attempt.number,
                    key,
                }))
            }
        }
    }

    fn open(
        &mut self,
        kind: OperationKind,
        what: &'static str,
        name: &str,
        digest: Option<[u8; 32]>,
        make: impl FnOnce(Timestamp) -> Result<Opening, Failure>,
    ) -> Result<Asked, Stop> {
        self.check_name(what, name)?;
        let asked = self.replay.open(kind, name, digest);
        if let Ask::Recorded(answer) = self.known(asked)? {
            return Ok(answer);
        }
        self.host_lost = false;
        self.check_journal()?;
        let now = self.shared.now();
        let operation = self.replay.next_operation();
        let name_owned = name.to_owned();
        self.record(match self.check_open().and_then(|()| make(now)) {
            Ok(opening) => Record::Opened {
                operation,
                name: name_owned,
                opening,
            },
            Err(failure) => Record::Refused {
                operation,
                kind,
                name: name_owned,
                failure,
            },
        });
        let asked = self.replay.open(kind, name, digest);
        match self.known(asked)? {
            Ask::Recorded(answer) => Ok(answer),
            Ask::New => unreachable!("it has just been recorded"),
        }
    }

    fn immediate(
        &mut self,
        kind: OperationKind,
        name: &str,
        make: impl FnOnce(Operation, String) -> Result<Record, Failure>,
    ) -> Result<Result<(), Failure>, Stop> {
        let asked = self.replay.immediate(kind, name);
        if let Ask::Recorded(answer) = self.known(asked)? {
            return Ok(answer);
        }
        self.host_lost = false;
        self.check_journal()?;
        let operation = self.replay.next_operation();
        let record = make(operation, name.to_owned()).unwrap_or_else(|failure| Record::Refused {
            operation,
            kind,
            name: name.to_owned(),
            failure,
        });
        self.record(record);
        let asked = self.replay.immediate(kind, name);
        match self.known(asked)? {
            Ask::Recorded(answer) => Ok(answer),
            Ask::New => unreachable!("it has just been recorded"),
        }
    }

    /// A bad name traps: it is a slip of the program, and no journal must keep it.
    fn check_name(&self, what: &str, name: &str) -> Result<(), Stop> {
        let max = self.shared.config.limits.name_bytes_max;
        if name.is_empty() || name.len() > max {
            return Err(Stop::Misuse(format!(
                "the name of {what} has 1 to {max} bytes; this one has {}",
                name.len()
            )));
        }
        Ok(())
    }

    fn check_open(&self) -> Result<(), Failure> {
        let max = self.shared.config.limits.open_operations_max;
        if self.replay.open_operations() < max {
            return Ok(());
        }
        let message = format!(
            "{max} operations are open, which is the limit; wait for some, or withdraw them"
        );
        Err(Failure::permanent("open-operations-limit", message))
    }

    fn selected(&mut self, answer: SelectAnswer) -> Selected {
        let (operation, outcome) = match answer {
            SelectAnswer::Slept(operation, wake) => (operation, Outcome::Slept(wake)),
            SelectAnswer::Event(operation, event) => (operation, Outcome::Event(event)),
            SelectAnswer::TimedOut(operation) => (operation, Outcome::TimedOut),
            SelectAnswer::Task(operation, result) => {
                self.tasks.forget(operation);
                (operation, Outcome::Task(result))
            }
            SelectAnswer::Cancelled(reason) => return Selected::Cancelled(reason),
        };
        Selected::Answered(operation, outcome)
    }
}

fn step_state(answer: StepAnswer) -> StepState {
    match answer {
        StepAnswer::Backoff(operation) => StepState::Backoff(operation),
        StepAnswer::Completed(output) => StepState::Completed(output),
        StepAnswer::Failed(error) => StepState::Failed(error),
        StepAnswer::Cancelled(reason) => StepState::Cancelled(reason),
    }
}

fn check_options(options: Options) -> Result<(), Failure> {
    options
        .check()
        .map_err(|error| Failure::permanent("bad-options", error.to_string()))
}

fn check_sleep(span: Duration, max: Duration) -> Result<(), Failure> {
    if span <= max {
        return Ok(());
    }
    let message = format!(
        "a wait of {} ms was asked for; the longest is {} ms (ten years)",
        span.as_millis(),
        max.as_millis()
    );
    Err(Failure::permanent("sleep-too-long", message))
}

pub(crate) fn too_large(what: &str, found: usize, max: usize) -> Failure {
    let message = format!(
        "{what} has {found} bytes, and the payload limit is {max}; store large values elsewhere and hand on a reference"
    );
    Failure::permanent("payload-limit", message)
}

/// SHA-256 of a payload, with its kind mixed in: equal bytes of another kind are another input.
pub(crate) fn input_digest(input: &Payload) -> [u8; 32] {
    let kind: &[u8] = match input {
        Payload::Json(_) => b"json\0",
        Payload::Binary(_) => b"binary\0",
    };
    Sha256::new_with_prefix(kind)
        .chain_update(input.as_bytes())
        .finalize()
        .into()
}
