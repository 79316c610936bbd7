//! The attempts of steps and tasks: none begins that is not permitted, and every one that began
//! counts.
//!
//! A host may die at any moment, so the journal must know about the last permitted attempt before
//! it begins. For a task it knows about every one. For a step it knows about the last one only,
//! which saves a commit for each step that succeeds: an earlier attempt that may have been under
//! way when a host died is taken as lost.

use std::time::Duration;

use super::Replay;
use super::answer::AttemptAnswer;
use super::known::{Known, Waits};
use crate::id::Operation;
use crate::journal::{Entry, Record};
use crate::payload::{Failure, Payload};
use crate::retry::{AttemptEnd, Ended, Next, Options, StepError};
use crate::time::Timestamp;

/// An attempt of a step or task that is running.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunningAttempt {
    /// The step or task.
    pub operation: Operation,
    /// From 1.
    pub number: u32,
    /// The rules it runs under.
    pub options: Options,
    /// When all attempts must be over.
    pub deadline_at: Option<Timestamp>,
}

/// How long an attempt may run, and what bounds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// The timeout of one attempt.
    OfTimeout(Duration),
    /// What was left of the deadline for all attempts.
    OfDeadline(Duration),
}

impl Allowance {
    /// How long the attempt may run.
    pub fn span(self) -> Duration {
        match self {
            Self::OfTimeout(span) | Self::OfDeadline(span) => span,
        }
    }

    /// What is said of an attempt that ran longer.
    pub fn exceeded(self) -> Failure {
        let message = match self {
            Self::OfTimeout(span) => {
                format!(
                    "the attempt ran longer than its timeout of {} ms",
                    span.as_millis()
                )
            }
            Self::OfDeadline(span) => format!(
                "the attempt was stopped after {} ms by the deadline for all attempts",
                span.as_millis()
            ),
        };
        Failure::retryable("timed-out", message)
    }
}

/// Whether an attempt may begin.
#[derive(Debug, Clone, PartialEq)]
pub enum Begin {
    /// Yes.
    Attempt {
        /// The attempt.
        attempt: RunningAttempt,
        /// To be durable before the body runs, if there is one.
        started: Option<Entry>,
    },
    /// No. Either it had begun and was lost with its host: it counts, and this ends it. Or the
    /// deadline for all attempts has passed: it does not count, and the step has failed.
    Lost {
        /// To append.
        entry: Entry,
        /// What the guest is told.
        answer: AttemptAnswer,
    },
}

/// What is known of an open task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskProgress {
    /// Whether the journal has an attempt that started and did not end.
    pub started: bool,
    /// When the next attempt may begin, if it must wait.
    pub retry_at: Option<Timestamp>,
}

impl Replay {
    // ---- Of steps.

    /// Gives up a step that [`Replay::step`] found to be new, before its first attempt, since what
    /// was asked for makes no sense.
    pub fn refuse_step(
        &mut self,
        name: &str,
        cause: Failure,
        now: Timestamp,
    ) -> (Entry, StepError) {
        let operation = self.open_step(name);
        let error = StepError {
            step: self.open_name(operation),
            attempts: 0,
            end: AttemptEnd::Failed,
            cause,
        };
        (self.fail_step(operation, error.clone(), now), error)
    }

    /// Whether the next attempt of an open step (`None` for a new one) must first be ended as lost.
    pub fn is_attempt_lost(
        &self,
        operation: Option<Operation>,
        options: Options,
        host_lost: bool,
    ) -> bool {
        let known = operation.and_then(|operation| self.open.get(&operation));
        let (started, ended) = known.map_or((false, 0), |known| {
            (known.is_started(), known.attempts.ended)
        });
        started || (host_lost && ended + 1 < options.policy.attempts_max)
    }

