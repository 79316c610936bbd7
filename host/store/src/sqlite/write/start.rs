//! Starts a run: the run, its input, its idempotency key and the first claim at once.

use stepwell_core::id::HostId;

use super::claim;
use crate::error::Error;
use crate::head::Head;
use crate::run::{NewRun, Started};
use crate::sqlite::fault::Result;
use crate::sqlite::heads::HeadRow;
use crate::sqlite::writer::Tx;
use crate::sqlite::{heads, hosts, runs, start_keys, tenants, versions};

pub(in crate::sqlite) fn start(
    tx: &mut Tx<'_>,
    new: &NewRun,
    claimant: Option<HostId>,
) -> Result<Started> {
    let rows = tx.rows();
    let no_version = || Error::NoSuchVersion {
        workflow: new.workflow.clone(),
        label: new.label.clone(),
    };
    // A tenant without a row has no version either.
    let tenant = tenants::find(rows, &new.tenant)?.ok_or_else(no_version)?;
    if let Some(key) = &new.idempotency_key
        && let Some(used) = start_keys::find(rows, tenant, key)?
    {
        if used.workflow == new.workflow && used.input_digest == new.input_digest {
            return Ok(Started::Existing { run: used.run });
        }
        return Ok(Started::KeyConflict {
            run: used.run,
            workflow: used.workflow,
            input_digest: used.input_digest,
        });
    }
    let pin = versions::pin(rows, tenant, &new.workflow, &new.label)?
        .filter(|pin| pin.digest == new.digest)
        .ok_or_else(no_version)?;

    let mut head = Head::started(new.start_at, new.at);
    let claimant = match claimant {
        Some(host)
            if head.claimable_since(new.at).is_some() && hosts::lives(rows, host, new.at)? =>
        {
            Some(host)
        }
        _ => None,
    };
    let lease = claimant.map(|host| head.claim(host, new.at));
    let change = head.availability(new.run);
    let row = HeadRow {
        tenant,
        tail: None,
        head,
    };
    runs::insert(rows, (tenant, new.run), pin.version, new.at, &new.input)?;
    heads::insert(rows, new.run, &row)?;
    if let Some(key) = &new.idempotency_key {
        start_keys::insert(rows, tenant, key, new)?;
    }
    tx.touched(new.run, change);
    let Some(lease) = lease else {
        return Ok(Started::Created(None));
    };
    let origin = claim::Origin {
        tenant: new.tenant.clone(),
        pin,
        input: new.input.clone(),
        started_at: new.at,
    };
    Ok(Started::Created(Some(Box::new(claim::claimed(
        new.run,
        &row.head,
        lease,
        origin,
        Vec::new(),
    )))))
}
