//! Claims runs for a host.

use rusqlite::Connection;
use stepwell_core::id::{EventId, HostId, RunId, TenantName};
use stepwell_core::payload::Payload;
use stepwell_core::time::Timestamp;

use super::leases;
use crate::claim::{Claim, Room};
use crate::head::{Head, Lease};
use crate::inbox::InboxItem;
use crate::sqlite::fault::{Fault, Result};
use crate::sqlite::tenants::TenantId;
use crate::sqlite::versions::Pin;
use crate::sqlite::writer::Tx;
use crate::sqlite::{heads, hosts, inbox, runs, tenants, versions};

/// What of a claim the head doesn't say.
pub(super) struct Origin {
    pub(super) tenant: TenantName,
    pub(super) pin: Pin,
    pub(super) input: Payload,
    pub(super) started_at: Timestamp,
}

pub(in crate::sqlite) fn claim(
    tx: &mut Tx<'_>,
    host: HostId,
    now: Timestamp,
    room: Room,
) -> Result<Vec<Claim>> {
    leases::expire(tx, now)?;
    let rows = tx.rows();
    if !hosts::lives(rows, host, now)? {
        return Ok(Vec::new());
    }
    let mut claims = Vec::new();
    for run in soonest(heads::claimable(rows, now, room)?, room.runs) {
        match claim_one(rows, host, now, run) {
            Ok(claim) => claims.extend(claim),
            // Whatever is wrong with one run keeps nobody from the others.
            Err(fault) => {
                let error = fault.into_damage()?;
                tracing::error!(%run, %error, "not claimed");
                continue;
            }
        }
        tx.touched(run, None);
    }
    Ok(claims)
}

/// Claims a run; sets it aside instead if what it consists of is damaged. Fails as damaged if not
/// even its head can be read.
fn claim_one(rows: &Connection, host: HostId, now: Timestamp, run: RunId) -> Result<Option<Claim>> {
    let mut row = heads::find(rows, run)?.ok_or_else(|| {
        Fault::damaged(
            format!("the head of {run}"),
            "an index names it, but it is missing",
        )
    })?;
    let claim = match load(rows, run, row.tenant) {
        Ok((origin, items)) => {
            let lease = row.head.claim(host, now);
            Some(claimed(run, &row.head, lease, origin, items))
        }
        Err(fault) => {
            let damage = fault.into_damage()?;
            row.head.stick_at(damage.to_string(), now);
            None
        }
    };
    heads::update(rows, run, &row)?;
    Ok(claim)
}

fn load(rows: &Connection, run: RunId, tenant: TenantId) -> Result<(Origin, Vec<InboxItem>)> {
    let stored = runs::load(rows, tenant, run)?;
    let origin = Origin {
        tenant: tenants::name(rows, tenant)?,
        pin: versions::pinned(rows, stored.version)?,
        input: stored.input,
        started_at: stored.started_at,
    };
    Ok((origin, inbox::list(rows, run, EventId(0))?))
}

/// Each run once, in the order in which they could have been claimed.
fn soonest(mut found: Vec<(Timestamp, RunId)>, limit: usize) -> Vec<RunId> {
    found.sort_unstable();
    let mut runs = Vec::with_capacity(found.len().min(limit));
    let mut seen = std::collections::HashSet::new();
    for (_, run) in found {
        if runs.len() < limit && seen.insert(run) {
            runs.push(run);
        }
    }
    runs
}

pub(super) fn claimed(
    run: RunId,
    head: &Head,
    lease: Lease,
    origin: Origin,
    inbox: Vec<InboxItem>,
) -> Claim {
    let Origin {
        tenant,
        pin,
        input,
        started_at,
    } = origin;
    Claim {
        run,
        tenant,
        workflow: pin.workflow,
        label: pin.label,
        digest: pin.digest,
        environment: pin.environment,
        generation: head.generation,
        input,
        started_at,
        epoch: head.epoch,
        next: head.next,
        journal_bytes: head.journal_bytes,
        host_lost: lease.host_lost,
        claims_without_progress: lease.claims_without_progress,
        paused: head.paused,
        inbox,
    }
}
