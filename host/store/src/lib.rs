//! Where runs are kept: the [`Store`] trait, stated as promises of durability, and its bodies.
//!
//! A store decides nothing about workflows. It keeps what it is told under the conditions it is
//! told, all or nothing, and says so once it is durable. Rules that must hold inside one
//! transaction (may this verb be carried out? has this lease been lost?) are asked of
//! `stepwell_core` and of `head.rs`, so that every body answers alike; the contract suite
//! (`tests/contract/`, an integration test of this crate) holds them to that.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")
)]

mod append;
mod change;
mod claim;
mod codec;
mod effect;
mod error;
mod head;
mod inbox;
mod log;
mod memory;
mod notices;
mod run;
mod sqlite;
mod version;

pub use append::{Append, Suspension, Then};
pub use change::{Change, Counts};
pub use claim::{Claim, Room};
pub use error::Error;
pub use inbox::{Delivered, Event, Inbox, InboxItem, InboxMessage, Message};
pub use log::{LogLevel, LogLine, LogRow};
pub use memory::{Call, Fault, Faults, MemoryStore};
pub use run::{NewRun, Published, Run, RunFilter, Started};
pub use sqlite::SqliteStore;
pub use version::{NewVersion, Registered, Version};

use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::{
    ComponentDigest, Epoch, EventId, HostId, RunId, Sequence, TenantName, VersionLabel,
    WorkflowName,
};
use stepwell_core::journal::Entry;
use stepwell_core::time::Timestamp;
use tokio::sync::{broadcast, watch};

/// Where runs, journals, inboxes and components are kept.
///
/// **Durability.** When a writing method has returned `Ok`, no crash of process or machine loses
/// what it wrote; when it has returned an error, nothing of it was written. Calls that queue while
/// a commit is under way may share the next one (group commit); each still succeeds or fails alone.
/// [`Error::Unknown`] is the one exception: it says that an acknowledgement was lost. Dropping the
/// future of a call takes nothing back.
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
    async fn component(
        &self,
        tenant: &TenantName,
        digest: ComponentDigest,
    ) -> Result<Option<Arc<[u8]>>, Error>;

    // ---- Runs, from outside.

    /// Starts a run: the run, its input and its idempotency key in one transaction. With a
    /// `claimant` that lives, and if the run is due now, the same transaction claims it.
    ///
    /// # Errors
    /// [`Error::NoSuchVersion`] if the version is not there, or stands for another component.
    async fn start(&self, new: NewRun, claimant: Option<HostId>) -> Result<Started, Error>;

    /// Puts a message into a run's inbox, in the one order of that inbox, or says why not.
    ///
    /// A pause, a resume and a terminate take effect in the same transaction; a terminate also
    /// appends the journal's last entry and raises the epoch, which fences off whoever drives the
    /// run. The others wait for the host, which is told by [`Change::Inbox`] or [`Change::Ready`].
    /// A cancel lifts a pause, so that the run can clean up. A wake that no append has covered yet
    /// answers for a second one.
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
    async fn logs(
        &self,
        tenant: &TenantName,
        run: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<LogRow>, Error>;

    // ---- Runs, from the host that drives them.

    /// Says that this host lives and holds what it has claimed until `lease_until` (exclusive).
    /// First called before the first claim; then again and again, well before it runs out.
    ///
    /// That a lease has run out is noticed by the next claim or delivery, whoever makes it. From
    /// then on the lost host's runs are nobody's, its appends are refused even if it comes back,
    /// and hosts are told of each run by [`Change::Ready`] or [`Change::Due`].
    async fn renew_lease(&self, host: HostId, lease_until: Timestamp) -> Result<(), Error>;

    /// Claims runs that are ready and not held: queued, due, or with something in the inbox that
    /// they wait for; also those of a host whose lease has run out by `now`. Not the paused, the
    /// stuck or the finished. Oldest readiness first, as far as there is room, for suspects and in
    /// all. A host whose own lease has run out by `now` claims nothing. A run whose rows are damaged
    /// keeps nobody from the others: it is stuck, or left where it is if not even that can be
    /// written.
    async fn claim(&self, host: HostId, now: Timestamp, room: Room) -> Result<Vec<Claim>, Error>;

    /// The runs that a host holds, and under which epoch. For that host, to find those that it does
    /// not drive: claimed in a call whose acknowledgement was lost.
    async fn held(&self, host: HostId) -> Result<Vec<(RunId, Epoch)>, Error>;

    /// Gives up a run that is held under this epoch, as if its host had been lost. For a host that
    /// can neither go on with a run nor say in its journal where it stands. Nothing happens if the
    /// epoch no longer holds it.
    async fn abandon(&self, run: RunId, epoch: Epoch, at: Timestamp) -> Result<(), Error>;

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
    /// [`Error::LeaseLost`] if the epoch or the length differ, or nobody holds the run;
    /// [`Error::CancelRequested`] if the run would end and a cancel was accepted that `cancel_seen`
    /// does not cover.
    ///
    /// # Panics
    /// If the entries and what follows them contradict each other: [`Then::End`] goes with a last
    /// entry that is an end, and with no other.
    async fn append(&self, append: Append) -> Result<(), Error>;

    /// Runs that nobody holds, no operator either, and that fall due from `from` (inclusive) until
    /// `until` (exclusive), soonest first, at most `limit`.
    async fn due(
        &self,
        from: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Timestamp, RunId)>, Error>;

    /// Keeps log lines, best effort: they may share a later commit, and under overload some are
    /// dropped. Returns at once; [`Self::logs`] finds them from then on.
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
