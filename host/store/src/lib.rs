//! Where runs are kept: the [`Store`] trait, stated as promises of durability, and its bodies.
//!
//! A store decides nothing about workflows. It keeps what it is told under the conditions it is
//! told, all or nothing, and says so once it is durable. Rules that must hold inside one
//! transaction (may this verb be carried out? has this lease been lost?) are asked of
//! `stepwell_core`, so that every body answers alike; `contract` in `tests/` holds them to that.

mod memory;
mod sqlite;

pub use memory::{Faults, MemoryStore};
pub use sqlite::SqliteStore;

use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::{ComponentDigest, Epoch, EventId, HostId, RunId, Sequence, TenantName, VersionLabel, WorkflowName};
use stepwell_core::journal::{Ending, Entry, RunFailure};
use stepwell_core::payload::{Failure, Payload};
use stepwell_core::run::Status;
use stepwell_core::time::Timestamp;
use tokio::sync::{broadcast, watch};

/// Why a store did not do what it was asked.
///
/// Cloneable, since one failed commit is the answer to everybody who waited for it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Another host has claimed the run since, or it was terminated: nothing was written, and the
    /// caller must drop the run without a further look.
    #[error("run {run}: epoch {epoch} no longer holds the lease; another host drives it, or it was terminated")]
    LeaseLost {
        /// The run.
        run: RunId,
        /// The epoch that the caller held.
        epoch: Epoch,
    },
    /// The run cannot end yet: a cancel was accepted that the caller has not seen. Nothing was
    /// written; look into the inbox and end again.
    #[error("run {run}: a cancel was accepted before it ended")]
    CancelRequested {
        /// The run.
        run: RunId,
    },
    /// The data folder is in use by another host process.
    #[error("data folder {folder} is in use by another host; stop that one first, or choose another folder with --data")]
    InUse {
        /// The folder.
        folder: String,
    },
    /// The database was written by a newer release.
    #[error("database {file} has schema {found}, this release knows up to {known}; use the newer release that wrote it")]
    Newer {
        /// The file.
        file: String,
        /// Its schema number.
        found: u32,
        /// The newest number known here.
        known: u32,
    },
    /// A migration that has run differs from the one in this release.
    #[error("migration {number} of {file} was changed after it ran; a released migration must never be edited")]
    MigrationChanged {
        /// The file.
        file: String,
        /// The migration's number.
        number: u32,
    },
    /// Something in the database cannot be read as what it must be.
    #[error("{what} is damaged: {detail}; restore the data folder from a backup")]
    Damaged {
        /// What was read.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The store cannot be reached or cannot write (disk full, I/O error). Nothing of this call was
    /// written; it may be tried again.
    #[error("the store could not {action}: {detail}")]
    Unavailable {
        /// What was attempted.
        action: &'static str,
        /// What the database or the system said.
        detail: String,
    },
}

