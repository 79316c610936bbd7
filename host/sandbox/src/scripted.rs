//! A guest played from a list, without WebAssembly, for simulation: it asks for the same
//! operations in the same order in every activation, as a real one must.
//!
//! It owns no clock and draws nothing; what the attempts of its steps and tasks do is written down
//! beforehand, and each is remembered as an effect, so that a test can count them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::id::Operation;
use stepwell_core::payload::{Failure, Payload};
use stepwell_core::retry::{Options, StepError};

use crate::guest::{
    Activation, Asked, AttemptState, Completion, Component, Durable, Exit, LogSink, Outcome,
    Selected, StepState, Stop, TaskCall, Trap, TrapKind,
};

/// A guest as it is written down.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// What the workflow asks for, in order. It returns the number of actions it has played.
    pub actions: Vec<Action>,
    /// What it asks for once it has heard that it is to stop.
    pub clean_up: Vec<Action>,
    /// Its tasks by name; what an attempt does is found by its number, and the last goes on for
    /// all further ones.
    pub tasks: BTreeMap<String, Vec<Attempt>>,
}

/// A script as a component.
#[derive(Debug)]
pub struct Scripted {
    script: Script,
    effects: Mutex<Vec<Effect>>,
}

/// Something that a workflow asks for.
#[derive(Debug, Clone)]
pub enum Action {
    /// A step; its attempts as in [`Script::tasks`]. One that is given up ends the workflow.
    Step {
        /// Its name.
        name: String,
        /// When it is tried again.
        options: Options,
        /// What its attempts do.
        attempts: Vec<Attempt>,
    },
    /// Several things that are answered later, asked for at once; it waits for all of them.
    Together(Vec<Wait>),
    /// A value shown to the outside.
    Publish(String, Payload),
}

/// Something that is answered later.
#[derive(Debug, Clone)]
pub enum Wait {
    /// A sleep.
    Sleep(String, Duration),
    /// A wait for an event; the event is answered with its own payload.
    Event(String, Option<Duration>),
    /// A task. One that is given up ends the workflow.
    Task(String, Payload, Options),
}

/// What an attempt does.
#[derive(Debug, Clone)]
pub enum Attempt {
    /// Returns.
    Returns(Result<Payload, Failure>),
    /// Traps.
    Traps,
}

/// An attempt that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// Its key.
    pub key: String,
    /// From 1.
    pub attempt: u32,
}

/// As if it were a small real guest.
const RESIDENT_BYTES: u64 = 64 * 1024;

/// Why a workflow is not played on.
enum Halted {
    Stop(Stop),
    Trap,
    Cancelled,
    Failed(Failure),
    StepFailed(StepError),
}

impl From<Stop> for Halted {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl Scripted {
    /// To be played as often as wished.
    pub fn new(script: Script) -> Self {
        Self {
            script,
            effects: Mutex::default(),
        }
    }

