//! What the journal says about one operation, seen from two places at once: the journal's end,
//! which decides what may be written next, and the guest's place, which decides what it is told
//! next.

use std::collections::VecDeque;

use super::answer::Found;
use crate::id::Sequence;
use crate::journal::{EventMessage, Opening, OperationKind, Record, Wake};
use crate::payload::{Failure, Payload};
use crate::retry::StepError;
use crate::time::Timestamp;

/// An operation that the journal has, or that the guest has asked for.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) kind: OperationKind,
    pub(super) name: String,
    /// At the guest's place.
    pub(super) waits: Waits,
    /// At the journal's end.
    pub(super) attempts: Attempts,
    /// At the journal's end.
    phase: Phase,
    /// What `step` and `retry-step` have not told the guest yet, in order.
    pub(super) ends: VecDeque<Fact<StepEnd>>,
    /// What `select` has not told the guest yet, in order: one answer, or one end of each backoff.
    pub(super) answers: VecDeque<Fact<Answer>>,
}

/// What an operation waits for, as far as the guest knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Waits {
    /// A step whose body is to run, or an operation that is answered at once.
    Nothing,
    Sleep(Timestamp),
    Event(Option<Timestamp>),
    /// The digest of the task's input.
    Task([u8; 32]),
    /// A step between two attempts.
    Backoff(Timestamp),
}

/// The attempts of a step or task, as far as the journal tells.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attempts {
    pub(super) ended: u32,
    pub(super) retry_at: Option<Timestamp>,
    pub(super) deadline_at: Option<Timestamp>,
}

/// What may be written about an operation next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Its answer; of a step or task also an attempt.
    Open,
    /// The end of the attempt that is recorded as started.
    Started,
    /// The end of a step's backoff.
    Backoff,
    /// Nothing.
    Answered,
}

/// Something that the journal has and the guest is to be told.
#[derive(Debug)]
pub(super) struct Fact<T> {
    pub(super) position: Sequence,
    pub(super) at: Timestamp,
    pub(super) says: T,
}

/// How an attempt of a step ended.
#[derive(Debug)]
pub(super) enum StepEnd {
    RetryAt(Timestamp),
    Completed(Payload),
    Failed(StepError),
}

/// What a `select` answers with.
#[derive(Debug)]
pub(super) enum Answer {
    BackoffOver,
    Slept(Wake),
    Event(EventMessage),
    TimedOut,
    Task(Result<Payload, StepError>),
}

impl Known {
    /// A step that has just been asked for.
    pub(super) fn step(name: String) -> Self {
        Self::new(OperationKind::Step, name, Waits::Nothing, Phase::Open)
    }

    fn new(kind: OperationKind, name: String, waits: Waits, phase: Phase) -> Self {
        Self {
            kind,
            name,
            waits,
            attempts: Attempts::default(),
            phase,
            ends: VecDeque::new(),
            answers: VecDeque::new(),
        }
    }

    pub(super) fn found(&self) -> Found {
        Found::Operation {
            kind: self.kind,
            name: self.name.clone(),
        }
    }

    /// Whether the journal has an attempt that started and did not end.
    pub(super) fn is_started(&self) -> bool {
        self.phase == Phase::Started
    }

    /// Whether the journal has the last word on it.
    pub(super) fn is_answered(&self) -> bool {
        self.phase == Phase::Answered
    }

