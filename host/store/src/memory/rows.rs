//! What the memory store keeps. Each file below has some of the calls on it; decisions are in
//! `head.rs`.

mod hosts;
mod reads;
mod versions;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;

use stepwell_core::id::{
    ComponentDigest, EventId, HostId, RunId, TenantName, VersionLabel, WorkflowName,
};
use stepwell_core::journal::Entry;
use stepwell_core::payload::Payload;
use stepwell_core::time::Timestamp;

use crate::change::{Change, Counts};
use crate::head::Head;
use crate::inbox::{Event, InboxItem};
use crate::log::LogLine;
use crate::run::Published;
use crate::version::Version;

/// Everything that the store keeps.
#[derive(Debug, Default)]
pub(super) struct Rows {
    tenants: BTreeMap<TenantName, Tenant>,
    runs: BTreeMap<RunId, RunRows>,
    logs: BTreeMap<RunId, Vec<LogLine>>,
    hosts: BTreeMap<HostId, Timestamp>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Tenant {
    components: BTreeMap<ComponentDigest, Arc<[u8]>>,
    /// In the order of registration.
    versions: Vec<Version>,
    keys: BTreeMap<String, StartKey>,
}

#[derive(Debug)]
struct StartKey {
    run: RunId,
    workflow: WorkflowName,
    input_digest: [u8; 32],
}

#[derive(Debug)]
struct RunRows {
    tenant: TenantName,
    workflow: WorkflowName,
    label: VersionLabel,
    digest: ComponentDigest,
    environment: Vec<(String, String)>,
    created_at: Timestamp,
    started_at: Timestamp,
    input: Payload,
    head: Head,
    journal: Vec<Entry>,
    inbox: BTreeMap<EventId, InboxItem>,
    events: BTreeMap<EventId, Event>,
    delivery_keys: BTreeMap<String, EventId>,
    published: BTreeMap<String, Published>,
}

/// What is to be told of a call.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) changes: Vec<Change>,
    pub(super) touched: Vec<RunId>,
}

impl Told {
    fn touched(&mut self, run: RunId, change: Option<Change>) {
        self.touched.push(run);
        self.changes.extend(change);
    }
}