    /// Begins the next attempt of a step that is new or whose backoff is over.
    ///
    /// `host_lost` says that a host died while this guest ran, and that this is the first thing it
    /// asks for since: an attempt may have been under way. The last permitted attempt is recorded
    /// before it begins, so for that one the journal knows; an earlier one is taken as lost. So no
    /// more attempts than permitted ever begin, and none that never began is the last.
    ///
    /// A deadline counts from the `now` of the first attempt that the journal knows of.
    ///
    /// # Panics
    /// If the step is not open: [`Replay::open_step`] or [`super::StepAsk::Attempt`] gives its
    /// number.
    pub fn begin_attempt(
        &mut self,
        operation: Operation,
        options: Options,
        now: Timestamp,
        host_lost: bool,
    ) -> Begin {
        let known = self.open.get(&operation).expect("the step is open");
        let attempt = next_attempt(known, operation, options, now);
        let (number, deadline_at) = (attempt.number, attempt.deadline_at);
        if self.is_attempt_lost(Some(operation), options, host_lost) {
            self.attempt = Some(attempt);
            let cause = Failure::retryable("host-lost", "the host stopped while the attempt ran");
            let (entry, answer) = self.end_attempt(AttemptEnd::HostLost, cause, now, 0.0);
            return Begin::Lost { entry, answer };
        }
        if attempt.is_overdue(now) {
            let error = attempt.overdue(self.open_name(operation));
            let entry = self.fail_step(operation, error.clone(), now);
            return Begin::Lost {
                entry,
                answer: AttemptAnswer::Failed(error),
            };
        }
        self.attempt = Some(attempt);
        let is_last = number >= options.policy.attempts_max;
        let started = is_last.then(|| {
            let name = self.open_name(operation);
            let record = Record::AttemptStarted {
                operation,
                name,
                number,
                deadline_at,
            };
            self.record(record, now)
        });
        Begin::Attempt { attempt, started }
    }

    /// Ends the running attempt with a result.
    ///
    /// # Panics
    /// If no attempt is running, as [`Replay::running_attempt`] tells.
    pub fn complete_attempt(&mut self, output: Payload, now: Timestamp) -> Entry {
        let attempt = self.attempt.take().expect("an attempt is running");
        let record = Record::StepCompleted {
            operation: attempt.operation,
            name: self.open_name(attempt.operation),
            attempts: attempt.number,
            output,
        };
        self.record_end(attempt.operation, record, now)
    }

    /// Ends the running attempt without a result: another follows, or the step has failed. `draw`
    /// is a random number from 0.0 up to but not including 1.0.
    ///
    /// # Panics
    /// If no attempt is running, as [`Replay::running_attempt`] tells.
    pub fn end_attempt(
        &mut self,
        end: AttemptEnd,
        cause: Failure,
        now: Timestamp,
        draw: f64,
    ) -> (Entry, AttemptAnswer) {
        let attempt = self.attempt.take().expect("an attempt is running");
        let operation = attempt.operation;
        let name = self.open_name(operation);
        match attempt.fail(name, end, cause, now, draw) {
            Follows::Another(record) => {
                let entry = self.record_end(operation, record, now);
                (entry, AttemptAnswer::Backoff(operation))
            }
            Follows::Nothing(error) => {
                let entry = self.fail_step(operation, error.clone(), now);
                (entry, AttemptAnswer::Failed(error))
            }
        }
    }

    fn fail_step(&mut self, operation: Operation, error: StepError, now: Timestamp) -> Entry {
        self.record_end(operation, Record::StepFailed { operation, error }, now)
    }

    /// Records the end of an attempt, which the guest is told at once.
    fn record_end(&mut self, operation: Operation, record: Record, now: Timestamp) -> Entry {
        let entry = self.record(record, now);
        self.tell_end(operation);
        entry
    }

    fn open_name(&self, operation: Operation) -> String {
        let known = self.open.get(&operation);
        known.expect("the operation is open").name.clone()
    }

    // ---- Of tasks.

    /// What the journal knows of an open task; `None` once it has ended or was withdrawn.
    pub fn task(&self, operation: Operation) -> Option<TaskProgress> {
        let known = self.open_task(operation)?;
        Some(TaskProgress {
            started: known.is_started(),
            retry_at: known.attempts.retry_at,
        })
    }

    /// Begins the next attempt of a task, unless the deadline for all of them has passed: then the
    /// task has failed, and there is no attempt. The entry must be durable before the task runs.
    ///
    /// # Panics
    /// If [`Replay::task`] does not know the task as open, or an attempt of it has started.
    pub fn begin_task_attempt(
        &mut self,
        operation: Operation,
        options: Options,
        now: Timestamp,
    ) -> (Entry, Option<RunningAttempt>) {
        let known = self.open_task(operation).expect("the task is open");
        assert!(!known.is_started(), "one attempt of a task at a time");
        let attempt = next_attempt(known, operation, options, now);
        if attempt.is_overdue(now) {
            let error = attempt.overdue(known.name.clone());
            return (
                self.record(Record::TaskFailed { operation, error }, now),
                None,
            );
        }
        let record = Record::AttemptStarted {
            operation,
            name: known.name.clone(),
            number: attempt.number,
            deadline_at: attempt.deadline_at,
        };
        (self.record(record, now), Some(attempt))
    }

