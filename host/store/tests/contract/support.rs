//! A store with one tenant and one version, and short words for what tests do with it.

use std::sync::Arc;

use stepwell_core::id::{
    ComponentDigest, Epoch, EventId, HostId, Operation, RunId, Sequence, TenantName, VersionLabel,
    WorkflowName,
};
use stepwell_core::journal::{Ending, Entry, EventMessage, Record};
use stepwell_core::payload::Payload;
use stepwell_core::run::Status;
use stepwell_core::time::Timestamp;
use stepwell_store::{
    Append, Change, Claim, Delivered, Error, MemoryStore, Message, NewRun, NewVersion, Registered,
    Room, Run, RunFilter, SqliteStore, Started, Store, Suspension, Then,
};
use tempfile::TempDir;
use tokio::sync::broadcast;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Body {
    Memory,
    Sqlite,
}

/// A store in which the tenant `acme` has registered the workflow `order` under label `1`, and
/// host 1 lives until 1,000,000.
pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    /// Goes with the world.
    #[expect(dead_code, reason = "only dropped")]
    pub(crate) folder: Option<TempDir>,
}

pub(crate) const MAILBOX_MAX: u64 = 3;

pub(crate) fn at(ms: u64) -> Timestamp {
    Timestamp::from_ms(ms)
}

pub(crate) fn tenant(name: &str) -> TenantName {
    name.parse().unwrap()
}

pub(crate) fn acme() -> TenantName {
    tenant("acme")
}

pub(crate) fn order() -> WorkflowName {
    "order".parse().unwrap()
}

pub(crate) fn label(text: &str) -> VersionLabel {
    text.parse().unwrap()
}

pub(crate) fn run(number: u128) -> RunId {
    RunId::from_raw(number)
}

pub(crate) fn host(number: u128) -> HostId {
    HostId::from_raw(number)
}

pub(crate) fn json(text: &str) -> Payload {
    Payload::Json(text.to_owned())
}

pub(crate) fn digest_of(component: &[u8]) -> ComponentDigest {
    use sha2::Digest;
    ComponentDigest::from_bytes(sha2::Sha256::digest(component).into())
}

