//! Puts a message into a run's inbox, or carries it out.

use stepwell_core::id::{RunId, TenantName};
use stepwell_core::time::Timestamp;

use super::leases;
use crate::codec;
use crate::inbox::{Delivered, Message};
use crate::sqlite::fault::Result;
use crate::sqlite::journal::{self, Place};
use crate::sqlite::writer::Tx;
use crate::sqlite::{events, heads, inbox, tenants};

pub(in crate::sqlite) fn deliver(
    tx: &mut Tx<'_>,
    tenant: &TenantName,
    run: RunId,
    message: &Message,
    at: Timestamp,
) -> Result<Delivered> {
    // Whether the run is held decides who is told.
    leases::expire(tx, at)?;
    let rows = tx.rows();
    let Some(mut row) = heads::find_of(rows, tenants::find(rows, tenant)?, run)? else {
        return Ok(Delivered::NoSuchRun);
    };
    if let Message::Event {
        delivery_key: Some(key),
        ..
    } = message
        && let Some(id) = events::find_delivery(rows, run, key)?
    {
        return Ok(Delivered::Already { id: Some(id) });
    }
    if let Some(refusal) = row.head.refuse(message) {
        return Ok(refusal);
    }

    let mut bytes = 0;
    if let Message::Terminate { reason } = message {
        let last = codec::encode_row(run, row.head.next, &[row.head.termination(reason, at)]);
        bytes = last.len() as u64;
        let place = Place {
            tenant: row.tenant,
            run,
            generation: row.head.generation,
            first: row.head.next,
            tail: row.tail,
        };
        row.tail = Some(journal::append(rows, tx.folds(), place, &last)?);
        tx.folds().forget(run);
        tx.appended(1);
    }
    let (id, change) = row.head.accept(run, message, at, bytes);
    inbox::insert(rows, (row.tenant, run, id), message, at)?;
    if let Message::Event {
        name, delivery_key, ..
    } = message
    {
        events::insert(
            rows,
            (row.tenant, run, id),
            (name, delivery_key.as_deref()),
            at,
        )?;
    }
    heads::update(rows, run, &row)?;
    tx.touched(run, change);
    Ok(Delivered::Accepted { id })
}
