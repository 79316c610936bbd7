//! The wall clock: what hosts in other processes go by, too.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time since 1970.
pub(crate) fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// The same in whole milliseconds, as timestamps have it.
pub(crate) fn now_ms() -> u64 {
    stepwell_core::time::whole_ms(now())
}

/// When it will be so late, by the clock that spans are measured with.
pub(crate) fn instant_of(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms).saturating_sub(now())
}

/// Sleeps until it is so late.
pub(crate) fn sleep_until(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms).saturating_sub(now()));
}
