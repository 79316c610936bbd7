//! What went wrong, as the side that failed says it.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::stepwell::workflow::types;
use crate::payload;
use crate::span::{IntoSpan, whole_ms};

/// What went wrong, as the side that failed says it. The error of step bodies and tasks.
///
/// `?` turns every [`std::error::Error`] into one, of kind `error` and worth a further attempt.
/// That is also why `Failure` itself is not a [`std::error::Error`], as `anyhow::Error` is not.
///
/// ```
/// use stepwell_sdk::Failure;
///
/// fn charge(cents: &str) -> Result<u64, Failure> {
///     let cents: u64 = cents.parse()?; // A ParseIntError becomes a Failure.
///     if cents > 100_000 {
///         return Err(Failure::new("card-declined", "the limit of the card is 1,000 €").permanent());
///     }
///     Ok(cents)
/// }
///
/// assert_eq!(charge("a lot").unwrap_err().kind, "error");
/// assert!(!charge("100001").unwrap_err().retryable);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Stable and machine-readable, for example `card-declined`.
    pub kind: String,
    /// For a person to read.
    pub message: String,
    /// Whether a further attempt might cure it; false stops all retrying at once.
    pub retryable: bool,
    /// The failing side's own wish for when to try again; it overrides the backoff.
    pub retry_after: Option<Duration>,
    /// Boxed, so that a result that holds an error stays small.
    details: Option<Box<types::Payload>>,
}

impl Failure {
    /// A failure that a further attempt might cure.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
            retryable: true,
            retry_after: None,
            details: None,
        }
    }

    /// Says that no further attempt will cure it.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.retryable = false;
        self
    }

    /// Asks that the next attempt come this much later, whatever the backoff says.
    ///
    /// Text that is not a span leaves the backoff as it is, and the message says so: a failure is
    /// no place to fail.
    #[must_use]
    pub fn retry_after(mut self, span: impl IntoSpan) -> Self {
        match span.into_span() {
            Ok(span) => self.retry_after = Some(span),
            Err(error) => self.message = format!("{} (retry-after ignored: {error})", self.message),
        }
        self
    }

    /// Adds a value for programs, which [`read_details`](Self::read_details) reads.
    ///
    /// A value that cannot be written as JSON is left out, and the message says so.
    ///
    /// ```
    /// use stepwell_sdk::Failure;
    ///
    /// let failure = Failure::new("out-of-stock", "3 left").details(&3_u32);
    /// assert_eq!(failure.read_details(), Some(Ok(3_u32)));
    /// ```
    #[must_use]
    pub fn details<T: Serialize + 'static>(mut self, value: &T) -> Self {
        match payload::encode(value, "details") {
            Ok(details) => self.details = Some(Box::new(details)),
            Err(error) => self.message = format!("{} ({})", self.message, error.message),
        }
        self
    }

    /// The value for programs, if there is one.
    ///
    /// # Errors
    /// It is not a `T`.
    pub fn read_details<T: DeserializeOwned + 'static>(&self) -> Option<Result<T, Self>> {
        self.details
            .as_ref()
            .map(|details| payload::decode(details, "details"))
    }

    pub(crate) fn from_wire(wire: types::Failure) -> Self {
        Self {
            kind: wire.kind,
            message: wire.message,
            retryable: wire.retryable,
            retry_after: wire.retry_after.map(Duration::from_millis),
            details: wire.details.map(Box::new),
        }
    }

    pub(crate) fn into_wire(self) -> types::Failure {
        types::Failure {
            kind: self.kind,
            message: self.message,
            retryable: self.retryable,
            retry_after: self.retry_after.map(whole_ms),
            details: self.details.map(|details| *details),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    /// The message is the error's and those of its sources.
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Self::new("error", message)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]

    use super::*;

    #[test]
    fn a_failure_survives_the_boundary_whole() {
        let failure = Failure::new("busy", "try later")
            .permanent()
            .retry_after("2 minutes")
            .details(&vec![1, 2]);
        assert_eq!(Failure::from_wire(failure.clone().into_wire()), failure);
        assert_eq!(failure.read_details::<Vec<u32>>(), Some(Ok(vec![1, 2])));
        assert_eq!(
            failure.read_details::<String>().unwrap().unwrap_err().kind,
            "decode"
        );
        assert_eq!(failure.retry_after, Some(Duration::from_secs(120)));
    }

    #[test]
    fn a_bad_wish_leaves_the_failure_readable() {
        let failure = Failure::new("busy", "try later").retry_after("later");
        assert_eq!(failure.retry_after, None);
        assert!(
            failure
                .message
                .starts_with("try later (retry-after ignored: `later` is not a span of time")
        );
    }

    #[test]
    fn a_foreign_error_keeps_its_causes() {
        #[derive(Debug)]
        struct Outer(std::num::ParseIntError);
        impl fmt::Display for Outer {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("cannot read the amount")
            }
        }
        impl std::error::Error for Outer {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                Some(&self.0)
            }
        }
        let failure = Failure::from(Outer("x".parse::<u8>().unwrap_err()));
        assert_eq!(
            failure.to_string(),
            "error: cannot read the amount: invalid digit found in string"
        );
        assert!(failure.retryable);
    }
}
