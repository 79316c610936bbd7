//! The watch over a running guest: what ends its instance from outside, wherever it is.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stepwell_core::id::{EventId, RunId};
use stepwell_core::replay::Allowance;
use stepwell_core::time::Timestamp;
use stepwell_store::InboxMessage;
use tokio::time::Instant;

use crate::shared::Shared;
use crate::signals::Signals;

/// Why a guest was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expired {
    /// The attempt of a step ran longer than this.
    Attempt(Allowance),
    /// The grace period of a cancel passed.
    Grace,
    /// The run is no longer ours.
    Lost,
    /// The host shuts down and has waited long enough.
    Shutdown,
}

/// The deadlines of one run's guest.
#[derive(Debug)]
pub(crate) struct Watch {
    signals: Arc<Signals>,
    deadlines: Mutex<Deadlines>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Deadlines {
    /// Of the attempt whose body runs.
    attempt: Option<(Instant, Allowance)>,
    /// Of the clean-up after a cancel that the guest has been told of.
    grace: Option<Timestamp>,
    /// What `expired` sleeps until; it need only be woken for something sooner.
    armed: Option<Instant>,
}

impl Watch {
    pub(crate) fn new(signals: Arc<Signals>) -> Self {
        Self {
            signals,
            deadlines: Mutex::default(),
        }
    }

    fn deadlines(&self) -> std::sync::MutexGuard<'_, Deadlines> {
        // Nothing in here can panic half-way.
        self.deadlines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A step's body begins, and must end in time. Most steps end long before their timeout, so the
    /// timer is left where it is: it looks again when it fires.
    pub(crate) fn attempt_begins(&self, allowance: Allowance) {
        let at = Instant::now() + allowance.span().min(FOREVER);
        let mut deadlines = self.deadlines();
        deadlines.attempt = Some((at, allowance));
        let must_wake = deadlines.armed.is_none_or(|armed| at < armed);
        drop(deadlines);
        if must_wake {
            self.signals.ring_watch();
        }
    }

    /// The body has ended.
    pub(crate) fn attempt_ends(&self) {
        self.deadlines().attempt = None;
    }

    /// The guest has been told of a cancel.
    pub(crate) fn grace_until(&self, at: Option<Timestamp>) {
        self.deadlines().grace = at;
        self.signals.ring_watch();
    }

    /// Returns when the guest must end. Cancel safe.
    pub(crate) async fn expired(&self, shared: &Shared, run: RunId) -> Expired {
        let mut shutdown_at = None;
        loop {
            if self.signals.is_lost() {
                return Expired::Lost;
            }
            let now = Instant::now();
            let Deadlines { attempt, grace, .. } = *self.deadlines();
            if let Some((_, allowance)) = attempt.filter(|(at, _)| *at <= now) {
                return Expired::Attempt(allowance);
            }
            // A body that runs when a cancel arrives is not told of it, but is stopped after the
            // grace period all the same.
            let grace = match (grace, attempt) {
                (None, Some(_)) if self.signals.is_inbox() => cancelled_at(shared, run)
                    .await
                    .map(|at| at.after(shared.config.limits.cancel_grace)),
                (grace, _) => grace,
            };
            let grace = grace.map(|at| now + at.since(shared.now()).min(FAR));
            if grace.is_some_and(|at| at <= now) {
                return Expired::Grace;
            }
            // Without a body, the guest meets the shutdown at its next call.
            if self.signals.is_shutdown() {
                let at = *shutdown_at.get_or_insert(now + shared.config.shutdown_grace);
                if at <= now {
                    return Expired::Shutdown;
                }
            }
            let attempt_at = attempt.map(|(at, _)| at);
            let next = [attempt_at, grace, shutdown_at].into_iter().flatten().min();
            self.deadlines().armed = next;
            let look_again = now + FAR;
            let sleep = tokio::time::sleep_until(next.unwrap_or(look_again).min(look_again));
            tokio::select! {
                () = sleep => {}
                () = self.signals.watch_rung() => {}
            }
            self.deadlines().armed = None;
        }
    }
}

/// As far ahead as a timer is set; it looks again when it fires.
const FAR: Duration = Duration::from_secs(24 * 60 * 60);
/// A longer timeout is none: what a clock can add without overflow, and more than ten years.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// When a cancel was accepted that the guest has not been told of.
async fn cancelled_at(shared: &Shared, run: RunId) -> Option<Timestamp> {
    let inbox = shared.store.inbox(run, EventId(0)).await.ok()?;
    inbox
        .items
        .iter()
        .find(|item| matches!(item.what, InboxMessage::Cancel { .. }))
        .map(|item| item.at)
}
