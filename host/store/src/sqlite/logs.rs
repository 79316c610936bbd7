//! Table `logs`: lines of each run's log, numbered from 1.

use rusqlite::{Connection, OptionalExtension};
use stepwell_core::id::{RunId, TenantName};

use super::fault::{Fault, OrDamaged, Result};
use super::tenants::TenantId;
use super::value::{Columns, int, key, time};
use crate::codec;
use crate::log::{LogLevel, LogLine, LogRow};

const LAST: &str = "SELECT number FROM logs WHERE run = ?1 ORDER BY number DESC LIMIT 1";
const INSERT: &str = "INSERT INTO logs (run, number, tenant, at, level, message, fields)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const LIST: &str = "SELECT number, at, level, message, fields FROM logs
    WHERE run = ?1 AND number > ?2 AND tenant = ?3 ORDER BY number LIMIT ?4";

/// Appends a line to its run's log.
pub(super) fn insert(rows: &Connection, tenant: TenantId, line: &LogLine) -> Result<()> {
    let run = key(line.run);
    let last: Option<i64> = rows
        .prepare_cached(LAST)?
        .query_row([run], |row| row.get(0))
        .optional()?;
    rows.prepare_cached(INSERT)?.execute((
        run,
        last.unwrap_or(0) + 1,
        tenant.0,
        time(line.at),
        line.level.as_str(),
        &line.message,
        codec::encode_pairs(&line.fields),
    ))?;
    Ok(())
}

/// The lines after number `after`, in order.
pub(super) fn list(
    rows: &Connection,
    tenant: TenantId,
    name: &TenantName,
    run: RunId,
    after: u64,
    limit: usize,
) -> Result<Vec<LogRow>> {
    let mut statement = rows.prepare_cached(LIST)?;
    let mut found = statement.query((key(run), int(after), tenant.0, int(limit as u64)))?;
    let mut lines = Vec::new();
    while let Some(row) = found.next()? {
        let level = row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?;
        let level = LogLevel::from_name(level).ok_or_else(|| {
            Fault::damaged(
                format!("the log of {run}"),
                format!("a line has the level `{level}`"),
            )
        })?;
        let fields = row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?;
        let fields = codec::decode_pairs(fields).or_damaged(|| format!("the log of {run}"))?;
        let line = LogLine {
            tenant: name.clone(),
            run,
            at: row.value(1)?,
            level,
            message: row.get(3)?,
            fields,
        };
        lines.push(LogRow {
            number: row.value(0)?,
            line,
        });
    }
    Ok(lines)
}
