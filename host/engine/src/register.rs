//! Registering a component: checked by the sandbox, then stored, all of it or nothing.

use std::sync::Arc;

use stepwell_core::id::{ComponentDigest, TenantName, VersionLabel, WorkflowName};
use stepwell_sandbox::CheckError;
use stepwell_sandbox::guest::{Manifest, WorkflowSpec};
use stepwell_store::NewVersion;

use crate::schema::Schema;
use crate::shared::Shared;

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
    /// The host cannot tell; it may be tried again.
    #[error(transparent)]
    Sandbox(#[from] stepwell_sandbox::Error),
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
    /// A schema that payloads cannot be held against.
    #[error("the schema of {of} is not accepted: {problem}")]
    Schema {
        /// What it is of, cut to 300 characters.
        of: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// An environment variable that cannot be set.
    #[error(
        "environment variable `{name}` cannot be set: a name is 1 to 256 characters without `=` or NUL, a value up to 32 KiB without NUL, and there are at most 256, each once"
    )]
    Environment {
        /// Its name, cut to 80 characters.
        name: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] stepwell_store::Error),
}

pub(crate) async fn register(
    shared: &Shared,
    registration: Registration,
) -> Result<Registered, Error> {
    let Registration {
        tenant,
        label,
        component,
        environment,
    } = registration;
    check_environment(&environment)?;
    let checked = shared
        .components
        .check(Arc::clone(&component), &shared.config.limits)
        .await
        .map_err(|error| match error {
            CheckError::Rejected(rejected) => Error::Rejected(rejected),
            CheckError::Host(fault) => Error::Sandbox(fault),
        })?;
    check_schemas(&checked.manifest)?;
    let workflows = checked
        .manifest
        .workflows
        .iter()
        .map(|spec| {
            let name = spec
                .name
                .parse()
                .expect("the check lets only workflow names pass");
            (name, workflow_manifest(&checked.manifest, spec))
        })
        .collect();
    let new = NewVersion {
        tenant,
        label: label.clone(),
        digest: checked.digest,
        component,
        workflows,
        environment,
        at: shared.now(),
    };
    match shared.store.register(new).await? {
        stepwell_store::Registered::New => Ok(true),
        stepwell_store::Registered::Same => Ok(false),
        stepwell_store::Registered::Conflict { workflow, digest } => Err(Error::Conflict {
            workflow,
            label,
            digest,
        }),
    }
    .map(|is_new| Registered {
        digest: checked.digest,
        manifest: checked.manifest,
        is_new,
    })
}

fn check_schemas(manifest: &Manifest) -> Result<(), Error> {
    for workflow in &manifest.workflows {
        let name = &workflow.name;
        let whole = [
            (
                format!("the input of workflow `{name}`"),
                &workflow.input_schema,
            ),
            (
                format!("the output of workflow `{name}`"),
                &workflow.output_schema,
            ),
        ];
        let events = workflow
            .events
            .iter()
            .map(|(event, schema)| (format!("event `{event}` of workflow `{name}`"), schema));
        for (of, schema) in whole.into_iter().chain(events) {
            let Some(text) = schema else { continue };
            // The sandbox has checked that it is JSON.
            let value = serde_json::from_str(text).unwrap_or_default();
            Schema::compile(&value).map_err(|error| Error::Schema {
                of: of.chars().take(300).collect(),
                problem: error.to_string(),
            })?;
        }
    }
    Ok(())
}

/// A workflow's part of the manifest, as JSON text for whoever reads it.
fn workflow_manifest(manifest: &Manifest, spec: &WorkflowSpec) -> String {
    let schema = |text: &Option<String>| -> serde_json::Value {
        text.as_ref()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    };
    let events: Vec<_> = spec
        .events
        .iter()
        .map(|(name, text)| serde_json::json!({ "name": name, "schema": schema(text) }))
        .collect();
    let tasks: Vec<_> = manifest
        .tasks
        .iter()
        .map(|task| serde_json::json!({ "name": task.name, "summary": task.summary }))
        .collect();
    let mut json = serde_json::json!({
        "sdk": manifest.sdk, "summary": spec.summary, "events": events, "tasks": tasks,
    });
    for (key, text) in [
        ("input_schema", &spec.input_schema),
        ("output_schema", &spec.output_schema),
    ] {
        if text.is_some() {
            json[key] = schema(text);
        }
    }
    json.to_string()
}

const VARIABLES_MAX: usize = 256;
const VARIABLE_NAME_BYTES_MAX: usize = 256;
const VARIABLE_VALUE_BYTES_MAX: usize = 32 * 1024;

fn check_environment(environment: &[(String, String)]) -> Result<(), Error> {
    let bad = |(index, (name, value)): &(usize, &(String, String))| {
        let is_duplicate = environment[..*index]
            .iter()
            .any(|(earlier, _)| earlier == name);
        let name_fits =
            (1..=VARIABLE_NAME_BYTES_MAX).contains(&name.len()) && !name.contains(['=', '\0']);
        let value_fits = value.len() <= VARIABLE_VALUE_BYTES_MAX && !value.contains('\0');
        *index >= VARIABLES_MAX || is_duplicate || !name_fits || !value_fits
    };
    match environment.iter().enumerate().find(bad) {
        Some((_, (name, _))) => Err(Error::Environment {
            name: name.chars().take(80).collect(),
        }),
        None => Ok(()),
    }
}
