//! What the memory store keeps, and each call on it. Decisions are in `head.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use stepwell_core::id::{
    ComponentDigest, EventId, HostId, RunId, Sequence, TenantName, VersionLabel, WorkflowName,
};
use stepwell_core::journal::{Ending, Entry, Record};
use stepwell_core::payload::Payload;
use stepwell_core::time::Timestamp;

use crate::append::Append;
use crate::change::{Change, Counts};
use crate::claim::Claim;
use crate::codec;
use crate::error::Error;
use crate::head::{Effect, Head, ItemKind, Lease, effects};
use crate::inbox::{Delivered, Event, Inbox, InboxItem, InboxMessage, Message};
use crate::log::{LogLine, LogRow};
use crate::run::{NewRun, Published, RUNS_MAX, Run, RunFilter, Started};
use crate::version::{NewVersion, Registered, Version};

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

// ---- Components and versions.

impl Rows {
    pub(super) fn register(&mut self, new: &NewVersion) -> Registered {
        let known = self.tenants.get(&new.tenant);
        let mut missing = Vec::new();
        for (workflow, manifest) in &new.workflows {
            match known.and_then(|tenant| tenant.find(workflow, &new.label)) {
                Some(version)
                    if version.digest == new.digest && version.environment == new.environment => {}
                Some(version) => {
                    return Registered::Conflict {
                        workflow: workflow.clone(),
                        digest: version.digest,
                    };
                }
                None => missing.push((workflow, manifest)),
            }
        }
        if missing.is_empty() {
            return Registered::Same;
        }
        let tenant = self.tenants.entry(new.tenant.clone()).or_default();
        tenant
            .components
            .entry(new.digest)
            .or_insert_with(|| Arc::clone(&new.component));
        for (workflow, manifest) in missing {
            for version in &mut tenant.versions {
                version.is_default &= version.workflow != *workflow;
            }
            tenant.versions.push(Version {
                workflow: workflow.clone(),
                label: new.label.clone(),
                digest: new.digest,
                manifest: manifest.clone(),
                environment: new.environment.clone(),
                registered_at: new.at,
                is_default: true,
            });
        }
        self.counts.commits += 1;
        Registered::New
    }

    pub(super) fn version(
        &self,
        tenant: &TenantName,
        workflow: &WorkflowName,
        label: Option<&VersionLabel>,
    ) -> Option<Version> {
        let tenant = self.tenants.get(tenant)?;
        let found = match label {
            Some(label) => tenant.find(workflow, label),
            None => tenant
                .versions
                .iter()
                .find(|version| version.workflow == *workflow && version.is_default),
        };
        found.cloned()
    }

    pub(super) fn versions(&self, tenant: &TenantName) -> Vec<Version> {
        let mut versions: Vec<_> = self
            .tenants
            .get(tenant)
            .into_iter()
            .flat_map(|tenant| tenant.versions.iter().rev().cloned())
            .collect();
        // Stable: within a workflow, newest first.
        versions.sort_by(|a, b| a.workflow.cmp(&b.workflow));
        versions
    }

    pub(super) fn component(
        &self,
        tenant: &TenantName,
        digest: ComponentDigest,
    ) -> Option<Arc<[u8]>> {
        self.tenants.get(tenant)?.components.get(&digest).cloned()
    }
}

impl Tenant {
    fn find(&self, workflow: &WorkflowName, label: &VersionLabel) -> Option<&Version> {
        self.versions
            .iter()
            .find(|version| version.workflow == *workflow && version.label == *label)
    }
}

// ---- Writes about runs.