/// Where runs, journals, inboxes and components are kept.
///
/// **Durability.** When a writing method has returned `Ok`, no crash of process or machine loses
/// what it wrote; when it has returned an error, nothing of it was written. Calls that queue while
/// a commit is under way may share the next one (group commit); each still succeeds or fails alone.
///
/// **Fencing.** Every write about a run that a host drives is conditional on that run's epoch. A
/// host that lost its lease gets [`Error::LeaseLost`] for all of them, whatever its clock says.
///
/// **Tenants.** Every read from outside names its tenant; a row of another tenant reads as absent.
#[async_trait]
pub trait Store: std::fmt::Debug + Send + Sync + 'static {
    // ---- Components and versions.

    /// Registers all workflows of a component under one label: all of them or none. The newest
    /// registration becomes the default version of each workflow.
    async fn register(&self, new: NewVersion) -> Result<Registered, Error>;

    /// One version: by label, or the workflow's default.
    async fn version(
        &self,
        tenant: &TenantName,
        workflow: &WorkflowName,
        label: Option<&VersionLabel>,
    ) -> Result<Option<Version>, Error>;

    /// The tenant's versions, by workflow, newest first.
    async fn versions(&self, tenant: &TenantName) -> Result<Vec<Version>, Error>;

    /// The bytes of a component that this tenant registered.
    async fn component(&self, tenant: &TenantName, digest: ComponentDigest) -> Result<Option<Arc<[u8]>>, Error>;

    // ---- Runs, from outside.

    /// Starts a run: the run, its input and its idempotency key in one transaction. With a
    /// `claimant`, and if the run is due now, the same transaction claims it.
    async fn start(&self, new: NewRun, claimant: Option<HostId>) -> Result<Started, Error>;

    /// Puts a message into a run's inbox, in the one order of that inbox, or says why not.
    ///
    /// A pause, a resume and a terminate take effect in the same transaction; a terminate also
    /// appends the journal's last entry and raises the epoch, which fences off whoever drives the
    /// run. The others wait for the host, which is told by [`Change::Inbox`] or [`Change::Ready`].
    async fn deliver(
        &self,
        tenant: &TenantName,
        run: RunId,
        message: Message,
        at: Timestamp,
    ) -> Result<Delivered, Error>;

    /// One run.
    async fn run(&self, tenant: &TenantName, run: RunId) -> Result<Option<Run>, Error>;

    /// The tenant's runs, newest first.
    async fn runs(&self, tenant: &TenantName, filter: RunFilter) -> Result<Vec<Run>, Error>;

    /// Entries of the newest journal of a run, in order, from `from` on, at most `limit`.
    /// `None` if the tenant has no such run.
    async fn history(
        &self,
        tenant: &TenantName,
        run: RunId,
        from: Sequence,
        limit: usize,
    ) -> Result<Option<Vec<(Sequence, Entry)>>, Error>;

    /// The events of a run and what became of them, oldest first. Empty if there is no such run.
    async fn events(&self, tenant: &TenantName, run: RunId) -> Result<Vec<Event>, Error>;

    /// What a run has published, by key. Empty if there is no such run.
    async fn published(&self, tenant: &TenantName, run: RunId) -> Result<Vec<Published>, Error>;

    /// Log lines of a run in order, those after `after`, at most `limit`. Empty if there is no such run.
    async fn logs(&self, tenant: &TenantName, run: RunId, after: u64, limit: usize) -> Result<Vec<LogRow>, Error>;

    // ---- Runs, from the host that drives them.

    /// Says that this host lives and holds what it has claimed until `lease_until`. First called
    /// before the first claim; then again and again, well before it runs out.
    async fn renew_lease(&self, host: HostId, lease_until: Timestamp) -> Result<(), Error>;

    /// Claims runs that are ready and not held: queued, due, or with something in the inbox that
    /// they wait for; also those of a host whose lease ran out before `now`. Not the paused, the
    /// stuck or the finished. Oldest readiness first.
    async fn claim(&self, host: HostId, now: Timestamp, limit: usize) -> Result<Vec<Claim>, Error>;

    /// The whole newest journal of a run, in order. For the host that drives it.
    async fn journal(&self, run: RunId) -> Result<Vec<Entry>, Error>;

    /// Inbox items of a run after `after` that no journal entry has taken, in order, and whether
    /// the run is held. For the host that drives it.
    async fn inbox(&self, run: RunId, after: EventId) -> Result<Inbox, Error>;

    /// Appends entries to a journal and says what the run does next, if the epoch and the journal's
    /// length are as expected. What the entries imply (published values, replies, events taken, the
    /// final status) is written in the same transaction.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] if the epoch or the length differ; [`Error::CancelRequested`] if the
    /// run would end and a cancel was accepted that `cancel_seen` does not cover.
    async fn append(&self, append: Append) -> Result<(), Error>;

    /// Runs that nobody holds and that fall due from `from` (inclusive) until `until` (exclusive),
    /// soonest first, at most `limit`.
    async fn due(&self, from: Timestamp, until: Timestamp, limit: usize) -> Result<Vec<(Timestamp, RunId)>, Error>;

    /// Keeps log lines, best effort: they may share a later commit, and a refusal costs no run.
    async fn write_logs(&self, lines: Vec<LogLine>) -> Result<(), Error>;

    // ---- Notification. Never the only way to learn of something: a receiver that lags, or a
    // change that another process made, is made good by the sweep.

    /// What hosts must react to, after it is durable.
    fn changes(&self) -> broadcast::Receiver<Change>;

    /// Grows whenever anything about this run becomes durable.
    fn watch(&self, run: RunId) -> watch::Receiver<u64>;

    /// What the store has done since it was opened.
    fn counts(&self) -> Counts;
}

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

/// A run to start.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Owner.
    pub tenant: TenantName,
    /// Its id, made by the caller.
    pub run: RunId,
    /// The version's workflow.
    pub workflow: WorkflowName,
    /// The version's label. The version must exist.
    pub label: VersionLabel,
    /// The version's component, to which the run is pinned.
    pub digest: ComponentDigest,
    /// What the workflow is given.
    pub input: Payload,
    /// SHA-256 of the input, with its kind mixed in; compared when a key is used twice.
    pub input_digest: [u8; 32],
    /// At most one run per tenant and key.
    pub idempotency_key: Option<String>,
    /// When it may begin; `None` for at once.
    pub start_at: Option<Timestamp>,
    /// Now.
    pub at: Timestamp,
}

