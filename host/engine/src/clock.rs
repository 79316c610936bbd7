//! The one place where the engine learns the time: a trait with a system body and a virtual one.

use std::fmt;
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
        loop {
            let left = at.since(self.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK_AGAIN)).await;
        }
    }
}
