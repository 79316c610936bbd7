//! The body for tests and simulation: rows in memory, every call at once, faults on request.
//!
//! It keeps the promises of [`Store`] for as long as it lives: an engine that is dropped and
//! started again over the same store finds what a restarted host would find in its file. It reads
//! no clock, draws nothing at random and starts no thread, so one script of faults and one order
//! of calls give one outcome. It looks for runs by looking at all of them: thousands, not millions.

mod faults;
mod rows;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use stepwell_core::id::{
    ComponentDigest, Epoch, EventId, HostId, RunId, Sequence, TenantName, VersionLabel,
    WorkflowName,
};
use stepwell_core::journal::Entry;
use stepwell_core::time::Timestamp;
use tokio::sync::{broadcast, watch};

pub use self::faults::{Call, Fault, Faults};
use self::rows::{Rows, Told};
use crate::Store;
use crate::append::Append;
use crate::change::{Change, Counts};
use crate::claim::{Claim, Room};
use crate::error::Error;
use crate::inbox::{Delivered, Event, Inbox, Message};
use crate::log::{LogLine, LogRow};
use crate::notices::Notices;
use crate::run::{NewRun, Published, Run, RunFilter, Started};
use crate::version::{NewVersion, Registered, Version};

/// A store in memory, with faults to inject.
#[derive(Debug)]
pub struct MemoryStore {
    rows: Mutex<Rows>,
    notices: Notices,
    faults: Faults,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store without faults.
    pub fn new() -> Self {
        Self {
            rows: Mutex::default(),
            notices: Notices::new(),
            faults: Faults::default(),
        }
    }

    /// The faults that its calls meet.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Takes all runs from all hosts, as opening a file does: the process that drove them is gone.
    pub fn expire_leases(&self) {
        self.locked(Rows::expire_all);
    }

    /// A call that changes rows: whole, or not at all.
    async fn write<T>(
        &self,
        (method, action): (&'static str, &'static str),
        run: Option<RunId>,
        write: impl FnOnce(&mut Rows, &mut Told) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let fault = self.faults.next(method, run);
        let unavailable = |detail: &str| Error::Unavailable {
            action,
            detail: detail.to_owned(),
        };
        match fault {
            Some(Fault::FailBefore) => return Err(unavailable("injected before the write")),
            Some(Fault::DiskFull) => return Err(unavailable("injected: the disk is full")),
            Some(Fault::Slow(span)) => tokio::time::sleep(span).await,
            Some(Fault::Yield(turns)) => yield_for(turns).await,
            Some(Fault::LoseLease) => {
                if let Some(run) = run {
                    self.locked(|rows, told| rows.lose_lease(run, told));
                }
            }
            Some(Fault::FailAfter) | None => {}
        }
        let written = self.locked(write);
        if let Some(Fault::FailAfter) = fault {
            return Err(Error::Unknown {
                action,
                detail: "injected after the write".to_owned(),
            });
        }
        written
    }

    /// A call that changes nothing.
    async fn read<T>(
        &self,
        (method, action): (&'static str, &'static str),
        run: Option<RunId>,
        read: impl FnOnce(&Rows) -> T,
    ) -> Result<T, Error> {
        match self.faults.next(method, run) {
            Some(Fault::FailBefore | Fault::FailAfter) => {
                return Err(Error::Unavailable {
                    action,
                    detail: "injected".to_owned(),
                });
            }
            Some(Fault::Slow(span)) => tokio::time::sleep(span).await,
            Some(Fault::Yield(turns)) => yield_for(turns).await,
            // A full disk can be read, and a read needs no lease.
            Some(Fault::DiskFull | Fault::LoseLease) | None => {}
        }
        Ok(self.locked(|rows, _| read(rows)))
    }

    fn locked<T>(&self, work: impl FnOnce(&mut Rows, &mut Told) -> T) -> T {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let mut told = Told::default();
        let done = work(&mut rows, &mut told);
        // Under the lock, so that changes are told in the order in which they happened.
        self.notices.send(&told.changes, &told.touched);
        done
    }
}

