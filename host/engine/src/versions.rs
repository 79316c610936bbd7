//! The versions that runs are started with, kept at hand with their schemas compiled.
//!
//! A version never changes once registered; which one is the default does, so the table is emptied
//! at every registration.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::Validator;
use stepwell_core::id::{TenantName, VersionLabel, WorkflowName};
use stepwell_core::payload::Payload;
use stepwell_store::{Error, Store, Version};

/// A version, and what it takes.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) version: Version,
    input: Option<Validator>,
    /// By name; those that it says something about.
    events: HashMap<String, Validator>,
}

impl Known {
    fn new(version: Version) -> Self {
        let manifest: serde_json::Value =
            serde_json::from_str(&version.manifest).unwrap_or_default();
        // Registration has checked that the schemas are such; one that says nothing is `null`.
        let compile = |schema: &serde_json::Value| jsonschema::validator_for(schema).ok();
        let event = |event: &serde_json::Value| {
            let name = event.get("name")?.as_str()?.to_owned();
            Some((name, compile(event.get("schema")?)?))
        };
        let events = manifest.get("events").and_then(serde_json::Value::as_array);
        Self {
            input: manifest.get("input_schema").and_then(compile),
            events: events.into_iter().flatten().filter_map(event).collect(),
            version,
        }
    }

    /// Where the input does not fit its schema: the first few places.
    ///
    /// # Errors
    /// As [`misfits`].
    pub(crate) fn input_misfits(
        &self,
        input: &Payload,
    ) -> Result<Option<String>, serde_json::Error> {
        misfits(self.input.as_ref(), input)
    }

    /// Where an event's payload does not fit its schema. An event that the version says nothing
    /// about fits.
    ///
    /// # Errors
    /// As [`misfits`].
    pub(crate) fn event_misfits(
        &self,
        name: &str,
        payload: &Payload,
    ) -> Result<Option<String>, serde_json::Error> {
        misfits(self.events.get(name), payload)
    }
}

/// The first few places at which a payload does not fit a schema. Binary payloads fit every one.
///
/// # Errors
/// What the schema cannot be held against: text that no JSON value can be made of, such as half of
/// a surrogate pair, or one nested too deeply.
fn misfits(
    schema: Option<&Validator>,
    payload: &Payload,
) -> Result<Option<String>, serde_json::Error> {
    let (Some(validator), Payload::Json(text)) = (schema, payload) else {
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

type Key = (TenantName, WorkflowName, Option<VersionLabel>);

/// The versions at hand.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    known: Mutex<HashMap<Key, Arc<Known>>>,
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
    ) -> Result<Option<Arc<Known>>, Error> {
        let key = (tenant.clone(), workflow.clone(), label.cloned());
        if let Some(known) = self.known().get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(version) = store.version(tenant, workflow, label).await? else {
            return Ok(None);
        };
        let found = Arc::new(Known::new(version));
        let mut known = self.known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(key, Arc::clone(&found));
        Ok(Some(found))
    }

    /// Something was registered.
    pub(crate) fn forget(&self) {
        self.known().clear();
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<Known>>> {
        // Nothing in here can panic half-way.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
