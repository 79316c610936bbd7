//! Sending an event to a run: checked against what the run's version says it waits for, then put
//! into the inbox.

use stepwell_core::id::{RunId, TenantName};
use stepwell_core::payload::Payload;
use stepwell_store::Message;

use crate::key;
use crate::shared::Shared;
use crate::versions::Versions;

/// An event to send.
#[derive(Debug, Clone)]
pub struct Send {
    /// Its name, as a wait asks for it.
    pub name: String,
    /// What the workflow is given.
    pub payload: Payload,
    /// At most one event per run and key.
    pub delivery_key: Option<String>,
}

/// Why no event was sent. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too large.
    #[error("the payload has {found} bytes; the payload limit is {max}")]
    PayloadTooLarge {
        /// Its size in bytes.
        found: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// Not what the run's version takes under this name.
    #[error("the payload does not fit the schema of event `{event}`: {detail}")]
    PayloadUnfit {
        /// The event's name.
        event: String,
        /// The first few places that do not fit, and why.
        detail: String,
    },
    /// The key cannot be used.
    #[error("a delivery key is 1 to 256 bytes of text; this one has {found}")]
    Key {
        /// Its size in bytes.
        found: usize,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] stepwell_store::Error),
}

/// The message that puts the event into the run's inbox; `None` if the tenant has no such run.
pub(crate) async fn check(
    shared: &Shared,
    versions: &Versions,
    (tenant, run): (&TenantName, RunId),
    send: Send,
) -> Result<Option<Message>, Error> {
    let limits = &shared.config.limits;
    let (found, max) = (send.payload.size_bytes(), limits.payload_bytes_max);
    if found > max {
        return Err(Error::PayloadTooLarge { found, max });
    }
    if let Some(key) = &send.delivery_key
        && !key::fits(key)
    {
        return Err(Error::Key { found: key.len() });
    }
    let Some(row) = shared.store.run(tenant, run).await? else {
        return Ok(None);
    };
    let version = versions
        .get(&*shared.store, tenant, &row.workflow, Some(&row.label))
        .await?;
    let unfit = match version {
        Some(known) => known.event_misfits(&send.name, &send.payload).await,
        None => None,
    };
    if let Some(detail) = unfit {
        let event = send.name;
        return Err(Error::PayloadUnfit { event, detail });
    }
    Ok(Some(Message::Event {
        name: send.name,
        payload: send.payload,
        delivery_key: send.delivery_key,
        mailbox_events_max: limits.mailbox_events_max,
    }))
}
