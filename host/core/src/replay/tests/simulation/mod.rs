//! A guest played from a list, a host that drives it as the engine does, and a world outside that
//! is a function of a seed and the journal's length: so whoever goes on from a journal meets the
//! same world as whoever wrote it.

mod guest;
mod host;
mod outside;

use std::collections::BTreeMap;

use super::ms;
use crate::id::Operation;
use crate::journal::Entry;
use crate::replay::{Error, Replay};
use crate::retry::Options;
use guest::Guest;
use host::Host;
use outside::Outside;

/// One thing that a guest does. Numbers are cut to what makes sense.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Step {
        name: u8,
        rules: u8,
        is_nonsense: bool,
    },
    Sleep {
        name: u8,
        duration_ms: u16,
    },
    Wait {
        name: u8,
        timeout_ms: Option<u16>,
    },
    Task {
        name: u8,
        rules: u8,
    },
    Publish {
        key: u8,
        is_too_large: bool,
    },
    Reply {
        event: u8,
    },
    Withdraw {
        which: u8,
    },
    /// Over those held operations whose bit is set.
    Select {
        mask: u8,
    },
}

/// What has come of a run so far.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    pub(super) journal: Vec<Entry>,
    /// What the guest's newest instance was told, and how long the journal was after that.
    pub(super) told: Vec<(String, usize)>,
    pub(super) exit: Option<Exit>,
    /// Bodies that began to run, by step.
    pub(super) begun: BTreeMap<Operation, u32>,
    pub(super) rules: BTreeMap<Operation, Options>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Exit {
    /// The guest came to its end.
    Ended,
    /// It waits for what never comes, or was stopped for taking too long.
    Waits,
    /// It was told that it has no place in this journal.
    Refused(Error),
}

/// Drives a guest from a journal to its end, through traps and up to `deaths` deaths of the host.
pub(super) fn live(acts: &[Act], seed: u64, journal: Vec<Entry>, deaths: u32) -> History {
    let mut history = History {
        journal,
        ..History::default()
    };
    let mut host_lost = false;
    let mut deaths_left = deaths;
    loop {
        let before = std::mem::take(&mut history.told);
        let mut host = Host {
            replay: Replay::load(history.journal.clone(), ms(1)),
            durable: history.journal.len(),
            history,
            outside: Outside { seed },
            host_lost,
            deaths_left,
            tasks: BTreeMap::new(),
        };
        let stop = Guest::new(acts).run(&mut host);
        let durable = host.durable;
        history = host.history;
        let agrees = before
            .iter()
            .zip(&history.told)
            .all(|(one, other)| one.0 == other.0);
        assert!(
            agrees,
            "told otherwise on a replay: {before:?} then {:?}",
            history.told
        );
        history.exit = Some(match stop {
            Ok(()) => Exit::Ended,
            Err(Stop::Waits) => Exit::Waits,
            Err(Stop::Refused(error)) => Exit::Refused(error),
            Err(Stop::Trapped) => {
                host_lost = false;
                continue;
            }
            Err(Stop::Died) => {
                history.journal.truncate(durable);
                history.told.retain(|(_, length)| *length <= durable);
                host_lost = true;
                deaths_left -= 1;
                continue;
            }
        });
        return history;
    }
}

/// Why a guest's instance is dropped.
enum Stop {
    Waits,
    Trapped,
    Died,
    Refused(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}
