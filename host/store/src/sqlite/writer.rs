//! The one thread that writes, and group commit.
//!
//! ```text
//! take a command, and all that queued behind it ─► BEGIN IMMEDIATE ─► execute each ─► COMMIT (sync)
//!        ▲                                                                              │
//!        └─────────────── answer each ◄── tell hosts and watchers ◄─────────────────────┘
//! ```
//!
//! A command checks its conditions before it writes, so one that is refused leaves nothing behind
//! and needs no savepoint. One that fails after it has begun to write (a bug, a damaged page)
//! makes the writer roll the whole transaction back and execute the others again, now each in a
//! savepoint of its own. When the commit fails, all of them fail, and nothing is visible.

mod batch;
mod command;
mod gather;
mod thread;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

pub(super) use self::batch::Tx;
use self::command::{Call, Command};
use self::thread::Thread;
use super::fault::Result;
use super::log_queue::LogQueue;
use crate::change::Counts;
use crate::error::Error;
use crate::log::LogLine;
use crate::notices::Notices;

/// Commands that may wait. Each belongs to a caller who waits for it, so this is met only when
/// callers pile up without end; then they are told at once rather than after a long wait.
const QUEUE_MAX: usize = 262_144;
const STATEMENTS_MAX: usize = 128;

/// Handle of the writer thread. Dropping it waits for the commit in progress.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` only while it is being dropped.
    queue: Option<Sender<Wakeup>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

/// What the thread and its handle both see.
#[derive(Debug)]
struct Shared {
    notices: Arc<Notices>,
    logs: LogQueue,
    queued: AtomicUsize,
    commits: AtomicU64,
    entries: AtomicU64,
}

enum Wakeup {
    Command(Box<dyn Command>),
    /// Log lines wait.
    Logs,
}

/// Settings of the connection that writes.
pub(super) fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Every commit is synced: without it, a power cut takes commits that were acknowledged.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // 64 MiB: the heads of some hundred thousand runs that change.
    connection.pragma_update(None, "cache_size", -64 * 1024)?;
    // Pages, that is 16 MiB: a page that many commits change is written back less often than at
    // the default of 1,000, and no commit waits long for the one that does it.
    connection.pragma_update(None, "wal_autocheckpoint", 4_096)?;
    // What a burst has made of it is given back.
    connection.pragma_update(None, "journal_size_limit", 128 * 1024 * 1024)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(
        connection: Connection,
        notices: Arc<Notices>,
    ) -> std::result::Result<Self, Error> {
        let shared = Arc::new(Shared {
            notices,
            logs: LogQueue::default(),
            queued: AtomicUsize::new(0),
            commits: AtomicU64::new(0),
            entries: AtomicU64::new(0),
        });
        let (queue, wakeups) = mpsc::channel();
        let thread = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("stepwell-writer".to_owned())
                .spawn(move || Thread::new(&connection, &wakeups, &shared).run())
                .map_err(|error| Error::Unavailable {
                    action: "start its writer",
                    detail: error.to_string(),
                })?
        };
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
            shared,
        })
    }

    /// Executes `work` in a transaction and answers once that is durable.
    ///
    /// `work` may run more than once, each time on what is left after the time before was rolled
    /// back.
    pub(super) async fn call<T, F>(
        &self,
        action: &'static str,
        work: F,
    ) -> std::result::Result<T, Error>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        let queued = self.shared.queued.fetch_add(1, Ordering::Relaxed);
        if queued >= QUEUE_MAX {
            self.shared.queued.fetch_sub(1, Ordering::Relaxed);
            let detail = format!("{queued} calls wait for the disk already; try again later");
            return Err(Error::Unavailable { action, detail });
        }
        let (reply, answer) = oneshot::channel();
        if self
            .send(Wakeup::Command(Box::new(Call::new(action, work, reply))))
            .is_err()
        {
            return Err(Error::Unavailable {
                action,
                detail: "the writer has stopped".to_owned(),
            });
        }
        answer.await.unwrap_or_else(|_| {
            Err(Error::Unknown {
                action,
                detail: "the writer stopped before it answered".to_owned(),
            })
        })
    }

    /// Leaves log lines for a later commit.
    pub(super) fn queue_logs(&self, lines: Vec<LogLine>) {
        if self.shared.logs.put(lines).first {
            // A writer that has stopped keeps no log either.
            let _ = self.send(Wakeup::Logs);
        }
    }

    /// Returns once all lines that were queued before are durable.
    pub(super) async fn flush_logs(&self) -> std::result::Result<(), Error> {
        if self.shared.logs.is_settled() {
            return Ok(());
        }
        self.call("write log lines", |_| Ok(())).await
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            commits: self.shared.commits.load(Ordering::SeqCst),
            entries: self.shared.entries.load(Ordering::SeqCst),
        }
    }

    fn send(&self, wakeup: Wakeup) -> std::result::Result<(), ()> {
        self.queue.as_ref().ok_or(())?.send(wakeup).map_err(|_| ())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // It has said so itself if it panicked.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
