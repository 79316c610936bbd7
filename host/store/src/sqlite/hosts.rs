//! Table `hosts`: which hosts live, and until when that may be taken for true.

use rusqlite::{Connection, OptionalExtension};
use stepwell_core::id::HostId;
use stepwell_core::time::Timestamp;

use super::fault::Result;
use super::value::{Columns, host_key, time};

const RENEW: &str = "INSERT INTO hosts (host, lease_until) VALUES (?1, ?2)
    ON CONFLICT (host) DO UPDATE SET lease_until = excluded.lease_until";
const LIVES: &str = "SELECT 1 FROM hosts WHERE host = ?1 AND lease_until > ?2";
const ANY_EXPIRED: &str = "SELECT host FROM hosts WHERE lease_until <= ?1 LIMIT 1";
const REMOVE_EXPIRED: &str = "DELETE FROM hosts WHERE lease_until <= ?1";
const LIST: &str = "SELECT host FROM hosts";
const CLEAR: &str = "DELETE FROM hosts";

pub(super) fn renew(rows: &Connection, host: HostId, lease_until: Timestamp) -> Result<()> {
    rows.prepare_cached(RENEW)?
        .execute((host_key(host), time(lease_until)))?;
    Ok(())
}

pub(super) fn lives(rows: &Connection, host: HostId, now: Timestamp) -> Result<bool> {
    let found = rows
        .prepare_cached(LIVES)?
        .query_row((host_key(host), time(now)), |_| Ok(()))
        .optional()?;
    Ok(found.is_some())
}

pub(super) fn any_expired(rows: &Connection, now: Timestamp) -> Result<bool> {
    let found = rows
        .prepare_cached(ANY_EXPIRED)?
        .query_row([time(now)], |_| Ok(()))
        .optional()?;
    Ok(found.is_some())
}

/// Removes the hosts whose lease has run out by `now`; lists those that are left.
pub(super) fn remove_expired(rows: &Connection, now: Timestamp) -> Result<Vec<HostId>> {
    rows.prepare_cached(REMOVE_EXPIRED)?.execute([time(now)])?;
    let mut statement = rows.prepare_cached(LIST)?;
    let hosts = statement
        .query_map([], |row| row.value(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(hosts)
}

/// Removes all.
pub(super) fn clear(rows: &Connection) -> Result<()> {
    rows.execute(CLEAR, [])?;
    Ok(())
}
