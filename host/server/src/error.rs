//! How domain errors become HTTP responses: the one place where they meet status codes.
//!
//! Every conversion is an exhaustive match, so a new error fails to compile until somebody has
//! decided what a client is told. The client gets the public message; what only an operator should
//! read (paths, what the database said) goes to the log.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt::Write as _;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use stepwell_core::id::RunId;
use stepwell_core::run::{Status, Verb};
use stepwell_engine::{register, send, start};
use stepwell_sandbox::Rejected;

use crate::wire;

/// A request that is not carried out, and what the client is told.
#[derive(Debug)]
pub(crate) struct Problem {
    kind: Kind,
    detail: String,
    facts: BTreeMap<String, Value>,
    /// What the log gets beside the detail.
    cause: Option<String>,
}

/// What kind of problem; decides the status, the type and the title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A header, query parameter or path segment that cannot be read.
    BadRequest,
    /// A body that is not JSON, or not the JSON expected.
    BadBody,
    /// A body of another media type.
    UnsupportedMediaType,
    /// A body over the limit.
    TooLarge,
    /// A body that did not arrive in time.
    BodyTimeout,
    /// A request that another web site made a browser send.
    CrossOrigin,
    /// No such path.
    NoSuchPath,
    /// The path exists, and not with this method.
    NoSuchMethod,
    NoSuchRun,
    NoSuchEvent,
    NoSuchWorkflow,
    NoSuchVersion,
    /// The input is not what the workflow takes.
    InputUnfit,
    /// An event's payload is not what the run's version takes.
    PayloadUnfit,
    /// An idempotency key that stands for something else.
    KeyConflict,
    /// A version label that stands for something else.
    VersionConflict,
    /// A component that the sandbox does not accept.
    ComponentRejected,
    /// A verb that makes no sense in the run's status.
    Refused,
    MailboxFull,
    /// Too many requests of an expensive kind at once.
    Busy,
    /// The store, or the whole host, cannot answer now.
    Unavailable,
    /// A fault of the host.
    Internal,
}

impl Kind {
    fn status(self) -> StatusCode {
        match self {
            Self::BadRequest | Self::BadBody => StatusCode::BAD_REQUEST,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::CrossOrigin => StatusCode::FORBIDDEN,
            Self::NoSuchMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::NoSuchPath
            | Self::NoSuchRun
            | Self::NoSuchEvent
            | Self::NoSuchWorkflow
            | Self::NoSuchVersion => StatusCode::NOT_FOUND,
            Self::InputUnfit | Self::PayloadUnfit | Self::ComponentRejected => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::KeyConflict | Self::VersionConflict | Self::Refused => StatusCode::CONFLICT,
            Self::MailboxFull | Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The type, after its prefix, and the title.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::BadRequest => ("bad-request", "The request cannot be read"),
            Self::BadBody => ("bad-body", "The body is not the JSON expected"),
            Self::UnsupportedMediaType => (
                "unsupported-media-type",
                "The body is of another media type",
            ),
            Self::TooLarge => ("too-large", "The request is over a limit"),
            Self::BodyTimeout => ("body-timeout", "The body did not arrive in time"),
            Self::CrossOrigin => ("cross-origin", "Another web site made this request"),
            Self::NoSuchPath => ("no-such-path", "There is nothing at this path"),
            Self::NoSuchMethod => ("no-such-method", "This path has no such method"),
            Self::NoSuchRun => ("no-such-run", "There is no such run"),
            Self::NoSuchEvent => ("no-such-event", "There is no such event"),
            Self::NoSuchWorkflow => ("no-such-workflow", "There is no such workflow"),
            Self::NoSuchVersion => ("no-such-version", "There is no such version"),
            Self::InputUnfit => ("input-unfit", "The input is not what the workflow takes"),
            Self::PayloadUnfit => ("payload-unfit", "The payload is not what the event takes"),
            Self::KeyConflict => ("key-conflict", "The idempotency key stands for another run"),
            Self::VersionConflict => (
                "version-conflict",
                "The version is registered with something else",
            ),
            Self::ComponentRejected => ("component-rejected", "The component is not accepted"),
            Self::Refused => ("refused", "The run's status does not allow this"),
            Self::MailboxFull => ("mailbox-full", "The run's mailbox is full"),
            Self::Busy => ("busy", "Too many such requests at once"),
            Self::Unavailable => ("unavailable", "The host cannot answer now"),
            Self::Internal => ("internal", "The host has a fault"),
        }
    }

