//! Writes about runs.

use std::collections::BTreeMap;

use stepwell_core::id::{EventId, HostId, RunId, Sequence, TenantName};
use stepwell_core::journal::Entry;
use stepwell_core::time::Timestamp;

use super::{Rows, RunRows, StartKey, Told};
use crate::append::Append;
use crate::codec;
use crate::effect::{Effect, effects};
use crate::error::Error;
use crate::head::Head;
use crate::inbox::{Delivered, Event, InboxItem, InboxMessage, Message};
use crate::log::LogLine;
use crate::run::{NewRun, Published, Started};

impl Rows {
    pub(in crate::memory) fn start(
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

    pub(in crate::memory) fn deliver(
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

    pub(in crate::memory) fn append(
        &mut self,
        append: Append,
        told: &mut Told,
    ) -> Result<(), Error> {
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
                    run.inbox.retain(|id, item| {
                        *id != event || !matches!(item.what, InboxMessage::Event { .. })
                    });
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
            unseen.any(|item| suspension.is_met_by(item.what.kind()))
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

    pub(in crate::memory) fn write_logs(&mut self, lines: Vec<LogLine>, told: &mut Told) {
        for line in lines {
            told.touched(line.run, None);
            self.logs.entry(line.run).or_default().push(line);
        }
        self.counts.commits += 1;
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
}

/// As the other bodies store it, so that all count alike.
fn row_bytes(run: RunId, first: Sequence, entries: &[Entry]) -> u64 {
    codec::encode_row(run, first, entries).len() as u64
}
