//! Table `journal`: the entries of one append in one row, each row pointing back to the one before;
//! now and then a row that takes the place of many.

use rusqlite::{Connection, OptionalExtension};
use stepwell_core::id::{RunId, Sequence};
use stepwell_core::journal::{Ending, Entry};

use super::fault::{Fault, OrDamaged, Result};
use super::folds::{Folded, Folds};
use super::tenants::TenantId;
use super::value::{Columns, int, key};
use crate::codec;

/// A journal row's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowId(pub(super) i64);

/// Where a row belongs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) tenant: TenantId,
    pub(super) run: RunId,
    pub(super) generation: u32,
    /// The sequence of its first entry.
    pub(super) first: Sequence,
    /// The newest row of the journal so far.
    pub(super) tail: Option<RowId>,
}

const INSERT: &str =
    "INSERT INTO journal (previous, folded, first, tenant, run, generation, entries)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const FIND: &str = "SELECT previous, first, run, entries FROM journal WHERE id = ?1";

/// Appends an encoded row, alone or together with those before it, and answers with the new tail.
pub(super) fn append(
    rows: &Connection,
    folds: &mut Folds,
    place: Place,
    row: &[u8],
) -> Result<RowId> {
    match folds.fold(place.run, place.tail, row) {
        Some(Folded {
            first,
            previous,
            folded,
            row,
        }) => insert(
            rows,
            Place { first, ..place },
            (previous, Some(folded)),
            &row,
        ),
        None => {
            let id = insert(rows, place, (place.tail, None), row)?;
            folds.remember(place.run, place.first, place.tail, id, row);
            Ok(id)
        }
    }
}

fn insert(
    rows: &Connection,
    place: Place,
    (previous, folded): (Option<RowId>, Option<RowId>),
    row: &[u8],
) -> Result<RowId> {
    let columns = (
        previous.map(|row| row.0),
        folded.map(|row| row.0),
        int(place.first.0),
        place.tenant.0,
        key(place.run),
        place.generation,
        row,
    );
    Ok(RowId(rows.prepare_cached(INSERT)?.insert(columns)?))
}

/// The entries of a journal from `from` on, in order, at most `limit`. Walks back from its `tail`,
/// and decodes just the rows that are asked for.
pub(super) fn read(
    rows: &Connection,
    run: RunId,
    tail: Option<RowId>,
    (from, limit): (Sequence, usize),
) -> Result<Vec<(Sequence, Entry)>> {
    let until = from.0.saturating_add(limit as u64);
    let mut statement = rows.prepare_cached(FIND)?;
    let mut chunks = Vec::new();
    let mut at = tail;
    let mut after = u64::MAX;
    while let Some(id) = at {
        let mut found = statement.query([id.0])?;
        let Some(row) = found.next()? else {
            return Err(Fault::damaged(
                format!("the journal of {run}"),
                format!("row {} is missing", id.0),
            ));
        };
        let first = Sequence(row.value(1)?);
        if row.value::<RunId>(2)? != run || first.0 >= after {
            return Err(Fault::damaged(
                format!("the journal of {run}"),
                format!("row {} is out of place", id.0),
            ));
        }
        after = first.0;
        at = row.get::<_, Option<i64>>(0)?.map(RowId);
        if first.0 < until {
            let bytes = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
            chunks.push((first, decode(run, first, bytes)?));
        }
        if first <= from {
            break;
        }
    }
    let entries = chunks
        .into_iter()
        .rev()
        .flat_map(|(first, entries)| (first.0..).map(Sequence).zip(entries))
        .filter(|(sequence, _)| *sequence >= from)
        .take(limit)
        .collect();
    Ok(entries)
}

/// How the journal whose newest row this is has ended, if it has.
pub(super) fn ending(rows: &Connection, run: RunId, tail: Option<RowId>) -> Result<Option<Ending>> {
    let Some(tail) = tail else { return Ok(None) };
    let found = rows
        .prepare_cached(FIND)?
        .query_row([tail.0], |row| {
            Ok((Sequence(row.value(1)?), row.get::<_, Vec<u8>>(3)?))
        })
        .optional()?;
    let Some((first, bytes)) = found else {
        return Err(Fault::damaged(
            format!("the journal of {run}"),
            format!("row {} is missing", tail.0),
        ));
    };
    codec::ending_of_row(run, first, &bytes)
        .or_damaged(|| format!("the journal of {run} at {first}"))
}

fn decode(run: RunId, first: Sequence, bytes: &[u8]) -> Result<Vec<Entry>> {
    codec::decode_row(run, first, bytes).or_damaged(|| format!("the journal of {run} at {first}"))
}