    /// Seconds after which it makes sense to ask again, if it does.
    fn retry_after_s(self) -> Option<&'static str> {
        match self {
            Self::Busy | Self::Unavailable => Some("1"),
            // A mailbox empties as fast as its workflow takes events.
            Self::MailboxFull => Some("5"),
            _ => None,
        }
    }
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            facts: BTreeMap::new(),
            cause: None,
        }
    }

    /// Adds a fact for programs.
    pub(crate) fn with(mut self, name: &str, fact: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), fact.into());
        self
    }

    /// A fault: the client is told that there was one, the log what it was.
    fn hidden(kind: Kind, detail: &str, error: &dyn StdError) -> Self {
        Self {
            cause: Some(chain(error)),
            ..Self::new(kind, detail)
        }
    }

    pub(crate) fn no_such_run(run: RunId) -> Self {
        Self::new(
            Kind::NoSuchRun,
            format!("there is no run {run}; `GET /v1/runs` lists the runs of this tenant"),
        )
    }

    pub(crate) fn refused(run: RunId, verb: Verb, status: Status) -> Self {
        let advice = match verb {
            _ if status.is_final() => "nothing more can happen to it",
            Verb::Resume => "only a paused or stuck run can be resumed",
            Verb::Wake => "only a sleeping run can be woken",
            Verb::Send | Verb::Cancel | Verb::Pause | Verb::Terminate => "look at it first",
        };
        let noun = match verb {
            Verb::Send => "event",
            Verb::Cancel | Verb::Pause | Verb::Resume | Verb::Wake | Verb::Terminate => {
                verb.as_str()
            }
        };
        Self::new(
            Kind::Refused,
            format!("run {run} takes no {noun}: it is {status}, and {advice}"),
        )
        .with("run_status", status.as_str())
    }
}

fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        // Writing to a String cannot fail.
        let _ = write!(text, ": {error}");
        source = error.source();
    }
    text
}

impl From<stepwell_store::Error> for Problem {
    fn from(error: stepwell_store::Error) -> Self {
        use stepwell_store::Error;
        match &error {
            // An operator must act; a client can only wait.
            Error::Unavailable { .. } => Self::hidden(
                Kind::Unavailable,
                "the store does not answer now; nothing was written, so try again",
                &error,
            ),
            Error::InUse { .. }
            | Error::Newer { .. }
            | Error::MigrationChanged { .. }
            | Error::Damaged { .. } => Self::hidden(
                Kind::Internal,
                "the store cannot be used; its operator finds the reason in the log",
                &error,
            ),
            Error::Unknown { .. } => Self::hidden(
                Kind::Unavailable,
                "the store does not say whether this was written; look before you send it again, or send it with a key",
                &error,
            ),
            // Answers to the host that drives a run; no request is answered with them.
            Error::LeaseLost { .. }
            | Error::CancelRequested { .. }
            | Error::NoSuchVersion { .. } => Self::hidden(
                Kind::Internal,
                "the host met an error that no request should; please report it",
                &error,
            ),
        }
    }
}