async fn yield_for(turns: u32) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn register(&self, new: NewVersion) -> Result<Registered, Error> {
        self.write(("register", "register a version"), None, |rows, _| {
            Ok(rows.register(&new))
        })
        .await
    }

    async fn version(
        &self,
        tenant: &TenantName,
        workflow: &WorkflowName,
        label: Option<&VersionLabel>,
    ) -> Result<Option<Version>, Error> {
        self.read(("version", "read a version"), None, |rows| {
            rows.version(tenant, workflow, label)
        })
        .await
    }

    async fn versions(&self, tenant: &TenantName) -> Result<Vec<Version>, Error> {
        self.read(("versions", "list versions"), None, |rows| {
            rows.versions(tenant)
        })
        .await
    }

    async fn component(
        &self,
        tenant: &TenantName,
        digest: ComponentDigest,
    ) -> Result<Option<Arc<[u8]>>, Error> {
        self.read(("component", "read a component"), None, |rows| {
            rows.component(tenant, digest)
        })
        .await
    }

    async fn start(&self, new: NewRun, claimant: Option<HostId>) -> Result<Started, Error> {
        let run = new.run;
        self.write(("start", "start a run"), Some(run), |rows, told| {
            rows.start(new, claimant, told)
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
        self.write(("deliver", "deliver a message"), Some(run), |rows, told| {
            Ok(rows.deliver(tenant, run, message, at, told))
        })
        .await
    }

    async fn run(&self, tenant: &TenantName, run: RunId) -> Result<Option<Run>, Error> {
        self.read(("run", "read a run"), Some(run), |rows| {
            rows.run(tenant, run)
        })
        .await
    }

    async fn runs(&self, tenant: &TenantName, filter: RunFilter) -> Result<Vec<Run>, Error> {
        self.read(("runs", "list runs"), None, |rows| {
            rows.runs(tenant, &filter)
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
        self.read(("history", "read a history"), Some(run), |rows| {
            rows.history(tenant, run, from, limit)
        })
        .await
    }

    async fn events(&self, tenant: &TenantName, run: RunId) -> Result<Vec<Event>, Error> {
        self.read(("events", "list events"), Some(run), |rows| {
            rows.events(tenant, run)
        })
        .await
    }

    async fn published(&self, tenant: &TenantName, run: RunId) -> Result<Vec<Published>, Error> {
        self.read(("published", "list published values"), Some(run), |rows| {
            rows.published(tenant, run)
        })
        .await
    }

    async fn logs(
        &self,
        tenant: &TenantName,
        run: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<LogRow>, Error> {
        self.read(("logs", "read a log"), Some(run), |rows| {
            rows.logs(tenant, run, after, limit)
        })
        .await
    }

    async fn renew_lease(&self, host: HostId, lease_until: Timestamp) -> Result<(), Error> {
        self.write(("renew_lease", "renew a lease"), None, |rows, _| {
            rows.renew_lease(host, lease_until);
            Ok(())
        })
        .await
    }

    async fn claim(&self, host: HostId, now: Timestamp, room: Room) -> Result<Vec<Claim>, Error> {
        self.write(("claim", "claim runs"), None, |rows, told| {
            Ok(rows.claim(host, now, room, told))
        })
        .await
    }

    async fn held(&self, host: HostId) -> Result<Vec<(RunId, Epoch)>, Error> {
        self.read(("held", "look for held runs"), None, |rows| rows.held(host))
            .await
    }

    async fn abandon(&self, run: RunId, epoch: Epoch, at: Timestamp) -> Result<(), Error> {
        self.write(("abandon", "give up a run"), Some(run), |rows, told| {
            rows.abandon(run, epoch, at, told);
            Ok(())
        })
        .await
    }

    async fn journal(&self, run: RunId) -> Result<Vec<Entry>, Error> {
        self.read(("journal", "read a journal"), Some(run), |rows| {
            rows.journal(run)
        })
        .await
    }

    async fn inbox(&self, run: RunId, after: EventId) -> Result<Inbox, Error> {
        self.read(("inbox", "read an inbox"), Some(run), |rows| {
            rows.inbox(run, after)
        })
        .await
    }

    async fn append(&self, append: Append) -> Result<(), Error> {
        append.assert_consistent();
        let run = append.run;
        self.write(
            ("append", "append to a journal"),
            Some(run),
            |rows, told| rows.append(append, told),
        )
        .await
    }

    async fn due(
        &self,
        from: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Timestamp, RunId)>, Error> {
        self.read(("due", "look for due runs"), None, |rows| {
            rows.due(from, until, limit)
        })
        .await
    }

    async fn write_logs(&self, lines: Vec<LogLine>) -> Result<(), Error> {
        self.write(("write_logs", "write log lines"), None, |rows, told| {
            rows.write_logs(lines, told);
            Ok(())
        })
        .await
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.notices.changes()
    }

    fn watch(&self, run: RunId) -> watch::Receiver<u64> {
        self.notices.watch(run)
    }

    fn counts(&self) -> Counts {
        self.locked(|rows, _| rows.counts())
    }
}
