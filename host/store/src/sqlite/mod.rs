//! The SQLite body: one folder, one file, one writer.
//!
//! ```text
//! async callers ── commands ──► writer thread ── one transaction of many commands ──► WAL, synced
//!      ▲                             │
//!      └──── answers, notices ◄──────┘ only after the commit
//! async callers ── reads ──► a few reader connections, each read one snapshot
//! ```
//!
//! One file per table (SQL beside the row type), one file in `write/` per writing call. Decisions
//! are in `head.rs`; nothing here repeats them.

mod components;
mod events;
mod fault;
mod folder;
mod folds;
mod generations;
mod heads;
mod hosts;
mod inbox;
mod journal;
mod log_queue;
mod logs;
mod migrate;
mod published;
mod read;
mod readers;
mod runs;
mod start_keys;
mod tenants;
mod value;
mod versions;
mod write;
mod writer;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::{
    ComponentDigest, Epoch, EventId, HostId, RunId, Sequence, TenantName, VersionLabel,
    WorkflowName,
};
use stepwell_core::journal::Entry;
use stepwell_core::time::Timestamp;
use tokio::sync::{broadcast, watch};

use self::folder::Folder;
use self::readers::Readers;
use self::writer::Writer;
use crate::append::Append;
use crate::change::{Change, Counts};
use crate::claim::{Claim, Room};
use crate::error::Error;
use crate::inbox::{Delivered, Event, Inbox, Message};
use crate::log::{LogLine, LogRow};
use crate::notices::Notices;
use crate::run::{NewRun, Published, Run, RunFilter, Started};
use crate::version::{NewVersion, Registered, Version};
use crate::{Store, codec};

/// A store in one SQLite file, for one host process.
///
/// Once a writing call has returned `Ok`, its rows are in the write-ahead log and synced. Dropping
/// the future of a call doesn't undo it. Dropping the store waits for the commit in progress and
/// frees the folder.
#[derive(Debug)]
pub struct SqliteStore {
    // Dropped in this order: readers and writer close the file before the folder is unlocked.
    readers: Readers,
    writer: Writer,
    notices: Arc<Notices>,
    _folder: Folder,
}

impl SqliteStore {
    /// Opens the store in a folder, which is created if need be, and takes it for this process.
    /// Leases of earlier hosts are over with that: nobody else can hold them.
    ///
    /// # Errors
    /// [`Error::InUse`] if another host has the folder; [`Error::Newer`],
    /// [`Error::MigrationChanged`] or [`Error::Damaged`] if its database is not what this release
    /// can go on with; [`Error::Unavailable`] if the file system refuses.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let folder = Folder::lock(folder)?;
        let file = folder.database();
        let mut connection = migrate::open(&file)?;
        write::leases::expire_all(&mut connection)
            .map_err(|fault| fault.into_error("take runs from hosts that are gone"))?;
        let notices = Arc::new(Notices::new());
        let writer = Writer::start(connection, Arc::clone(&notices))?;
        let readers = Readers::new(file);
        Ok(Self {
            readers,
            writer,
            notices,
            _folder: folder,
        })
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn register(&self, new: NewVersion) -> Result<Registered, Error> {
        self.writer
            .call("register a version", move |tx| {
                write::register::register(tx, &new)
            })
            .await
    }

    async fn version(
        &self,
        tenant: &TenantName,
        workflow: &WorkflowName,
        label: Option<&VersionLabel>,
    ) -> Result<Option<Version>, Error> {
        let (tenant, workflow, label) = (tenant.clone(), workflow.clone(), label.cloned());
        self.readers
            .read("read a version", move |snapshot| {
                let Some(tenant) = tenants::find(snapshot, &tenant)? else {
                    return Ok(None);
                };
                versions::find(snapshot, tenant, &workflow, label.as_ref())
            })
            .await
    }

    async fn versions(&self, tenant: &TenantName) -> Result<Vec<Version>, Error> {
        let tenant = tenant.clone();
        self.readers
            .read("list versions", move |snapshot| {
                let Some(tenant) = tenants::find(snapshot, &tenant)? else {
                    return Ok(Vec::new());
                };
                versions::list(snapshot, tenant)
            })
            .await
    }

    async fn component(
        &self,
        tenant: &TenantName,
        digest: ComponentDigest,
    ) -> Result<Option<Arc<[u8]>>, Error> {
        let tenant = tenant.clone();
        self.readers
            .read("read a component", move |snapshot| {
                let Some(tenant) = tenants::find(snapshot, &tenant)? else {
                    return Ok(None);
                };
                components::find(snapshot, tenant, digest)
            })
            .await
    }

    async fn start(&self, new: NewRun, claimant: Option<HostId>) -> Result<Started, Error> {
        self.writer
            .call("start a run", move |tx| {
                write::start::start(tx, &new, claimant)
            })
            .await
    }

