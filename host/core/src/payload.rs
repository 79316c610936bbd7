//! Values that cross the boundary: payloads, which the host stores and never interprets, and
//! failures, as the side that failed says them.

use std::time::Duration;

/// A value that the host stores and never interprets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// JSON text, kept byte for byte.
    Json(String),
    /// Anything else.
    Binary(Vec<u8>),
}

impl Payload {
    /// JSON `null`: the payload of something that carries no value.
    pub fn null() -> Self {
        Self::Json("null".to_owned())
    }

    /// The bytes, whichever kind they are.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Json(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }

    /// Size in bytes, as counted against limits.
    pub fn size_bytes(&self) -> usize {
        self.as_bytes().len()
    }
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Stable and machine-readable, for example `card-declined`.
    pub kind: String,
    /// For a person to read.
    pub message: String,
    /// False stops all retrying at once.
    pub retryable: bool,
    /// The failing side's own wish for when to try again; it overrides the backoff.
    pub retry_after: Option<Duration>,
    /// More, for programs.
    pub details: Option<Payload>,
}

impl Failure {
    /// A failure that a further attempt might cure.
    pub fn retryable(kind: &str, message: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            message: message.into(),
            retryable: true,
            retry_after: None,
            details: None,
        }
    }

    /// A failure that no further attempt will cure.
    pub fn permanent(kind: &str, message: impl Into<String>) -> Self {
        Self {
            retryable: false,
            ..Self::retryable(kind, message)
        }
    }

    /// Size in bytes, as counted against limits.
    pub fn size_bytes(&self) -> usize {
        self.kind.len() + self.message.len() + self.details.as_ref().map_or(0, Payload::size_bytes)
    }
}
