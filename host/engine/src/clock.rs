//! The one place where the engine learns the time: a trait with a system body and a virtual one.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use stepwell_core::time::{Timestamp, whole_ms};

/// Tells the time and waits for it.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time now, by the wall.
    fn now(&self) -> Timestamp;

    /// Returns once `now()` is `at` or later; maybe somewhat late, never early.
    async fn sleep_until(&self, at: Timestamp);
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// A wall clock may be set while we wait, which the timer underneath does not notice; so we look
/// at it again at least this often.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Timestamp::from_ms(whole_ms(since_epoch))
    }

    async fn sleep_until(&self, at: Timestamp) {
        wait(self, at).await;
    }
}

/// A clock that a test sets: it goes with tokio's time, which a test may have paused, and can be
/// moved in either direction, as an operator moves a machine's.
#[derive(Debug)]
pub struct VirtualClock {
    began: tokio::time::Instant,
    /// What the wall showed then, in milliseconds since 1970, all moves since included.
    wall_ms: AtomicU64,
}

impl VirtualClock {
    /// Shows `now`. Must be made within the tokio runtime whose time it goes with.
    pub fn new(now: Timestamp) -> Self {
        Self {
            began: tokio::time::Instant::now(),
            wall_ms: AtomicU64::new(now.as_ms()),
        }
    }

    /// Sets the clock forward.
    pub fn forward(&self, span: Duration) {
        self.wall_ms.fetch_add(whole_ms(span), Ordering::SeqCst);
    }

    /// Sets the clock back, at most to 1970.
    pub fn back(&self, span: Duration) {
        let span_ms = whole_ms(span);
        let back = |wall_ms: u64| Some(wall_ms.saturating_sub(span_ms));
        // The closure answers always.
        let _ = self
            .wall_ms
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, back);
    }
}

#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let passed = whole_ms(self.began.elapsed());
        Timestamp::from_ms(self.wall_ms.load(Ordering::SeqCst).saturating_add(passed))
    }

    async fn sleep_until(&self, at: Timestamp) {
        wait(self, at).await;
    }
}

/// Waits in pieces, since the clock may be set meanwhile, which the timer underneath does not notice.
async fn wait(clock: &impl Clock, at: Timestamp) {
    loop {
        let left = at.since(clock.now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK_AGAIN)).await;
    }
}
