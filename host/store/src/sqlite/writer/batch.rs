//! One transaction of many commands.

use rusqlite::Connection;
use stepwell_core::id::RunId;

use super::command::{Command, Executed};
use crate::change::Change;
use crate::log::LogLine;
use crate::sqlite::{logs, tenants};

/// What commands work on: the rows, and what is to be told once they are durable.
pub(in crate::sqlite) struct Tx<'c> {
    connection: &'c Connection,
    written: Written,
}

/// What a transaction has done, to be told once it is durable.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) commits: u64,
    pub(super) entries: u64,
    pub(super) changes: Vec<Change>,
    pub(super) touched: Vec<RunId>,
}

impl<'c> Tx<'c> {
    /// The rows of the transaction.
    pub(in crate::sqlite) fn rows(&self) -> &'c Connection {
        self.connection
    }

    /// A run has changed, and hosts are told so if there is a `change`.
    pub(in crate::sqlite) fn touched(&mut self, run: RunId, change: Option<Change>) {
        self.written.touched.push(run);
        self.written.changes.extend(change);
    }

    /// Entries were appended.
    pub(in crate::sqlite) fn appended(&mut self, entries: usize) {
        self.written.entries += entries as u64;
    }
}

/// One transaction to be.
pub(super) struct Batch<'c> {
    connection: &'c Connection,
}

/// Whether each command gets a savepoint.
#[derive(Clone, Copy, PartialEq)]
enum Care {
    /// None does: the hot path.
    Together,
    /// Each does: one of them is known to fail.
    Apart,
}

impl<'c> Batch<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self { connection }
    }

    /// Writes all of it, in as few attempts as it takes. An error means that nothing was written.
    pub(super) fn write(
        &self,
        commands: &mut [Box<dyn Command>],
        lines: &[LogLine],
    ) -> rusqlite::Result<Written> {
        let attempts = [(Care::Together, lines), (Care::Apart, &[][..])];
        for (care, lines) in attempts {
            match self.attempt(commands, lines, care) {
                Ok(Some(written)) => return Ok(written),
                Ok(None) => self.roll_back()?,
                Err(error) => {
                    // SQLite has rolled back by itself after some errors.
                    self.roll_back()?;
                    // Lines are best effort: perhaps all else is small enough to be written.
                    if care == Care::Apart || lines.is_empty() {
                        return Err(error);
                    }
                }
            }
            if !lines.is_empty() {
                tracing::warn!(
                    lines = lines.len(),
                    "log lines were dropped with a transaction that failed"
                );
            }
        }
        unreachable!("with savepoints, a command that fails does not end the attempt")
    }

    /// One attempt. `None` if a command failed with something written.
    fn attempt(
        &self,
        commands: &mut [Box<dyn Command>],
        lines: &[LogLine],
        care: Care,
    ) -> rusqlite::Result<Option<Written>> {
        self.statement("BEGIN IMMEDIATE")?;
        let written_before = self.connection.total_changes();
        let mut tx = Tx {
            connection: self.connection,
            written: Written::default(),
        };
        for command in commands.iter_mut() {
            if care == Care::Apart {
                self.statement("SAVEPOINT command")?;
            }
            let told = (
                tx.written.entries,
                tx.written.changes.len(),
                tx.written.touched.len(),
            );
            match command.execute(&mut tx) {
                Executed::Settled => {}
                Executed::Failed if care == Care::Together => return Ok(None),
                Executed::Failed => {
                    self.statement("ROLLBACK TO command")?;
                    tx.written.entries = told.0;
                    tx.written.changes.truncate(told.1);
                    tx.written.touched.truncate(told.2);
                }
                Executed::Broken(error) => return Err(error),
            }
            if care == Care::Apart {
                self.statement("RELEASE command")?;
            }
        }
        self.write_logs(&mut tx, lines);
        self.statement("COMMIT")?;
        // One without changes writes and syncs nothing.
        tx.written.commits = u64::from(self.connection.total_changes() != written_before);
        Ok(Some(tx.written))
    }

    /// Lines that cannot be written are dropped; the transaction goes on.
    fn write_logs(&self, tx: &mut Tx<'_>, lines: &[LogLine]) {
        for line in lines {
            let written = tenants::find_or_insert(self.connection, &line.tenant)
                .and_then(|tenant| logs::insert(self.connection, tenant, line));
            match written {
                Ok(()) => tx.written.touched.push(line.run),
                Err(fault) => {
                    let error = fault.into_error("write a log line");
                    tracing::warn!(run = %line.run, %error, "a log line was dropped");
                }
            }
        }
    }

    fn roll_back(&self) -> rusqlite::Result<()> {
        if self.connection.is_autocommit() {
            Ok(())
        } else {
            self.statement("ROLLBACK")
        }
    }

    fn statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}
