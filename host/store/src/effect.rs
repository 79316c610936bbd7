//! What journal entries mean for the rows beside the journal: an event that a wait has taken, a
//! value that is shown, an answer. Every body carries them out in the transaction of the append.

use stepwell_core::id::EventId;
use stepwell_core::journal::{Entry, Record};
use stepwell_core::payload::{Failure, Payload};
use stepwell_core::time::Timestamp;

/// What an entry means for the rows beside the journal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect<'a> {
    Publish {
        key: &'a str,
        value: &'a Payload,
        at: Timestamp,
    },
    TakeEvent {
        event: EventId,
    },
    Reply {
        event: EventId,
        answer: &'a Result<Payload, Failure>,
    },
    TakeCancel,
}

/// What the entries of an append mean for the rows beside the journal, in order.
pub(crate) fn effects(entries: &[Entry]) -> impl Iterator<Item = Effect<'_>> {
    entries.iter().filter_map(|entry| match &entry.record {
        Record::Published { key, value, .. } => Some(Effect::Publish {
            key,
            value,
            at: entry.at,
        }),
        Record::EventTaken { event, .. } => Some(Effect::TakeEvent { event: event.id }),
        Record::Replied { event, answer, .. } => Some(Effect::Reply {
            event: *event,
            answer,
        }),
        Record::CancelDelivered { .. } => Some(Effect::TakeCancel),
        Record::Opened { .. }
        | Record::Refused { .. }
        | Record::AttemptStarted { .. }
        | Record::AttemptEnded { .. }
        | Record::BackoffOver { .. }
        | Record::StepCompleted { .. }
        | Record::StepFailed { .. }
        | Record::Slept { .. }
        | Record::TimedOut { .. }
        | Record::TaskCompleted { .. }
        | Record::TaskFailed { .. }
        | Record::Ended(_) => None,
    })
}