/// What became of a start.
#[derive(Debug, Clone)]
pub enum Started {
    /// The run exists. Claimed, if the caller asked for that and it is due.
    Created(Option<Box<Claim>>),
    /// The key was used before for the same workflow and input: this is that run.
    Existing {
        /// The earlier run.
        run: RunId,
    },
    /// The key was used before for something else; nothing was started.
    KeyConflict {
        /// The earlier run.
        run: RunId,
        /// Its workflow.
        workflow: WorkflowName,
        /// The digest of its input.
        input_digest: [u8; 32],
    },
}

/// Something from outside that a run must react to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// An event for the mailbox.
    Event {
        /// Its name.
        name: String,
        /// What is sent.
        payload: Payload,
        /// Delivered at most once per run and key.
        delivery_key: Option<String>,
        /// With so many events in the mailbox already, it is refused.
        mailbox_events_max: u64,
    },
    /// Stop, with time to clean up.
    Cancel {
        /// Why.
        reason: String,
    },
    /// Hold before the next operation.
    Pause,
    /// Go on.
    Resume,
    /// End the sleep in progress.
    Wake,
    /// Stop at once.
    Terminate {
        /// Why.
        reason: String,
    },
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// It is in the inbox, or has taken effect. Events get an id.
    Accepted {
        /// The item's place in the inbox.
        id: EventId,
    },
    /// It was there before: the delivery key was used, or the verb had been carried out.
    Already {
        /// The earlier event, if it is one.
        id: Option<EventId>,
    },
    /// It makes no sense in the run's present status.
    Refused {
        /// That status.
        status: Status,
    },
    /// The mailbox is full.
    MailboxFull,
    /// The tenant has no such run.
    NoSuchRun,
}

/// What the host that drives a run finds when it looks into the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbox {
    /// Items that no journal entry has taken, in order.
    pub items: Vec<InboxItem>,
    /// Whether an operator holds the run.
    pub paused: bool,
}

/// An inbox item that no journal entry has taken. Pauses, resumes and terminates never appear: they
/// took effect when they were delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxItem {
    /// Its place in the inbox; an event's id.
    pub id: EventId,
    /// When it was accepted.
    pub at: Timestamp,
    /// What it is.
    pub what: InboxMessage,
}

/// What an inbox item is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxMessage {
    /// An event. Gone from the inbox once a journal entry has taken it.
    Event {
        /// Its name.
        name: String,
        /// What was sent.
        payload: Payload,
    },
    /// Asked to stop. Gone once a journal entry has delivered it.
    Cancel {
        /// Why.
        reason: String,
    },
    /// Asked to end a sleep. Gone with the next append whose `inbox_seen` covers it.
    Wake,
}

/// A run as people and programs see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub run: RunId,
    /// Owner.
    pub tenant: TenantName,
    /// The version's workflow.
    pub workflow: WorkflowName,
    /// The version's label.
    pub label: VersionLabel,
    /// The component it is pinned to.
    pub digest: ComponentDigest,
    /// How often it went on with a fresh journal; 0 at first.
    pub generation: u32,
    /// The visible status.
    pub status: Status,
    /// When it was started.
    pub created_at: Timestamp,
    /// When its row last changed.
    pub updated_at: Timestamp,
    /// When it next has something to do by the clock.
    pub due: Option<Timestamp>,
    /// Entries in the newest journal.
    pub entries: Sequence,
    /// Bytes in the newest journal, as stored.
    pub journal_bytes: u64,
    /// What the newest journal began with.
    pub input: Payload,
    /// How it ended, once it has.
    pub ending: Option<Ending>,
    /// Why an operator is needed, if `stuck`.
    pub stuck_reason: Option<String>,
    /// The host that drives it.
    pub host: Option<HostId>,
    /// Grows with every change of the run's row.
    pub revision: u64,
}

impl Run {
    /// Why the run failed, if it did.
    pub fn failure(&self) -> Option<&RunFailure> {
        match &self.ending {
            Some(Ending::Failed(failure)) => Some(failure),
            _ => None,
        }
    }
}

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only of this workflow.
    pub workflow: Option<WorkflowName>,
    /// Only in one of these visible statuses; empty for all.
    pub statuses: Vec<Status>,
    /// Only runs older than this one: the last of the page before.
    pub before: Option<RunId>,
    /// At most so many; the store caps it at 1,000.
    pub limit: usize,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its id.
    pub id: EventId,
    /// Its name.
    pub name: String,
    /// When it was accepted.
    pub sent_at: Timestamp,
    /// Whether a wait has taken it.
    pub taken: bool,
    /// The workflow's answer to the sender.
    pub reply: Option<Result<Payload, Failure>>,
}

