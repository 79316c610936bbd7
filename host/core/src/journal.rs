//! What a run's journal holds: append-only entries, the truth from which all else is folded.
//!
//! ```text
//! guest asks ──► replay (matches, or says it is new) ──► engine performs ──► Entry ──► store
//!                   ▲                                                         │
//!                   └──────────── the same fold, live and on replay ◄─────────┘
//! ```
//!
//! No SQL and no wire encoding: the store has its own row format. A record is never changed once a
//! release has written it; new kinds may be added.

use crate::id::{EventId, Operation};
use crate::payload::{Failure, Payload};
use crate::retry::{AttemptEnd, StepError};
use crate::time::Timestamp;

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When the host made it. Never earlier than the entry before it.
    pub at: Timestamp,
    /// What happened.
    pub record: Record,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// An operation that is answered later was asked for.
    Opened {
        /// Its number.
        operation: Operation,
        /// The guest's name for it: of the sleep, the event or the task.
        name: String,
        /// What it waits for.
        opening: Opening,
    },
    /// An operation was asked for and refused; the guest was told why.
    Refused {
        /// Its number.
        operation: Operation,
        /// What was asked for.
        kind: OperationKind,
        /// The guest's name for it.
        name: String,
        /// What the guest was told.
        failure: Failure,
    },
    /// An attempt is about to begin. Written, and made durable first, for every attempt of a task
    /// and for the last permitted attempt of a step: so no more attempts than permitted ever begin.
    AttemptStarted {
        /// The step or task.
        operation: Operation,
        /// Its name.
        name: String,
        /// From 1.
        number: u32,
        /// When all attempts must be over.
        deadline_at: Option<Timestamp>,
    },
    /// An attempt ended without a result and another follows.
    AttemptEnded {
        /// The step or task.
        operation: Operation,
        /// Its name.
        name: String,
        /// From 1.
        number: u32,
        /// How it ended.
        end: AttemptEnd,
        /// What it said, or what the host found.
        cause: Failure,
        /// When the next attempt may begin.
        retry_at: Timestamp,
        /// When all attempts must be over.
        deadline_at: Option<Timestamp>,
    },
    /// A step's backoff is over and the guest was told so.
    BackoffOver {
        /// The step.
        operation: Operation,
    },
    /// A step has its result.
    StepCompleted {
        /// The step.
        operation: Operation,
        /// Its name.
        name: String,
        /// Attempts that were begun.
        attempts: u32,
        /// What it returned.
        output: Payload,
    },
    /// A step will not be tried again.
    StepFailed {
        /// The step.
        operation: Operation,
        /// What the guest was told.
        error: StepError,
    },
    /// A sleep ended.
    Slept {
        /// The sleep.
        operation: Operation,
        /// Why it ended.
        wake: Wake,
    },
    /// A wait took an event out of the mailbox.
    EventTaken {
        /// The wait.
        operation: Operation,
        /// The event.
        event: EventMessage,
    },
    /// A wait's timeout passed.
    TimedOut {
        /// The wait.
        operation: Operation,
    },
    /// A task has its result.
    TaskCompleted {
        /// The task.
        operation: Operation,
        /// Attempts that were begun.
        attempts: u32,
        /// What it returned.
        output: Payload,
    },
    /// A task will not be tried again.
    TaskFailed {
        /// The task.
        operation: Operation,
        /// What the guest was told.
        error: StepError,
    },
    /// A value was shown to the outside.
    Published {
        /// Its number.
        operation: Operation,
        /// Its key; a later value under the same key replaces this one.
        key: String,
        /// The value.
        value: Payload,
    },
    /// The sender of an event was answered.
    Replied {
        /// Its number.
        operation: Operation,
        /// The event.
        event: EventId,
        /// The answer.
        answer: Result<Payload, Failure>,
    },
    /// The guest was told that the run is to stop; what follows is clean-up.
    CancelDelivered {
        /// Why, as given by whoever asked.
        reason: String,
        /// When the clean-up is stopped.
        grace_until: Timestamp,
    },
    /// The run has ended, or this journal of it has. Always the last entry.
    Ended(Ending),
}

