//! Takes runs from hosts: those whose lease has run out, and those that cannot go on with a run.

use rusqlite::{Connection, TransactionBehavior};
use stepwell_core::id::{Epoch, RunId};
use stepwell_core::time::Timestamp;

use crate::sqlite::fault::Result;
use crate::sqlite::writer::Tx;
use crate::sqlite::{heads, hosts};

/// Takes runs from hosts whose lease has run out by `now`, and says which they are.
///
/// Rare, so it may look at every open run; as long as all hosts live it costs one look into a
/// table of one row.
pub(super) fn expire(tx: &mut Tx<'_>, now: Timestamp) -> Result<()> {
    let rows = tx.rows();
    if !hosts::any_expired(rows, now)? {
        return Ok(());
    }
    let live = hosts::remove_expired(rows, now)?;
    for run in heads::held(rows)? {
        let Some(mut row) = heads::find(rows, run)? else {
            continue;
        };
        if row.head.host.is_some_and(|host| live.contains(&host)) {
            continue;
        }
        let change = row.head.orphan(run, now);
        heads::update(rows, run, &row)?;
        tx.touched(run, change);
    }
    Ok(())
}

/// Takes one run from the host that holds it under this epoch, if one does.
pub(in crate::sqlite) fn abandon(
    tx: &mut Tx<'_>,
    run: RunId,
    epoch: Epoch,
    at: Timestamp,
) -> Result<()> {
    let rows = tx.rows();
    let Some(mut row) = heads::find(rows, run)?.filter(|row| row.head.is_held_under(epoch)) else {
        return Ok(());
    };
    let change = row.head.orphan(run, at);
    heads::update(rows, run, &row)?;
    tx.touched(run, change);
    Ok(())
}

/// Takes runs from every host. Only when the store is opened: whoever held them is gone, since the
/// folder is locked.
pub(in crate::sqlite) fn expire_all(connection: &mut Connection) -> Result<()> {
    let rows = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    hosts::clear(&rows)?;
    for run in heads::held(&rows)? {
        let Some(mut row) = heads::find(&rows, run)? else {
            continue;
        };
        // Nobody has told the time yet; its last change puts the longest untouched first.
        let at = row.head.updated_at;
        row.head.orphan(run, at);
        heads::update(&rows, run, &row)?;
    }
    rows.commit()?;
    Ok(())
}
