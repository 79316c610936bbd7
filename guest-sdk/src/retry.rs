//! When, and how often, a step or task is tried again. Only says it: the host does it.

use std::time::Duration;

use crate::bindings::stepwell::workflow::types;
use crate::error::Error;
use crate::span::{IntoSpan, SpanError, whole_ms};

/// When, and how often, to try again. Given to [`Step::retry`](crate::Step::retry) and
/// [`TaskCall::retry`](crate::TaskCall::retry).
///
/// What is left out is as in the default: 5 attempts, 1 second, doubling, at most 60 seconds, and
/// full jitter.
///
/// ```
/// use stepwell_sdk::Retry;
///
/// let patient = Retry::exponential().max_attempts(20).delay("5 seconds").max_delay("1 hour");
/// let steady = Retry::constant().delay("30 seconds").jitter(0.0);
/// let at_most_once = Retry::never();
/// # let _ = (patient, steady, at_most_once);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    max_attempts: u32,
    delay: Result<Duration, SpanError>,
    backoff: types::Backoff,
    factor: f64,
    max_delay: Result<Duration, SpanError>,
    jitter: f64,
}

impl Default for Retry {
    /// 5 attempts, 1 second, doubling, at most 60 seconds, full jitter.
    fn default() -> Self {
        Self::exponential()
    }
}

impl Retry {
    /// Delays that grow by a factor, 2 unless [`factor`](Self::factor) says otherwise.
    pub fn exponential() -> Self {
        Self {
            max_attempts: 5,
            delay: Ok(Duration::from_secs(1)),
            backoff: types::Backoff::Exponential,
            factor: 2.0,
            max_delay: Ok(Duration::from_secs(60)),
            jitter: 1.0,
        }
    }

    /// Delays that grow by the first delay each time.
    pub fn linear() -> Self {
        Self {
            backoff: types::Backoff::Linear,
            ..Self::exponential()
        }
    }

    /// Delays that stay the same.
    pub fn constant() -> Self {
        Self {
            backoff: types::Backoff::Constant,
            ..Self::exponential()
        }
    }

    /// One attempt, even across a crash: at most once.
    pub fn never() -> Self {
        Self::exponential().max_attempts(1)
    }

    /// Attempts in all, the first included, and those lost to a crash as well; from 1.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// The delay before the second attempt.
    #[must_use]
    pub fn delay(mut self, span: impl IntoSpan) -> Self {
        self.delay = span.into_span();
        self
    }

    /// The growth per attempt of [`exponential`](Self::exponential) delays; from 1.0.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// No delay is longer than this.
    #[must_use]
    pub fn max_delay(mut self, span: impl IntoSpan) -> Self {
        self.max_delay = span.into_span();
        self
    }

    /// The share of the delay that is drawn at random, from 0.0 for none to 1.0 for full.
    #[must_use]
    pub fn jitter(mut self, share: f64) -> Self {
        self.jitter = share;
        self
    }
}

/// The rules of one step or task, as its builder collects them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    pub(crate) retry: Option<Retry>,
    pub(crate) timeout: Option<Result<Duration, SpanError>>,
    pub(crate) deadline: Option<Result<Duration, SpanError>>,
}

impl Rules {
    /// The rules as the host takes them; `what` names the step in the error.
    pub(crate) fn to_wire(&self, what: &str) -> Result<types::StepOptions, Error> {
        let span = |span: &Result<Duration, SpanError>, setting: &str| match span {
            Ok(span) => Ok(whole_ms(*span)),
            Err(error) => Err(Error::bad_span(error, &format!("{setting} of {what}"))),
        };
        let retry = match &self.retry {
            None => None,
            Some(retry) => Some(types::RetryPolicy {
                max_attempts: retry.max_attempts,
                delay: span(&retry.delay, "the delay")?,
                backoff: retry.backoff,
                factor: retry.factor,
                max_delay: span(&retry.max_delay, "the longest delay")?,
                jitter: retry.jitter,
            }),
        };
        let timeout = self
            .timeout
            .as_ref()
            .map(|timeout| span(timeout, "the timeout"))
            .transpose()?;
        let deadline = self
            .deadline
            .as_ref()
            .map(|deadline| span(deadline, "the deadline"))
            .transpose()?;
        Ok(types::StepOptions {
            retry,
            timeout,
            deadline,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]

    use super::*;

    #[test]
    fn rules_left_out_are_left_to_the_host() {
        let wire = Rules::default().to_wire("step `x`").unwrap();
        assert_eq!(
            wire,
            types::StepOptions {
                retry: None,
                timeout: None,
                deadline: None
            }
        );
    }

    #[test]
    fn a_bad_span_names_the_setting_and_the_step() {
        let rules = Rules {
            retry: Some(Retry::constant().delay("soon")),
            ..Rules::default()
        };
        let Err(Error::Failed(failure)) = rules.to_wire("step `x`") else {
            panic!("expected a failure")
        };
        assert_eq!(failure.kind, "bad-span");
        assert!(
            failure
                .message
                .starts_with("the delay of step `x`: `soon` is not a span"),
            "{failure}"
        );
    }
}
