//! Starting a run: the input is checked against the version's schema, then the run is stored.

use stepwell_core::id::{RunId, TenantName, VersionLabel, WorkflowName};
use stepwell_core::payload::Payload;
use stepwell_core::time::Timestamp;

/// A run to start.
#[derive(Debug, Clone)]
pub struct Start {
    /// Owner.
    pub tenant: TenantName,
    /// The workflow.
    pub workflow: WorkflowName,
    /// The version; `None` for the workflow's default.
    pub label: Option<VersionLabel>,
    /// What the workflow is given.
    pub input: Payload,
    /// At most one run per tenant and key.
    pub idempotency_key: Option<String>,
    /// When it may begin; `None` for at once.
    pub start_at: Option<Timestamp>,
}

/// A run that exists now. No crash loses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// Its id.
    pub run: RunId,
    /// False if the idempotency key had started it before.
    pub is_new: bool,
}

/// Why no run was started. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No version of this workflow.
    #[error("no workflow `{workflow}` is registered; `stepwell register` registers one")]
    NoSuchWorkflow {
        /// What was asked for.
        workflow: WorkflowName,
    },
    /// Not this version.
    #[error("workflow `{workflow}` has no version `{label}`")]
    NoSuchVersion {
        /// What was asked for.
        workflow: WorkflowName,
        /// What was asked for.
        label: VersionLabel,
    },
    /// Too large.
    #[error("the input has {found} bytes; the payload limit is {max}")]
    InputTooLarge {
        /// Its size in bytes.
        found: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// Not JSON.
    #[error("the input is not JSON: {detail}")]
    InputNotJson {
        /// Where and why.
        detail: String,
    },
    /// Does not fit the schema.
    #[error("the input does not fit the schema of workflow `{workflow}`: {detail}")]
    InputUnfit {
        /// The workflow.
        workflow: WorkflowName,
        /// The first few places that do not fit, and why.
        detail: String,
    },
    /// The key cannot be used.
    #[error("an idempotency key is 1 to 256 bytes of text; this one has {found}")]
    Key {
        /// Its size in bytes.
        found: usize,
    },
    /// The key was used before for something else.
    #[error(
        "the idempotency key was used for run {run} of workflow `{workflow}` with input sha256:{recorded}; \
         this input is sha256:{asked}"
    )]
    KeyConflict {
        /// The earlier run.
        run: RunId,
        /// Its workflow.
        workflow: WorkflowName,
        /// Hexadecimal digest of its input.
        recorded: String,
        /// Hexadecimal digest of this input.
        asked: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] stepwell_store::Error),
}
