//! Table `heads`: one narrow row per run, with all of it that changes.

use std::ops::Range;

use rusqlite::{Connection, Row};
use stepwell_core::id::{Epoch, EventId, HostId, RunId, Sequence};
use stepwell_core::run::Status;
use stepwell_core::time::Timestamp;

use super::fault::{OrDamaged, Result};
use super::journal::RowId;
use super::tenants::TenantId;
use super::value::{Columns, host_key, int, key, time};
use crate::claim::Room;
use crate::codec;
use crate::head::Head;

/// A head, and where its journal ends.
#[derive(Debug, Clone)]
pub(super) struct HeadRow {
    pub(super) tenant: TenantId,
    /// The newest row of the newest journal.
    pub(super) tail: Option<RowId>,
    pub(super) head: Head,
}

macro_rules! columns {
    () => {
        "tenant, tail, status, epoch, host, generation, next, journal_bytes, due, ready_since, paused,
         cancel_requested, host_lost, claims_without_progress, waits, sleeps, inbox_last, mailbox_events, wake,
         stuck_reason, revision, updated_at"
    };
}

const FIND: &str = concat!("SELECT ", columns!(), " FROM heads WHERE run = ?1");
const INSERT: &str = concat!(
    "INSERT INTO heads (run, ",
    columns!(),
    ", claimable, phase) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
     ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)"
);
/// An append to a run that was running and runs on. It names no column of an index, so that SQLite
/// looks at none.
const RUN_ON: &str =
    "UPDATE heads SET tail = ?2, next = ?3, journal_bytes = ?4, claims_without_progress = ?5,
    mailbox_events = ?6, wake = ?7, revision = ?8, updated_at = ?9, host_lost = ?10 WHERE run = ?1";
const UPDATE: &str = "UPDATE heads SET tail = ?2, status = ?3, epoch = ?4, host = ?5, generation = ?6, next = ?7,
    journal_bytes = ?8, due = ?9, ready_since = ?10, paused = ?11, cancel_requested = ?12, host_lost = ?13,
    claims_without_progress = ?14, waits = ?15, sleeps = ?16, inbox_last = ?17, mailbox_events = ?18, wake = ?19,
    stuck_reason = ?20, revision = ?21, updated_at = ?22, claimable = ?23 WHERE run = ?1";
const END: &str = "UPDATE heads SET phase = ?2 WHERE run = ?1";
const READY: &str =
    "SELECT ready_since, run FROM heads WHERE claimable = 1 AND ready_since IS NOT NULL
    AND claims_without_progress >= ?1 AND claims_without_progress < ?2
    ORDER BY ready_since, run LIMIT ?3";
const OVERDUE: &str =
    "SELECT due, run FROM heads WHERE claimable = 1 AND due IS NOT NULL AND due <= ?4
    AND claims_without_progress >= ?1 AND claims_without_progress < ?2
    ORDER BY due, run LIMIT ?3";
const DUE: &str =
    "SELECT due, run FROM heads WHERE claimable = 1 AND due IS NOT NULL AND due >= ?1 AND due < ?2
    ORDER BY due, run LIMIT ?3";
const HELD: &str = "SELECT run FROM heads INDEXED BY heads_notable WHERE phase < 2 AND phase = 0 AND host IS NOT NULL";
const HELD_BY: &str = "SELECT run, epoch FROM heads INDEXED BY heads_notable WHERE phase < 2 AND phase = 0 AND host = ?1";
macro_rules! of_phase {
    ($phase:literal) => {
        concat!(
            "SELECT run FROM heads INDEXED BY heads_notable WHERE phase < 2 AND phase = ",
            $phase,
            " AND tenant = ?1 AND run < ?2"
        )
    };
}
const OPEN: &str = concat!(of_phase!("0"), " ORDER BY run DESC");
const NOT_COMPLETED: &str = concat!(
    of_phase!("0"),
    " UNION ALL ",
    of_phase!("1"),
    " ORDER BY run DESC"
);

/// Which of a tenant's runs are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notable {
    /// Those that have not ended.
    Open,
    /// Also those that ended without having completed.
    NotCompleted,
}

pub(super) fn find(rows: &Connection, run: RunId) -> Result<Option<HeadRow>> {
    let mut statement = rows.prepare_cached(FIND)?;
    let mut found = statement.query([key(run)])?;
    match found.next()? {
        Some(row) => read(run, row).map(Some),
        None => Ok(None),
    }
}