pub(crate) fn version(tenant: TenantName, component: &'static [u8], label: &str) -> NewVersion {
    NewVersion {
        tenant,
        label: label.parse().unwrap(),
        digest: digest_of(component),
        component: Arc::from(component),
        workflows: vec![(order(), r#"{"name":"order"}"#.to_owned())],
        environment: vec![("REGION".to_owned(), "eu".to_owned())],
        at: at(1),
    }
}

pub(crate) const COMPONENT: &[u8] = b"component 1";

pub(crate) fn new_run(number: u128, ms: u64) -> NewRun {
    NewRun {
        tenant: acme(),
        run: run(number),
        workflow: order(),
        label: label("1"),
        digest: digest_of(COMPONENT),
        input: json(r#"{"total":42}"#),
        input_digest: [1; 32],
        idempotency_key: None,
        start_at: None,
        at: at(ms),
    }
}

pub(crate) fn event(name: &str) -> Message {
    keyed_event(name, None)
}

pub(crate) fn keyed_event(name: &str, key: Option<&str>) -> Message {
    Message::Event {
        name: name.to_owned(),
        payload: json(&format!("\"{name}\"")),
        delivery_key: key.map(str::to_owned),
        mailbox_events_max: MAILBOX_MAX,
    }
}

pub(crate) fn cancel() -> Message {
    Message::Cancel {
        reason: "no longer wanted".to_owned(),
    }
}

pub(crate) fn terminate() -> Message {
    Message::Terminate {
        reason: "enough".to_owned(),
    }
}

pub(crate) fn entry(ms: u64, record: Record) -> Entry {
    Entry { at: at(ms), record }
}

pub(crate) fn step(ms: u64, operation: u32) -> Entry {
    let record = Record::StepCompleted {
        operation: Operation(operation),
        name: format!("step-{operation}"),
        attempts: 1,
        output: json("true"),
    };
    entry(ms, record)
}

/// An entry that is no progress.
pub(crate) fn attempt(ms: u64) -> Entry {
    let record = Record::AttemptStarted {
        operation: Operation(0),
        name: "charge".to_owned(),
        number: 1,
        deadline_at: None,
    };
    entry(ms, record)
}

pub(crate) fn taken(ms: u64, id: u64, name: &str) -> Entry {
    let event = EventMessage {
        id: EventId(id),
        payload: json(&format!("\"{name}\"")),
        sent_at: at(1),
    };
    entry(
        ms,
        Record::EventTaken {
            operation: Operation(0),
            event,
        },
    )
}

pub(crate) fn cancel_delivered(ms: u64) -> Entry {
    let reason = "no longer wanted".to_owned();
    entry(
        ms,
        Record::CancelDelivered {
            reason,
            grace_until: at(ms + 30_000),
        },
    )
}

pub(crate) fn completed() -> Ending {
    Ending::Completed(json("\"done\""))
}

pub(crate) fn waiting_for(events: &[&str]) -> Suspension {
    Suspension {
        status: Status::Waiting,
        due: None,
        events: events.iter().map(|name| (*name).to_owned()).collect(),
        sleeps: false,
        tasks_run: false,
        release: true,
    }
}

pub(crate) fn sleeping_until(ms: u64) -> Suspension {
    Suspension {
        status: Status::Sleeping,
        due: Some(at(ms)),
        events: Vec::new(),
        sleeps: true,
        tasks_run: false,
        release: true,
    }
}

impl World {
    pub(crate) async fn new(body: Body) -> Self {
        match body {
            Body::Memory => Self::over(Arc::new(MemoryStore::new())).await,
            Body::Sqlite => {
                let folder = tempfile::tempdir().unwrap();
                let store = SqliteStore::open(folder.path()).unwrap();
                Self {
                    folder: Some(folder),
                    ..Self::over(Arc::new(store)).await
                }
            }
        }
    }

    /// Over an empty store.
    pub(crate) async fn over(store: Arc<dyn Store>) -> Self {
        let registered = store
            .register(version(acme(), COMPONENT, "1"))
            .await
            .unwrap();
        assert_eq!(registered, Registered::New);
        store.renew_lease(host(1), at(1_000_000)).await.unwrap();
        Self {
            store,
            folder: None,
        }
    }

    /// Starts a run that nobody holds.
    pub(crate) async fn start(&self, number: u128, ms: u64) {
        let started = self.store.start(new_run(number, ms), None).await.unwrap();
        assert!(matches!(started, Started::Created(None)), "{started:?}");
    }

    /// Starts a run that host 1 drives.
    pub(crate) async fn drive(&self, number: u128, ms: u64) -> Driven<'_> {
        let started = self
            .store
            .start(new_run(number, ms), Some(host(1)))
            .await
            .unwrap();
        let Started::Created(Some(claim)) = started else {
            panic!("not claimed: {started:?}")
        };
        self.driven(*claim)
    }

    /// Claims all there is, for host 1.
    pub(crate) async fn claim(&self, ms: u64) -> Vec<Claim> {
        self.store
            .claim(host(1), at(ms), Room::any(100))
            .await
            .unwrap()
    }

    /// Claims the one run there is, for host 1.
    pub(crate) async fn claim_one(&self, ms: u64) -> Driven<'_> {
        let mut claims = self.claim(ms).await;
        assert_eq!(claims.len(), 1, "{claims:?}");
        self.driven(claims.remove(0))
    }

    /// Sends an event that the run waits for, and claims it.
    pub(crate) async fn claim_after_event(&self, number: u128, name: &str) -> Driven<'_> {
        self.accepted(number, event(name), 20).await;
        self.claim_one(21).await
    }

    pub(crate) async fn claimable(&self, ms: u64) -> Vec<RunId> {
        self.claim(ms)
            .await
            .into_iter()
            .map(|claim| claim.run)
            .collect()
    }

    pub(crate) fn driven(&self, claim: Claim) -> Driven<'_> {
        Driven {
            store: &*self.store,
            run: claim.run,
            epoch: claim.epoch,
            next: claim.next,
            inbox_seen: EventId(0),
            cancel_seen: false,
            claim,
        }
    }

    pub(crate) async fn send(&self, number: u128, message: Message, ms: u64) -> Delivered {
        self.store
            .deliver(&acme(), run(number), message, at(ms))
            .await
            .unwrap()
    }

    /// Sends what must be accepted.
    pub(crate) async fn accepted(&self, number: u128, message: Message, ms: u64) -> EventId {
        match self.send(number, message, ms).await {
            Delivered::Accepted { id } => id,
            other => panic!("not accepted: {other:?}"),
        }
    }

    pub(crate) async fn run(&self, number: u128) -> Run {
        self.store.run(&acme(), run(number)).await.unwrap().unwrap()
    }

    pub(crate) async fn status(&self, number: u128) -> Status {
        self.run(number).await.status
    }

    pub(crate) async fn runs(&self, filter: RunFilter) -> Vec<u128> {
        let runs = self.store.runs(&acme(), filter).await.unwrap();
        runs.into_iter().map(|run| run.run.raw()).collect()
    }

    pub(crate) async fn history(&self, number: u128) -> Vec<Entry> {
        let entries = self
            .store
            .history(&acme(), run(number), Sequence(0), usize::MAX)
            .await
            .unwrap();
        entries
            .unwrap()
            .into_iter()
            .map(|(_, entry)| entry)
            .collect()
    }

    pub(crate) async fn inbox(&self, number: u128) -> Vec<u64> {
        let inbox = self.store.inbox(run(number), EventId(0)).await.unwrap();
        inbox.items.into_iter().map(|item| item.id.0).collect()
    }
}

