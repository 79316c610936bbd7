//! One transaction of many commands.

use rusqlite::{Connection, ErrorCode, ffi};
use stepwell_core::id::RunId;

use super::command::{Command, Executed};
use crate::change::Change;
use crate::error::Error;
use crate::log::LogLine;
use crate::sqlite::fault::from_sqlite;
use crate::sqlite::folds::Folds;
use crate::sqlite::{logs, tenants};

/// What commands work on: the rows, and what is to be told once they are durable.
pub(in crate::sqlite) struct Tx<'c> {
    connection: &'c Connection,
    folds: &'c mut Folds,
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

    /// What is remembered of journals.
    pub(in crate::sqlite) fn folds(&mut self) -> &mut Folds {
        self.folds
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

    /// How much is to be told so far.
    fn told(&self) -> (u64, usize, usize) {
        (
            self.written.entries,
            self.written.changes.len(),
            self.written.touched.len(),
        )
    }

    /// Takes back what was to be told since then.
    fn untell(&mut self, (entries, changes, touched): (u64, usize, usize)) {
        self.written.entries = entries;
        self.written.changes.truncate(changes);
        self.written.touched.truncate(touched);
    }
}

/// One transaction to be.
pub(super) struct Batch<'b> {
    pub(super) connection: &'b Connection,
    pub(super) folds: &'b mut Folds,
    pub(super) commands: &'b mut [Box<dyn Command>],
    pub(super) lines: &'b [LogLine],
}

/// Whether each command gets a savepoint.
#[derive(Clone, Copy, PartialEq)]
enum Care {
    /// None does: the hot path.
    Together,
    /// Each does: one of them is known to fail.
    Apart,
}

/// Why an attempt wrote nothing.
enum Undone {
    /// A command failed with something written.
    Command,
    /// The database could not go on.
    Database(rusqlite::Error),
    /// The commit failed.
    Commit(rusqlite::Error),
}

impl From<rusqlite::Error> for Undone {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl Batch<'_> {
    /// Writes all of it, in as few attempts as it takes.
    pub(super) fn write(mut self) -> Result<Written, Error> {
        let undone = match self.attempt(Care::Together) {
            Ok(written) => return Ok(written),
            Err(undone) => undone,
        };
        self.undo();
        let lines = std::mem::take(&mut self.lines).len();
        if lines > 0 {
            tracing::warn!(
                lines,
                "log lines were dropped with a transaction that failed"
            );
        }
        // Without the lines, all else may be small enough to be written.
        if lines == 0 && !matches!(undone, Undone::Command) {
            return Err(undone.into_error());
        }
        self.attempt(Care::Apart).map_err(|undone| {
            self.undo();
            undone.into_error()
        })
    }

    fn attempt(&mut self, care: Care) -> Result<Written, Undone> {
        // One that could not even be rolled back at the time is in the way.
        roll_back(self.connection)?;
        execute(self.connection, "BEGIN IMMEDIATE")?;
        let rows_before = self.connection.total_changes();
        let mut tx = Tx {
            connection: self.connection,
            folds: self.folds,
            written: Written::default(),
        };
        for command in self.commands.iter_mut() {
            match care {
                Care::Together => match command.execute(&mut tx) {
                    Executed::Settled => {}
                    Executed::Failed => return Err(Undone::Command),
                    Executed::Broken(error) => return Err(error.into()),
                },
                Care::Apart => execute_apart(command.as_mut(), &mut tx)?,
            }
        }
        write_logs(&mut tx, self.lines);
        execute(self.connection, "COMMIT").map_err(Undone::Commit)?;
        // One that changed no row has written and synced nothing.
        tx.written.commits = u64::from(self.connection.total_changes() != rows_before);
        Ok(tx.written)
    }

    fn undo(&mut self) {
        self.folds.clear();
        if let Err(error) = roll_back(self.connection) {
            tracing::error!(%error, "a transaction could not be rolled back; the next one will try again");
        }
    }
}

/// Executes a command so that it can fail alone.
fn execute_apart(command: &mut dyn Command, tx: &mut Tx<'_>) -> rusqlite::Result<()> {
    let told = tx.told();
    execute(tx.connection, "SAVEPOINT command")?;
    match command.execute(tx) {
        Executed::Settled => {}
        Executed::Failed => {
            execute(tx.connection, "ROLLBACK TO command")?;
            tx.folds.clear();
            tx.untell(told);
        }
        Executed::Broken(error) => return Err(error),
    }
    execute(tx.connection, "RELEASE command")
}

/// Lines that cannot be written are dropped; the transaction goes on.
fn write_logs(tx: &mut Tx<'_>, lines: &[LogLine]) {
    for line in lines {
        let written = tenants::find_or_insert(tx.connection, &line.tenant)
            .and_then(|tenant| logs::insert(tx.connection, tenant, line));
        match written {
            Ok(()) => tx.written.touched.push(line.run),
            Err(fault) => {
                let error = fault.into_error("write a log line");
                tracing::warn!(run = %line.run, %error, "a log line was dropped");
            }
        }
    }
}

fn roll_back(connection: &Connection) -> rusqlite::Result<()> {
    // SQLite has rolled back by itself after some errors.
    if connection.is_autocommit() {
        Ok(())
    } else {
        execute(connection, "ROLLBACK")
    }
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}

impl Undone {
    /// What everybody in the transaction is told.
    fn into_error(self) -> Error {
        let action = "write";
        match self {
            // Only without savepoints, and then it is tried again.
            Self::Command => {
                unreachable!("a command that failed apart from the others ended their transaction")
            }
            Self::Database(error) => from_sqlite(action, &error),
            // The commit was written, and whether it is synced nobody knows: a restart might find it.
            Self::Commit(error) if is_sync_failure(&error) => Error::Unknown {
                action,
                detail: error.to_string(),
            },
            Self::Commit(error) => from_sqlite(action, &error),
        }
    }
}

/// Whether a commit failed with all of it written. A commit that could not be written whole is
/// none: the log's checksums show that.
fn is_sync_failure(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure)
        && code != Some(ffi::SQLITE_IOERR_WRITE)
}
