//! Table `events`: every event that was accepted, and what became of it.

use rusqlite::{Connection, OptionalExtension};
use stepwell_core::id::{EventId, RunId};
use stepwell_core::payload::{Failure, Payload};
use stepwell_core::time::Timestamp;

use super::fault::{OrDamaged, Result};
use super::tenants::TenantId;
use super::value::{Columns, int, key, time};
use crate::codec;
use crate::inbox::Event;

const FIND_DELIVERY: &str = "SELECT id FROM events WHERE run = ?1 AND delivery_key = ?2";
const INSERT: &str = "INSERT INTO events (run, id, tenant, name, sent_at, delivery_key) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const REPLY: &str = "UPDATE events SET reply = ?3 WHERE run = ?1 AND id = ?2";
const LIST: &str = "SELECT e.id, e.name, e.sent_at, i.id IS NULL, e.reply
    FROM events e LEFT JOIN inbox i ON i.run = e.run AND i.id = e.id
    WHERE e.run = ?1 AND e.tenant = ?2 ORDER BY e.id";

/// The event that was delivered to this run with this key.
pub(super) fn find_delivery(
    rows: &Connection,
    run: RunId,
    delivery_key: &str,
) -> Result<Option<EventId>> {
    let found = rows
        .prepare_cached(FIND_DELIVERY)?
        .query_row((key(run), delivery_key), |row| row.value(0))
        .optional()?;
    Ok(found.map(EventId))
}

pub(super) fn insert(
    rows: &Connection,
    (tenant, run, id): (TenantId, RunId, EventId),
    (name, delivery_key): (&str, Option<&str>),
    sent_at: Timestamp,
) -> Result<()> {
    let columns = (
        key(run),
        int(id.0),
        tenant.0,
        name,
        time(sent_at),
        delivery_key,
    );
    rows.prepare_cached(INSERT)?.execute(columns)?;
    Ok(())
}

/// Keeps the workflow's answer to the sender.
pub(super) fn reply(
    rows: &Connection,
    run: RunId,
    event: EventId,
    answer: &std::result::Result<Payload, Failure>,
) -> Result<()> {
    rows.prepare_cached(REPLY)?
        .execute((key(run), int(event.0), codec::encode_answer(answer)))?;
    Ok(())
}

/// Oldest first.
pub(super) fn list(rows: &Connection, tenant: TenantId, run: RunId) -> Result<Vec<Event>> {
    let mut statement = rows.prepare_cached(LIST)?;
    let mut found = statement.query((key(run), tenant.0))?;
    let mut events = Vec::new();
    while let Some(row) = found.next()? {
        let reply = row
            .get_ref(4)?
            .as_blob_or_null()
            .map_err(rusqlite::Error::from)?;
        let reply = reply
            .map(codec::decode_answer)
            .transpose()
            .or_damaged(|| format!("a reply of {run}"))?;
        events.push(Event {
            id: EventId(row.value(0)?),
            name: row.get(1)?,
            sent_at: row.value(2)?,
            taken: row.get(3)?,
            reply,
        });
    }
    Ok(events)
}