/// What an operation that is answered later waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// A sleep.
    Sleep {
        /// When it elapses; never moved.
        due: Timestamp,
    },
    /// A wait for an event.
    Wait {
        /// When it gives up; never moved.
        timeout_at: Option<Timestamp>,
    },
    /// A task.
    Task {
        /// SHA-256 of its input, with the input's kind mixed in.
        input_digest: [u8; 32],
    },
}

/// Why a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// Its time came.
    Elapsed,
    /// Somebody ended it early.
    Woken,
}

/// An event as it was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventMessage {
    /// Stands for this one delivery.
    pub id: EventId,
    /// What was sent.
    pub payload: Payload,
    /// When it was accepted.
    pub sent_at: Timestamp,
}

/// The kinds of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperationKind {
    /// Its body runs in the guest.
    Step,
    /// A timer.
    Sleep,
    /// A wait for an event.
    Wait,
    /// An exported function in an instance of its own.
    Task,
    /// A value shown to the outside.
    Publish,
    /// An answer to an event's sender.
    Reply,
}

impl OperationKind {
    /// Lower-case, as in messages, HTTP and the CLI.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Sleep => "sleep",
            Self::Wait => "wait",
            Self::Task => "task",
            Self::Publish => "publish",
            Self::Reply => "reply",
        }
    }
}

impl std::fmt::Display for OperationKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a run, or one journal of it, ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The workflow returned a value.
    Completed(Payload),
    /// The workflow failed.
    Failed(RunFailure),
    /// It was asked to stop and did.
    Cancelled {
        /// Why, as given by whoever asked.
        reason: String,
    },
    /// It was stopped at once.
    Terminated {
        /// Why, as given by whoever asked.
        reason: String,
    },
    /// The run goes on under the same id with a fresh journal and this input.
    ContinuedAsNew(Payload),
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFailure {
    /// The step or task it came from; `None` if from the run itself.
    pub step: Option<StepOrigin>,
    /// What the workflow returned, or what the host found.
    pub cause: Failure,
    /// Symbolised, if it was a trap; one frame a line.
    pub backtrace: Option<String>,
}

/// The step or task that made a run fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepOrigin {
    /// Its name.
    pub step: String,
    /// Attempts that were begun.
    pub attempts: u32,
    /// How the last one ended.
    pub end: AttemptEnd,
}

impl Entry {
    /// About how many bytes this takes in a journal, as counted against its limit: the texts and
    /// payloads, and 32 for the rest.
    pub fn size_bytes(&self) -> u64 {
        let error = |error: &StepError| error.step.len() + error.cause.size_bytes();
        let varying = match &self.record {
            Record::Opened { name, .. } | Record::AttemptStarted { name, .. } => name.len(),
            Record::Refused { name, failure, .. } => name.len() + failure.size_bytes(),
            Record::AttemptEnded { name, cause, .. } => name.len() + cause.size_bytes(),
            Record::StepCompleted { name, output, .. } => name.len() + output.size_bytes(),
            Record::StepFailed { error: step, .. } | Record::TaskFailed { error: step, .. } => {
                error(step)
            }
            Record::EventTaken { event, .. } => event.payload.size_bytes(),
            Record::TaskCompleted { output, .. } => output.size_bytes(),
            Record::Published { key, value, .. } => key.len() + value.size_bytes(),
            Record::Replied { answer, .. } => answer
                .as_ref()
                .map_or_else(Failure::size_bytes, Payload::size_bytes),
            Record::CancelDelivered { reason, .. } => reason.len(),
            Record::Ended(ending) => match ending {
                Ending::Completed(output) | Ending::ContinuedAsNew(output) => output.size_bytes(),
                Ending::Failed(failure) => {
                    failure.cause.size_bytes() + failure.backtrace.as_ref().map_or(0, String::len)
                }
                Ending::Cancelled { reason } | Ending::Terminated { reason } => reason.len(),
            },
            Record::BackoffOver { .. } | Record::Slept { .. } | Record::TimedOut { .. } => 0,
        };
        32 + varying as u64
    }
}

