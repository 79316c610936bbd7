//! When, and how often, a step or task is tried again. Arithmetic on times passed in; no sleeping
//! and no drawing of random numbers.
//!
//! Every attempt that began counts, also one lost to a timeout, a trap or the death of the host.

use std::time::Duration;

use crate::payload::Failure;
use crate::time::Timestamp;

/// How the delay between attempts grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// Always the same.
    Constant,
    /// The delay, twice the delay, three times the delay, and so on.
    Linear,
    /// Multiplied by the factor after every attempt.
    Exponential,
}

/// When, and how often, to try again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// Attempts in all, the first included; from 1. 1 means at most once, even across a crash.
    pub attempts_max: u32,
    /// Delay before the second attempt.
    pub delay: Duration,
    /// How the delay grows.
    pub backoff: Backoff,
    /// Growth per attempt for [`Backoff::Exponential`]; from 1.0.
    pub factor: f64,
    /// No delay is longer than this.
    pub delay_max: Duration,
    /// The share of the delay that is drawn at random, 0.0 to 1.0.
    pub jitter: f64,
}

impl Default for Policy {
    /// 5 attempts, 1 s, doubling, at most 60 s, full jitter.
    fn default() -> Self {
        Self {
            attempts_max: 5,
            delay: Duration::from_secs(1),
            backoff: Backoff::Exponential,
            factor: 2.0,
            delay_max: Duration::from_secs(60),
            jitter: 1.0,
        }
    }
}

/// Settings that make no sense.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Error {
    /// No attempt at all.
    #[error("max-attempts is 0; it counts the first attempt too, so ask for at least 1")]
    NoAttempts,
    /// A factor below 1, or not a number.
    #[error("factor is {0}; it must be a number from 1.0 up")]
    Factor(f64),
    /// A jitter outside 0 to 1, or not a number.
    #[error("jitter is {0}; it must be a number from 0.0 to 1.0")]
    Jitter(f64),
    /// No time for an attempt.
    #[error("the timeout of an attempt is 0 ms; ask for at least 1 ms")]
    NoTimeout,
}

/// The rules of one step or task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// When to try again.
    pub policy: Policy,
    /// For one attempt; at least 1 ms.
    pub timeout: Duration,
    /// For all attempts and the delays between them.
    pub deadline: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            timeout: Duration::from_secs(5 * 60),
            deadline: None,
        }
    }
}

impl Options {
    /// Checks what a guest asked for.
    ///
    /// # Errors
    /// The first setting that makes no sense.
    pub fn check(&self) -> Result<(), Error> {
        if self.policy.attempts_max == 0 {
            return Err(Error::NoAttempts);
        }
        if !(self.policy.factor.is_finite() && self.policy.factor >= 1.0) {
            return Err(Error::Factor(self.policy.factor));
        }
        if !(0.0..=1.0).contains(&self.policy.jitter) {
            return Err(Error::Jitter(self.policy.jitter));
        }
        if self.timeout < Duration::from_millis(1) {
            return Err(Error::NoTimeout);
        }
        Ok(())
    }
}

/// Why an attempt ended without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    /// It returned a failure.
    Failed,
    /// It ran longer than its timeout, or the deadline of all attempts passed.
    TimedOut,
    /// A panic or another trap.
    Trapped,
    /// The host stopped while the attempt ran.
    HostLost,
    /// It met a limit of its version: memory, CPU, payload size.
    LimitExceeded,
    /// The run was cancelled, and the grace period passed.
    Cancelled,
}

/// A step or task that will not be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepError {
    /// The step's or task's name.
    pub step: String,
    /// Attempts that were begun.
    pub attempts: u32,
    /// How the last one ended.
    pub end: AttemptEnd,
    /// What it said, or what the host found.
    pub cause: Failure,
}

/// What follows an attempt that ended without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Try again at this time.
    RetryAt(Timestamp),
    /// No further attempt.
    Exhausted,
}

/// What is known when an attempt has ended without a result.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    /// Attempts begun so far, this one included; from 1.
    pub attempts: u32,
    /// How it ended.
    pub end: AttemptEnd,
    /// What it said.
    pub cause: &'a Failure,
    /// The time now.
    pub now: Timestamp,
    /// When all attempts must be over.
    pub deadline_at: Option<Timestamp>,
    /// A random draw, 0.0 up to but not including 1.0.
    pub draw: f64,
}

impl Policy {
    /// Whether, and when, to try again.
    pub fn next(&self, ended: Ended<'_>) -> Next {
        let is_over = match ended.end {
            // The grace of a cancel has passed; whatever was to be cleaned up is left.
            AttemptEnd::Cancelled => true,
            AttemptEnd::Failed
            | AttemptEnd::TimedOut
            | AttemptEnd::Trapped
            | AttemptEnd::HostLost
            | AttemptEnd::LimitExceeded => false,
        };
        if is_over || ended.attempts >= self.attempts_max || !ended.cause.retryable {
            return Next::Exhausted;
        }
        let at = match (ended.end, ended.cause.retry_after) {
            // The restart took its own time; waiting longer would help nobody.
            (AttemptEnd::HostLost, _) => ended.now,
            (_, Some(wish)) => ended.now.after(wish),
            (_, None) => ended
                .now
                .after(self.delay_after(ended.attempts, ended.draw)),
        };
        match ended.deadline_at {
            Some(deadline_at) if at >= deadline_at => Next::Exhausted,
            _ => Next::RetryAt(at),
        }
    }

