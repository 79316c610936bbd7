//! Registering a component: checked by the sandbox, then stored, all of it or nothing.

use std::sync::Arc;

use stepwell_core::id::{ComponentDigest, TenantName, VersionLabel, WorkflowName};
use stepwell_sandbox::guest::Manifest;

/// A component to register.
#[derive(Debug, Clone)]
pub struct Registration {
    /// Owner.
    pub tenant: TenantName,
    /// Tells it from other versions of the same workflows.
    pub label: VersionLabel,
    /// The component's bytes.
    pub component: Arc<[u8]>,
    /// Environment variables that the guest sees, pinned with the version.
    pub environment: Vec<(String, String)>,
}

/// What was registered.
#[derive(Debug, Clone)]
pub struct Registered {
    /// The component's name.
    pub digest: ComponentDigest,
    /// What it says it offers.
    pub manifest: Manifest,
    /// False if the same had been registered before: nothing changed.
    pub is_new: bool,
}

/// Why a component was not registered. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The sandbox refuses it.
    #[error(transparent)]
    Rejected(#[from] stepwell_sandbox::Rejected),
    /// The label is taken.
    #[error(
        "version {label} of workflow {workflow} is registered with {digest} or another environment, and a version never changes; \
         choose another label"
    )]
    Conflict {
        /// The workflow.
        workflow: WorkflowName,
        /// The label.
        label: VersionLabel,
        /// What it stands for.
        digest: ComponentDigest,
    },
    /// An environment variable that cannot be set.
    #[error("environment variable `{name}` cannot be set: a name is 1 to 256 characters without `=` or NUL, a value up to 32 KiB without NUL, and there are at most 256")]
    Environment {
        /// Its name, cut to 80 characters.
        name: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] stepwell_store::Error),
}
