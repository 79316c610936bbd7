//! Points in time. Spans are [`std::time::Duration`]. Core is told the time and never asks for it.

use std::time::Duration;

/// A point in time, in whole milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);

    /// From milliseconds since 1970-01-01T00:00:00Z.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// This much later; saturates at the end of time, so that no overflow turns a long wait into a
    /// short one.
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

/// Whole milliseconds of a span; saturating.
pub fn whole_ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(
            Timestamp::from_ms(9).since(Timestamp::from_ms(5)),
            Duration::from_millis(4)
        );
    }
}
