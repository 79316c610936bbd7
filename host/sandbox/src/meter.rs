//! CPU time of one guest, and its preemption.
//!
//! All of a guest's work happens inside polls of the future that runs it, so time is taken when a
//! poll begins and ends, not at every call across the boundary: two clock readings for each time
//! a guest is resumed. Host functions that answer without waiting count as the guest's work; they
//! are short, and it asked for them.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::guest::{Exit, TrapKind};
use crate::ticker::Ticker;
use crate::trap::Halt;

/// Accounts for one guest. Shared by the guest's store, which asks at every tick, and the future
/// that polls it.
#[derive(Debug)]
pub(crate) struct Meter {
    limit: Duration,
    tick: Duration,
    account: Mutex<Account>,
}

#[derive(Debug)]
struct Account {
    /// When the poll in progress began.
    entered: Instant,
    /// Before that, since the last wait or since the attempt began.
    used: Duration,
    /// What the workflow had used when the attempt in progress began.
    set_aside: Option<Duration>,
    /// The poll in progress ends because of a tick, not because the guest waits.
    preempted: bool,
    /// The engine wants the instance gone; the guest is suspended for good.
    stopped: bool,
}

/// What a tick does to a guest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It began so recently that the tick was not meant for it.
    Continue,
    /// It lets others run.
    Yield,
}

impl Meter {
    /// `limit` is what the guest may use between two waits, and for one attempt.
    pub(crate) fn new(limit: Duration, tick: Duration) -> Self {
        let account = Account {
            entered: Instant::now(),
            used: Duration::ZERO,
            set_aside: None,
            preempted: false,
            stopped: false,
        };
        Self {
            limit,
            tick,
            account: Mutex::new(account),
        }
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        // Every change is a plain assignment: nothing is half done after a panic.
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asked at a tick, while the guest runs.
    ///
    /// # Errors
    /// A trap once the limit is met.
    pub(crate) fn tick(&self) -> Result<Verdict, Halt> {
        let mut account = self.account();
        let running = account.entered.elapsed();
        if account.used + running > self.limit {
            let scope = match account.set_aside {
                Some(_) => "in one attempt of a step or task",
                None => "between two waits",
            };
            return Err(Halt::Trapped {
                kind: TrapKind::CpuLimit,
                message: format!(
                    "the guest used more than its CPU limit of {:?} {scope}",
                    self.limit
                ),
            });
        }
        // A guest that was suspended for long finds its deadline passed as soon as it is resumed.
        if running < self.tick / 2 {
            return Ok(Verdict::Continue);
        }
        account.preempted = true;
        Ok(Verdict::Yield)
    }

    /// An attempt begins: it has the whole limit for itself, however often it waits.
    pub(crate) fn attempt_begins(&self) {
        let mut account = self.account();
        let now = Instant::now();
        let used = account.used + (now - account.entered);
        account.set_aside = Some(used);
        account.used = Duration::ZERO;
        account.entered = now;
    }

    /// The attempt is over, and the workflow goes on with what it had used before.
    pub(crate) fn attempt_ends(&self) {
        let mut account = self.account();
        account.used = account.set_aside.take().unwrap_or_default();
        account.entered = Instant::now();
    }

    /// The engine wants the instance gone: the guest is not resumed once it is suspended.
    pub(crate) fn stop(&self) {
        self.account().stopped = true;
    }

    fn enter(&self) {
        self.account().entered = Instant::now();
    }

    /// Whether the guest is to be polled again.
    fn leave(&self, pending: bool) -> bool {
        let mut account = self.account();
        let waits = pending && !account.preempted;
        account.used = match account.set_aside {
            None if waits => Duration::ZERO,
            None | Some(_) => account.used + account.entered.elapsed(),
        };
        account.preempted = false;
        !(pending && account.stopped)
    }
}

/// Runs a guest's future under its meter, and turns a panic of the host below it into a fault.
pub(crate) struct Metered<'a, T> {
    work: Pin<Box<dyn Future<Output = Exit<T>> + Send + 'a>>,
    meter: Arc<Meter>,
    ticker: &'a Ticker,
}

impl<'a, T> Metered<'a, T> {
    pub(crate) fn new(
        work: Pin<Box<dyn Future<Output = Exit<T>> + Send + 'a>>,
        meter: Arc<Meter>,
        ticker: &'a Ticker,
    ) -> Self {
        Self {
            work,
            meter,
            ticker,
        }
    }
}

impl<T> Future for Metered<'_, T> {
    type Output = Exit<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Exit<T>> {
        let this = &mut *self;
        let _running = this.ticker.guest_runs();
        this.meter.enter();
        // Whatever the guest's store holds is dropped with it, so no state is seen half changed.
        let polled =
            std::panic::catch_unwind(AssertUnwindSafe(|| this.work.as_mut().poll(context)));
        let Ok(polled) = polled else {
            // The future may not be polled again; the caller drops it.
            return Poll::Ready(Exit::Fault(
                "a host function panicked; the host's own log has the message".to_owned(),
            ));
        };
        if this.meter.leave(polled.is_pending()) {
            polled
        } else {
            Poll::Ready(Exit::Stopped)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test")]

    use super::*;

    const TICK: Duration = Duration::from_millis(10);

    fn meter(limit: Duration) -> Meter {
        Meter::new(limit, TICK)
    }

    /// As if the guest had been running for so long already.
    fn run_for(meter: &Meter, span: Duration) {
        let mut account = meter.account();
        account.entered = account.entered.checked_sub(span).unwrap();
    }

    #[test]
    fn a_wait_gives_the_workflow_its_whole_limit_again_and_a_tick_does_not() {
        let meter = meter(Duration::from_secs(1));
        run_for(&meter, Duration::from_millis(700));
        assert_eq!(meter.tick().unwrap(), Verdict::Yield);
        meter.leave(true);
        meter.enter();
        run_for(&meter, Duration::from_millis(700));
        assert!(meter.tick().is_err());

        meter.leave(true);
        meter.enter();
        run_for(&meter, Duration::from_millis(700));
        assert_eq!(meter.tick().unwrap(), Verdict::Yield);
    }

    #[test]
    fn an_attempt_has_one_limit_however_often_it_waits() {
        let meter = meter(Duration::from_secs(1));
        run_for(&meter, Duration::from_millis(900));
        meter.attempt_begins();
        run_for(&meter, Duration::from_millis(700));
        meter.leave(true);
        meter.enter();
        run_for(&meter, Duration::from_millis(700));
        let error = meter.tick().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the guest used more than its CPU limit of 1s in one attempt of a step or task"
        );

        meter.attempt_ends();
        run_for(&meter, Duration::from_millis(200));
        assert!(
            meter.tick().is_err(),
            "the workflow's own 900 ms are not forgotten"
        );
    }

    #[test]
    fn a_tick_right_after_a_long_wait_is_not_meant_for_the_guest() {
        let meter = meter(Duration::from_secs(1));
        meter.enter();
        assert_eq!(meter.tick().unwrap(), Verdict::Continue);
    }
}