/// The head of one of the tenant's runs.
pub(super) fn find_of(
    rows: &Connection,
    tenant: Option<TenantId>,
    run: RunId,
) -> Result<Option<HeadRow>> {
    Ok(find(rows, run)?.filter(|row| Some(row.tenant) == tenant))
}

pub(super) fn insert(rows: &Connection, run: RunId, row: &HeadRow) -> Result<()> {
    let head = &row.head;
    rows.prepare_cached(INSERT)?.execute(rusqlite::params![
        key(run),
        row.tenant.0,
        row.tail.map(|tail| tail.0),
        head.status.as_str(),
        int(head.epoch.0),
        head.host.map(host_key),
        head.generation,
        int(head.next.0),
        int(head.journal_bytes),
        head.due.map(time),
        head.ready_since.map(time),
        head.paused,
        head.cancel_requested,
        head.host_lost,
        head.claims_without_progress,
        waits(head),
        head.sleeps,
        int(head.inbox_last.0),
        int(head.mailbox_events),
        head.wake.map(|wake| int(wake.0)),
        head.stuck_reason,
        int(head.revision),
        time(head.updated_at),
        head.is_claimable(),
        phase(head),
    ])?;
    Ok(())
}

/// Writes back what an append changes of a run that was running and runs on.
pub(super) fn run_on(rows: &Connection, run: RunId, row: &HeadRow) -> Result<()> {
    let head = &row.head;
    rows.prepare_cached(RUN_ON)?.execute((
        key(run),
        row.tail.map(|tail| tail.0),
        int(head.next.0),
        int(head.journal_bytes),
        head.claims_without_progress,
        int(head.mailbox_events),
        head.wake.map(|wake| int(wake.0)),
        int(head.revision),
        time(head.updated_at),
        head.host_lost,
    ))?;
    Ok(())
}

/// Writes back all that can change.
pub(super) fn update(rows: &Connection, run: RunId, row: &HeadRow) -> Result<()> {
    let head = &row.head;
    rows.prepare_cached(UPDATE)?.execute(rusqlite::params![
        key(run),
        row.tail.map(|tail| tail.0),
        head.status.as_str(),
        int(head.epoch.0),
        head.host.map(host_key),
        head.generation,
        int(head.next.0),
        int(head.journal_bytes),
        head.due.map(time),
        head.ready_since.map(time),
        head.paused,
        head.cancel_requested,
        head.host_lost,
        head.claims_without_progress,
        waits(head),
        head.sleeps,
        int(head.inbox_last.0),
        int(head.mailbox_events),
        head.wake.map(|wake| int(wake.0)),
        head.stuck_reason,
        int(head.revision),
        time(head.updated_at),
        head.is_claimable(),
    ])?;
    if head.status.is_final() {
        // A statement of its own, so that no other update looks at the index of this column.
        rows.prepare_cached(END)?.execute((key(run), phase(head)))?;
    }
    Ok(())
}

/// Runs that may be claimed, and since when: those that are ready, and those due by `now`, each
/// kind up to what there is room for; a run can be both.
pub(super) fn claimable(
    rows: &Connection,
    now: Timestamp,
    room: Room,
) -> Result<Vec<(Timestamp, RunId)>> {
    let mut suspects = claimed_before(rows, now, Room::SUSPECT_CLAIMS..u32::MAX, room.suspects)?;
    // One that is both ready and due is there twice.
    suspects.sort_unstable();
    let mut seen = std::collections::BTreeSet::new();
    suspects.retain(|(_, run)| seen.len() < room.suspects && seen.insert(*run));
    let mut found = claimed_before(rows, now, 0..Room::SUSPECT_CLAIMS, room.runs)?;
    found.extend(suspects);
    Ok(found)
}

/// The same for runs that were claimed so often in a row without progress, at most `limit` that are
/// ready and as many that are due.
fn claimed_before(
    rows: &Connection,
    now: Timestamp,
    claims: Range<u32>,
    limit: usize,
) -> Result<Vec<(Timestamp, RunId)>> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let limit = int(limit as u64);
    let mut found = pairs(rows, READY, (claims.start, claims.end, limit))?;
    found.extend(pairs(
        rows,
        OVERDUE,
        (claims.start, claims.end, limit, time(now)),
    )?);
    Ok(found)
}

/// Runs that nobody holds and that fall due in a span, soonest first.
pub(super) fn due(
    rows: &Connection,
    from: Timestamp,
    until: Timestamp,
    limit: usize,
) -> Result<Vec<(Timestamp, RunId)>> {
    pairs(rows, DUE, (time(from), time(until), int(limit as u64)))
}

