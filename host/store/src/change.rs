//! What a store tells hosts: changes that they must react to, and what it has done.

use stepwell_core::id::RunId;
use stepwell_core::time::Timestamp;

/// What hosts must react to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A run that nobody holds is ready to be claimed.
    Ready {
        /// The run.
        run: RunId,
    },
    /// Nobody holds this run and it falls due at this time.
    Due {
        /// The run.
        run: RunId,
        /// When.
        at: Timestamp,
    },
    /// Something was put into the inbox of a run that is held, or it was paused or resumed.
    Inbox {
        /// The run.
        run: RunId,
    },
    /// The run was terminated; whoever drives it must drop it.
    Terminated {
        /// The run.
        run: RunId,
    },
}

/// What a store has done since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Transactions that were committed and synced.
    pub commits: u64,
    /// Journal entries that were appended.
    pub entries: u64,
}
