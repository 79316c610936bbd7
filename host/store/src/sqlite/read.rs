//! Reads that join several tables. Each gets one snapshot, so what it returns was true at once.

use rusqlite::Connection;
use stepwell_core::id::{EventId, RunId, Sequence, TenantName};
use stepwell_core::journal::Entry;
use stepwell_core::run::Status;

use super::fault::Result;
use super::heads::{HeadRow, Notable};
use super::{heads, inbox, journal, runs, tenants, versions};
use crate::inbox::Inbox;
use crate::run::{RUNS_MAX, Run, RunFilter};

pub(super) fn run(rows: &Connection, tenant: &TenantName, run: RunId) -> Result<Option<Run>> {
    let id = tenants::find(rows, tenant)?;
    match heads::find_of(rows, id, run)? {
        Some(head) => assemble(rows, tenant, run, head).map(Some),
        None => Ok(None),
    }
}

pub(super) fn runs(rows: &Connection, tenant: &TenantName, filter: &RunFilter) -> Result<Vec<Run>> {
    let Some(id) = tenants::find(rows, tenant)? else {
        return Ok(Vec::new());
    };
    let limit = filter.limit.min(RUNS_MAX);
    let versions = match &filter.workflow {
        Some(workflow) => Some(versions::ids(rows, id, workflow)?),
        None => None,
    };
    let mut found = Vec::new();
    let mut visit = |run| {
        if found.len() >= limit {
            return Ok(false);
        }
        if let Some(versions) = &versions
            && !versions.contains(&runs::version(rows, id, run)?)
        {
            return Ok(true);
        }
        let Some(head) = heads::find_of(rows, Some(id), run)? else {
            return Ok(true);
        };
        let shown =
            filter.statuses.is_empty() || filter.statuses.contains(&head.head.facts().visible());
        if !shown {
            return Ok(true);
        }
        found.push(assemble(rows, tenant, run, head)?);
        Ok(found.len() < limit)
    };
    // Most runs of a tenant have completed; whoever asks for others is not made to pass them.
    let asked = &filter.statuses;
    if asked.is_empty() || asked.contains(&Status::Completed) {
        runs::scan(rows, id, filter.before, &mut visit)?;
    } else {
        let ended = asked.iter().any(|status| status.is_final());
        let notable = if ended {
            Notable::NotCompleted
        } else {
            Notable::Open
        };
        heads::scan(rows, id, (notable, filter.before), &mut visit)?;
    }
    Ok(found)
}

pub(super) fn history(
    rows: &Connection,
    tenant: &TenantName,
    run: RunId,
    from: Sequence,
    limit: usize,
) -> Result<Option<Vec<(Sequence, Entry)>>> {
    let id = tenants::find(rows, tenant)?;
    match heads::find_of(rows, id, run)? {
        Some(head) => journal::read(rows, run, head.tail, (from, limit)).map(Some),
        None => Ok(None),
    }
}

pub(super) fn journal(rows: &Connection, run: RunId) -> Result<Vec<Entry>> {
    let Some(head) = heads::find(rows, run)? else {
        return Ok(Vec::new());
    };
    let entries = journal::read(rows, run, head.tail, (Sequence(0), usize::MAX))?;
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

pub(super) fn inbox(rows: &Connection, run: RunId, after: EventId) -> Result<Inbox> {
    let paused = heads::find(rows, run)?.is_some_and(|head| head.head.paused);
    Ok(Inbox {
        items: inbox::list(rows, run, after)?,
        paused,
    })
}

fn assemble(rows: &Connection, tenant: &TenantName, run: RunId, row: HeadRow) -> Result<Run> {
    let HeadRow {
        tenant: id,
        tail,
        head,
    } = row;
    let stored = runs::load(rows, id, run)?;
    let pin = versions::pinned(rows, stored.version)?;
    let ending = if head.status.is_final() {
        journal::ending(rows, run, tail)?
    } else {
        None
    };
    Ok(Run {
        run,
        tenant: tenant.clone(),
        workflow: pin.workflow,
        label: pin.label,
        digest: pin.digest,
        generation: head.generation,
        status: head.facts().visible(),
        created_at: stored.created_at,
        updated_at: head.updated_at,
        due: head.due,
        entries: head.next,
        journal_bytes: head.journal_bytes,
        input: stored.input,
        ending,
        stuck_reason: head.stuck_reason,
        host: head.host,
        revision: head.revision,
    })
}
