//! Entries that a host appends to a journal, and what the run does next.

use stepwell_core::id::{Epoch, EventId, RunId, Sequence};
use stepwell_core::journal::{Ending, Entry, Record};
use stepwell_core::payload::Payload;
use stepwell_core::run::Status;
use stepwell_core::time::Timestamp;

use crate::inbox::ItemKind;

/// Entries to append, and what the run does next.
#[derive(Debug, Clone)]
pub struct Append {
    /// The run.
    pub run: RunId,
    /// The epoch that the caller holds.
    pub epoch: Epoch,
    /// The length that the journal must have.
    pub next: Sequence,
    /// What to append, in order.
    pub entries: Vec<Entry>,
    /// The newest inbox item that the caller has seen.
    pub inbox_seen: EventId,
    /// Whether the caller has seen that the run was asked to stop.
    pub cancel_seen: bool,
    /// What the run does next.
    pub then: Then,
    /// Now.
    pub at: Timestamp,
}

/// What a run does after an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// The guest goes on.
    Run,
    /// The guest waits. If `release`, the host gives the run up; should its inbox hold anything
    /// that the caller has not seen, it is ready again at once.
    Suspend(Suspension),
    /// The last entry is [`stepwell_core::journal::Record::Ended`]: the run is over, and nobody
    /// holds it. After `ContinuedAsNew` it goes on instead, under the same epoch, with an empty
    /// journal of the next generation; the mailbox is kept.
    End,
    /// An operator is needed. Nobody holds the run, and nobody may claim it before a resume.
    Stick {
        /// Why, for people.
        reason: String,
    },
    /// The host gives the run up with the guest not waiting: it is ready at once.
    Release,
}

/// What a suspended run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    /// `Sleeping`, `Waiting` or `Retrying`.
    pub status: Status,
    /// When it is ready by the clock.
    pub due: Option<Timestamp>,
    /// The names of events that make it ready.
    pub events: Vec<String>,
    /// Whether a sleep is among what it waits for, so that a wake makes sense.
    pub sleeps: bool,
    /// Whether tasks of the run go on in this host meanwhile: should it be lost, they are lost with
    /// it, and the run is ready at once.
    pub tasks_run: bool,
    /// Whether the host gives the run up.
    pub release: bool,
}

impl Append {
    /// Panics if the entries and what follows them contradict each other, which is a bug of the
    /// caller: a run ends with, and only with, the entry that says so.
    pub(crate) fn assert_consistent(&self) {
        let ends = |entry: &Entry| matches!(entry.record, Record::Ended(_));
        let last_ends = self.entries.last().is_some_and(ends);
        let (_, before_last) = self
            .entries
            .split_last()
            .map_or((None, &[][..]), |(last, rest)| (Some(last), rest));
        assert!(
            !before_last.iter().any(ends),
            "run {}: entries after its end",
            self.run
        );
        assert_eq!(
            last_ends,
            self.then == Then::End,
            "run {}: {:?} after {:?}",
            self.run,
            self.then,
            self.entries.last()
        );
    }

    /// The input of the next journal, if this append ends one with `ContinuedAsNew`.
    pub(crate) fn continued(&self) -> Option<&Payload> {
        match self.ending() {
            Some(Ending::ContinuedAsNew(input)) => Some(input),
            _ => None,
        }
    }

    /// How the run, or this journal of it, ends with this append.
    pub(crate) fn ending(&self) -> Option<&Ending> {
        match &self.entries.last()?.record {
            Record::Ended(ending) => Some(ending),
            _ => None,
        }
    }
}

impl Suspension {
    /// Whether an inbox item makes a run ready that is suspended like this.
    pub(crate) fn is_met_by(&self, item: ItemKind<'_>) -> bool {
        match item {
            ItemKind::Event { name } => self.events.iter().any(|wait| wait == name),
            ItemKind::Cancel => true,
            ItemKind::Wake => self.sleeps,
        }
    }
}
