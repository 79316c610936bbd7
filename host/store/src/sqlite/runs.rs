//! Table `runs`: what of a run never changes, save at continue-as-new.

use rusqlite::Connection;
use stepwell_core::id::RunId;
use stepwell_core::payload::Payload;
use stepwell_core::time::Timestamp;

use super::fault::{OrDamaged, Result};
use super::tenants::TenantId;
use super::value::{Columns, key, time};
use super::versions::VersionId;
use crate::codec;

/// What of a run never changes.
#[derive(Debug)]
pub(super) struct RunRow {
    pub(super) version: VersionId,
    pub(super) created_at: Timestamp,
    /// When the newest journal began.
    pub(super) started_at: Timestamp,
    /// What the newest journal began with.
    pub(super) input: Payload,
}

const FIND: &str =
    "SELECT version, created_at, started_at, input FROM runs WHERE tenant = ?1 AND run = ?2";
const VERSION: &str = "SELECT version FROM runs WHERE tenant = ?1 AND run = ?2";
const INSERT: &str = "INSERT INTO runs (tenant, run, version, created_at, started_at, input)
    VALUES (?1, ?2, ?3, ?4, ?4, ?5)";
const CONTINUE: &str = "UPDATE runs SET started_at = ?3, input = ?4 WHERE tenant = ?1 AND run = ?2";
const LIST: &str = "SELECT run FROM runs WHERE tenant = ?1 AND run < ?2 ORDER BY run DESC";

/// The row of a run whose head was found.
pub(super) fn load(rows: &Connection, tenant: TenantId, run: RunId) -> Result<RunRow> {
    let mut statement = rows.prepare_cached(FIND)?;
    let (row, input) = statement.query_row((tenant.0, key(run)), |row| {
        let found = RunRow {
            version: VersionId(row.get(0)?),
            created_at: row.value(1)?,
            started_at: row.value(2)?,
            input: Payload::null(),
        };
        Ok((found, row.get::<_, Vec<u8>>(3)?))
    })?;
    let input = codec::decode_payload(&input).or_damaged(|| format!("the input of {run}"))?;
    Ok(RunRow { input, ..row })
}

/// The version that a run is pinned to.
pub(super) fn version(rows: &Connection, tenant: TenantId, run: RunId) -> Result<VersionId> {
    Ok(VersionId(
        rows.prepare_cached(VERSION)?
            .query_row((tenant.0, key(run)), |row| row.get(0))?,
    ))
}

pub(super) fn insert(
    rows: &Connection,
    (tenant, run): (TenantId, RunId),
    version: VersionId,
    created_at: Timestamp,
    input: &Payload,
) -> Result<()> {
    let input = codec::encode_payload(input);
    rows.prepare_cached(INSERT)?.execute((
        tenant.0,
        key(run),
        version.0,
        time(created_at),
        input,
    ))?;
    Ok(())
}

/// The newest journal is another one, which began now and with this.
pub(super) fn replace_input(
    rows: &Connection,
    (tenant, run): (TenantId, RunId),
    started_at: Timestamp,
    input: &Payload,
) -> Result<()> {
    let input = codec::encode_payload(input);
    rows.prepare_cached(CONTINUE)?
        .execute((tenant.0, key(run), time(started_at), input))?;
    Ok(())
}

/// Shows the tenant's runs older than `before` to `visit`, newest first, until it has enough.
pub(super) fn scan(
    rows: &Connection,
    tenant: TenantId,
    before: Option<RunId>,
    mut visit: impl FnMut(RunId) -> Result<bool>,
) -> Result<()> {
    let before = before.map_or([0xff; 16], key);
    let mut statement = rows.prepare_cached(LIST)?;
    let mut found = statement.query((tenant.0, before))?;
    while let Some(row) = found.next()? {
        if !visit(row.value(0)?)? {
            break;
        }
    }
    Ok(())
}
