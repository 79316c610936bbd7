//! Components and the versions that they give to workflows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use stepwell_engine::register;
use stepwell_sandbox::guest::{TaskSpec, WorkflowSpec};

use super::time::Instant;
use super::value::Json;

/// What was registered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Registered {
    /// The label of all its workflows.
    pub version: String,
    /// The component's name: SHA-256 of its bytes.
    pub digest: String,
    /// False if the same had been registered before: nothing changed.
    pub is_new: bool,
    /// The SDK that built it.
    pub sdk: String,
    /// What it offers.
    pub workflows: Vec<Workflow>,
    /// What it runs in instances of their own.
    pub tasks: Vec<Task>,
}

/// A workflow that a component offers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Workflow {
    /// Its name.
    pub name: String,
    /// One line.
    pub summary: String,
    /// The events that it says it waits for.
    pub events: Vec<String>,
    /// What its input must be: a JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Json>,
}

/// A task that a component offers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Task {
    /// Its name.
    pub name: String,
    /// One line.
    pub summary: String,
}

impl From<&WorkflowSpec> for Workflow {
    fn from(spec: &WorkflowSpec) -> Self {
        Self {
            name: spec.name.clone(),
            summary: spec.summary.clone(),
            events: spec.events.iter().map(|(name, _)| name.clone()).collect(),
            input_schema: spec
                .input_schema
                .clone()
                .and_then(|schema| RawValue::from_string(schema).ok()),
        }
    }
}

impl From<&TaskSpec> for Task {
    fn from(spec: &TaskSpec) -> Self {
        Self {
            name: spec.name.clone(),
            summary: spec.summary.clone(),
        }
    }
}

impl Registered {
    pub(crate) fn new(version: String, registered: &register::Registered) -> Self {
        Self {
            version,
            digest: registered.digest.to_string(),
            is_new: registered.is_new,
            sdk: registered.manifest.sdk.clone(),
            workflows: registered
                .manifest
                .workflows
                .iter()
                .map(Workflow::from)
                .collect(),
            tasks: registered.manifest.tasks.iter().map(Task::from).collect(),
        }
    }
}

/// Versions of a tenant's workflows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Versions {
    /// By workflow, newest first.
    pub versions: Vec<Version>,
}

/// (workflow, label) → component.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Version {
    /// The workflow.
    pub workflow: String,
    /// The label.
    pub version: String,
    /// The component.
    pub digest: String,
    /// When it was registered.
    pub registered_at: Instant,
    /// Whether new runs get it when they name none.
    pub is_default: bool,
    /// Environment variables that the guest sees.
    pub environment: BTreeMap<String, String>,
    /// The workflow's part of the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Json>,
}

impl From<stepwell_store::Version> for Version {
    fn from(version: stepwell_store::Version) -> Self {
        Self {
            workflow: version.workflow.to_string(),
            version: version.label.to_string(),
            digest: version.digest.to_string(),
            registered_at: Instant(version.registered_at),
            is_default: version.is_default,
            environment: version.environment.into_iter().collect(),
            manifest: RawValue::from_string(version.manifest).ok(),
        }
    }
}