    /// The attempts that ran so far, in all activations, in their order.
    pub fn effects(&self) -> Vec<Effect> {
        self.effects
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Does what is written down for an attempt.
    async fn attempt(&self, attempts: &[Attempt], number: u32, key: &str) -> Attempt {
        let effect = Effect {
            key: key.to_owned(),
            attempt: number,
        };
        self.effects
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(effect);
        // The host may die here: the effect has happened, and nobody knows of it.
        tokio::task::yield_now().await;
        let index = usize::try_from(number)
            .unwrap_or(usize::MAX)
            .saturating_sub(1);
        let done = attempts.get(index).or(attempts.last());
        done.cloned()
            .unwrap_or_else(|| Attempt::Returns(Ok(Payload::null())))
    }

    async fn play(&self, actions: &[Action], durable: &mut dyn Durable) -> Result<(), Halted> {
        for action in actions {
            match action {
                Action::Step {
                    name,
                    options,
                    attempts,
                } => {
                    self.step(name, *options, attempts, durable).await?;
                }
                Action::Together(waits) => together(waits, durable).await?,
                Action::Publish(key, value) => {
                    durable
                        .publish(key.clone(), value.clone())?
                        .map_err(Halted::Failed)?;
                }
            }
        }
        Ok(())
    }

    async fn step(
        &self,
        name: &str,
        options: Options,
        attempts: &[Attempt],
        durable: &mut dyn Durable,
    ) -> Result<(), Halted> {
        let mut state = durable.step(name.to_owned(), options).await?;
        loop {
            let backoff = match state {
                StepState::Completed(_) => return Ok(()),
                StepState::Failed(error) => return Err(Halted::StepFailed(error)),
                StepState::Cancelled(_) => return Err(Halted::Cancelled),
                StepState::Backoff(backoff) => backoff,
                StepState::Execute(attempt) => {
                    let outcome = match self.attempt(attempts, attempt.number, &attempt.key).await {
                        Attempt::Returns(outcome) => outcome,
                        Attempt::Traps => return Err(Halted::Trap),
                    };
                    match durable.finish_step(outcome)? {
                        AttemptState::Completed => return Ok(()),
                        AttemptState::Failed(error) => return Err(Halted::StepFailed(error)),
                        AttemptState::Backoff(backoff) => backoff,
                    }
                }
            };
            match durable.select(vec![backoff], RESIDENT_BYTES).await? {
                Selected::Answered(..) => {}
                Selected::Cancelled(_) => return Err(Halted::Cancelled),
            }
            // The step itself: its backoff is answered under its own number.
            state = durable.retry_step(backoff, options).await?;
        }
    }
}

/// Asks for all, then waits until all are answered.
async fn together(waits: &[Wait], durable: &mut dyn Durable) -> Result<(), Halted> {
    let mut open: Vec<Operation> = Vec::new();
    for wait in waits {
        let asked: Asked = match wait.clone() {
            Wait::Sleep(name, duration) => durable.sleep(name, duration)?,
            Wait::Event(event, timeout) => durable.wait_for_event(event, timeout)?,
            Wait::Task(task, input, options) => durable.call_task(task, input, options)?,
        };
        open.push(asked.map_err(Halted::Failed)?);
    }
    while !open.is_empty() {
        match durable.select(open.clone(), RESIDENT_BYTES).await? {
            Selected::Cancelled(_) => return Err(Halted::Cancelled),
            Selected::Answered(operation, outcome) => {
                open.retain(|other| *other != operation);
                match outcome {
                    Outcome::Slept(_) | Outcome::TimedOut | Outcome::Task(Ok(_)) => {}
                    Outcome::Task(Err(error)) => return Err(Halted::StepFailed(error)),
                    Outcome::Event(event) => {
                        // A second answer to the same event is the sender's business alone.
                        let _ = durable.reply(event.id.to_string(), Ok(event.payload))?;
                    }
                }
            }
        }
    }
    Ok(())
}

#[async_trait]
impl Component for Scripted {
    async fn run(&self, _: Activation, mut durable: Box<dyn Durable>) -> Exit<Completion> {
        let mut played = self.play(&self.script.actions, &mut *durable).await;
        let is_cancelled = matches!(played, Err(Halted::Cancelled));
        if is_cancelled {
            played = self.play(&self.script.clean_up, &mut *durable).await;
        }
        match played {
            Ok(()) if is_cancelled => Exit::Returned(Completion::Failed(cancelled())),
            Ok(()) => {
                let count = self.script.actions.len();
                Exit::Returned(Completion::Done(Payload::Json(count.to_string())))
            }
            Err(Halted::Cancelled) => Exit::Returned(Completion::Failed(cancelled())),
            Err(Halted::Failed(failure)) => Exit::Returned(Completion::Failed(failure)),
            Err(Halted::StepFailed(error)) => Exit::Returned(Completion::StepFailed(error)),
            Err(Halted::Stop(Stop::Now)) => Exit::Stopped,
            Err(Halted::Stop(Stop::Misuse(message))) => trapped(TrapKind::Misuse, message),
            Err(Halted::Trap) => trapped(TrapKind::Panic, "as written in the script".to_owned()),
        }
    }

    async fn run_task(
        &self,
        call: TaskCall,
        _: Box<dyn LogSink>,
    ) -> Exit<Result<Payload, Failure>> {
        let attempts = self
            .script
            .tasks
            .get(&call.task)
            .map_or(&[] as &[_], Vec::as_slice);
        match self.attempt(attempts, call.attempt, &call.key).await {
            Attempt::Returns(outcome) => Exit::Returned(outcome),
            Attempt::Traps => trapped(TrapKind::Panic, "as written in the script".to_owned()),
        }
    }
}

fn cancelled() -> Failure {
    Failure::permanent("cancelled", "the run was asked to stop")
}

fn trapped<T>(kind: TrapKind, message: String) -> Exit<T> {
    Exit::Trapped(Trap {
        kind,
        message,
        backtrace: String::new(),
    })
}
