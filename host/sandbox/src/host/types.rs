//! `stepwell:workflow/types`: values of the contract to and from those of the core, with a bound
//! on what a guest may hand in.

use std::time::Duration;

use stepwell_core::limits::Limits;
use stepwell_core::payload::{Failure, Payload};
use stepwell_core::retry::{AttemptEnd, Backoff, Options, Policy, StepError};
use stepwell_core::time::{Timestamp, whole_ms};

use crate::bindings::stepwell::workflow::types as wit;

impl wit::Host for crate::instance::Instance {}

/// A failure's message, in bytes; a longer one is cut.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// From the guest. Its size is for the engine to judge, which knows what follows.
pub(crate) fn payload(value: wit::Payload) -> Payload {
    match value {
        wit::Payload::Json(text) => Payload::Json(text),
        wit::Payload::Binary(bytes) => Payload::Binary(bytes),
    }
}

/// To the guest.
pub(crate) fn payload_out(value: Payload) -> wit::Payload {
    match value {
        Payload::Json(text) => wit::Payload::Json(text),
        Payload::Binary(bytes) => wit::Payload::Binary(bytes),
    }
}

/// What a guest says went wrong, cut to what is kept.
pub(crate) fn failure(value: wit::Failure, limits: &Limits) -> Failure {
    let mut failure = Failure {
        kind: value.kind,
        message: value.message,
        retryable: value.retryable,
        retry_after: value.retry_after.map(Duration::from_millis),
        details: value.details.map(payload),
    };
    cut(&mut failure.kind, limits.name_bytes_max);
    cut(
        &mut failure.message,
        MESSAGE_BYTES_MAX.min(limits.payload_bytes_max),
    );
    if let Some(details) = failure
        .details
        .take_if(|details| details.size_bytes() > limits.payload_bytes_max)
    {
        failure.message.push_str(&format!(
            " [its details of {} bytes were dropped: the payload limit is {} bytes]",
            details.size_bytes(),
            limits.payload_bytes_max
        ));
    }
    failure
}

pub(super) fn failure_out(value: Failure) -> wit::Failure {
    wit::Failure {
        kind: value.kind,
        message: value.message,
        retryable: value.retryable,
        retry_after: value.retry_after.map(whole_ms),
        details: value.details.map(payload_out),
    }
}

pub(super) fn outcome(
    value: Result<wit::Payload, wit::Failure>,
    limits: &Limits,
) -> Result<Payload, Failure> {
    value.map(payload).map_err(|value| failure(value, limits))
}

pub(super) fn options(value: wit::StepOptions) -> Options {
    let default = Options::default();
    Options {
        policy: value.retry.map_or(default.policy, |retry| Policy {
            attempts_max: retry.max_attempts,
            delay: Duration::from_millis(retry.delay),
            backoff: match retry.backoff {
                wit::Backoff::Constant => Backoff::Constant,
                wit::Backoff::Linear => Backoff::Linear,
                wit::Backoff::Exponential => Backoff::Exponential,
            },
            factor: retry.factor,
            delay_max: Duration::from_millis(retry.max_delay),
            jitter: retry.jitter,
        }),
        timeout: value.timeout.map_or(default.timeout, Duration::from_millis),
        deadline: value.deadline.map(Duration::from_millis),
    }
}

/// A step's error that a guest hands on.
pub(crate) fn step_error(value: wit::StepError, limits: &Limits) -> StepError {
    let mut step = value.step;
    cut(&mut step, limits.name_bytes_max);
    let cause = failure(value.cause, limits);
    StepError {
        step,
        attempts: value.attempts,
        end: match value.end {
            wit::AttemptEnd::Failed => AttemptEnd::Failed,
            wit::AttemptEnd::TimedOut => AttemptEnd::TimedOut,
            wit::AttemptEnd::Trapped => AttemptEnd::Trapped,
            wit::AttemptEnd::HostLost => AttemptEnd::HostLost,
            wit::AttemptEnd::LimitExceeded => AttemptEnd::LimitExceeded,
            wit::AttemptEnd::Cancelled => AttemptEnd::Cancelled,
        },
        cause: Failure {
            retryable: value.retryable,
            ..cause
        },
    }
}

pub(super) fn step_error_out(value: StepError) -> wit::StepError {
    wit::StepError {
        step: value.step,
        attempts: value.attempts,
        end: match value.end {
            AttemptEnd::Failed => wit::AttemptEnd::Failed,
            AttemptEnd::TimedOut => wit::AttemptEnd::TimedOut,
            AttemptEnd::Trapped => wit::AttemptEnd::Trapped,
            AttemptEnd::HostLost => wit::AttemptEnd::HostLost,
            AttemptEnd::LimitExceeded => wit::AttemptEnd::LimitExceeded,
            AttemptEnd::Cancelled => wit::AttemptEnd::Cancelled,
        },
        retryable: value.cause.retryable,
        cause: failure_out(value.cause),
    }
}

pub(super) fn instant(value: Timestamp) -> wit::InstantMs {
    value.as_ms()
}

fn cut(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
    }
}
