//! Why an operation or a workflow did not go well. One type for all operations, so that `?` hands
//! every error on with its origin kept.

use std::fmt;

use crate::bindings::exports::stepwell::workflow::guest::Completion;
use crate::bindings::stepwell::workflow::types;
use crate::failure::Failure;
use crate::payload;
use crate::span::SpanError;

/// Why an operation did not go well, and how a workflow ends when it does not return a value.
///
/// Handing an error of a step or task on with `?` fails the run and keeps the origin: which step,
/// how many attempts, how the last one ended.
///
/// ```
/// use stepwell_sdk::{Ctx, Error, Failure, workflow};
///
/// /// Books a trip, and gives the flight back if there is no room.
/// #[workflow]
/// async fn trip(ctx: Ctx, city: String) -> Result<String, Error> {
///     let flight = ctx.step("flight", || Ok(format!("to {city}"))).await?;
///     match ctx.step("room", || book_room(&city)).await {
///         Ok(room) => Ok(format!("{flight}, {room}")),
///         Err(error @ (Error::Step(_) | Error::Cancelled(_))) => {
///             ctx.step("flight-back", || Ok(())).await?;
///             Err(error)
///         }
///         Err(error) => Err(error),
///     }
/// }
/// # fn book_room(_: &str) -> Result<String, Failure> { Err(Failure::new("full", "no room")) }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A step or task was given up.
    Step(StepError),
    /// The run has been asked to stop, with this reason. See [`Ctx`](crate::Ctx) for when it
    /// comes; operations asked for after it are clean-up and run as usual.
    Cancelled(String),
    /// A failure of the workflow's own, or an operation that was refused.
    Failed(Failure),
    /// Not an error but an ending, made by
    /// [`Ctx::continue_as_new`](crate::Ctx::continue_as_new): return it as it is.
    ContinueAsNew(NextInput),
}

/// The input that a run goes on with.
#[derive(Debug, Clone, PartialEq)]
pub struct NextInput(pub(crate) types::Payload);

/// A step or task that will not be tried again.
#[derive(Debug, Clone, PartialEq)]
pub struct StepError {
    /// Its name.
    pub step: String,
    /// Attempts that were begun, also those lost to a timeout, a trap or the death of the host.
    pub attempts: u32,
    /// How the last attempt ended.
    pub end: AttemptEnd,
    /// Whether the last failure was one that a further attempt might have cured.
    pub retryable: bool,
    /// What the last attempt said, or what the host found.
    pub cause: Failure,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptEnd {
    /// It returned a failure.
    Failed,
    /// It ran longer than its timeout, or the deadline of all attempts passed.
    TimedOut,
    /// A panic or another trap.
    Trapped,
    /// The host stopped while it ran.
    HostLost,
    /// It met a limit of its version: memory, CPU, payload size.
    LimitExceeded,
    /// The run was cancelled, and the grace period passed.
    Cancelled,
}

impl NextInput {
    /// The input, for a test to look at.
    ///
    /// # Errors
    /// It is not a `T`.
    pub fn read<T: serde::de::DeserializeOwned + 'static>(&self) -> Result<T, Failure> {
        payload::decode(&self.0, "the input to go on with")
    }
}

impl Error {
    /// Whether the run has been asked to stop.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled(_))
    }

    /// The step or task that was given up, if that is what happened.
    pub fn step(&self) -> Option<&StepError> {
        match self {
            Self::Step(error) => Some(error),
            Self::Cancelled(_) | Self::Failed(_) | Self::ContinueAsNew(_) => None,
        }
    }

    pub(crate) fn into_completion(self) -> Completion {
        match self {
            Self::Step(error) => Completion::StepFailed(error.into_wire()),
            // The host knows that it asked the run to stop, and ends it as cancelled.
            Self::Cancelled(reason) => {
                Completion::Failed(Failure::new("cancelled", reason).permanent().into_wire())
            }
            Self::Failed(failure) => Completion::Failed(failure.into_wire()),
            Self::ContinueAsNew(NextInput(payload)) => Completion::ContinueAsNew(payload),
        }
    }

    pub(crate) fn continue_as_new<T: serde::Serialize + 'static>(input: &T) -> Self {
        match payload::encode(input, "the input to go on with") {
            Ok(payload) => Self::ContinueAsNew(NextInput(payload)),
            Err(failure) => Self::Failed(failure),
        }
    }

    pub(crate) fn bad_span(error: &SpanError, what: &str) -> Self {
        Self::Failed(Failure::new("bad-span", format!("{what}: {error}")).permanent())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(error) => error.fmt(f),
            Self::Cancelled(reason) => write!(f, "the run has been asked to stop: {reason}"),
            Self::Failed(failure) => failure.fmt(f),
            Self::ContinueAsNew(_) => f.write_str("the run asks to go on with a fresh journal"),
        }
    }
}

