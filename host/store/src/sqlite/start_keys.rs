//! Table `start_keys`: which run a start with an idempotency key made, and from what.

use rusqlite::{Connection, OptionalExtension};
use stepwell_core::id::{RunId, WorkflowName};

use super::fault::Result;
use super::tenants::TenantId;
use super::value::{Columns, key as run_key};
use crate::run::NewRun;

/// What an idempotency key was used for.
#[derive(Debug)]
pub(super) struct StartKeyRow {
    pub(super) run: RunId,
    pub(super) workflow: WorkflowName,
    pub(super) input_digest: [u8; 32],
}

const FIND: &str =
    "SELECT run, workflow, input_digest FROM start_keys WHERE tenant = ?1 AND key = ?2";
const INSERT: &str =
    "INSERT INTO start_keys (tenant, key, run, workflow, input_digest) VALUES (?1, ?2, ?3, ?4, ?5)";

pub(super) fn find(rows: &Connection, tenant: TenantId, key: &str) -> Result<Option<StartKeyRow>> {
    let found = rows
        .prepare_cached(FIND)?
        .query_row((tenant.0, key), |row| {
            Ok(StartKeyRow {
                run: row.value(0)?,
                workflow: row.text(1)?,
                input_digest: row.get(2)?,
            })
        })
        .optional()?;
    Ok(found)
}

pub(super) fn insert(rows: &Connection, tenant: TenantId, key: &str, new: &NewRun) -> Result<()> {
    let columns = (
        tenant.0,
        key,
        run_key(new.run),
        new.workflow.as_str(),
        new.input_digest,
    );
    rows.prepare_cached(INSERT)?.execute(columns)?;
    Ok(())
}
