//! Table `inbox`: what no journal entry has taken yet.

use rusqlite::{Connection, Row};
use stepwell_core::id::{EventId, RunId};
use stepwell_core::time::Timestamp;

use super::fault::{Fault, OrDamaged, Result};
use super::tenants::TenantId;
use super::value::{Columns, int, key, time};
use crate::append::Suspension;
use crate::codec;
use crate::inbox::{InboxItem, InboxMessage, ItemKind, Message};

const EVENT: &str = "event";
const CANCEL: &str = "cancel";
const WAKE: &str = "wake";

const INSERT: &str = "INSERT INTO inbox (run, id, tenant, kind, at, text, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const LIST: &str =
    "SELECT id, kind, at, text, payload FROM inbox WHERE run = ?1 AND id > ?2 ORDER BY id";
const KINDS: &str = "SELECT kind, text FROM inbox WHERE run = ?1 AND id > ?2";
const TAKE: &str = "DELETE FROM inbox WHERE run = ?1 AND id = ?2 AND kind = 'event'";
const TAKE_CANCEL: &str = "DELETE FROM inbox WHERE run = ?1 AND kind = 'cancel'";
const TAKE_WAKES: &str = "DELETE FROM inbox WHERE run = ?1 AND id <= ?2 AND kind = 'wake'";

/// Puts a message in its place. Those that take effect when they are delivered have no row.
pub(super) fn insert(
    rows: &Connection,
    (tenant, run, id): (TenantId, RunId, EventId),
    message: &Message,
    at: Timestamp,
) -> Result<()> {
    let (kind, text, payload) = match message {
        Message::Event { name, payload, .. } => {
            (EVENT, Some(name), Some(codec::encode_payload(payload)))
        }
        Message::Cancel { reason } => (CANCEL, Some(reason), None),
        Message::Wake => (WAKE, None, None),
        Message::Pause | Message::Resume | Message::Terminate { .. } => return Ok(()),
    };
    rows.prepare_cached(INSERT)?.execute((
        key(run),
        int(id.0),
        tenant.0,
        kind,
        time(at),
        text,
        payload,
    ))?;
    Ok(())
}

/// What came after `after`, in order.
pub(super) fn list(rows: &Connection, run: RunId, after: EventId) -> Result<Vec<InboxItem>> {
    let mut statement = rows.prepare_cached(LIST)?;
    let mut found = statement.query((key(run), int(after.0)))?;
    let mut items = Vec::new();
    while let Some(row) = found.next()? {
        items.push(read(run, row)?);
    }
    Ok(items)
}

/// Whether something came after `after` that a run suspended like this waits for.
pub(super) fn has_met(
    rows: &Connection,
    run: RunId,
    after: EventId,
    suspension: &Suspension,
) -> Result<bool> {
    let mut statement = rows.prepare_cached(KINDS)?;
    let mut found = statement.query((key(run), int(after.0)))?;
    while let Some(row) = found.next()? {
        let text = row
            .get_ref(1)?
            .as_str_or_null()
            .map_err(rusqlite::Error::from)?;
        let kind = match row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)? {
            EVENT => ItemKind::Event {
                name: text.unwrap_or_default(),
            },
            CANCEL => ItemKind::Cancel,
            WAKE => ItemKind::Wake,
            other => return Err(unknown(run, other)),
        };
        if suspension.is_met_by(kind) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An entry has taken an event.
pub(super) fn take(rows: &Connection, run: RunId, event: EventId) -> Result<()> {
    rows.prepare_cached(TAKE)?
        .execute((key(run), int(event.0)))?;
    Ok(())
}

/// An entry has delivered the cancel.
pub(super) fn take_cancel(rows: &Connection, run: RunId) -> Result<()> {
    rows.prepare_cached(TAKE_CANCEL)?.execute([key(run)])?;
    Ok(())
}

/// The host has seen all wakes up to `seen`.
pub(super) fn take_wakes(rows: &Connection, run: RunId, seen: EventId) -> Result<()> {
    rows.prepare_cached(TAKE_WAKES)?
        .execute((key(run), int(seen.0)))?;
    Ok(())
}

fn read(run: RunId, row: &Row<'_>) -> Result<InboxItem> {
    let text = row.get::<_, Option<String>>(3)?.unwrap_or_default();
    let what = match row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)? {
        EVENT => {
            let payload = row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?;
            let payload =
                codec::decode_payload(payload).or_damaged(|| format!("an event of {run}"))?;
            InboxMessage::Event {
                name: text,
                payload,
            }
        }
        CANCEL => InboxMessage::Cancel { reason: text },
        WAKE => InboxMessage::Wake,
        other => return Err(unknown(run, other)),
    };
    Ok(InboxItem {
        id: EventId(row.value(0)?),
        at: row.value(2)?,
        what,
    })
}

fn unknown(run: RunId, kind: &str) -> Fault {
    Fault::damaged(
        format!("the inbox of {run}"),
        format!("an item has the unknown kind `{kind}`"),
    )
}