/// A value that a run shows to the outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its key.
    pub key: String,
    /// The newest value.
    pub value: Payload,
    /// When it was published.
    pub at: Timestamp,
}

/// How grave a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Finest.
    Trace,
    /// For whoever debugs the workflow.
    Debug,
    /// Ordinary; also what the guest writes to stdout.
    Info,
    /// Something is off; also what the guest writes to stderr.
    Warn,
    /// Something failed.
    Error,
}

impl LogLevel {
    /// Lower-case, as in HTTP and the CLI.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// A line for a run's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Owner of the run.
    pub tenant: TenantName,
    /// The run.
    pub run: RunId,
    /// When it was written.
    pub at: Timestamp,
    /// How grave.
    pub level: LogLevel,
    /// What it says.
    pub message: String,
    /// More, by key.
    pub fields: Vec<(String, String)>,
}

/// A log line as kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    /// Grows along a run's log; give it to [`Store::logs`] for the lines after it.
    pub number: u64,
    /// The line.
    pub line: LogLine,
}

/// A run that a host now drives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The run.
    pub run: RunId,
    /// Owner.
    pub tenant: TenantName,
    /// The version's workflow.
    pub workflow: WorkflowName,
    /// The version's label.
    pub label: VersionLabel,
    /// The component it is pinned to.
    pub digest: ComponentDigest,
    /// Environment variables that the guest sees.
    pub environment: Vec<(String, String)>,
    /// Which journal of the run this is.
    pub generation: u32,
    /// What this journal began with.
    pub input: Payload,
    /// When this journal began: workflow time before its first entry.
    pub started_at: Timestamp,
    /// The lease; goes into every write.
    pub epoch: Epoch,
    /// The length of the journal.
    pub next: Sequence,
    /// The size of the journal, in bytes as stored.
    pub journal_bytes: u64,
    /// Whether the host that last drove this run was lost while the guest ran: an attempt may have
    /// been under way.
    pub host_lost: bool,
    /// Claims in a row, this one not included, without an entry that is progress.
    pub claims_without_progress: u32,
    /// Whether an operator holds the run. Only after [`Store::start`]; `claim` skips such runs.
    pub paused: bool,
    /// Everything in the inbox.
    pub inbox: Vec<InboxItem>,
}

/// Entries to append, and what the run does next.
#[derive(Debug, Clone)]
pub struct Append {
    /// The run.
    pub run: RunId,
    /// The epoch that the caller holds.
    pub epoch: Epoch,
    /// The length that the journal must have.
    pub next: Sequence,
    /// What to append, in order.
    pub entries: Vec<Entry>,
    /// The newest inbox item that the caller has seen.
    pub inbox_seen: EventId,
    /// Whether the caller has seen that the run was asked to stop.
    pub cancel_seen: bool,
    /// What the run does next.
    pub then: Then,
    /// Now.
    pub at: Timestamp,
}

/// What a run does after an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// The guest goes on.
    Run,
    /// The guest waits. If `release`, the host gives the run up; should its inbox hold anything
    /// that the caller has not seen, it is ready again at once.
    Suspend(Suspension),
    /// The last entry is [`stepwell_core::journal::Record::Ended`]: the run is over, and nobody
    /// holds it. After `ContinuedAsNew` it goes on instead, under the same epoch, with an empty
    /// journal of the next generation; the mailbox is kept.
    End,
    /// An operator is needed. Nobody holds the run, and nobody may claim it before a resume.
    Stick {
        /// Why, for people.
        reason: String,
    },
    /// The host gives the run up with the guest not waiting: it is ready at once.
    Release,
}

/// What a suspended run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    /// `Sleeping`, `Waiting` or `Retrying`.
    pub status: Status,
    /// When it is ready by the clock.
    pub due: Option<Timestamp>,
    /// The names of events that make it ready.
    pub events: Vec<String>,
    /// Whether a sleep is among what it waits for, so that a wake makes sense.
    pub sleeps: bool,
    /// Whether the host gives the run up.
    pub release: bool,
}

/// What hosts must react to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A run that nobody holds is ready to be claimed.
    Ready {
        /// The run.
        run: RunId,
    },
    /// Nobody holds this run and it falls due at this time.
    Due {
        /// The run.
        run: RunId,
        /// When.
        at: Timestamp,
    },
    /// Something was put into the inbox of a run that is held, or it was paused or resumed.
    Inbox {
        /// The run.
        run: RunId,
    },
    /// The run was terminated; whoever drives it must drop it.
    Terminated {
        /// The run.
        run: RunId,
    },
}

/// What a store has done since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Transactions that were committed and synced.
    pub commits: u64,
    /// Journal entries that were appended.
    pub entries: u64,
}
