//! Which suspended runs keep their instance in memory: bounded by count and by memory, the longest
//! suspended given up first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::signals::Signals;

/// The suspended runs whose instances are in memory.
#[derive(Debug)]
pub(crate) struct Residency {
    count_max: usize,
    bytes_max: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next_ticket: u64,
    bytes: u64,
    /// By ticket, so in the order of suspension.
    suspended: BTreeMap<u64, (u64, Arc<Signals>)>,
}

impl Residency {
    pub(crate) fn new(count_max: usize, bytes_max: u64) -> Self {
        Self {
            count_max,
            bytes_max,
            inner: Mutex::default(),
        }
    }

    /// Enters a run that has just been suspended, and asks the longest suspended ones to go while
    /// there are too many. The seat is given up when it is dropped.
    pub(crate) fn enter(self: &Arc<Self>, bytes: u64, signals: Arc<Signals>) -> Seat {
        let mut inner = self.lock();
        let ticket = inner.next_ticket;
        inner.next_ticket += 1;
        inner.bytes += bytes;
        inner.suspended.insert(ticket, (bytes, signals));
        // Those asked to go leave the table at once, so that nobody is asked twice for one place.
        while inner.suspended.len() > self.count_max || inner.bytes > self.bytes_max {
            if !inner.evict_first() {
                break;
            }
        }
        Seat {
            residency: Arc::clone(self),
            ticket,
        }
    }

    /// Asks so many of the longest suspended runs to go.
    pub(crate) fn evict(&self, count: usize) {
        let mut inner = self.lock();
        for _ in 0..count {
            if !inner.evict_first() {
                break;
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // Nothing in here can panic half-way.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn evict_first(&mut self) -> bool {
        let Some((_, (bytes, signals))) = self.suspended.pop_first() else {
            return false;
        };
        self.bytes -= bytes;
        signals.raise_evict();
        true
    }
}

/// A suspended run's place in memory.
#[derive(Debug)]
pub(crate) struct Seat {
    residency: Arc<Residency>,
    ticket: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut inner = self.residency.lock();
        if let Some((bytes, _)) = inner.suspended.remove(&self.ticket) {
            inner.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signals() -> Arc<Signals> {
        Arc::default()
    }

    #[test]
    fn the_longest_suspended_goes_first() {
        let residency = Arc::new(Residency::new(2, 1_000));
        let runs = [signals(), signals(), signals()];
        let _seats: Vec<_> = runs
            .iter()
            .map(|run| residency.enter(10, Arc::clone(run)))
            .collect();
        assert_eq!(
            runs.each_ref().map(|run| run.is_evict()),
            [true, false, false]
        );
    }

    #[test]
    fn memory_bounds_as_count_does_and_a_left_seat_counts_no_more() {
        let residency = Arc::new(Residency::new(10, 100));
        let runs = [signals(), signals(), signals()];
        let first = residency.enter(60, Arc::clone(&runs[0]));
        drop(first);
        let _second = residency.enter(60, Arc::clone(&runs[1]));
        assert!(!runs[1].is_evict());
        let _third = residency.enter(60, Arc::clone(&runs[2]));
        assert_eq!(
            runs.each_ref().map(|run| run.is_evict()),
            [false, true, false]
        );
        assert_eq!(residency.lock().bytes, 60);
    }
}
