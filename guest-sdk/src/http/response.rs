//! What was answered.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// How much of a body a failure quotes.
const QUOTED_CHARS_MAX: usize = 200;

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// For example 200.
    pub status: u16,
    /// As received, in order. Bytes that are not UTF-8 are replaced.
    pub headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// The request, for messages.
    request: String,
}

impl Response {
    /// An answer as a test scripts it.
    ///
    /// ```
    /// use stepwell_sdk::http::Response;
    ///
    /// assert_eq!(Response::new(200, "42").json::<u32>(), Ok(42));
    /// ```
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
            request: String::new(),
        }
    }

    /// Adds a header, as a test scripts it.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn answering(mut self, name: String) -> Self {
        self.request = name;
        self
    }

    /// The first header of this name, in any case of letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body.
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The body as text.
    ///
    /// # Errors
    /// `http-response` if it is not UTF-8.
    pub fn text(&self) -> Result<&str, Failure> {
        str::from_utf8(&self.body)
            .map_err(|error| self.unexpected(&format!("its body is not UTF-8: {error}")))
    }

    /// The body, read as JSON.
    ///
    /// # Errors
    /// `http-response` if it is no such JSON; a further attempt might be answered better.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let found = format!(
                "its body is not a {}: {error}; it begins {:?}",
                std::any::type_name::<T>(),
                self.quote()
            );
            self.unexpected(&found)
        })
    }

    /// Itself if the status is below 400.
    ///
    /// # Errors
    /// `http-status`, with the status as its details: for 408, 425, 429 and 5xx one that is
    /// retried, after the time that `Retry-After` asks for; for the other 4xx one that is not.
    pub fn error_for_status(self) -> Result<Self, Failure> {
        if self.status < 400 {
            return Ok(self);
        }
        let message = format!(
            "{}: answered {}: {:?}",
            self.request,
            self.status,
            self.quote()
        );
        let failure = Failure::new("http-status", message).details(&self.status);
        if !matches!(self.status, 408 | 425 | 429 | 500..) {
            return Err(failure.permanent());
        }
        Err(
            match self
                .header("Retry-After")
                .and_then(|wish| retry_after(wish, SystemTime::now()))
            {
                Some(wish) => failure.retry_after(wish),
                None => failure,
            },
        )
    }

    fn unexpected(&self, found: &str) -> Failure {
        Failure::new(
            "http-response",
            format!("{}: answered {}, but {found}", self.request, self.status),
        )
    }

    fn quote(&self) -> String {
        String::from_utf8_lossy(&self.body)
            .chars()
            .take(QUOTED_CHARS_MAX)
            .collect()
    }
}

/// How long a `Retry-After` asks to wait: seconds, or a date such as
/// `Wed, 21 Oct 2026 07:28:00 GMT`.
fn retry_after(wish: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = wish.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let mut words = wish.split_ascii_whitespace().skip(1);
    let day: u64 = words.next()?.parse().ok()?;
    let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month = words.next()?;
    let month = months.iter().position(|name| *name == month)? as u64 + 1;
    let year: u64 = words
        .next()?
        .parse()
        .ok()
        .filter(|year| (1970..10_000).contains(year))?;
    let mut clock = words.next()?.splitn(3, ':').map(|part| part.parse().ok());
    let (hour, minute, second): (u64, u64, u64) = (clock.next()??, clock.next()??, clock.next()??);
    if !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Years are counted from 1 March, so that the leap day is the last of its year; 719,468 days
    // lie between 0000-03-01 and 1970-01-01.
    let (year, month_from_march) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days =
        year * 365 + year / 4 - year / 100 + year / 400 + (153 * month_from_march + 2) / 5 + day
            - 1
            - 719_468;
    let at = UNIX_EPOCH + Duration::from_secs(days * 86_400 + hour * 3_600 + minute * 60 + second);
    Some(at.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]

    use super::*;

    #[test]
    fn a_status_decides_whether_it_is_tried_again() {
        let retryable = |status| {
            Response::new(status, "")
                .error_for_status()
                .map_err(|failure| failure.retryable)
        };
        for status in [200, 204, 304, 399] {
            assert!(retryable(status).is_ok(), "{status}");
        }
        for (status, expected) in [
            (400, false),
            (404, false),
            (409, false),
            (408, true),
            (425, true),
            (429, true),
            (500, true),
            (503, true),
        ] {
            assert_eq!(retryable(status).unwrap_err(), expected, "{status}");
        }
    }

    #[test]
    fn a_wish_for_later_is_taken_over() {
        let failure = Response::new(429, "slow down")
            .with_header("retry-after", "7")
            .error_for_status()
            .unwrap_err();
        assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
        assert_eq!(failure.read_details(), Some(Ok(429_u16)));
        let now = UNIX_EPOCH + Duration::from_secs(1_792_567_680 - 90);
        for (wish, expected) in [
            ("120", Some(120)),
            ("Wed, 21 Oct 2026 07:28:00 GMT", Some(90)),
            ("Wed, 21 Oct 2020 07:28:00 GMT", Some(0)),
            ("Thu, 29 Feb 2024 00:00:00 GMT", Some(0)),
            ("soon", None),
            ("Wed, 21 Okt 2026 07:28:00 GMT", None),
            ("Wed, 21 Oct 2026 99:28:00 GMT", None),
            ("-5", None),
        ] {
            assert_eq!(
                retry_after(wish, now),
                expected.map(Duration::from_secs),
                "{wish}"
            );
        }
    }

    #[test]
    fn a_body_that_is_not_what_was_expected_is_quoted() {
        let response = Response::new(200, "<html>").answering("GET http://shop/".to_owned());
        let failure = response.json::<u32>().unwrap_err();
        assert_eq!(
            failure.message,
            "GET http://shop/: answered 200, but its body is not a u32: expected value at line 1 column 1; it begins \
             \"<html>\""
        );
        assert!(failure.retryable);
        assert!(Response::new(200, [0xff]).text().is_err());
    }
}
