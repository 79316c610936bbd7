//! What a host is given with a run that it has claimed.

use stepwell_core::id::{
    ComponentDigest, Epoch, RunId, Sequence, TenantName, VersionLabel, WorkflowName,
};
use stepwell_core::payload::Payload;
use stepwell_core::time::Timestamp;

use crate::inbox::InboxItem;

/// How many runs a host can take in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Runs in all.
    pub runs: usize,
    /// Those among them that are suspects: claimed [`Room::SUSPECT_CLAIMS`] times in a row or more
    /// without progress, so that each may be what takes its hosts down.
    pub suspects: usize,
}

impl Room {
    /// Claims in a row without progress from which on a run is a suspect. One says nothing: a host
    /// that is lost leaves many runs behind that had just been claimed.
    pub const SUSPECT_CLAIMS: u32 = 2;

    /// Whether a run that was claimed so often in a row without progress is a suspect.
    pub(crate) const fn suspects(claims_without_progress: u32) -> bool {
        claims_without_progress >= Self::SUSPECT_CLAIMS
    }

    /// For so many, whatever is suspected of them.
    pub const fn any(runs: usize) -> Self {
        Self {
            runs,
            suspects: runs,
        }
    }
}

/// A run that a host now drives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The run.
    pub run: RunId,
    /// Owner.
    pub tenant: TenantName,
    /// The version's workflow.
    pub workflow: WorkflowName,
    /// The version's label.
    pub label: VersionLabel,
    /// The component it is pinned to.
    pub digest: ComponentDigest,
    /// Environment variables that the guest sees.
    pub environment: Vec<(String, String)>,
    /// Which journal of the run this is.
    pub generation: u32,
    /// What this journal began with.
    pub input: Payload,
    /// When this journal began: workflow time before its first entry.
    pub started_at: Timestamp,
    /// The lease; goes into every write.
    pub epoch: Epoch,
    /// The length of the journal.
    pub next: Sequence,
    /// The size of the journal, in bytes as stored.
    pub journal_bytes: u64,
    /// Whether the host that last drove this run was lost while the guest ran: an attempt may have
    /// been under way.
    pub host_lost: bool,
    /// Claims in a row, this one not included, without an entry that is progress.
    pub claims_without_progress: u32,
    /// Whether an operator holds the run. Only after [`Store::start`](crate::Store::start); `claim` skips such runs.
    pub paused: bool,
    /// Everything in the inbox.
    pub inbox: Vec<InboxItem>,
}

impl Claim {
    /// Whether it may be what took its last hosts down.
    pub fn is_suspect(&self) -> bool {
        Room::suspects(self.claims_without_progress)
    }
}
