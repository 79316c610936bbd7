//! Spans and points in time, for people.

use stepwell_core::time::Timestamp;
use stepwell_server::wire::Instant;

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// A span in the two units that matter: `120 ms`, `1.2 s`, `2 min 5 s`, `23 h`, `3 d 4 h`.
pub(crate) fn span(ms: u64) -> String {
    let two = |big: u64, big_name: &str, small: u64, small_name: &str| match ms % big / small {
        0 => format!("{} {big_name}", ms / big),
        rest => format!("{} {big_name} {rest} {small_name}", ms / big),
    };
    match ms {
        0..SECOND_MS => format!("{ms} ms"),
        SECOND_MS..MINUTE_MS => match ms % SECOND_MS / 100 {
            0 => format!("{} s", ms / SECOND_MS),
            tenths => format!("{}.{tenths} s", ms / SECOND_MS),
        },
        MINUTE_MS..HOUR_MS => two(MINUTE_MS, "min", SECOND_MS, "s"),
        HOUR_MS..DAY_MS => two(HOUR_MS, "h", MINUTE_MS, "min"),
        _ => two(DAY_MS, "d", HOUR_MS, "h"),
    }
}

/// From one point to another; zero if the second is not later.
pub(crate) fn between(from: Instant, to: Instant) -> u64 {
    to.0.as_ms().saturating_sub(from.0.as_ms())
}

/// How long ago, in one unit: `just now`, `12 s ago`, `3 min ago`.
pub(crate) fn ago(now: Timestamp, then: Instant) -> String {
    match between(then, Instant(now)) {
        0..SECOND_MS => "just now".to_owned(),
        ms => format!("{} ago", coarse(ms)),
    }
}

/// How far ahead, in two units: `now`, `in 12 s`, `in 23 h 5 min`.
pub(crate) fn ahead(now: Timestamp, then: Instant) -> String {
    match between(Instant(now), then) {
        0 => "now".to_owned(),
        ms => format!("in {}", span(ms)),
    }
}

fn coarse(ms: u64) -> String {
    match ms {
        0..SECOND_MS => format!("{ms} ms"),
        SECOND_MS..MINUTE_MS => format!("{} s", ms / SECOND_MS),
        MINUTE_MS..HOUR_MS => format!("{} min", ms / MINUTE_MS),
        HOUR_MS..DAY_MS => format!("{} h", ms / HOUR_MS),
        _ => format!("{} d", ms / DAY_MS),
    }
}

/// A point in time to the second: `2026-03-01 12:00:00 UTC`.
pub(crate) fn point(at: Instant) -> String {
    let text = at.to_string();
    match text.split_once('T') {
        Some((date, clock)) => format!("{date} {} UTC", clock.split('.').next().unwrap_or(clock)),
        None => text,
    }
}

/// The time of day to the millisecond, UTC: `12:00:00.123`.
pub(crate) fn clock(at: Instant) -> String {
    let text = at.to_string();
    text.split_once('T')
        .map_or(text.as_str(), |(_, clock)| clock)
        .trim_end_matches('Z')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_show_what_matters() {
        let cases = [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (1_250, "1.2 s"),
            (59_999, "59.9 s"),
            (60_000, "1 min"),
            (125_000, "2 min 5 s"),
            (3_600_000, "1 h"),
            (23 * HOUR_MS + 5 * MINUTE_MS, "23 h 5 min"),
            (3 * DAY_MS + 4 * HOUR_MS, "3 d 4 h"),
        ];
        for (ms, text) in cases {
            assert_eq!(span(ms), text);
        }
    }

    #[test]
    fn points_are_told_from_now() {
        let now = Timestamp::from_ms(10 * DAY_MS);
        let at = |ms| Instant(Timestamp::from_ms(ms));
        assert_eq!(ago(now, at(10 * DAY_MS - 500)), "just now");
        assert_eq!(ago(now, at(10 * DAY_MS - 3 * MINUTE_MS - 1)), "3 min ago");
        assert_eq!(
            ahead(now, at(10 * DAY_MS + 23 * HOUR_MS + 59 * MINUTE_MS)),
            "in 23 h 59 min"
        );
        assert_eq!(ahead(now, at(10 * DAY_MS + 1_500)), "in 1.5 s");
        assert_eq!(ahead(now, at(5)), "now");
        assert_eq!(point(at(0)), "1970-01-01 00:00:00 UTC");
        assert_eq!(clock(at(61_005)), "00:01:01.005");
    }
}