    async fn deliver(
        &self,
        tenant: &TenantName,
        run: RunId,
        message: Message,
        at: Timestamp,
    ) -> Result<Delivered, Error> {
        let tenant = tenant.clone();
        self.writer
            .call("deliver a message", move |tx| {
                write::deliver::deliver(tx, &tenant, run, &message, at)
            })
            .await
    }

    async fn run(&self, tenant: &TenantName, run: RunId) -> Result<Option<Run>, Error> {
        let tenant = tenant.clone();
        self.readers
            .read("read a run", move |snapshot| {
                read::run(snapshot, &tenant, run)
            })
            .await
    }

    async fn runs(&self, tenant: &TenantName, filter: RunFilter) -> Result<Vec<Run>, Error> {
        let tenant = tenant.clone();
        self.readers
            .read("list runs", move |snapshot| {
                read::runs(snapshot, &tenant, &filter)
            })
            .await
    }

    async fn history(
        &self,
        tenant: &TenantName,
        run: RunId,
        from: Sequence,
        limit: usize,
    ) -> Result<Option<Vec<(Sequence, Entry)>>, Error> {
        let tenant = tenant.clone();
        self.readers
            .read("read a history", move |snapshot| {
                read::history(snapshot, &tenant, run, from, limit)
            })
            .await
    }

    async fn events(&self, tenant: &TenantName, run: RunId) -> Result<Vec<Event>, Error> {
        let tenant = tenant.clone();
        self.readers
            .read("list events", move |snapshot| {
                match tenants::find(snapshot, &tenant)? {
                    Some(tenant) => events::list(snapshot, tenant, run),
                    None => Ok(Vec::new()),
                }
            })
            .await
    }

    async fn published(&self, tenant: &TenantName, run: RunId) -> Result<Vec<Published>, Error> {
        let tenant = tenant.clone();
        self.readers
            .read(
                "list published values",
                move |snapshot| match tenants::find(snapshot, &tenant)? {
                    Some(tenant) => published::list(snapshot, tenant, run),
                    None => Ok(Vec::new()),
                },
            )
            .await
    }

    async fn logs(
        &self,
        tenant: &TenantName,
        run: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<LogRow>, Error> {
        self.writer.flush_logs().await?;
        let tenant = tenant.clone();
        self.readers
            .read("read a log", move |snapshot| {
                match tenants::find(snapshot, &tenant)? {
                    Some(id) => logs::list(snapshot, id, &tenant, run, after, limit),
                    None => Ok(Vec::new()),
                }
            })
            .await
    }

    async fn renew_lease(&self, host: HostId, lease_until: Timestamp) -> Result<(), Error> {
        self.writer
            .call("renew a lease", move |tx| {
                hosts::renew(tx.rows(), host, lease_until)
            })
            .await
    }

    async fn claim(&self, host: HostId, now: Timestamp, room: Room) -> Result<Vec<Claim>, Error> {
        self.writer
            .call("claim runs", move |tx| {
                write::claim::claim(tx, host, now, room)
            })
            .await
    }

    async fn held(&self, host: HostId) -> Result<Vec<(RunId, Epoch)>, Error> {
        self.readers
            .read("look for held runs", move |snapshot| {
                heads::held_by(snapshot, host)
            })
            .await
    }

    async fn abandon(&self, run: RunId, epoch: Epoch, at: Timestamp) -> Result<(), Error> {
        self.writer
            .call("give up a run", move |tx| {
                write::leases::abandon(tx, run, epoch, at)
            })
            .await
    }

    async fn journal(&self, run: RunId) -> Result<Vec<Entry>, Error> {
        self.readers
            .read("read a journal", move |snapshot| {
                read::journal(snapshot, run)
            })
            .await
    }

    async fn inbox(&self, run: RunId, after: EventId) -> Result<Inbox, Error> {
        self.readers
            .read("read an inbox", move |snapshot| {
                read::inbox(snapshot, run, after)
            })
            .await
    }

    async fn append(&self, append: Append) -> Result<(), Error> {
        append.assert_consistent();
        // Here, on the caller's thread: the writer's time is everybody's.
        let row = if append.entries.is_empty() {
            Vec::new()
        } else {
            codec::encode_row(append.run, append.next, &append.entries)
        };
        self.writer
            .call("append to a journal", move |tx| {
                write::append::append(tx, &append, &row)
            })
            .await
    }

    async fn due(
        &self,
        from: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Timestamp, RunId)>, Error> {
        self.readers
            .read("look for due runs", move |snapshot| {
                heads::due(snapshot, from, until, limit)
            })
            .await
    }

    async fn write_logs(&self, lines: Vec<LogLine>) -> Result<(), Error> {
        self.writer.queue_logs(lines);
        Ok(())
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.notices.changes()
    }

    fn watch(&self, run: RunId) -> watch::Receiver<u64> {
        self.notices.watch(run)
    }

    fn counts(&self) -> Counts {
        self.writer.counts()
    }
}