impl Rows {
    pub(super) fn start(
        &mut self,
        new: NewRun,
        claimant: Option<HostId>,
        told: &mut Told,
    ) -> Result<Started, Error> {
        let no_version = || Error::NoSuchVersion {
            workflow: new.workflow.clone(),
            label: new.label.clone(),
        };
        let tenant = self.tenants.get_mut(&new.tenant).ok_or_else(no_version)?;
        if let Some(used) = new
            .idempotency_key
            .as_ref()
            .and_then(|key| tenant.keys.get(key))
        {
            let run = used.run;
            if used.workflow == new.workflow && used.input_digest == new.input_digest {
                return Ok(Started::Existing { run });
            }
            let (workflow, input_digest) = (used.workflow.clone(), used.input_digest);
            return Ok(Started::KeyConflict {
                run,
                workflow,
                input_digest,
            });
        }
        let version = tenant
            .find(&new.workflow, &new.label)
            .filter(|version| version.digest == new.digest)
            .ok_or_else(no_version)?;
        let environment = version.environment.clone();

        let mut head = Head::started(new.start_at, new.at);
        let claimant = claimant.filter(|host| {
            head.claimable_since(new.at).is_some()
                && self.hosts.get(host).is_some_and(|until| *until > new.at)
        });
        let lease = claimant.map(|host| head.claim(host, new.at));
        if let Some(key) = new.idempotency_key {
            let used = StartKey {
                run: new.run,
                workflow: new.workflow.clone(),
                input_digest: new.input_digest,
            };
            tenant.keys.insert(key, used);
        }
        told.touched(new.run, head.availability(new.run));
        let rows = RunRows {
            tenant: new.tenant,
            workflow: new.workflow,
            label: new.label,
            digest: new.digest,
            environment,
            created_at: new.at,
            started_at: new.at,
            input: new.input,
            head,
            journal: Vec::new(),
            inbox: BTreeMap::new(),
            events: BTreeMap::new(),
            delivery_keys: BTreeMap::new(),
            published: BTreeMap::new(),
        };
        let claim = lease.map(|lease| Box::new(rows.claimed(new.run, lease)));
        let before = self.runs.insert(new.run, rows);
        assert!(before.is_none(), "{} was started twice", new.run);
        self.counts.commits += 1;
        Ok(Started::Created(claim))
    }

    pub(super) fn deliver(
        &mut self,
        tenant: &TenantName,
        id: RunId,
        message: Message,
        at: Timestamp,
        told: &mut Told,
    ) -> Delivered {
        self.expire(at, told);
        let Some(run) = self.runs.get_mut(&id).filter(|run| run.tenant == *tenant) else {
            return Delivered::NoSuchRun;
        };
        if let Message::Event {
            delivery_key: Some(key),
            ..
        } = &message
            && let Some(earlier) = run.delivery_keys.get(key)
        {
            return Delivered::Already { id: Some(*earlier) };
        }
        if let Some(refusal) = run.head.refuse(&message) {
            return refusal;
        }
        let mut bytes = 0;
        if let Message::Terminate { reason } = &message {
            let last = run.head.termination(reason, at);
            bytes = row_bytes(id, run.head.next, std::slice::from_ref(&last));
            run.journal.push(last);
            self.counts.entries += 1;
        }
        let (item, change) = run.head.accept(id, &message, at, bytes);
        run.put(item, message, at);
        told.touched(id, change);
        self.counts.commits += 1;
        Delivered::Accepted { id: item }
    }

    pub(super) fn append(&mut self, append: Append, told: &mut Told) -> Result<(), Error> {
        let id = append.run;
        let lost = Error::LeaseLost {
            run: id,
            epoch: append.epoch,
        };
        let run = self.runs.get_mut(&id).ok_or(lost)?;
        run.head.check(&append)?;
        for effect in effects(&append.entries) {
            match effect {
                Effect::Publish { key, value, at } => {
                    let value = Published {
                        key: key.to_owned(),
                        value: value.clone(),
                        at,
                    };
                    run.published.insert(key.to_owned(), value);
                }
                Effect::TakeEvent { event } => {
                    run.inbox.remove(&event);
                    if let Some(event) = run.events.get_mut(&event) {
                        event.taken = true;
                    }
                }
                Effect::Reply { event, answer } => {
                    if let Some(event) = run.events.get_mut(&event) {
                        event.reply = Some(answer.clone());
                    }
                }
                Effect::TakeCancel => run
                    .inbox
                    .retain(|_, item| !matches!(item.what, InboxMessage::Cancel { .. })),
            }
        }
        run.inbox
            .retain(|item, row| *item > append.inbox_seen || row.what != InboxMessage::Wake);
        // After what the entries take has gone.
        let met = run.head.asks_for_unseen(&append).is_some_and(|suspension| {
            let mut unseen = run
                .inbox
                .values()
                .filter(|item| item.id > append.inbox_seen);
            unseen.any(|item| suspension.is_met_by(kind(item)))
        });
        let bytes = if append.entries.is_empty() {
            0
        } else {
            row_bytes(id, append.next, &append.entries)
        };
        let change = run.head.advance(&append, bytes, met);
        self.counts.entries += append.entries.len() as u64;
        if let Some(input) = append.continued() {
            run.started_at = append.at;
            run.input = input.clone();
            run.journal.clear();
        } else {
            run.journal.extend(append.entries);
        }
        told.touched(id, change);
        self.counts.commits += 1;
        Ok(())
    }