    /// Takes in a record about this operation. False if it cannot follow those before it; then
    /// nothing has changed.
    #[must_use]
    pub(super) fn learn(&mut self, position: Sequence, at: Timestamp, record: Record) -> bool {
        use OperationKind::{Sleep, Step, Task, Wait};
        let due = self.attempts.ended + 1;
        let answer = match (self.kind, self.phase, record) {
            (
                Step | Task,
                Phase::Open,
                Record::AttemptStarted {
                    number,
                    deadline_at,
                    ..
                },
            ) if number == due => {
                self.phase = Phase::Started;
                self.attempts.retry_at = None;
                self.attempts.deadline_at = deadline_at;
                return true;
            }
            (
                Step | Task,
                Phase::Open | Phase::Started,
                Record::AttemptEnded {
                    number,
                    retry_at,
                    deadline_at,
                    ..
                },
            ) if number == due => {
                self.attempts = Attempts {
                    ended: number,
                    retry_at: Some(retry_at),
                    deadline_at,
                };
                // A task's attempts are no business of the guest's.
                if self.kind == Task {
                    self.phase = Phase::Open;
                } else {
                    self.phase = Phase::Backoff;
                    self.end(position, at, StepEnd::RetryAt(retry_at));
                }
                return true;
            }
            (Step, Phase::Open | Phase::Started, Record::StepCompleted { output, .. }) => {
                self.phase = Phase::Answered;
                self.end(position, at, StepEnd::Completed(output));
                return true;
            }
            (Step, Phase::Open | Phase::Started, Record::StepFailed { error, .. }) => {
                self.phase = Phase::Answered;
                self.end(position, at, StepEnd::Failed(error));
                return true;
            }
            (Step, Phase::Backoff, Record::BackoffOver { .. }) => Answer::BackoffOver,
            (Sleep, Phase::Open, Record::Slept { wake, .. }) => Answer::Slept(wake),
            (Wait, Phase::Open, Record::EventTaken { event, .. }) => Answer::Event(event),
            (Wait, Phase::Open, Record::TimedOut { .. }) => Answer::TimedOut,
            (Task, Phase::Open | Phase::Started, Record::TaskCompleted { output, .. }) => {
                Answer::Task(Ok(output))
            }
            (Task, Phase::Open | Phase::Started, Record::TaskFailed { error, .. }) => {
                Answer::Task(Err(error))
            }
            // The pairs above are all that a host writes.
            (_, _, _) => return false,
        };
        self.phase = if self.kind == Step {
            Phase::Open
        } else {
            Phase::Answered
        };
        push(&mut self.answers, position, at, answer);
        true
    }

    fn end(&mut self, position: Sequence, at: Timestamp, says: StepEnd) {
        push(&mut self.ends, position, at, says);
    }
}

fn push<T>(facts: &mut VecDeque<Fact<T>>, position: Sequence, at: Timestamp, says: T) {
    // Nearly always the only one. A queue's usual room for four would be most of the memory that a
    // loaded journal takes.
    if facts.is_empty() {
        facts.reserve_exact(1);
    }
    facts.push_back(Fact { position, at, says });
}

/// An operation that the journal has and the guest has not asked for yet.
#[derive(Debug)]
pub(super) struct Recorded {
    /// Of its first entry.
    pub(super) position: Sequence,
    pub(super) at: Timestamp,
    pub(super) known: Known,
    pub(super) refused: Option<Failure>,
}

impl Recorded {
    /// The first record about an operation tells what it is; `None` if it cannot be the first.
    pub(super) fn first(position: Sequence, at: Timestamp, record: Record) -> Option<Self> {
        let mut refused = None;
        let mut known = match &record {
            Record::Opened { name, opening, .. } => {
                let (kind, waits) = match opening {
                    Opening::Sleep { due } => (OperationKind::Sleep, Waits::Sleep(*due)),
                    Opening::Wait { timeout_at } => {
                        (OperationKind::Wait, Waits::Event(*timeout_at))
                    }
                    Opening::Task { input_digest } => {
                        (OperationKind::Task, Waits::Task(*input_digest))
                    }
                };
                Known::new(kind, name.clone(), waits, Phase::Open)
            }
            // A step is refused by a failure of its own.
            Record::Refused {
                kind: OperationKind::Step,
                ..
            } => return None,
            Record::Refused {
                kind,
                name,
                failure,
                ..
            } => {
                refused = Some(failure.clone());
                answered(*kind, name.clone())
            }
            Record::Published { key, .. } => answered(OperationKind::Publish, key.clone()),
            Record::Replied { event, .. } => answered(OperationKind::Reply, event.to_string()),
            // A step has no entry of its own: an attempt of it comes first.
            Record::AttemptStarted { name, .. }
            | Record::AttemptEnded { name, .. }
            | Record::StepCompleted { name, .. } => Known::step(name.clone()),
            Record::StepFailed { error, .. } => Known::step(error.step.clone()),
            Record::BackoffOver { .. }
            | Record::Slept { .. }
            | Record::EventTaken { .. }
            | Record::TimedOut { .. }
            | Record::TaskCompleted { .. }
            | Record::TaskFailed { .. }
            | Record::CancelDelivered { .. }
            | Record::Ended(_) => return None,
        };
        if known.kind == OperationKind::Step && !known.learn(position, at, record) {
            return None;
        }
        Some(Self {
            position,
            at,
            known,
            refused,
        })
    }
}

fn answered(kind: OperationKind, name: String) -> Known {
    Known::new(kind, name, Waits::Nothing, Phase::Answered)
}
