//! Table `published`: the newest value that a run shows under each key.

use rusqlite::Connection;
use stepwell_core::id::RunId;
use stepwell_core::payload::Payload;
use stepwell_core::time::Timestamp;

use super::fault::{OrDamaged, Result};
use super::tenants::TenantId;
use super::value::{Columns, key as run_key, time};
use crate::codec;
use crate::run::Published;

const PUT: &str = "INSERT INTO published (run, key, tenant, value, at) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (run, key) DO UPDATE SET value = excluded.value, at = excluded.at";
const LIST: &str =
    "SELECT key, value, at FROM published WHERE run = ?1 AND tenant = ?2 ORDER BY key";

pub(super) fn put(
    rows: &Connection,
    (tenant, run): (TenantId, RunId),
    key: &str,
    value: &Payload,
    at: Timestamp,
) -> Result<()> {
    let columns = (
        run_key(run),
        key,
        tenant.0,
        codec::encode_payload(value),
        time(at),
    );
    rows.prepare_cached(PUT)?.execute(columns)?;
    Ok(())
}

/// By key.
pub(super) fn list(rows: &Connection, tenant: TenantId, run: RunId) -> Result<Vec<Published>> {
    let mut statement = rows.prepare_cached(LIST)?;
    let mut found = statement.query((run_key(run), tenant.0))?;
    let mut values = Vec::new();
    while let Some(row) = found.next()? {
        let value = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        let value =
            codec::decode_payload(value).or_damaged(|| format!("a published value of {run}"))?;
        values.push(Published {
            key: row.get(0)?,
            value,
            at: row.value(2)?,
        });
    }
    Ok(values)
}