    pub(super) fn write_logs(&mut self, lines: Vec<LogLine>, told: &mut Told) {
        for line in lines {
            told.touched(line.run, None);
            self.logs.entry(line.run).or_default().push(line);
        }
        self.counts.commits += 1;
    }
}

// ---- Hosts.

impl Rows {
    pub(super) fn renew_lease(&mut self, host: HostId, lease_until: Timestamp) {
        self.hosts.insert(host, lease_until);
        self.counts.commits += 1;
    }

    pub(super) fn claim(
        &mut self,
        host: HostId,
        now: Timestamp,
        limit: usize,
        told: &mut Told,
    ) -> Vec<Claim> {
        self.expire(now, told);
        if !self.hosts.contains_key(&host) {
            return Vec::new();
        }
        let mut found: Vec<_> = self
            .runs
            .iter()
            .filter_map(|(id, run)| run.head.claimable_since(now).map(|since| (since, *id)))
            .collect();
        found.sort_unstable();
        found.truncate(limit);
        let mut claims = Vec::with_capacity(found.len());
        for (_, id) in found {
            if let Some(run) = self.runs.get_mut(&id) {
                let lease = run.head.claim(host, now);
                claims.push(run.claimed(id, lease));
                told.touched(id, None);
            }
        }
        self.counts.commits += u64::from(!claims.is_empty());
        claims
    }

    /// Takes a run from its host, as another host would that takes it for dead.
    pub(super) fn lose_lease(&mut self, id: RunId, told: &mut Told) {
        if let Some(run) = self.runs.get_mut(&id).filter(|run| run.head.host.is_some()) {
            let at = run.head.updated_at;
            told.touched(id, run.head.orphan(id, at));
        }
    }

    pub(super) fn expire_all(&mut self, told: &mut Told) {
        self.hosts.clear();
        let held: Vec<_> = self.runs.keys().copied().collect();
        held.into_iter().for_each(|id| self.lose_lease(id, told));
    }

    fn expire(&mut self, now: Timestamp, told: &mut Told) {
        let hosts_before = self.hosts.len();
        self.hosts.retain(|_, until| *until > now);
        if self.hosts.len() == hosts_before {
            return;
        }
        for (id, run) in &mut self.runs {
            if run
                .head
                .host
                .is_some_and(|host| !self.hosts.contains_key(&host))
            {
                told.touched(*id, run.head.orphan(*id, now));
            }
        }
    }
}

// ---- Reads.

impl Rows {
    pub(super) fn run(&self, tenant: &TenantName, id: RunId) -> Option<Run> {
        self.of(tenant, id).map(|run| run.shown(id))
    }

    pub(super) fn runs(&self, tenant: &TenantName, filter: &RunFilter) -> Vec<Run> {
        self.runs
            .iter()
            .rev()
            .filter(|(id, run)| {
                run.tenant == *tenant && filter.before.is_none_or(|before| **id < before)
            })
            .filter(|(_, run)| {
                filter
                    .workflow
                    .as_ref()
                    .is_none_or(|workflow| *workflow == run.workflow)
            })
            .filter(|(_, run)| {
                filter.statuses.is_empty() || filter.statuses.contains(&run.head.facts().visible())
            })
            .take(filter.limit.min(RUNS_MAX))
            .map(|(id, run)| run.shown(*id))
            .collect()
    }

    pub(super) fn history(
        &self,
        tenant: &TenantName,
        id: RunId,
        from: Sequence,
        limit: usize,
    ) -> Option<Vec<(Sequence, Entry)>> {
        let run = self.of(tenant, id)?;
        let numbered = (0..).map(Sequence).zip(run.journal.iter().cloned());
        Some(
            numbered
                .filter(|(sequence, _)| *sequence >= from)
                .take(limit)
                .collect(),
        )
    }

    pub(super) fn events(&self, tenant: &TenantName, id: RunId) -> Vec<Event> {
        self.of(tenant, id)
            .into_iter()
            .flat_map(|run| run.events.values().cloned())
            .collect()
    }

    pub(super) fn published(&self, tenant: &TenantName, id: RunId) -> Vec<Published> {
        self.of(tenant, id)
            .into_iter()
            .flat_map(|run| run.published.values().cloned())
            .collect()
    }

