//! Events: what is sent, and what became of it.

use serde::{Deserialize, Serialize};
use stepwell_core::id::RunId;

use super::failure::Failure;
use super::time::Instant;
use super::value::{Json, to_response};

/// An event to send. An absent payload is JSON `null`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// What to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// What to send, if it is not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// Delivered at most once per run and key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_key: Option<String>,
}

/// An event that a run has in its mailbox, or had.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sent {
    /// The run.
    pub run: String,
    /// The event's id.
    pub event: String,
    /// False if the delivery key had sent it before.
    pub is_new: bool,
}

/// The events of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Events {
    /// The run.
    pub run: String,
    /// Oldest first.
    pub events: Vec<Event>,
}

/// An event and what became of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// Its id.
    pub event: String,
    /// Its name.
    pub name: String,
    /// When it was accepted.
    pub sent_at: Instant,
    /// Whether a wait has taken it.
    pub taken: bool,
    /// The workflow's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Json>,
    /// The workflow's answer, if it is not JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_base64: Option<String>,
    /// The workflow's answer, if it is a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl Events {
    pub(crate) fn new(run: RunId, events: &[stepwell_store::Event]) -> Self {
        Self {
            run: run.to_string(),
            events: events.iter().map(Event::from).collect(),
        }
    }
}

impl From<&stepwell_store::Event> for Event {
    fn from(event: &stepwell_store::Event) -> Self {
        let (reply, reply_base64) = match &event.reply {
            Some(Ok(payload)) => to_response(payload),
            Some(Err(_)) | None => (None, None),
        };
        Self {
            event: event.id.to_string(),
            name: event.name.clone(),
            sent_at: Instant(event.sent_at),
            taken: event.taken,
            reply,
            reply_base64,
            failure: event
                .reply
                .as_ref()
                .and_then(|reply| reply.as_ref().err())
                .map(Failure::from),
        }
    }
}
