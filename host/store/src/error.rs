//! Why a store did not do what it was asked.

use stepwell_core::id::{Epoch, RunId, VersionLabel, WorkflowName};

/// Why a store did not do what it was asked.
///
/// Cloneable, since one failed commit is the answer to everybody who waited for it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Another host has claimed the run since, or it was terminated: nothing was written, and the
    /// caller must drop the run without a further look.
    #[error(
        "run {run}: epoch {epoch} no longer holds the lease; another host drives it, or it was terminated"
    )]
    LeaseLost {
        /// The run.
        run: RunId,
        /// The epoch that the caller held.
        epoch: Epoch,
    },
    /// The run cannot end yet: a cancel was accepted that the caller has not seen. Nothing was
    /// written; look into the inbox and end again.
    #[error("run {run}: a cancel was accepted before it ended")]
    CancelRequested {
        /// The run.
        run: RunId,
    },
    /// The data folder is in use by another host process.
    #[error(
        "data folder {folder} is in use by another host; stop that one first, or choose another folder with --data"
    )]
    InUse {
        /// The folder.
        folder: String,
    },
    /// The database was written by a newer release.
    #[error(
        "database {file} has schema {found}, this release knows up to {known}; use the newer release that wrote it"
    )]
    Newer {
        /// The file.
        file: String,
        /// Its schema number.
        found: u32,
        /// The newest number known here.
        known: u32,
    },
    /// A migration that has run differs from the one in this release.
    #[error(
        "migration {number} of {file} was changed after it ran; a released migration must never be edited"
    )]
    MigrationChanged {
        /// The file.
        file: String,
        /// The migration's number.
        number: u32,
    },
    /// Something in the database cannot be read as what it must be.
    #[error("{what} is damaged: {detail}; restore the data folder from a backup")]
    Damaged {
        /// What was read.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A run was to be started on a version that does not exist, or stands for another component.
    #[error("workflow {workflow} has no version {label} with that component; register it first")]
    NoSuchVersion {
        /// The workflow.
        workflow: WorkflowName,
        /// The label.
        label: VersionLabel,
    },
    /// The store cannot be reached or cannot write (disk full, I/O error). Nothing of this call was
    /// written; it may be tried again.
    #[error("the store could not {action}: {detail}")]
    Unavailable {
        /// What was attempted.
        action: &'static str,
        /// What the database or the system said.
        detail: String,
    },
    /// The acknowledgement was lost: all of this call was written, or nothing of it.
    #[error(
        "whether the store could {action} is unknown: {detail}; read what is there before trying again"
    )]
    Unknown {
        /// What was attempted.
        action: &'static str,
        /// What became of the acknowledgement.
        detail: String,
    },
}
