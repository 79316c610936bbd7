//! Who is told of changes: hosts, by broadcast, and whoever watches one run. Both bodies send
//! through here, after what they tell of is durable.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use stepwell_core::id::RunId;
use tokio::sync::{broadcast, watch};

use crate::change::Change;

/// Changes that a slow host may fall behind; one that falls further is made good by its sweep.
const CHANGES_MAX: usize = 16_384;
/// Below so many watched runs, those that nobody watches any more are left in place.
const WATCHED_MIN: usize = 1_024;

#[derive(Debug)]
pub(crate) struct Notices {
    changes: broadcast::Sender<Change>,
    /// Only runs that somebody watches, and a bounded number that somebody watched.
    watched: Mutex<Watched>,
    /// How many runs `watched` has. Read without the lock, so that commits cost nothing while
    /// nobody watches.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Watched {
    runs: HashMap<RunId, watch::Sender<u64>>,
    /// When the map reaches this size, runs without watchers are dropped from it.
    clean_at: usize,
}

impl Notices {
    pub(crate) fn new() -> Self {
        Self {
            changes: broadcast::Sender::new(CHANGES_MAX),
            watched: Mutex::default(),
            count: AtomicUsize::new(0),
        }
    }

    pub(crate) fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    pub(crate) fn watch(&self, run: RunId) -> watch::Receiver<u64> {
        let mut watched = self.lock();
        if watched.runs.len() >= watched.clean_at.max(WATCHED_MIN) {
            watched.runs.retain(|_, sender| sender.receiver_count() > 0);
            // Twice what is left, so that cleaning costs a constant share of watching.
            watched.clean_at = watched.runs.len() * 2;
        }
        let receiver = watched
            .runs
            .entry(run)
            .or_insert_with(|| watch::Sender::new(0))
            .subscribe();
        self.count.store(watched.runs.len(), Ordering::SeqCst);
        receiver
    }

    /// Tells hosts of `changes`, and whoever watches one of `touched` that it changed.
    pub(crate) fn send(&self, changes: &[Change], touched: &[RunId]) {
        for change in changes {
            // Fails only if nobody listens.
            let _ = self.changes.send(*change);
        }
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut watched = self.lock();
        for run in touched {
            let Some(sender) = watched.runs.get(run) else {
                continue;
            };
            if sender.receiver_count() > 0 {
                sender.send_modify(|changes| *changes += 1);
            } else {
                watched.runs.remove(run);
            }
        }
        self.count.store(watched.runs.len(), Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watched_run_is_told_and_forgotten_with_its_last_watcher() {
        let notices = Notices::new();
        let run = RunId::from_raw(1);
        let mut watcher = notices.watch(run);
        notices.send(&[], &[RunId::from_raw(2)]);
        assert!(!watcher.has_changed().unwrap());
        notices.send(&[], &[run]);
        assert!(watcher.has_changed().unwrap());
        assert_eq!(*watcher.borrow_and_update(), 1);
        drop(watcher);
        notices.send(&[], &[run]);
        assert_eq!(notices.count.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn runs_that_nobody_watches_are_dropped_before_they_pile_up() {
        let notices = Notices::new();
        let kept: Vec<_> = (0..100)
            .map(|raw| notices.watch(RunId::from_raw(raw)))
            .collect();
        for raw in 0..10 * WATCHED_MIN as u128 {
            drop(notices.watch(RunId::from_raw(1_000 + raw)));
        }
        assert!(notices.count.load(Ordering::SeqCst) <= WATCHED_MIN);
        notices.send(&[], &[RunId::from_raw(5)]);
        assert!(kept[5].has_changed().unwrap());
    }
}
