//! Runs as they are started and as they are shown to the outside.

use stepwell_core::id::{
    ComponentDigest, HostId, RunId, Sequence, TenantName, VersionLabel, WorkflowName,
};
use stepwell_core::journal::{Ending, RunFailure};
use stepwell_core::payload::Payload;
use stepwell_core::run::Status;
use stepwell_core::time::Timestamp;

use crate::claim::Claim;

/// A run to start.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Owner.
    pub tenant: TenantName,
    /// Its id, made by the caller.
    pub run: RunId,
    /// The version's workflow.
    pub workflow: WorkflowName,
    /// The version's label. The version must exist.
    pub label: VersionLabel,
    /// The version's component, to which the run is pinned.
    pub digest: ComponentDigest,
    /// What the workflow is given.
    pub input: Payload,
    /// SHA-256 of the input, with its kind mixed in; compared when a key is used twice.
    pub input_digest: [u8; 32],
    /// At most one run per tenant and key.
    pub idempotency_key: Option<String>,
    /// When it may begin; `None` for at once.
    pub start_at: Option<Timestamp>,
    /// Now.
    pub at: Timestamp,
}

/// What became of a start.
#[derive(Debug, Clone)]
pub enum Started {
    /// The run exists. Claimed, if the caller asked for that and it is due.
    Created(Option<Box<Claim>>),
    /// The key was used before for the same workflow and input: this is that run.
    Existing {
        /// The earlier run.
        run: RunId,
    },
    /// The key was used before for something else; nothing was started.
    KeyConflict {
        /// The earlier run.
        run: RunId,
        /// Its workflow.
        workflow: WorkflowName,
        /// The digest of its input.
        input_digest: [u8; 32],
    },
}

/// A run as people and programs see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub run: RunId,
    /// Owner.
    pub tenant: TenantName,
    /// The version's workflow.
    pub workflow: WorkflowName,
    /// The version's label.
    pub label: VersionLabel,
    /// The component it is pinned to.
    pub digest: ComponentDigest,
    /// How often it went on with a fresh journal; 0 at first.
    pub generation: u32,
    /// The visible status.
    pub status: Status,
    /// When it was started.
    pub created_at: Timestamp,
    /// When its row last changed.
    pub updated_at: Timestamp,
    /// When it next has something to do by the clock.
    pub due: Option<Timestamp>,
    /// Entries in the newest journal.
    pub entries: Sequence,
    /// Bytes in the newest journal, as stored.
    pub journal_bytes: u64,
    /// What the newest journal began with.
    pub input: Payload,
    /// How it ended, once it has.
    pub ending: Option<Ending>,
    /// Why an operator is needed, if `stuck`.
    pub stuck_reason: Option<String>,
    /// The host that drives it.
    pub host: Option<HostId>,
    /// Grows with every change of the run's row.
    pub revision: u64,
}

impl Run {
    /// Why the run failed, if it did.
    pub fn failure(&self) -> Option<&RunFailure> {
        match &self.ending {
            Some(Ending::Failed(failure)) => Some(failure),
            _ => None,
        }
    }
}

/// The most runs that one list has.
pub(crate) const RUNS_MAX: usize = 1_000;

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only of this workflow.
    pub workflow: Option<WorkflowName>,
    /// Only in one of these visible statuses; empty for all.
    pub statuses: Vec<Status>,
    /// Only runs older than this one: the last of the page before.
    pub before: Option<RunId>,
    /// At most so many; the store caps it at 1,000.
    pub limit: usize,
}

/// A value that a run shows to the outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its key.
    pub key: String,
    /// The newest value.
    pub value: Payload,
    /// When it was published.
    pub at: Timestamp,
}
