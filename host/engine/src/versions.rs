//! The versions that runs are started with, kept at hand with their schemas compiled.
//!
//! A version never changes once registered; which one is the default does, so the table is emptied
//! at every registration.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use stepwell_core::id::{TenantName, VersionLabel, WorkflowName};
use stepwell_core::payload::Payload;
use stepwell_store::{Error, Store, Version};

use crate::schema::Schema;

/// A version, and what it takes.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) version: Version,
    input: Option<Schema>,
    /// By name; those that it says something about.
    events: HashMap<String, Schema>,
}

impl Known {
    fn new(version: Version) -> Self {
        let manifest: serde_json::Value =
            serde_json::from_str(&version.manifest).unwrap_or_default();
        // Registration has compiled them before; where it says nothing, there is `null` or nothing.
        let compile = |schema: &serde_json::Value| Schema::compile(schema).ok();
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
    pub(crate) async fn input_misfits(&self, input: &Payload) -> Option<String> {
        self.input.as_ref()?.misfits(input).await
    }

    /// Where an event's payload does not fit its schema. An event that the version says nothing
    /// about fits.
    pub(crate) async fn event_misfits(&self, name: &str, payload: &Payload) -> Option<String> {
        self.events.get(name)?.misfits(payload).await
    }
}

type Key = (TenantName, WorkflowName, Option<VersionLabel>);

/// The versions at hand.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    known: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    rows: HashMap<Key, Arc<Known>>,
    /// Grows with every registration: what was read before one is not kept after it.
    registrations: u64,
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
        let registrations = {
            let table = self.known();
            if let Some(known) = table.rows.get(&key) {
                return Ok(Some(Arc::clone(known)));
            }
            table.registrations
        };
        let Some(version) = store.version(tenant, workflow, label).await? else {
            return Ok(None);
        };
        let found = Arc::new(Known::new(version));
        let mut table = self.known();
        if table.registrations == registrations {
            if table.rows.len() >= KNOWN_MAX {
                table.rows.clear();
            }
            table.rows.insert(key, Arc::clone(&found));
        }
        Ok(Some(found))
    }

    /// Something was registered.
    pub(crate) fn forget(&self) {
        let mut table = self.known();
        table.rows.clear();
        table.registrations += 1;
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Table> {
        // Nothing in here can panic half-way.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
