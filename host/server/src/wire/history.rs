//! A journal, entry by entry.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use stepwell_core::id::{Operation, Sequence};
use stepwell_core::journal::{self, Ending, Opening, Record, Wake};
use stepwell_core::payload::Payload;
use stepwell_core::retry::StepError;

use super::failure::{Failure, end_text};
use super::time::Instant;
use super::value::{Json, to_response};

/// A page of a journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct History {
    /// The run.
    pub run: String,
    /// Its status now.
    pub status: String,
    /// Which journal of the run this is; grows with `continue-as-new`, and numbering starts afresh.
    pub generation: u32,
    /// In order, from the number asked for.
    pub entries: Vec<Entry>,
    /// What to ask for next.
    pub next: u64,
    /// Whether the journal holds entries from `next` on already.
    pub more: bool,
}

impl History {
    /// A page that begins at `from`.
    pub(crate) fn page(
        run: &stepwell_store::Run,
        from: Sequence,
        entries: Vec<(Sequence, journal::Entry)>,
    ) -> Self {
        let next = entries
            .last()
            .map_or(from, |(sequence, _)| sequence.plus(1));
        Self {
            run: run.run.to_string(),
            status: run.status.to_string(),
            generation: run.generation,
            entries: entries
                .iter()
                .map(|(sequence, entry)| Entry::new(*sequence, entry))
                .collect(),
            next: next.0,
            more: next < run.entries,
        }
    }
}

/// What kind of entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EntryType {
    /// `operation`, `name`, `due_at`.
    SleepStarted,
    /// `operation`, `name`, `timeout_at` if it has one.
    WaitStarted,
    /// `operation`, `name`, `input_digest`.
    TaskStarted,
    /// `operation`, `kind`, `name`, `failure`.
    OperationRefused,
    /// `operation`, `name`, `attempt`, `deadline_at` if it has one.
    AttemptStarted,
    /// `operation`, `name`, `attempt`, `end`, `failure`, `retry_at`, `deadline_at` if it has one.
    AttemptEnded,
    /// `operation`.
    BackoffOver,
    /// `operation`, `name`, `attempts`, `value`.
    StepCompleted,
    /// `operation`, `name`, `attempts`, `end`, `failure`.
    StepFailed,
    /// `operation`, `wake`.
    Slept,
    /// `operation`, `event`, `sent_at`, `value`.
    EventTaken,
    /// `operation`.
    WaitTimedOut,
    /// `operation`, `attempts`, `value`.
    TaskCompleted,
    /// `operation`, `name`, `attempts`, `end`, `failure`.
    TaskFailed,
    /// `operation`, `key`, `value`.
    Published,
    /// `operation`, `event`, and `value` or `failure`.
    Replied,
    /// `reason`, `grace_until`.
    CancelDelivered,
    /// `value`.
    Completed,
    /// `failure`.
    Failed,
    /// `reason`.
    Cancelled,
    /// `reason`.
    Terminated,
    /// `value`: the input of the journal that follows.
    ContinuedAsNew,
    /// A type that a newer server knows.
    #[serde(other)]
    Unknown,
}

/// One entry. Which fields it has is said by its type; the others are absent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// Its place, from 0.
    pub sequence: u64,
    /// When the host made it.
    pub at: Instant,
    /// What happened.
    pub r#type: EntryType,
    /// The operation that it belongs to: its number in program order, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<u32>,
    /// What was refused: `step`, `sleep`, `wait`, `task`, `publish` or `reply`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The guest's name for it: of the step, the sleep, the event or the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The key of a published value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// When a sleep elapses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Instant>,
    /// When a wait gives up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Instant>,
    /// SHA-256 of a task's input, with its kind mixed in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<String>,
    /// Which attempt, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Attempts in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// How the last attempt ended: `failed`, `timed-out`, `trapped`, `host-lost`, `limit-exceeded`
    /// or `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// When the next attempt may begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Instant>,
    /// When all attempts must be over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Instant>,
    /// Why a sleep ended: `elapsed` or `woken`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake: Option<String>,
    /// The event that was taken or answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// When the event was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<Instant>,
    /// The result, event, answer or published value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Json>,
    /// The same, if it is not JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_base64: Option<String>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Why it was asked to stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the clean-up is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_until: Option<Instant>,
}

