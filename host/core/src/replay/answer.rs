//! What a guest's call is answered with, and why it cannot be.

use std::fmt;

use crate::id::{Operation, Sequence};
use crate::journal::{EventMessage, OperationKind, Wake};
use crate::payload::Payload;
use crate::retry::StepError;

/// What the journal says about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask<T> {
    /// The answer.
    Recorded(T),
    /// Nothing: the guest is at the end of its journal.
    New,
}

/// Why a call cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The journal was written by other code, or is damaged. Nothing may be performed.
    #[error(transparent)]
    Diverged(#[from] Diverged),
    /// The guest broke the contract: the message becomes its trap's.
    #[error("{0}")]
    Misuse(String),
}

/// The first place where a guest does something else than its journal has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("operation {operation}: this code asks for {asked}, but the journal has {recorded}")]
pub struct Diverged {
    /// The place, in program order.
    pub operation: Operation,
    /// What the guest did.
    pub asked: Found,
    /// What the journal has there.
    pub recorded: Found,
}

/// Something found at a place in program order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// An operation.
    Operation {
        /// Its kind.
        kind: OperationKind,
        /// Its name.
        name: String,
    },
    /// A task of the same name with another input, shown by the start of its digest.
    TaskInput {
        /// The task.
        name: String,
        /// Hexadecimal.
        digest_start: String,
    },
    /// A further attempt of a step that the journal has no outcome of.
    Attempt {
        /// The step.
        name: String,
    },
    /// A wait for operations that the journal has no answer to.
    Select,
    /// The workflow's end.
    End,
    /// An entry that no host writes after those before it. Nothing from there on is believed.
    Damage {
        /// Where the entry is.
        position: Sequence,
        /// Its kind, as [`crate::journal::Record::as_str`] says it.
        record: &'static str,
    },
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation { kind, name } => write!(f, "{kind} `{name}`"),
            Self::TaskInput { name, digest_start } => {
                write!(f, "task `{name}` with input sha256:{digest_start}…")
            }
            Self::Attempt { name } => write!(f, "another attempt of step `{name}`"),
            Self::Select => f.write_str("a wait for earlier operations"),
            Self::End => f.write_str("the end of the workflow"),
            Self::Damage { position, record } => write!(
                f,
                "`{record}` as entry {position}, which cannot follow the entries before it: \
                 the journal is damaged, restore the data folder from a backup"
            ),
        }
    }
}

/// What the journal says about a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepAsk {
    /// The answer.
    Recorded(StepAnswer),
    /// Nothing, not even its first attempt: [`super::Replay::open_step`] opens it.
    New,
    /// It is open, and its next attempt is to begin, or was lost: [`super::Replay::begin_attempt`] tells.
    Attempt(Operation),
}

/// What the guest is told about a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepAnswer {
    /// Wait for this operation, then ask again.
    Backoff(Operation),
    /// Its result.
    Completed(Payload),
    /// Given up.
    Failed(StepError),
    /// The run is to stop, for this reason.
    Cancelled(String),
}

/// What the guest is told about an attempt that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptAnswer {
    /// The step has its result.
    Completed,
    /// Wait for this operation, then ask again.
    Backoff(Operation),
    /// Given up.
    Failed(StepError),
}

/// What `select` answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectAnswer {
    /// A sleep or a backoff ended.
    Slept(Operation, Wake),
    /// A wait took an event.
    Event(Operation, EventMessage),
    /// A wait's timeout passed.
    TimedOut(Operation),
    /// A task ended.
    Task(Operation, Result<Payload, StepError>),
    /// The run is to stop, for this reason.
    Cancelled(String),
}