impl From<start::Error> for Problem {
    fn from(error: start::Error) -> Self {
        use start::Error;
        let detail = error.to_string();
        match error {
            Error::NoSuchWorkflow { .. } => Self::new(Kind::NoSuchWorkflow, detail),
            Error::NoSuchVersion { .. } => Self::new(Kind::NoSuchVersion, detail),
            Error::InputTooLarge { found, max } => Self::new(Kind::TooLarge, detail)
                .with("found_bytes", found)
                .with("limit_bytes", max),
            Error::InputNotJson { .. } | Error::InputUnfit { .. } => {
                Self::new(Kind::InputUnfit, detail)
            }
            Error::Key { .. } => Self::new(Kind::BadRequest, detail),
            Error::KeyConflict { run, .. } => {
                Self::new(Kind::KeyConflict, detail).with("run", run.to_string())
            }
            Error::Store(error) => error.into(),
        }
    }
}

impl From<send::Error> for Problem {
    fn from(error: send::Error) -> Self {
        use send::Error;
        let detail = error.to_string();
        match error {
            Error::PayloadTooLarge { found, max } => Self::new(Kind::TooLarge, detail)
                .with("found_bytes", found)
                .with("limit_bytes", max),
            Error::PayloadUnfit { .. } => Self::new(Kind::PayloadUnfit, detail),
            Error::Key { .. } => Self::new(Kind::BadRequest, detail),
            Error::Store(error) => error.into(),
        }
    }
}

impl From<register::Error> for Problem {
    fn from(error: register::Error) -> Self {
        use register::Error;
        let detail = error.to_string();
        match error {
            Error::Rejected(rejected) => rejected.into(),
            // Says nothing about the component.
            Error::Sandbox(error) => Self::hidden(
                Kind::Unavailable,
                "the sandbox cannot check a component now; nothing was written, so try again",
                &error,
            ),
            Error::Conflict { digest, .. } => {
                Self::new(Kind::VersionConflict, detail).with("digest", digest.to_string())
            }
            Error::Schema { .. } => {
                Self::new(Kind::ComponentRejected, detail).with("reason", "bad-schema")
            }
            Error::Environment { .. } => Self::new(Kind::BadRequest, detail),
            Error::Store(error) => error.into(),
        }
    }
}

impl From<Rejected> for Problem {
    fn from(rejected: Rejected) -> Self {
        let detail = rejected.to_string();
        let reason = match &rejected {
            Rejected::TooLarge { size, limit } => {
                return Self::new(Kind::TooLarge, detail)
                    .with("found_bytes", *size)
                    .with("limit_bytes", *limit);
            }
            Rejected::NotWebAssembly => "not-webassembly",
            Rejected::CoreModule => "core-module",
            Rejected::Invalid(_) => "invalid",
            Rejected::ForbiddenImport { .. } => "forbidden-import",
            Rejected::ContractVersion { .. } => "contract-version",
            Rejected::MissingExport { .. } => "missing-export",
            Rejected::Unlinkable(_) => "unlinkable",
            Rejected::TooComplex { .. } => "too-complex",
            Rejected::CompilerFailed => "compiler-failed",
            Rejected::DescribeTrapped(_) => "describe-trapped",
            Rejected::ManifestTooLarge { .. } => "manifest-too-large",
            Rejected::NoWorkflow => "no-workflow",
            Rejected::BadName { .. } => "bad-name",
            Rejected::DuplicateName { .. } => "duplicate-name",
            Rejected::BadSchema { .. } => "bad-schema",
        };
        Self::new(Kind::ComponentRejected, detail).with("reason", reason)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.kind.status();
        let (name, title) = self.kind.names();
        if status.is_server_error() {
            tracing::error!(
                problem = name,
                cause = self.cause.as_deref(),
                "{}",
                self.detail
            );
        } else {
            tracing::debug!(
                problem = name,
                cause = self.cause.as_deref(),
                "{}",
                self.detail
            );
        }
        let body = wire::Problem {
            r#type: format!("{}{name}", wire::Problem::TYPE_PREFIX),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: self.detail,
            facts: self.facts,
        };
        // A map of text and numbers always has a JSON form.
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(seconds) = self.kind.retry_after_s() {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(seconds));
        }
        response
    }
}
