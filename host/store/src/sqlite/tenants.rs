//! Table `tenants`: the number that stands for a tenant in every other table.

use rusqlite::{Connection, OptionalExtension};
use stepwell_core::id::TenantName;

use super::fault::Result;
use super::value::Columns;

/// A tenant's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TenantId(pub(super) i64);

const FIND: &str = "SELECT tenant FROM tenants WHERE name = ?1";
const NAME: &str = "SELECT name FROM tenants WHERE tenant = ?1";
const INSERT: &str = "INSERT INTO tenants (name) VALUES (?1)";

pub(super) fn find(rows: &Connection, name: &TenantName) -> Result<Option<TenantId>> {
    let found = rows
        .prepare_cached(FIND)?
        .query_row([name.as_str()], |row| row.get(0))
        .optional()?;
    Ok(found.map(TenantId))
}

pub(super) fn name(rows: &Connection, tenant: TenantId) -> Result<TenantName> {
    Ok(rows
        .prepare_cached(NAME)?
        .query_row([tenant.0], |row| row.text(0))?)
}

/// A tenant begins to exist with the first row that is written for it.
pub(super) fn find_or_insert(rows: &Connection, name: &TenantName) -> Result<TenantId> {
    match find(rows, name)? {
        Some(tenant) => Ok(tenant),
        None => Ok(TenantId(
            rows.prepare_cached(INSERT)?.insert([name.as_str()])?,
        )),
    }
}
