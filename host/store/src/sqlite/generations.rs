//! Table `generations`: journals that ended with continue-as-new. Kept for whoever looks back; no
//! run depends on them.

use rusqlite::Connection;
use stepwell_core::id::{RunId, Sequence};
use stepwell_core::time::Timestamp;

use super::fault::Result;
use super::journal::RowId;
use super::runs::RunRow;
use super::tenants::TenantId;
use super::value::{int, key, time};
use crate::codec;

/// A journal that has ended.
#[derive(Debug)]
pub(super) struct GenerationRow<'a> {
    pub(super) tenant: TenantId,
    pub(super) run: RunId,
    pub(super) generation: u32,
    pub(super) ended_at: Timestamp,
    pub(super) entries: Sequence,
    pub(super) tail: RowId,
    /// What it began with, and when.
    pub(super) began: &'a RunRow,
}

const INSERT: &str =
    "INSERT INTO generations (run, generation, tenant, started_at, ended_at, entries, tail, input)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

pub(super) fn insert(rows: &Connection, row: &GenerationRow<'_>) -> Result<()> {
    rows.prepare_cached(INSERT)?.execute((
        key(row.run),
        row.generation,
        row.tenant.0,
        time(row.began.started_at),
        time(row.ended_at),
        int(row.entries.0),
        row.tail.0,
        codec::encode_payload(&row.began.input),
    ))?;
    Ok(())
}
