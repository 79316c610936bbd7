//! Spans of time: a [`Duration`], or text such as `"30 seconds"`.

use std::fmt;
use std::time::Duration;

/// A span of time, as authors write it: a [`Duration`], or text of one whole number and one unit.
///
/// | unit | forms |
/// |---|---|
/// | milliseconds | `ms`, `millisecond`, `milliseconds` |
/// | seconds | `s`, `second`, `seconds` |
/// | minutes | `m`, `minute`, `minutes` |
/// | hours | `h`, `hour`, `hours` |
/// | days of 24 hours | `d`, `day`, `days` |
/// | weeks of 7 days | `w`, `week`, `weeks` |
///
/// Spaces between number and unit are optional. Nothing else is understood: no fractions, no
/// signs, no sums, no months. What isn't understood never becomes some other span: the operation
/// that it was given to ends with a failure of kind `bad-span`, which says what is accepted.
///
/// The host counts in milliseconds; a finer span is rounded up, so that no wait is shorter than
/// asked for.
///
/// ```
/// use std::time::Duration;
/// use stepwell_sdk::IntoSpan;
///
/// assert_eq!("90 minutes".into_span(), Ok(Duration::from_secs(90 * 60)));
/// assert_eq!("500ms".into_span(), Ok(Duration::from_millis(500)));
/// assert_eq!(Duration::from_secs(1).into_span(), Ok(Duration::from_secs(1)));
/// assert!("soon".into_span().is_err());
/// ```
pub trait IntoSpan {
    /// The span.
    ///
    /// # Errors
    /// Text that is not of the form above, or a span beyond 584 million years.
    fn into_span(self) -> Result<Duration, SpanError>;
}

/// Text that is not a span of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanError {
    found: String,
}

impl fmt::Display for SpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a span of time: expected one whole number and one unit, such as `500ms`, `1 second`, \
             `30 seconds`, `5 minutes`, `2 hours`, `1 day` or `2 weeks`",
            self.found
        )
    }
}

impl std::error::Error for SpanError {}

impl IntoSpan for Duration {
    fn into_span(self) -> Result<Duration, SpanError> {
        Ok(self)
    }
}

impl IntoSpan for &str {
    fn into_span(self) -> Result<Duration, SpanError> {
        parse(self).ok_or_else(|| SpanError {
            found: self.chars().take(80).collect(),
        })
    }
}

impl IntoSpan for String {
    fn into_span(self) -> Result<Duration, SpanError> {
        self.as_str().into_span()
    }
}

/// The span as the host takes it: whole milliseconds, rounded up, saturating.
pub(crate) fn whole_ms(span: Duration) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn parse(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    // An empty number, and one too large, both fail here.
    let number: u64 = number.parse().ok()?;
    let unit_ms: u64 = match unit.trim_start_matches(' ') {
        "ms" | "millisecond" | "milliseconds" => 1,
        "s" | "second" | "seconds" => 1_000,
        "m" | "minute" | "minutes" => 60 * 1_000,
        "h" | "hour" | "hours" => 60 * 60 * 1_000,
        "d" | "day" | "days" => 24 * 60 * 60 * 1_000,
        "w" | "week" | "weeks" => 7 * 24 * 60 * 60 * 1_000,
        _ => return None,
    };
    number.checked_mul(unit_ms).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]

    use super::*;
    use proptest::prelude::*;

    const UNITS: [(&str, u64); 17] = [
        ("ms", 1),
        ("millisecond", 1),
        ("milliseconds", 1),
        ("s", 1_000),
        ("second", 1_000),
        ("seconds", 1_000),
        ("m", 60_000),
        ("minute", 60_000),
        ("minutes", 60_000),
        ("h", 3_600_000),
        ("hour", 3_600_000),
        ("hours", 3_600_000),
        ("d", 86_400_000),
        ("day", 86_400_000),
        ("days", 86_400_000),
        ("week", 604_800_000),
        ("weeks", 604_800_000),
    ];

    #[test]
    fn other_forms_are_refused_and_the_message_names_the_right_ones() {
        for bad in [
            "",
            " ",
            "5",
            "s",
            "1 sec",
            "1.5 hours",
            "-1 day",
            "+1 day",
            "1 day 2 hours",
            " 1 day",
            "1 day ",
            "1\tday",
            "1 Day",
            "1 month",
            "one day",
            "٣ days",
            "18446744073709551616 ms",
            "18446744073709551615 s",
        ] {
            assert!(bad.into_span().is_err(), "{bad:?}");
        }
        assert_eq!(
            "soon".into_span().unwrap_err().to_string(),
            "`soon` is not a span of time: expected one whole number and one unit, such as `500ms`, `1 second`, \
             `30 seconds`, `5 minutes`, `2 hours`, `1 day` or `2 weeks`"
        );
    }

    #[test]
    fn a_span_is_rounded_up_to_whole_milliseconds() {
        assert_eq!(whole_ms(Duration::ZERO), 0);
        assert_eq!(whole_ms(Duration::from_nanos(1)), 1);
        assert_eq!(whole_ms(Duration::from_micros(1_001)), 2);
        assert_eq!(whole_ms(Duration::MAX), u64::MAX);
    }

    proptest! {
        #[test]
        fn every_number_with_every_unit_is_that_many_units(number: u64, spaces in 0..3_usize, unit in 0..UNITS.len()) {
            let (name, unit_ms) = UNITS[unit];
            let text = format!("{number}{}{name}", " ".repeat(spaces));
            let expected = number.checked_mul(unit_ms).map(Duration::from_millis);
            prop_assert_eq!(text.into_span().ok(), expected);
        }

        #[test]
        fn no_text_panics_the_parser(text: String) {
            let _ = text.into_span();
        }
    }
}
