//! Versions: (workflow, label) → component, registered once and never changed.

use std::sync::Arc;

use stepwell_core::id::{ComponentDigest, TenantName, VersionLabel, WorkflowName};
use stepwell_core::time::Timestamp;

/// A component to register, with the workflows that its manifest names.
#[derive(Debug, Clone)]
pub struct NewVersion {
    /// Owner.
    pub tenant: TenantName,
    /// Tells it from other versions of the same workflows.
    pub label: VersionLabel,
    /// SHA-256 of `component`.
    pub digest: ComponentDigest,
    /// The bytes; stored once per tenant and digest.
    pub component: Arc<[u8]>,
    /// Each workflow and its part of the manifest, as JSON text for readers.
    pub workflows: Vec<(WorkflowName, String)>,
    /// Environment variables that the guest sees, pinned.
    pub environment: Vec<(String, String)>,
    /// Now.
    pub at: Timestamp,
}

/// What became of a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registered {
    /// Stored.
    New,
    /// The same label, digest and environment were there before; nothing changed.
    Same,
    /// The label names another digest, or another environment; nothing changed.
    Conflict {
        /// The workflow.
        workflow: WorkflowName,
        /// What its label stands for.
        digest: ComponentDigest,
    },
}

/// (workflow, label) → component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The workflow.
    pub workflow: WorkflowName,
    /// The label.
    pub label: VersionLabel,
    /// The component.
    pub digest: ComponentDigest,
    /// The workflow's part of the manifest, JSON text.
    pub manifest: String,
    /// Environment variables that the guest sees.
    pub environment: Vec<(String, String)>,
    /// When it was registered.
    pub registered_at: Timestamp,
    /// Whether new runs get it when they name none.
    pub is_default: bool,
}