impl Entry {
    fn new(sequence: Sequence, entry: &journal::Entry) -> Self {
        let blank = |r#type| Self::blank(sequence, Instant(entry.at), r#type);
        match &entry.record {
            Record::Opened {
                operation,
                name,
                opening,
            } => {
                let opened = |r#type| Self {
                    name: Some(name.clone()),
                    ..blank(r#type).of(*operation)
                };
                match opening {
                    Opening::Sleep { due } => Self {
                        due_at: Some(Instant(*due)),
                        ..opened(EntryType::SleepStarted)
                    },
                    Opening::Wait { timeout_at } => Self {
                        timeout_at: timeout_at.map(Instant),
                        ..opened(EntryType::WaitStarted)
                    },
                    Opening::Task { input_digest } => Self {
                        input_digest: Some(sha256_text(input_digest)),
                        ..opened(EntryType::TaskStarted)
                    },
                }
            }
            Record::Refused {
                operation,
                kind,
                name,
                failure,
            } => Self {
                kind: Some(kind.to_string()),
                name: Some(name.clone()),
                failure: Some(failure.into()),
                ..blank(EntryType::OperationRefused).of(*operation)
            },
            Record::AttemptStarted {
                operation,
                name,
                number,
                deadline_at,
            } => Self {
                name: Some(name.clone()),
                attempt: Some(*number),
                deadline_at: deadline_at.map(Instant),
                ..blank(EntryType::AttemptStarted).of(*operation)
            },
            Record::AttemptEnded {
                operation,
                name,
                number,
                end,
                cause,
                retry_at,
                deadline_at,
            } => Self {
                name: Some(name.clone()),
                attempt: Some(*number),
                end: Some(end_text(*end).to_owned()),
                failure: Some(cause.into()),
                retry_at: Some(Instant(*retry_at)),
                deadline_at: deadline_at.map(Instant),
                ..blank(EntryType::AttemptEnded).of(*operation)
            },
            Record::BackoffOver { operation } => blank(EntryType::BackoffOver).of(*operation),
            Record::StepCompleted {
                operation,
                name,
                attempts,
                output,
            } => Self {
                name: Some(name.clone()),
                attempts: Some(*attempts),
                ..blank(EntryType::StepCompleted).of(*operation).with(output)
            },
            Record::StepFailed { operation, error } => {
                blank(EntryType::StepFailed).of(*operation).given_up(error)
            }
            Record::Slept { operation, wake } => Self {
                wake: Some(
                    match wake {
                        Wake::Elapsed => "elapsed",
                        Wake::Woken => "woken",
                    }
                    .to_owned(),
                ),
                ..blank(EntryType::Slept).of(*operation)
            },
            Record::EventTaken { operation, event } => Self {
                event: Some(event.id.to_string()),
                sent_at: Some(Instant(event.sent_at)),
                ..blank(EntryType::EventTaken)
                    .of(*operation)
                    .with(&event.payload)
            },
            Record::TimedOut { operation } => blank(EntryType::WaitTimedOut).of(*operation),
            Record::TaskCompleted {
                operation,
                attempts,
                output,
            } => Self {
                attempts: Some(*attempts),
                ..blank(EntryType::TaskCompleted).of(*operation).with(output)
            },
            Record::TaskFailed { operation, error } => {
                blank(EntryType::TaskFailed).of(*operation).given_up(error)
            }
            Record::Published {
                operation,
                key,
                value,
            } => Self {
                key: Some(key.clone()),
                ..blank(EntryType::Published).of(*operation).with(value)
            },
            Record::Replied {
                operation,
                event,
                answer,
            } => {
                let replied = Self {
                    event: Some(event.to_string()),
                    ..blank(EntryType::Replied).of(*operation)
                };
                match answer {
                    Ok(value) => replied.with(value),
                    Err(failure) => Self {
                        failure: Some(failure.into()),
                        ..replied
                    },
                }
            }
            Record::CancelDelivered {
                reason,
                grace_until,
            } => Self {
                reason: Some(reason.clone()),
                grace_until: Some(Instant(*grace_until)),
                ..blank(EntryType::CancelDelivered)
            },
            Record::Ended(Ending::Completed(result)) => blank(EntryType::Completed).with(result),
            Record::Ended(Ending::Failed(failure)) => Self {
                failure: Some(failure.into()),
                ..blank(EntryType::Failed)
            },
            Record::Ended(Ending::Cancelled { reason }) => Self {
                reason: Some(reason.clone()),
                ..blank(EntryType::Cancelled)
            },
            Record::Ended(Ending::Terminated { reason }) => Self {
                reason: Some(reason.clone()),
                ..blank(EntryType::Terminated)
            },
            Record::Ended(Ending::ContinuedAsNew(input)) => {
                blank(EntryType::ContinuedAsNew).with(input)
            }
        }
    }

    fn blank(sequence: Sequence, at: Instant, r#type: EntryType) -> Self {
        Self {
            sequence: sequence.0,
            at,
            r#type,
            operation: None,
            kind: None,
            name: None,
            key: None,
            due_at: None,
            timeout_at: None,
            input_digest: None,
            attempt: None,
            attempts: None,
            end: None,
            retry_at: None,
            deadline_at: None,
            wake: None,
            event: None,
            sent_at: None,
            value: None,
            value_base64: None,
            failure: None,
            reason: None,
            grace_until: None,
        }
    }

    fn of(self, operation: Operation) -> Self {
        Self {
            operation: Some(operation.0),
            ..self
        }
    }

    fn with(self, payload: &Payload) -> Self {
        let (value, value_base64) = to_response(payload);
        Self {
            value,
            value_base64,
            ..self
        }
    }

    fn given_up(self, error: &StepError) -> Self {
        Self {
            name: Some(error.step.clone()),
            attempts: Some(error.attempts),
            end: Some(end_text(error.end).to_owned()),
            failure: Some((&error.cause).into()),
            ..self
        }
    }
}

fn sha256_text(digest: &[u8; 32]) -> String {
    digest.iter().fold("sha256:".to_owned(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
