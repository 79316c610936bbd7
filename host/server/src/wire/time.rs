//! Points in time and spans of time, as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stepwell_core::time::Timestamp;

/// A point in time: `2026-03-01T12:00:00.000Z`. Reads any offset, writes UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(pub Timestamp);

/// A text that is no point in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{found}` is not a point in time: write it with its offset, for example 2026-03-01T12:00:00Z"
)]
pub struct BadTime {
    found: String,
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A due time may saturate at the end of time, which no calendar reaches: shown as its last day.
        let time = i64::try_from(self.0.as_ms())
            .ok()
            .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
            .unwrap_or(jiff::Timestamp::MAX);
        write!(f, "{time:.3}")
    }
}

impl FromStr for Instant {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Self, BadTime> {
        text.trim()
            .parse::<jiff::Timestamp>()
            .ok()
            .and_then(|time| u64::try_from(time.as_millisecond()).ok())
            .map(|ms| Self(Timestamp::from_ms(ms)))
            .ok_or_else(|| BadTime { found: cut(text) })
    }
}

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

/// A span of time: a number of milliseconds, or text such as `5 minutes`, `1h 30m` or `PT5M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

/// A text that is no span of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{found}` is not a span of time: write for example `5 minutes`, `1h 30m`, `2 days`, or a number of milliseconds; \
     months and years differ in length, so count days"
)]
pub struct BadSpan {
    found: String,
}

impl FromStr for Span {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<Self, BadSpan> {
        if let Ok(ms) = text.trim().parse() {
            return Ok(Self(Duration::from_millis(ms)));
        }
        text.trim()
            .parse::<jiff::Span>()
            .ok()
            .and_then(|span| {
                span.to_duration(jiff::SpanRelativeTo::days_are_24_hours())
                    .ok()
            })
            .and_then(|span| Duration::try_from(span).ok())
            .map(Self)
            .ok_or_else(|| BadSpan { found: cut(text) })
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MsOrText;

        impl Visitor<'_> for MsOrText {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a span of time: a whole number of milliseconds, or text such as `5 minutes`",
                )
            }

            fn visit_u64<E: de::Error>(self, ms: u64) -> Result<Span, E> {
                Ok(Span(Duration::from_millis(ms)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(MsOrText)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(stepwell_core::time::whole_ms(self.0))
    }
}

fn cut(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        let cases = [
            ("1500", 1_500),
            ("5 minutes", 300_000),
            ("1h 30m", 5_400_000),
            ("1h30m", 5_400_000),
            ("2 days", 172_800_000),
            ("1w", 604_800_000),
            ("250ms", 250),
            ("1.5s", 1_500),
            ("PT5M", 300_000),
            ("0", 0),
        ];
        for (text, ms) in cases {
            assert_eq!(text.parse(), Ok(Span(Duration::from_millis(ms))), "{text}");
        }
        for bad in [
            "",
            "soon",
            "-5 minutes",
            "5 minutes ago",
            "1 month",
            "1 year",
            "1e400s",
            "99999999999999999999",
        ] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_read_with_any_offset_and_written_in_utc() {
        let time: Instant = "2026-03-01T13:00:00+01:00".parse().unwrap();
        assert_eq!(time.to_string(), "2026-03-01T12:00:00.000Z");
        assert_eq!(
            Instant(Timestamp::from_ms(u64::MAX)).to_string(),
            "9999-12-30T22:00:00.999Z"
        );
        for bad in [
            "",
            "tomorrow",
            "2026-03-01",
            "2026-03-01T12:00:00",
            "1969-12-31T23:59:59Z",
        ] {
            assert!(bad.parse::<Instant>().is_err(), "{bad}");
        }
    }
}