impl From<StepError> for Error {
    fn from(error: StepError) -> Self {
        Self::Step(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl StepError {
    pub(crate) fn from_wire(wire: types::StepError) -> Self {
        let end = match wire.end {
            types::AttemptEnd::Failed => AttemptEnd::Failed,
            types::AttemptEnd::TimedOut => AttemptEnd::TimedOut,
            types::AttemptEnd::Trapped => AttemptEnd::Trapped,
            types::AttemptEnd::HostLost => AttemptEnd::HostLost,
            types::AttemptEnd::LimitExceeded => AttemptEnd::LimitExceeded,
            types::AttemptEnd::Cancelled => AttemptEnd::Cancelled,
        };
        Self {
            step: wire.step,
            attempts: wire.attempts,
            end,
            retryable: wire.retryable,
            cause: Failure::from_wire(wire.cause),
        }
    }

    fn into_wire(self) -> types::StepError {
        let end = match self.end {
            AttemptEnd::Failed => types::AttemptEnd::Failed,
            AttemptEnd::TimedOut => types::AttemptEnd::TimedOut,
            AttemptEnd::Trapped => types::AttemptEnd::Trapped,
            AttemptEnd::HostLost => types::AttemptEnd::HostLost,
            AttemptEnd::LimitExceeded => types::AttemptEnd::LimitExceeded,
            AttemptEnd::Cancelled => types::AttemptEnd::Cancelled,
        };
        types::StepError {
            step: self.step,
            attempts: self.attempts,
            end,
            retryable: self.retryable,
            cause: self.cause.into_wire(),
        }
    }
}

impl AttemptEnd {
    /// Lower-case, as in the journal: `timed-out`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::TimedOut => "timed-out",
            Self::Trapped => "trapped",
            Self::HostLost => "host-lost",
            Self::LimitExceeded => "limit-exceeded",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for AttemptEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "step `{}` was given up after {} attempts; the last one ",
            self.step, self.attempts
        )?;
        match self.end {
            AttemptEnd::Failed => write!(f, "failed: {}", self.cause),
            end => write!(f, "ended `{end}`: {}", self.cause),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]

    use super::*;

    fn given_up() -> StepError {
        StepError {
            step: "charge".to_owned(),
            attempts: 3,
            end: AttemptEnd::TimedOut,
            retryable: true,
            cause: Failure::new("timeout", "30 s passed"),
        }
    }

    #[test]
    fn a_handed_on_step_error_keeps_its_origin() {
        let handed_on = || -> Result<(), Error> { Err(given_up())? };
        let Completion::StepFailed(wire) = handed_on().unwrap_err().into_completion() else {
            panic!("expected step-failed")
        };
        assert_eq!(StepError::from_wire(wire), given_up());
    }

    #[test]
    fn a_foreign_error_fails_the_run() {
        let parse = || -> Result<u8, Error> { Ok("x".parse()?) };
        assert!(matches!(parse(), Err(Error::Failed(failure)) if failure.kind == "error"));
    }

    #[test]
    fn messages_say_what_happened() {
        assert_eq!(
            Error::from(given_up()).to_string(),
            "step `charge` was given up after 3 attempts; the last one ended `timed-out`: timeout: 30 s passed"
        );
    }
}
