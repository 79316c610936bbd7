//! The versions that runs are started with, kept at hand with their input schemas compiled.
//!
//! A version never changes once registered; which one is the default does, so the table is emptied
//! at every registration.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::Validator;
use stepwell_core::id::{TenantName, VersionLabel, WorkflowName};
use stepwell_core::payload::Payload;
use stepwell_store::{Error, Store, Version};

/// A version, ready to start runs with.
#[derive(Debug)]
pub(crate) struct Startable {
    pub(crate) version: Version,
    input: Option<Validator>,
}

impl Startable {
    fn new(version: Version) -> Self {
        let manifest: serde_json::Value =
            serde_json::from_str(&version.manifest).unwrap_or_default();
        // Registration has checked that the schema is one.
        let input = manifest
            .get("input_schema")
            .and_then(|schema| jsonschema::validator_for(schema).ok());
        Self { version, input }
    }

    /// Where the input does not fit the schema: the first few places.
    ///
    /// # Errors
    /// What the schema cannot be held against: text that no JSON value can be made of, such as half
    /// of a surrogate pair, or one nested too deeply.
    pub(crate) fn misfits(&self, input: &Payload) -> Result<Option<String>, serde_json::Error> {
        let (Some(validator), Payload::Json(text)) = (&self.input, input) else {
            return Ok(None);
        };
        let value: serde_json::Value = serde_json::from_str(text)?;
        let misfits: Vec<String> = validator
            .iter_errors(&value)
            .take(3)
            .map(|error| match error.instance_path().to_string() {
                path if path.is_empty() => error.to_string(),
                path => format!("at {path}: {error}"),
            })
            .collect();
        Ok((!misfits.is_empty()).then(|| misfits.join("; ")))
    }
}

type Key = (TenantName, WorkflowName, Option<VersionLabel>);

/// The versions at hand.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    known: Mutex<HashMap<Key, Arc<Startable>>>,
}

/// Versions at hand, of all tenants together; the table is emptied when it is full.
const KNOWN_MAX: usize = 10_000;

impl Versions {
    pub(crate) async fn get(
        &self,
        store: &dyn Store,
        tenant: &TenantName,
        workflow: &WorkflowName,
        label: Option<&VersionLabel>,
    ) -> Result<Option<Arc<Startable>>, Error> {
        let key = (tenant.clone(), workflow.clone(), label.cloned());
        if let Some(known) = self.known().get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(version) = store.version(tenant, workflow, label).await? else {
            return Ok(None);
        };
        let startable = Arc::new(Startable::new(version));
        let mut known = self.known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(key, Arc::clone(&startable));
        Ok(Some(startable))
    }

    /// Something was registered.
    pub(crate) fn forget(&self) {
        self.known().clear();
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<Startable>>> {
        // Nothing in here can panic half-way.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
