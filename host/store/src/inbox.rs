//! The inbox: everything from outside that a run must react to, in one order.

use stepwell_core::id::EventId;
use stepwell_core::payload::{Failure, Payload};
use stepwell_core::run::{Status, Verb};
use stepwell_core::time::Timestamp;

/// Something from outside that a run must react to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// An event for the mailbox.
    Event {
        /// Its name.
        name: String,
        /// What is sent.
        payload: Payload,
        /// Delivered at most once per run and key.
        delivery_key: Option<String>,
        /// With so many events in the mailbox already, it is refused.
        mailbox_events_max: u64,
    },
    /// Stop, with time to clean up.
    Cancel {
        /// Why.
        reason: String,
    },
    /// Hold before the next operation.
    Pause,
    /// Go on.
    Resume,
    /// End the sleep in progress.
    Wake,
    /// Stop at once.
    Terminate {
        /// Why.
        reason: String,
    },
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// It is in the inbox, or has taken effect. Events get an id.
    Accepted {
        /// The item's place in the inbox.
        id: EventId,
    },
    /// It was there before: the delivery key was used, or the verb had been carried out.
    Already {
        /// The earlier event, if it is one.
        id: Option<EventId>,
    },
    /// It makes no sense in the run's present status.
    Refused {
        /// That status.
        status: Status,
    },
    /// The mailbox is full.
    MailboxFull,
    /// The tenant has no such run.
    NoSuchRun,
}

/// What the host that drives a run finds when it looks into the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbox {
    /// Items that no journal entry has taken, in order.
    pub items: Vec<InboxItem>,
    /// Whether an operator holds the run.
    pub paused: bool,
}

/// An inbox item that no journal entry has taken. Pauses, resumes and terminates never appear: they
/// took effect when they were delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxItem {
    /// Its place in the inbox; an event's id.
    pub id: EventId,
    /// When it was accepted.
    pub at: Timestamp,
    /// What it is.
    pub what: InboxMessage,
}

/// What an inbox item is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxMessage {
    /// An event. Gone from the inbox once a journal entry has taken it.
    Event {
        /// Its name.
        name: String,
        /// What was sent.
        payload: Payload,
    },
    /// Asked to stop. Gone once a journal entry has delivered it.
    Cancel {
        /// Why.
        reason: String,
    },
    /// Asked to end a sleep. Gone with the next append whose `inbox_seen` covers it.
    Wake,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its id.
    pub id: EventId,
    /// Its name.
    pub name: String,
    /// When it was accepted.
    pub sent_at: Timestamp,
    /// Whether a wait has taken it.
    pub taken: bool,
    /// The workflow's answer to the sender.
    pub reply: Option<Result<Payload, Failure>>,
}

/// What kind of thing an inbox item is, without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemKind<'a> {
    Event { name: &'a str },
    Cancel,
    Wake,
}

impl Message {
    /// What it asks of the run.
    pub(crate) fn verb(&self) -> Verb {
        match self {
            Self::Event { .. } => Verb::Send,
            Self::Cancel { .. } => Verb::Cancel,
            Self::Pause => Verb::Pause,
            Self::Resume => Verb::Resume,
            Self::Wake => Verb::Wake,
            Self::Terminate { .. } => Verb::Terminate,
        }
    }
}

impl InboxMessage {
    /// What kind of thing it is.
    pub(crate) fn kind(&self) -> ItemKind<'_> {
        match self {
            Self::Event { name, .. } => ItemKind::Event { name },
            Self::Cancel { .. } => ItemKind::Cancel,
            Self::Wake => ItemKind::Wake,
        }
    }
}
