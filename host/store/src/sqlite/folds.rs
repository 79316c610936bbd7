//! What the writer remembers of journals, so that now and then it can fold many small rows into
//! one, without reading them back.
//!
//! ```text
//! appends    1    2    3   …   63     64
//! rows      [1]◄─[2]◄─[3]◄─ … [63]◄┐ [1 2 3 … 64]◄─[65]◄─ …
//!            ▲                     └── folded ┘│
//! before ◄───┴─────────── previous ────────────┘
//! ```
//!
//! A journal that is read back meets one row for 64 appends instead of 64 rows on as many pages,
//! and every entry is written at most twice. Losing this memory (a restart, a rollback) costs
//! nothing but rows that stay small.

use std::collections::HashMap;

use stepwell_core::id::{RunId, Sequence};

use super::journal::RowId;
use crate::codec;

/// Rows that are folded into one.
const ROWS: usize = 64;
/// A longer row fills a good part of a page by itself, and is worth no second writing.
const ROW_BYTES_MAX: usize = 1_024;
/// Everything that is remembered; beyond it, all is forgotten.
const BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct Folds {
    runs: HashMap<RunId, Fold>,
    bytes: usize,
}

/// The newest rows of a journal that are not folded yet.
#[derive(Debug)]
struct Fold {
    /// The sequence of the first entry.
    first: Sequence,
    /// The row before the first.
    before: Option<RowId>,
    /// The last row.
    tail: RowId,
    rows: usize,
    /// Their entries, one after another.
    entries: Vec<u8>,
}

/// A row that takes the place of those before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Folded {
    pub(super) first: Sequence,
    pub(super) previous: Option<RowId>,
    /// The newest row that it takes the place of.
    pub(super) folded: RowId,
    pub(super) row: Vec<u8>,
}

impl Folds {
    /// The row to write instead of `row`, which would follow `tail`, if it is time to fold.
    pub(super) fn fold(&mut self, run: RunId, tail: Option<RowId>, row: &[u8]) -> Option<Folded> {
        let fold = self.runs.get(&run)?;
        let due = fold.rows + 1 == ROWS && Some(fold.tail) == tail && row.len() <= ROW_BYTES_MAX;
        if !due {
            return None;
        }
        let mut fold = self.take(run)?;
        fold.entries.extend_from_slice(codec::entries_of_row(row));
        let row = codec::seal_row(run, fold.first, &fold.entries);
        Some(Folded {
            first: fold.first,
            previous: fold.before,
            folded: fold.tail,
            row,
        })
    }

    /// Remembers a row that was written as it is: it follows `before` and became row `id`.
    pub(super) fn remember(
        &mut self,
        run: RunId,
        first: Sequence,
        before: Option<RowId>,
        id: RowId,
        row: &[u8],
    ) {
        if row.len() > ROW_BYTES_MAX {
            self.forget(run);
            return;
        }
        if self.bytes > BYTES_MAX {
            self.clear();
        }
        let entries = codec::entries_of_row(row);
        let fold = self
            .runs
            .entry(run)
            .or_insert_with(|| Fold::new(first, before, id));
        if fold.rows > 0 && Some(fold.tail) != before {
            // Somebody else's row came between: a terminate, or rows written before a restart.
            self.bytes -= fold.entries.len();
            *fold = Fold::new(first, before, id);
        }
        fold.tail = id;
        fold.rows += 1;
        fold.entries.extend_from_slice(entries);
        self.bytes += entries.len();
    }

    /// Nothing more will be appended to this journal.
    pub(super) fn forget(&mut self, run: RunId) {
        self.take(run);
    }

    fn take(&mut self, run: RunId) -> Option<Fold> {
        let fold = self.runs.remove(&run)?;
        self.bytes -= fold.entries.len();
        Some(fold)
    }

    /// After a rollback, nobody knows which rows exist.
    pub(super) fn clear(&mut self) {
        self.runs = HashMap::new();
        self.bytes = 0;
    }
}

impl Fold {
    fn new(first: Sequence, before: Option<RowId>, tail: RowId) -> Self {
        Self {
            first,
            before,
            tail,
            rows: 0,
            entries: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use stepwell_core::id::Operation;
    use stepwell_core::journal::{Entry, Record};
    use stepwell_core::time::Timestamp;

    use super::*;

    fn entry(number: u32) -> Entry {
        Entry {
            at: Timestamp::from_ms(5),
            record: Record::TimedOut {
                operation: Operation(number),
            },
        }
    }

    #[test]
    fn every_64th_row_holds_the_entries_of_all_64() {
        let run = RunId::from_raw(1);
        let mut folds = Folds::default();
        let mut tail = Some(RowId(1_000));
        for number in 0..200_u32 {
            let first = Sequence(u64::from(number));
            let row = codec::encode_row(run, first, &[entry(number)]);
            let id = RowId(2_000 + i64::from(number));
            let folded = folds.fold(run, tail, &row);
            assert_eq!(folded.is_some(), number % 64 == 63, "{number}");
            if let Some(folded) = folded {
                let from = number - 63;
                assert_eq!(folded.first, Sequence(u64::from(from)));
                let before = if from == 0 {
                    1_000
                } else {
                    2_000 + i64::from(from) - 1
                };
                assert_eq!(folded.previous, Some(RowId(before)));
                assert_eq!(folded.folded, RowId(id.0 - 1));
                let entries = codec::decode_row(run, folded.first, &folded.row).unwrap();
                assert_eq!(entries, (from..=number).map(entry).collect::<Vec<_>>());
            } else {
                folds.remember(run, first, tail, id, &row);
            }
            tail = Some(id);
        }
        folds.forget(run);
        assert_eq!((folds.bytes, folds.runs.len()), (0, 0));
    }

    #[test]
    fn rows_that_do_not_follow_each_other_are_never_folded_together() {
        let run = RunId::from_raw(1);
        let mut folds = Folds::default();
        for number in 0..1_000_u32 {
            let row = codec::encode_row(run, Sequence(u64::from(number)), &[entry(number)]);
            // Every fiftieth row follows one that the writer has not seen.
            let seen = number % 50 != 0;
            let before = RowId(i64::from(number) * 2 - if seen { 2 } else { 1 });
            assert_eq!(folds.fold(run, Some(before), &row), None);
            folds.remember(
                run,
                Sequence(u64::from(number)),
                Some(before),
                RowId(i64::from(number) * 2),
                &row,
            );
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut folds = Folds::default();
        let row = vec![0; ROW_BYTES_MAX];
        for run in 0..200_000_u128 {
            folds.remember(RunId::from_raw(run), Sequence(0), None, RowId(1), &row);
            assert!(folds.bytes <= BYTES_MAX + ROW_BYTES_MAX);
        }
    }
}