impl Record {
    /// Its kind, lower-case, as in messages.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Opened { .. } => "opened",
            Self::Refused { .. } => "refused",
            Self::AttemptStarted { .. } => "attempt-started",
            Self::AttemptEnded { .. } => "attempt-ended",
            Self::BackoffOver { .. } => "backoff-over",
            Self::StepCompleted { .. } => "step-completed",
            Self::StepFailed { .. } => "step-failed",
            Self::Slept { .. } => "slept",
            Self::EventTaken { .. } => "event-taken",
            Self::TimedOut { .. } => "timed-out",
            Self::TaskCompleted { .. } => "task-completed",
            Self::TaskFailed { .. } => "task-failed",
            Self::Published { .. } => "published",
            Self::Replied { .. } => "replied",
            Self::CancelDelivered { .. } => "cancel-delivered",
            Self::Ended(_) => "ended",
        }
    }

    /// The operation that this record belongs to, if to one.
    pub fn operation(&self) -> Option<Operation> {
        match self {
            Self::Opened { operation, .. }
            | Self::Refused { operation, .. }
            | Self::AttemptStarted { operation, .. }
            | Self::AttemptEnded { operation, .. }
            | Self::BackoffOver { operation }
            | Self::StepCompleted { operation, .. }
            | Self::StepFailed { operation, .. }
            | Self::Slept { operation, .. }
            | Self::EventTaken { operation, .. }
            | Self::TimedOut { operation }
            | Self::TaskCompleted { operation, .. }
            | Self::TaskFailed { operation, .. }
            | Self::Published { operation, .. }
            | Self::Replied { operation, .. } => Some(*operation),
            Self::CancelDelivered { .. } | Self::Ended(_) => None,
        }
    }

    /// Whether it tells of something that takes its time: a step, a task, or a wait that was answered.
    pub fn is_work(&self) -> bool {
        match self {
            Self::StepCompleted { .. }
            | Self::StepFailed { .. }
            | Self::Slept { .. }
            | Self::EventTaken { .. }
            | Self::TimedOut { .. }
            | Self::TaskCompleted { .. }
            | Self::TaskFailed { .. } => true,
            Self::Opened { .. }
            | Self::Refused { .. }
            | Self::AttemptStarted { .. }
            | Self::AttemptEnded { .. }
            | Self::BackoffOver { .. }
            | Self::Published { .. }
            | Self::Replied { .. }
            | Self::CancelDelivered { .. }
            | Self::Ended(_) => false,
        }
    }

    /// Whether this shows that the run got further. The start and the loss of an attempt do not,
    /// nor the end of the backoff between two: a run that takes its host down every time leaves
    /// just these. An attempt that ended by itself does.
    pub fn is_progress(&self) -> bool {
        match self {
            Self::AttemptStarted { .. } | Self::BackoffOver { .. } => false,
            Self::AttemptEnded { end, .. } => *end != AttemptEnd::HostLost,
            Self::Opened { .. }
            | Self::Refused { .. }
            | Self::StepCompleted { .. }
            | Self::StepFailed { .. }
            | Self::Slept { .. }
            | Self::EventTaken { .. }
            | Self::TimedOut { .. }
            | Self::TaskCompleted { .. }
            | Self::TaskFailed { .. }
            | Self::Published { .. }
            | Self::Replied { .. }
            | Self::CancelDelivered { .. }
            | Self::Ended(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_takes_its_host_down_every_time_makes_no_progress() {
        let operation = Operation(0);
        let ended = |end| Record::AttemptEnded {
            operation,
            name: "charge".to_owned(),
            number: 1,
            end,
            cause: Failure::retryable("", ""),
            retry_at: Timestamp::EPOCH,
            deadline_at: None,
        };
        let started = Record::AttemptStarted {
            operation,
            name: "charge".to_owned(),
            number: 2,
            deadline_at: None,
        };
        let lives = [
            ended(AttemptEnd::HostLost),
            Record::BackoffOver { operation },
            started,
        ];
        assert!(!lives.iter().any(Record::is_progress));
        assert!(ended(AttemptEnd::Failed).is_progress());
        assert!(ended(AttemptEnd::Trapped).is_progress());
    }
}