    /// Ends an attempt of a task: it has its result, another attempt follows, or it has failed.
    /// `None` if the task was withdrawn meanwhile, or the journal has this attempt's end.
    pub fn end_task_attempt(
        &mut self,
        attempt: RunningAttempt,
        outcome: Result<Payload, (AttemptEnd, Failure)>,
        now: Timestamp,
        draw: f64,
    ) -> Option<Entry> {
        let operation = attempt.operation;
        let known = self.open_task(operation)?;
        if !known.is_started() || attempt.number != known.attempts.ended + 1 {
            return None;
        }
        let name = known.name.clone();
        let record = match outcome {
            Ok(output) => Record::TaskCompleted {
                operation,
                attempts: attempt.number,
                output,
            },
            Err((end, cause)) => match attempt.fail(name, end, cause, now, draw) {
                Follows::Another(record) => record,
                Follows::Nothing(error) => Record::TaskFailed { operation, error },
            },
        };
        Some(self.record(record, now))
    }

    /// The attempt of a task that the journal has as started, to be ended as lost.
    pub fn lost_task_attempt(
        &self,
        operation: Operation,
        options: Options,
    ) -> Option<RunningAttempt> {
        let known = self.open_task(operation)?;
        known.is_started().then(|| RunningAttempt {
            operation,
            number: known.attempts.ended + 1,
            options,
            deadline_at: known.attempts.deadline_at,
        })
    }

    fn open_task(&self, operation: Operation) -> Option<&Known> {
        let known = self.open.get(&operation)?;
        (matches!(known.waits, Waits::Task(_)) && !known.is_answered()).then_some(known)
    }
}

fn next_attempt(
    known: &Known,
    operation: Operation,
    options: Options,
    now: Timestamp,
) -> RunningAttempt {
    let number = known.attempts.ended + 1;
    // Set once, at the first attempt; the journal keeps it.
    let deadline_at = if number == 1 && !known.is_started() {
        options.deadline.map(|span| now.after(span))
    } else {
        known.attempts.deadline_at
    };
    RunningAttempt {
        operation,
        number,
        options,
        deadline_at,
    }
}

/// What follows an attempt that ended without a result.
enum Follows {
    /// Another attempt; this is to be recorded.
    Another(Record),
    /// Nothing; this is what the guest is told.
    Nothing(StepError),
}

impl RunningAttempt {
    /// Whether the deadline for all attempts has passed before this one began.
    fn is_overdue(&self, now: Timestamp) -> bool {
        self.deadline_at
            .is_some_and(|deadline_at| now >= deadline_at)
    }

    /// What is said of a step or task of this name whose next attempt, this one, is not to begin.
    fn overdue(&self, step: String) -> StepError {
        let number = self.number;
        let message = format!("the deadline for all attempts passed before attempt {number} began");
        StepError {
            step,
            attempts: number - 1,
            end: AttemptEnd::TimedOut,
            cause: Failure::retryable("deadline-passed", message),
        }
    }

    /// How long it may run: its timeout, or what is left of the deadline for all attempts.
    pub fn allowance(&self, now: Timestamp) -> Allowance {
        let timeout = self.options.timeout;
        let left = self.deadline_at.map(|deadline_at| deadline_at.since(now));
        match left {
            Some(left) if left < timeout => Allowance::OfDeadline(left),
            _ => Allowance::OfTimeout(timeout),
        }
    }

    fn fail(
        self,
        name: String,
        end: AttemptEnd,
        cause: Failure,
        now: Timestamp,
        draw: f64,
    ) -> Follows {
        let Self {
            operation,
            number,
            options,
            deadline_at,
        } = self;
        match options.policy.next(Ended {
            attempts: number,
            end,
            cause: &cause,
            now,
            deadline_at,
            draw,
        }) {
            Next::RetryAt(retry_at) => Follows::Another(Record::AttemptEnded {
                operation,
                name,
                number,
                end,
                cause,
                retry_at,
                deadline_at,
            }),
            Next::Exhausted => Follows::Nothing(StepError {
                step: name,
                attempts: number,
                end,
                cause,
            }),
        }
    }
}