/// A run that a host drives.
pub(crate) struct Driven<'w> {
    store: &'w dyn Store,
    pub(crate) claim: Claim,
    pub(crate) run: RunId,
    pub(crate) epoch: Epoch,
    pub(crate) next: Sequence,
    pub(crate) inbox_seen: EventId,
    pub(crate) cancel_seen: bool,
}

impl Driven<'_> {
    pub(crate) fn append_of(&self, ms: u64, entries: Vec<Entry>, then: Then) -> Append {
        Append {
            run: self.run,
            epoch: self.epoch,
            next: self.next,
            entries,
            inbox_seen: self.inbox_seen,
            cancel_seen: self.cancel_seen,
            then,
            at: at(ms),
        }
    }

    pub(crate) async fn try_append(
        &mut self,
        ms: u64,
        entries: Vec<Entry>,
        then: Then,
    ) -> Result<(), Error> {
        let count = entries.len();
        self.store.append(self.append_of(ms, entries, then)).await?;
        self.next = self.next.plus(count);
        Ok(())
    }

    pub(crate) async fn append(&mut self, ms: u64, entries: Vec<Entry>, then: Then) {
        self.try_append(ms, entries, then).await.unwrap();
    }

    pub(crate) async fn suspend(&mut self, ms: u64, suspension: Suspension) {
        self.append(ms, Vec::new(), Then::Suspend(suspension)).await;
    }

    pub(crate) async fn end(&mut self, ms: u64, ending: Ending) -> Result<(), Error> {
        self.try_append(ms, vec![entry(ms, Record::Ended(ending))], Then::End)
            .await
    }
}

/// All changes that were told so far.
pub(crate) fn told(changes: &mut broadcast::Receiver<Change>) -> Vec<Change> {
    std::iter::from_fn(|| changes.try_recv().ok()).collect()
}

pub(crate) fn is_lease_lost(result: Result<(), Error>) -> bool {
    matches!(result, Err(Error::LeaseLost { .. }))
}

pub(crate) fn is_cancel_requested(result: Result<(), Error>) -> bool {
    matches!(result, Err(Error::CancelRequested { .. }))
}
