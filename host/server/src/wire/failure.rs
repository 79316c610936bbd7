//! What went wrong, of a step or of a whole run.

use serde::{Deserialize, Serialize};
use stepwell_core::journal::RunFailure;
use stepwell_core::payload;
use stepwell_core::retry::AttemptEnd;
use stepwell_core::time::whole_ms;

use super::value::{Json, to_response};

/// What went wrong. The first four fields are only there for the failure of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// Whether the run itself failed, or a step or task made it fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Which step or task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Its attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// How its last attempt ended: `failed`, `timed-out`, `trapped`, `host-lost`, `limit-exceeded`
    /// or `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Stable and machine-readable.
    pub kind: String,
    /// For a person to read.
    pub message: String,
    /// Whether a further attempt might have cured it.
    pub retryable: bool,
    /// When the failing side wished to be asked again, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// More, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Json>,
    /// More, if it is not JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details_base64: Option<String>,
    /// If it was a trap: symbolised, one frame a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backtrace: Option<String>,
}

/// Where the failure of a run came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The run itself.
    Run,
    /// A step or task.
    Step,
}

impl From<&payload::Failure> for Failure {
    fn from(failure: &payload::Failure) -> Self {
        let (details, details_base64) = failure.details.as_ref().map_or((None, None), to_response);
        Self {
            source: None,
            step: None,
            attempts: None,
            end: None,
            kind: failure.kind.clone(),
            message: failure.message.clone(),
            retryable: failure.retryable,
            retry_after_ms: failure.retry_after.map(whole_ms),
            details,
            details_base64,
            backtrace: None,
        }
    }
}

impl From<&RunFailure> for Failure {
    fn from(failure: &RunFailure) -> Self {
        let origin = failure.step.as_ref();
        Self {
            source: Some(if origin.is_some() {
                Source::Step
            } else {
                Source::Run
            }),
            step: origin.map(|origin| origin.step.clone()),
            attempts: origin.map(|origin| origin.attempts),
            end: origin.map(|origin| end_text(origin.end).to_owned()),
            backtrace: failure.backtrace.clone(),
            ..Self::from(&failure.cause)
        }
    }
}

/// As in `wit/types.wit`.
pub(super) fn end_text(end: AttemptEnd) -> &'static str {
    match end {
        AttemptEnd::Failed => "failed",
        AttemptEnd::TimedOut => "timed-out",
        AttemptEnd::Trapped => "trapped",
        AttemptEnd::HostLost => "host-lost",
        AttemptEnd::LimitExceeded => "limit-exceeded",
        AttemptEnd::Cancelled => "cancelled",
    }
}
