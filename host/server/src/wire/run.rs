//! Runs: how one is started, how it looks, and what may be asked of it.

use serde::{Deserialize, Serialize};
use stepwell_core::journal::Ending;

use super::failure::Failure;
use super::time::{Instant, Span};
use super::value::{Json, to_response};

/// A run to start. Every field may be left out; an absent input is JSON `null`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The version's label; the workflow's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What the workflow is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// What the workflow is given, if it is not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_base64: Option<String>,
    /// At most one run per tenant and key. The header `Idempotency-Key` says the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// When it may begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Instant>,
    /// When it may begin, from now on: milliseconds, or text such as `5 minutes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
}

/// A run that exists now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Started {
    /// Its id.
    pub run: String,
    /// False if the idempotency key had started it before.
    pub is_new: bool,
}

/// Something to ask of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verb {
    /// Why; kept with a cancel and a terminate, which have it in the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What became of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Verdict {
    /// The run.
    pub run: String,
    /// `cancel`, `pause`, `resume`, `wake` or `terminate`.
    pub verb: String,
    /// False if it had been asked before: nothing changed.
    pub is_new: bool,
    /// The run's status now.
    pub status: String,
}

/// A run, with what it was given and how it ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Run {
    /// Its id.
    pub run: String,
    /// Owner.
    pub tenant: String,
    /// The version's workflow.
    pub workflow: String,
    /// The version's label.
    pub version: String,
    /// The component that it is pinned to.
    pub digest: String,
    /// `scheduled`, `queued`, `running`, `sleeping`, `waiting`, `retrying`, `paused`, `cancelling`,
    /// `stuck`, and in the end `completed`, `failed`, `cancelled` or `terminated`.
    pub status: String,
    /// Whether nothing more will happen to it.
    pub is_final: bool,
    /// When it was started.
    pub created_at: Instant,
    /// When it last changed.
    pub updated_at: Instant,
    /// When it next has something to do by the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Instant>,
    /// How often it went on with a fresh journal.
    pub generation: u32,
    /// Entries in the newest journal.
    pub entries: u64,
    /// Bytes in the newest journal.
    pub journal_bytes: u64,
    /// Grows with every change.
    pub revision: u64,
    /// The host that drives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What the newest journal began with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// The same, if it is not JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_base64: Option<String>,
    /// What it returned, if it completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// The same, if it is not JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_base64: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Why it was cancelled or terminated, or why it is stuck.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl From<&stepwell_store::Run> for Run {
    fn from(run: &stepwell_store::Run) -> Self {
        let (input, input_base64) = to_response(&run.input);
        let (result, result_base64) = match &run.ending {
            Some(Ending::Completed(result)) => to_response(result),
            _ => (None, None),
        };
        Self {
            run: run.run.to_string(),
            tenant: run.tenant.to_string(),
            workflow: run.workflow.to_string(),
            version: run.label.to_string(),
            digest: run.digest.to_string(),
            status: run.status.to_string(),
            is_final: run.status.is_final(),
            created_at: Instant(run.created_at),
            updated_at: Instant(run.updated_at),
            due_at: run.due.map(Instant),
            generation: run.generation,
            entries: run.entries.0,
            journal_bytes: run.journal_bytes,
            revision: run.revision,
            host: run.host.map(|host| host.to_string()),
            input,
            input_base64,
            result,
            result_base64,
            failure: run.failure().map(Failure::from),
            reason: reason(run),
        }
    }
}

fn reason(run: &stepwell_store::Run) -> Option<String> {
    match &run.ending {
        Some(Ending::Cancelled { reason } | Ending::Terminated { reason }) => Some(reason.clone()),
        Some(Ending::Completed(_) | Ending::Failed(_) | Ending::ContinuedAsNew(_)) | None => {
            run.stuck_reason.clone()
        }
    }
}

/// Runs of a tenant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Runs {
    /// Newest first.
    pub runs: Vec<RunSummary>,
    /// What to give as `before` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// A run as one line of a list: without its payloads.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunSummary {
    /// Its id.
    pub run: String,
    /// The version's workflow.
    pub workflow: String,
    /// The version's label.
    pub version: String,
    /// As in [`Run`].
    pub status: String,
    /// When it was started.
    pub created_at: Instant,
    /// When it last changed.
    pub updated_at: Instant,
    /// When it next has something to do by the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Instant>,
    /// Entries in the newest journal.
    pub entries: u64,
    /// Why it failed, was stopped or is stuck, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl From<&stepwell_store::Run> for RunSummary {
    fn from(run: &stepwell_store::Run) -> Self {
        Self {
            run: run.run.to_string(),
            workflow: run.workflow.to_string(),
            version: run.label.to_string(),
            status: run.status.to_string(),
            created_at: Instant(run.created_at),
            updated_at: Instant(run.updated_at),
            due_at: run.due.map(Instant),
            entries: run.entries.0,
            reason: run
                .failure()
                .map(|failure| format!("{}: {}", failure.cause.kind, failure.cause.message))
                .or_else(|| reason(run))
                .map(|reason| {
                    reason
                        .lines()
                        .next()
                        .unwrap_or_default()
                        .chars()
                        .take(200)
                        .collect()
                }),
        }
    }
}