    /// The delay after so many attempts: saturating at the cap, never zero by overflow.
    fn delay_after(&self, attempts: u32, draw: f64) -> Duration {
        let earlier = attempts.saturating_sub(1);
        let full = match self.backoff {
            Backoff::Constant => self.delay,
            Backoff::Linear => self.delay.saturating_mul(attempts.max(1)),
            Backoff::Exponential => {
                let growth = self.factor.powi(i32::try_from(earlier).unwrap_or(i32::MAX));
                // Fails for what no Duration can hold, infinity included; zero times infinity is
                // not a number, and a delay of zero stays zero.
                Duration::try_from_secs_f64(self.delay.as_secs_f64() * growth).unwrap_or(
                    if self.delay.is_zero() {
                        Duration::ZERO
                    } else {
                        Duration::MAX
                    },
                )
            }
        };
        let capped = full.min(self.delay_max);
        let drawn = self.jitter.clamp(0.0, 1.0) * (1.0 - draw.clamp(0.0, 1.0));
        // Full jitter draws from (0, capped]; none keeps it whole. Fails only for a cap so near the
        // longest Duration that a double rounds it up.
        let share = 1.0 - self.jitter.clamp(0.0, 1.0) + drawn;
        Duration::try_from_secs_f64(capped.as_secs_f64() * share).unwrap_or(capped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fixed(backoff: Backoff, delay_s: u64, cap_s: u64) -> Policy {
        Policy {
            attempts_max: u32::MAX,
            delay: Duration::from_secs(delay_s),
            backoff,
            factor: 2.0,
            delay_max: Duration::from_secs(cap_s),
            jitter: 0.0,
        }
    }

    #[test]
    fn delays_grow_as_named_and_stop_at_the_cap() {
        let cases = [
            (Backoff::Constant, 1, 3),
            (Backoff::Constant, 9, 3),
            (Backoff::Linear, 1, 3),
            (Backoff::Linear, 3, 9),
            (Backoff::Linear, 99, 60),
            (Backoff::Exponential, 1, 3),
            (Backoff::Exponential, 2, 6),
            (Backoff::Exponential, 4, 24),
            (Backoff::Exponential, 6, 60),
            (Backoff::Exponential, u32::MAX, 60),
        ];
        for (backoff, attempts, expected_s) in cases {
            let delay = fixed(backoff, 3, 60).delay_after(attempts, 0.5);
            assert_eq!(
                delay,
                Duration::from_secs(expected_s),
                "{backoff:?} after {attempts}"
            );
        }
    }

    #[test]
    fn the_last_attempt_and_a_permanent_failure_are_not_followed_by_another() {
        let policy = Policy {
            attempts_max: 2,
            ..fixed(Backoff::Constant, 1, 1)
        };
        let again = Failure::retryable("x", "");
        let never = Failure::permanent("x", "");
        let next = |attempts, cause, deadline_at| {
            let now = Timestamp::from_ms(10);
            policy.next(Ended {
                attempts,
                end: AttemptEnd::Failed,
                cause,
                now,
                deadline_at,
                draw: 0.0,
            })
        };
        assert_eq!(
            next(1, &again, None),
            Next::RetryAt(Timestamp::from_ms(1010))
        );
        assert_eq!(next(2, &again, None), Next::Exhausted);
        assert_eq!(next(1, &never, None), Next::Exhausted);
        assert_eq!(
            next(1, &again, Some(Timestamp::from_ms(1010))),
            Next::Exhausted
        );
        assert_eq!(
            next(1, &again, Some(Timestamp::from_ms(1011))),
            Next::RetryAt(Timestamp::from_ms(1010))
        );
        let wish = Failure {
            retry_after: Some(Duration::from_secs(7)),
            ..again.clone()
        };
        assert_eq!(
            next(1, &wish, None),
            Next::RetryAt(Timestamp::from_ms(7010))
        );
    }

    proptest! {
        #[test]
        fn no_delay_exceeds_the_cap_or_vanishes(
            delay_ms in 1_u64.., cap_ms in 1_u64.., attempts in 1_u32.., draw in 0.0..1.0_f64, jitter in 0.0..=1.0_f64,
            factor in 1.0..1e9_f64, kind in 0..3,
        ) {
            let policy = Policy {
                attempts_max: u32::MAX,
                delay: Duration::from_millis(delay_ms),
                backoff: [Backoff::Constant, Backoff::Linear, Backoff::Exponential][kind as usize],
                factor,
                delay_max: Duration::from_millis(cap_ms),
                jitter,
            };
            let whole = Policy { jitter: 0.0, ..policy }.delay_after(attempts, draw);
            prop_assert!(whole >= Duration::from_millis(delay_ms.min(cap_ms)).mul_f64(0.999_999));
            // mul_f64 rounds to what a double can hold.
            prop_assert!(policy.delay_after(attempts, draw) <= whole.mul_f64(1.000_001));
        }

        #[test]
        fn no_setting_panics(factor: f64, jitter: f64, draw: f64, delay_ms: u64, attempts: u32, capped: bool) {
            let policy = Policy {
                attempts_max: u32::MAX,
                delay: Duration::from_millis(delay_ms),
                backoff: Backoff::Exponential,
                factor,
                delay_max: if capped { Duration::from_secs(60) } else { Duration::MAX },
                jitter,
            };
            let options = Options { policy, ..Options::default() };
            if options.check().is_ok() {
                let _ = policy.delay_after(attempts, draw);
            }
        }
    }
}
