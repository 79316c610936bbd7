//! Matching what a guest asks to what its journal has: answer from it, perform it, or diverge.
//!
//! [`Replay`] is the fold of one run's journal and the guest's place in it. The engine asks it
//! first about every call of the guest:
//!
//! - *recorded*: the journal has the answer, and the guest gets just that;
//! - *new*: the journal ends here. The engine performs the operation and hands every record it
//!   makes to [`Replay::record`], which folds it as loading does. So what a guest is told live and
//!   what it is told on a replay come out of the same code;
//! - *diverged*: the journal has something else at this place. Nothing may be performed.
//!
//! ```text
//!  journal   0    1    2    3    4    5    6          load folds it all, once
//!            └─ told ──┴─ asked for ─┴─ ahead ┘
//!                      ▲             ▲        ▲
//!               the guest's place    next     New: only here is anything performed
//! ```
//!
//! An answer is chosen by its place in the journal, never by what is known now: answers are only
//! ever appended, so the choice of a `select` needs no entry of its own.
//!
//! Replay is a cursor: linear in the journal, never a search from its start. No journal and no
//! order of a guest's calls makes it panic: a journal that no host writes ends in a divergence at
//! the first entry that does not fit, a guest that breaks the contract in a misuse.

mod answer;
mod attempts;
mod calls;
mod known;
mod outside;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

pub use answer::{Ask, AttemptAnswer, Diverged, Error, Found, SelectAnswer, StepAnswer, StepAsk};
pub use attempts::{Allowance, Begin, RunningAttempt, TaskProgress};
pub use outside::{Choice, Mail, WaitSummary};

use crate::id::{Operation, Sequence};
use crate::journal::{Entry, Record};
use crate::time::Timestamp;
use known::{Known, Recorded};

/// The fold of a journal and the guest's place in it.
#[derive(Debug)]
pub struct Replay {
    /// Operations that the journal has and the guest has not asked for yet, in order; the first has
    /// the number `next`.
    ahead: VecDeque<Recorded>,
    /// Operations asked for and not yet answered.
    open: BTreeMap<Operation, Known>,
    /// The number of the operation asked for next.
    next: u32,
    /// How often each step name has occurred.
    step_names: BTreeMap<String, u32>,
    /// Workflow time.
    now: Timestamp,
    /// The time of the newest entry, which no later one precedes.
    newest_at: Timestamp,
    length: Sequence,
    cancel: Cancel,
    /// The attempt of a step whose body is running.
    attempt: Option<RunningAttempt>,
    /// The first entry of what was loaded that does not fit those before it.
    damage: Option<Found>,
    /// Whether the guest has got past the end of what was loaded.
    live: bool,
}

#[derive(Debug)]
enum Cancel {
    None,
    Recorded {
        position: Sequence,
        at: Timestamp,
        reason: String,
        grace_until: Timestamp,
    },
    Delivered {
        grace_until: Timestamp,
    },
}

impl Replay {
    /// Folds a journal. `started_at` is workflow time before its first entry.
    ///
    /// Never fails: should an entry not fit those before it, a guest that gets that far diverges.
    pub fn load(entries: Vec<Entry>, started_at: Timestamp) -> Self {
        let mut replay = Self {
            ahead: VecDeque::new(),
            open: BTreeMap::new(),
            next: 0,
            step_names: BTreeMap::new(),
            now: started_at,
            newest_at: started_at,
            length: Sequence(0),
            cancel: Cancel::None,
            attempt: None,
            damage: None,
            live: entries.is_empty(),
        };
        let length = Sequence(0).plus(entries.len());
        let mut has_ended = false;
        for entry in entries {
            let (position, record) = (replay.length, entry.record.as_str());
            let ends = matches!(entry.record, Record::Ended(_));
            if has_ended || !replay.fold(entry) {
                replay.damage = Some(Found::Damage { position, record });
                break;
            }
            has_ended = ends;
        }
        replay.length = length;
        replay
    }

    /// Workflow time: the time of the newest entry that the guest has seen.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Whether the guest still repeats what was loaded.
    pub fn is_replaying(&self) -> bool {
        !self.live
    }

    /// Entries in the journal, those recorded since loading included.
    pub fn length(&self) -> Sequence {
        self.length
    }

    /// Operations asked for and not yet answered.
    pub fn open_operations(&self) -> usize {
        self.open.len()
    }

    /// The number of the next operation.
    pub fn next_operation(&self) -> Operation {
        Operation(self.next)
    }

    /// The attempt of a step whose body is running, if one is.
    pub fn running_attempt(&self) -> Option<RunningAttempt> {
        self.attempt
    }

    /// When the clean-up after a cancel is stopped, if the journal has one.
    pub fn grace_until(&self) -> Option<Timestamp> {
        match self.cancel {
            Cancel::Delivered { grace_until } | Cancel::Recorded { grace_until, .. } => {
                Some(grace_until)
            }
            Cancel::None => None,
        }
    }

    /// Whether the journal says that the run is to stop.
    pub fn is_cancelled(&self) -> bool {
        self.grace_until().is_some()
    }

    /// Folds a new record, made at `now`, and returns the entry to append. Times never go back,
    /// whatever the clock does.
    ///
    /// # Panics
    /// If the record cannot follow those before it, such as a second answer to a sleep: better than
    /// to append it.
    pub fn record(&mut self, record: Record, now: Timestamp) -> Entry {
        let entry = Entry {
            at: now.max(self.newest_at),
            record,
        };
        let fits = self.fold(entry.clone());
        assert!(fits, "the journal cannot go on with {:?}", entry.record);
        entry
    }

    /// Takes in the next entry. False if it cannot follow those before it; then nothing about any
    /// operation has changed.
    fn fold(&mut self, entry: Entry) -> bool {
        let Entry { at, record } = entry;
        let position = self.length;
        self.length = position.plus(1);
        self.newest_at = self.newest_at.max(at);
        let Some(operation) = record.operation() else {
            if let Record::CancelDelivered {
                reason,
                grace_until,
            } = record
                && !self.is_cancelled()
            {
                self.cancel = Cancel::Recorded {
                    position,
                    at,
                    reason,
                    grace_until,
                };
            }
            return true;
        };
        if let Some(known) = self.open.get_mut(&operation) {
            return known.learn(position, at, record);
        }
        let Some(index) = operation.0.checked_sub(self.next) else {
            // It was answered or withdrawn; nothing more is said about it.
            return false;
        };
        let index = index as usize;
        if let Some(recorded) = self.ahead.get_mut(index) {
            return recorded.known.learn(position, at, record);
        }
        if index > self.ahead.len() {
            return false;
        }
        let first = Recorded::first(position, at, record);
        let fits = first.is_some();
        self.ahead.extend(first);
        fits
    }
}
