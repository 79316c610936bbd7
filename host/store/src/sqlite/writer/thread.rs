//! The writer's thread: takes what has queued, commits it, tells and answers.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::batch::Batch;
use super::command::Command;
use super::gather::Gather;
use super::{Shared, Wakeup};
use crate::error::Error;
use crate::sqlite::folds::Folds;

/// Commands in one transaction: bounds how long the first of them waits for the last.
const BATCH_MAX: usize = 4_096;
/// How long log lines wait for a commit to go along with before they get one of their own.
const LOGS_WAIT: Duration = Duration::from_millis(50);

pub(super) struct Thread<'t> {
    connection: &'t Connection,
    wakeups: &'t Receiver<Wakeup>,
    shared: &'t Shared,
    commands: Vec<Box<dyn Command>>,
    folds: Folds,
    gather: Gather,
    /// When log lines that wait get a commit of their own.
    logs_due: Option<Instant>,
    /// Whether the last transaction failed, so that a full disk is reported once and not for every
    /// transaction that it fails.
    failing: bool,
}

/// Why the thread looks at what has queued.
enum Woken {
    Command,
    Logs,
    Closed,
}

impl<'t> Thread<'t> {
    pub(super) fn new(
        connection: &'t Connection,
        wakeups: &'t Receiver<Wakeup>,
        shared: &'t Shared,
    ) -> Self {
        Self {
            connection,
            wakeups,
            shared,
            commands: Vec::new(),
            folds: Folds::default(),
            gather: Gather::default(),
            logs_due: None,
            failing: false,
        }
    }

    /// Until the handle is dropped and everything that queued is written.
    pub(super) fn run(mut self) {
        loop {
            let woken = self.wait();
            if let Woken::Command = woken {
                self.collect();
            }
            if !self.commands.is_empty() || !self.shared.logs.is_empty() {
                self.commit();
            }
            if let Woken::Closed = woken {
                return;
            }
        }
    }

    /// Waits for the first command, or until log lines have waited long enough.
    fn wait(&mut self) -> Woken {
        loop {
            let wakeup = match self.logs_due {
                None => self
                    .wakeups
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => self
                    .wakeups
                    .recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match wakeup {
                Ok(Wakeup::Command(command)) => {
                    self.commands.push(command);
                    return Woken::Command;
                }
                Ok(Wakeup::Logs) => {
                    self.logs_due
                        .get_or_insert_with(|| Instant::now() + LOGS_WAIT);
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.logs_due = None;
                    return Woken::Logs;
                }
                Err(RecvTimeoutError::Disconnected) => return Woken::Closed,
            }
        }
    }

    /// Takes what queued behind the first command, and what is about to.
    fn collect(&mut self) {
        self.drain();
        let mut pauses = self.gather.begin(self.commands.len());
        while let Some(pause) = pauses.next(self.commands.len()) {
            std::thread::sleep(pause);
            self.drain();
        }
        self.gather.end(pauses, self.commands.len());
        self.shared
            .queued
            .fetch_sub(self.commands.len(), Ordering::Relaxed);
        // Lines that wait go along with the commands.
        self.logs_due = None;
    }

    fn drain(&mut self) {
        while self.commands.len() < BATCH_MAX {
            match self.wakeups.try_recv() {
                Ok(Wakeup::Command(command)) => self.commands.push(command),
                Ok(Wakeup::Logs) => {}
                Err(_) => break,
            }
        }
    }

    /// Executes the commands in one transaction, commits, tells and answers.
    fn commit(&mut self) {
        let began = Instant::now();
        let lines = self.shared.logs.take();
        let batch = Batch {
            connection: self.connection,
            folds: &mut self.folds,
            commands: &mut self.commands,
            lines: &lines,
        };
        let done = std::panic::catch_unwind(AssertUnwindSafe(|| batch.write()));
        let outcome = match done {
            Ok(Ok(written)) => {
                self.shared
                    .commits
                    .fetch_add(written.commits, Ordering::SeqCst);
                self.shared
                    .entries
                    .fetch_add(written.entries, Ordering::SeqCst);
                // Told before answered: whoever made the change finds it among the changes.
                self.shared.notices.send(&written.changes, &written.touched);
                Ok(())
            }
            Ok(Err(error)) => Err(error),
            Err(_) => {
                self.folds.clear();
                Err(Error::Unknown {
                    action: "write",
                    detail: "the writer panicked, which is a bug".to_owned(),
                })
            }
        };
        self.shared.logs.committed();
        self.report(outcome.as_ref().err());
        let behind = self.shared.queued.load(Ordering::Relaxed);
        self.gather
            .committed(self.commands.len() + behind, began.elapsed());
        for command in self.commands.drain(..) {
            command.answer(outcome.as_ref().copied());
        }
    }

    fn report(&mut self, error: Option<&Error>) {
        match error {
            Some(error) if !self.failing => {
                tracing::error!(%error, "a transaction was not written; more may follow until the disk writes again");
            }
            None if self.failing => tracing::info!("the disk writes again"),
            _ => {}
        }
        self.failing = error.is_some();
    }
}
