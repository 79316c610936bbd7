//! Points in time.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::span::whole_ms;

/// A point in time, in whole milliseconds since 1970-01-01T00:00:00Z; as JSON, that number.
///
/// ```
/// use std::time::Duration;
/// use stepwell_sdk::Timestamp;
///
/// let noon = Timestamp::from_ms(1_767_268_800_000);
/// assert_eq!(noon.to_string(), "2026-01-01T12:00:00.000Z");
/// assert_eq!(noon.after(Duration::from_secs(60)).since(noon), Duration::from_secs(60));
/// ```
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// From milliseconds since 1970-01-01T00:00:00Z.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// This much later, rounded up to milliseconds; stays at the end of time rather than
    /// overflow.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(whole_ms(span)))
    }

    /// The span from `earlier` to here; zero if `earlier` is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl From<SystemTime> for Timestamp {
    /// Times before 1970 become its first instant.
    fn from(time: SystemTime) -> Self {
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Timestamp {
    /// As RFC 3339 in UTC, with milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, ms_of_day) = (self.0 / 86_400_000, self.0 % 86_400_000);
        // Years are counted from 1 March of year 0, so that the leap day is the last day of a
        // year: 719,468 days lie between that day and 1970-01-01.
        let days = days + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 {
            month_from_march + 3
        } else {
            month_from_march - 9
        };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        let (hour, minute) = (ms_of_day / 3_600_000, ms_of_day / 60_000 % 60);
        let (second, ms) = (ms_of_day / 1_000 % 60, ms_of_day % 1_000);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_print_right_around_leap_days_and_centuries() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_767_225_599_001, "2025-12-31T23:59:59.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Timestamp::from_ms(ms).to_string(), expected);
        }
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(
            Timestamp::from_ms(5).after(Duration::MAX),
            Timestamp::from_ms(u64::MAX)
        );
        assert_eq!(
            Timestamp::from_ms(5).since(Timestamp::from_ms(9)),
            Duration::ZERO
        );
    }
}