/// Every run that a host holds. Looks at every open run, so it is for when a host is lost.
pub(super) fn held(rows: &Connection) -> Result<Vec<RunId>> {
    let mut statement = rows.prepare_cached(HELD)?;
    let runs = statement
        .query_map([], |row| row.value(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(runs)
}

/// The runs that this host holds. Looks at every open run, so it is for the sweep.
pub(super) fn held_by(rows: &Connection, host: HostId) -> Result<Vec<(RunId, Epoch)>> {
    let mut statement = rows.prepare_cached(HELD_BY)?;
    let held = statement
        .query_map([host_key(host)], |row| {
            Ok((row.value(0)?, Epoch(row.value(1)?)))
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(held)
}

/// Shows the tenant's notable runs to `visit`, newest first, until it has enough.
pub(super) fn scan(
    rows: &Connection,
    tenant: TenantId,
    (notable, before): (Notable, Option<RunId>),
    mut visit: impl FnMut(RunId) -> Result<bool>,
) -> Result<()> {
    let before = before.map_or([0xff; 16], key);
    let mut statement = rows.prepare_cached(match notable {
        Notable::Open => OPEN,
        Notable::NotCompleted => NOT_COMPLETED,
    })?;
    let mut found = statement.query((tenant.0, before))?;
    while let Some(row) = found.next()? {
        if !visit(row.value(0)?)? {
            break;
        }
    }
    Ok(())
}

/// As in the column of this name.
fn phase(head: &Head) -> i64 {
    match head.status {
        Status::Completed => 2,
        status if status.is_final() => 1,
        _ => 0,
    }
}

fn pairs(
    rows: &Connection,
    sql: &str,
    limits: impl rusqlite::Params,
) -> Result<Vec<(Timestamp, RunId)>> {
    let mut statement = rows.prepare_cached(sql)?;
    let found = statement.query_map(limits, |row| Ok((row.value(0)?, row.value(1)?)))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn waits(head: &Head) -> Option<Vec<u8>> {
    if head.waits.is_empty() {
        None
    } else {
        Some(codec::encode_names(&head.waits))
    }
}

fn read(run: RunId, row: &Row<'_>) -> Result<HeadRow> {
    let waits = match row
        .get_ref(14)?
        .as_blob_or_null()
        .map_err(rusqlite::Error::from)?
    {
        Some(names) => codec::decode_names(names).or_damaged(|| format!("what {run} waits for"))?,
        None => Vec::new(),
    };
    let head = Head {
        status: row.text(2)?,
        epoch: Epoch(row.value(3)?),
        host: row.option::<HostId>(4)?,
        generation: row.get(5)?,
        next: Sequence(row.value(6)?),
        journal_bytes: row.value(7)?,
        due: row.option(8)?,
        ready_since: row.option(9)?,
        paused: row.get(10)?,
        cancel_requested: row.get(11)?,
        host_lost: row.get(12)?,
        claims_without_progress: row.get(13)?,
        waits,
        sleeps: row.get(15)?,
        inbox_last: EventId(row.value(16)?),
        mailbox_events: row.value(17)?,
        wake: row.option(18)?.map(EventId),
        stuck_reason: row.get(19)?,
        revision: row.value(20)?,
        updated_at: row.value(21)?,
    };
    Ok(HeadRow {
        tenant: TenantId(row.get(0)?),
        tail: row.get::<_, Option<i64>>(1)?.map(RowId),
        head,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrate;

    #[test]
    fn runs_are_found_in_the_order_of_an_index() {
        let folder = tempfile::tempdir().unwrap();
        let rows = migrate::open(&folder.path().join("test.sqlite")).unwrap();
        for (sql, index) in [
            (FIND, "PRIMARY KEY"),
            (READY, "heads_ready"),
            (OVERDUE, "heads_due"),
            (DUE, "heads_due"),
            (HELD, "heads_notable"),
            (HELD_BY, "heads_notable"),
            (OPEN, "heads_notable"),
            (NOT_COMPLETED, "heads_notable"),
        ] {
            let mut statement = rows.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let nulls = vec![rusqlite::types::Null; statement.parameter_count()];
            let plan: Vec<String> = statement
                .query_map(rusqlite::params_from_iter(nulls), |row| row.get(3))
                .unwrap()
                .collect::<rusqlite::Result<_>>()
                .unwrap();
            let plan = plan.join("; ");
            assert!(plan.contains(index), "{sql}: {plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{sql}: {plan}");
        }
    }
}
