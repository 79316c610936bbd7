//! Appends entries to a journal: the path of every step.

use crate::append::{Append, Then};
use crate::effect::{Effect, effects};
use crate::error::Error;
use crate::sqlite::fault::{Fault, Result};
use crate::sqlite::generations::{self, GenerationRow};
use crate::sqlite::heads::{self, HeadRow};
use crate::sqlite::journal::{self, Place};
use crate::sqlite::writer::Tx;
use crate::sqlite::{events, inbox, published, runs};
use stepwell_core::payload::Payload;
use stepwell_core::run::Status;

/// `entries` is the append's row, encoded; empty if it has none.
pub(in crate::sqlite) fn append(tx: &mut Tx<'_>, append: &Append, entries: &[u8]) -> Result<()> {
    let rows = tx.rows();
    let run = append.run;
    let mut row = heads::find(rows, run)?.ok_or(Error::LeaseLost {
        run,
        epoch: append.epoch,
    })?;
    row.head.check(append)?;
    if !entries.is_empty() {
        let place = Place {
            tenant: row.tenant,
            run,
            generation: row.head.generation,
            first: append.next,
            tail: row.tail,
        };
        row.tail = Some(journal::append(rows, tx.folds(), place, entries)?);
        write_effects(tx, append, &row)?;
    }
    if row.head.wake.is_some() {
        inbox::take_wakes(rows, run, append.inbox_seen)?;
    }
    // After what the entries take has gone.
    let met = match row.head.asks_for_unseen(append) {
        Some(suspension) => inbox::has_met(rows, run, append.inbox_seen, suspension)?,
        None => false,
    };
    let ran = row.head.status == Status::Running;
    if let Some(input) = append.continued() {
        begin_next_journal(tx, append, &mut row, input)?;
    }
    let change = row.head.advance(append, entries.len() as u64, met);
    if row.head.status.is_final() {
        tx.folds().forget(run);
    }
    if ran && append.then == Then::Run {
        heads::run_on(rows, run, &row)?;
    } else {
        heads::update(rows, run, &row)?;
    }
    tx.touched(run, change);
    tx.appended(append.entries.len());
    Ok(())
}

fn write_effects(tx: &Tx<'_>, append: &Append, row: &HeadRow) -> Result<()> {
    let (rows, run) = (tx.rows(), append.run);
    for effect in effects(&append.entries) {
        match effect {
            Effect::Publish { key, value, at } => {
                published::put(rows, (row.tenant, run), key, value, at)
            }
            Effect::TakeEvent { event } => inbox::take(rows, run, event),
            Effect::Reply { event, answer } => events::reply(rows, run, event, answer),
            Effect::TakeCancel => inbox::take_cancel(rows, run),
        }?;
    }
    Ok(())
}

/// Puts the journal that has just ended aside, and empties the run's.
fn begin_next_journal(
    tx: &mut Tx<'_>,
    append: &Append,
    row: &mut HeadRow,
    input: &Payload,
) -> Result<()> {
    let (rows, run) = (tx.rows(), append.run);
    let tail = row
        .tail
        .take()
        .ok_or_else(|| Fault::damaged(format!("the journal of {run}"), "it ended empty"))?;
    let ended = GenerationRow {
        tenant: row.tenant,
        run,
        generation: row.head.generation,
        ended_at: append.at,
        entries: append.next.plus(append.entries.len()),
        tail,
        began: &runs::load(rows, row.tenant, run)?,
    };
    generations::insert(rows, &ended)?;
    tx.folds().forget(run);
    runs::replace_input(rows, (row.tenant, run), append.at, input)
}