    pub(super) fn logs(
        &self,
        tenant: &TenantName,
        id: RunId,
        after: u64,
        limit: usize,
    ) -> Vec<LogRow> {
        let lines = self.logs.get(&id).map_or(&[][..], Vec::as_slice);
        (1..)
            .zip(lines)
            .filter(|(number, line)| *number > after && line.tenant == *tenant)
            .take(limit)
            .map(|(number, line)| LogRow {
                number,
                line: line.clone(),
            })
            .collect()
    }

    pub(super) fn journal(&self, id: RunId) -> Vec<Entry> {
        self.runs
            .get(&id)
            .map_or_else(Vec::new, |run| run.journal.clone())
    }

    pub(super) fn inbox(&self, id: RunId, after: EventId) -> Inbox {
        match self.runs.get(&id) {
            Some(run) => Inbox {
                items: run
                    .inbox
                    .values()
                    .filter(|item| item.id > after)
                    .cloned()
                    .collect(),
                paused: run.head.paused,
            },
            None => Inbox {
                items: Vec::new(),
                paused: false,
            },
        }
    }

    pub(super) fn due(
        &self,
        from: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Vec<(Timestamp, RunId)> {
        let mut found: Vec<_> = self
            .runs
            .iter()
            .filter(|(_, run)| run.head.is_claimable())
            .filter_map(|(id, run)| run.head.due.map(|due| (due, *id)))
            .filter(|(due, _)| (from..until).contains(due))
            .collect();
        found.sort_unstable();
        found.truncate(limit);
        found
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    fn of(&self, tenant: &TenantName, id: RunId) -> Option<&RunRows> {
        self.runs.get(&id).filter(|run| run.tenant == *tenant)
    }
}

impl RunRows {
    fn put(&mut self, id: EventId, message: Message, at: Timestamp) {
        let what = match message {
            Message::Event {
                name,
                payload,
                delivery_key,
                ..
            } => {
                let event = Event {
                    id,
                    name: name.clone(),
                    sent_at: at,
                    taken: false,
                    reply: None,
                };
                self.events.insert(id, event);
                if let Some(key) = delivery_key {
                    self.delivery_keys.insert(key, id);
                }
                InboxMessage::Event { name, payload }
            }
            Message::Cancel { reason } => InboxMessage::Cancel { reason },
            Message::Wake => InboxMessage::Wake,
            Message::Pause | Message::Resume | Message::Terminate { .. } => return,
        };
        self.inbox.insert(id, InboxItem { id, at, what });
    }

    fn claimed(&self, run: RunId, lease: Lease) -> Claim {
        Claim {
            run,
            tenant: self.tenant.clone(),
            workflow: self.workflow.clone(),
            label: self.label.clone(),
            digest: self.digest,
            environment: self.environment.clone(),
            generation: self.head.generation,
            input: self.input.clone(),
            started_at: self.started_at,
            epoch: self.head.epoch,
            next: self.head.next,
            journal_bytes: self.head.journal_bytes,
            host_lost: lease.host_lost,
            claims_without_progress: lease.claims_without_progress,
            paused: self.head.paused,
            inbox: self.inbox.values().cloned().collect(),
        }
    }

    fn shown(&self, run: RunId) -> Run {
        Run {
            run,
            tenant: self.tenant.clone(),
            workflow: self.workflow.clone(),
            label: self.label.clone(),
            digest: self.digest,
            generation: self.head.generation,
            status: self.head.facts().visible(),
            created_at: self.created_at,
            updated_at: self.head.updated_at,
            due: self.head.due,
            entries: self.head.next,
            journal_bytes: self.head.journal_bytes,
            input: self.input.clone(),
            ending: self.ending(),
            stuck_reason: self.head.stuck_reason.clone(),
            host: self.head.host,
            revision: self.head.revision,
        }
    }

    fn ending(&self) -> Option<Ending> {
        match self.journal.last() {
            Some(Entry {
                record: Record::Ended(ending),
                ..
            }) => Some(ending.clone()),
            _ => None,
        }
    }
}

fn kind(item: &InboxItem) -> ItemKind<'_> {
    match &item.what {
        InboxMessage::Event { name, .. } => ItemKind::Event { name },
        InboxMessage::Cancel { .. } => ItemKind::Cancel,
        InboxMessage::Wake => ItemKind::Wake,
    }
}

/// As the other bodies store it, so that all count alike.
fn row_bytes(run: RunId, first: Sequence, entries: &[Entry]) -> u64 {
    codec::encode_row(run, first, entries).len() as u64
}
