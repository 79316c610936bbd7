//! Opens the database and brings its schema up to date, or says why this release cannot.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use sha2::{Digest, Sha256};

use super::fault::from_sqlite;
use super::writer;
use crate::error::Error;

/// A numbered step of the schema. Released ones are never edited: databases have run them.
struct Migration {
    number: u32,
    name: &'static str,
    sql: &'static str,
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 1,
    name: "initial",
    sql: include_str!("../../migrations/sqlite/0001_initial.sql"),
}];

/// Marks the file as ours: "SWL1".
const APPLICATION_ID: i32 = 0x5357_4c31;

const ACTION: &str = "open the database";

const CREATE: &str = "CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 BLOB NOT NULL) STRICT";
const LIST: &str = "SELECT number, sha256 FROM migrations ORDER BY number";
const INSERT: &str = "INSERT INTO migrations (number, name, sha256) VALUES (?1, ?2, ?3)";

/// Opens the database for writing, created if need be, with the schema of this release.
pub(super) fn open(file: &Path) -> Result<Connection, Error> {
    migrated(file, MIGRATIONS).map_err(|problem| match problem {
        Problem::Answer(error) => error,
        Problem::Sqlite(error) => match from_sqlite(ACTION, &error) {
            Error::Damaged { detail, .. } => Error::Damaged {
                what: file.display().to_string(),
                detail,
            },
            error => error,
        },
    })
}

enum Problem {
    Answer(Error),
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

fn migrated(file: &Path, migrations: &[Migration]) -> Result<Connection, Problem> {
    let name = || file.display().to_string();
    let mut connection = Connection::open(file)?;
    // The first read of the file: finds out whether it is a database at all.
    let application: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && objects > 0 {
        let detail =
            format!("it is a database of another program (application id {application:#010x})");
        return Err(Problem::Answer(Error::Damaged {
            what: name(),
            detail,
        }));
    }
    // Readers never block, and a commit appends to one file and syncs that.
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        let detail = format!(
            "{} is on a file system without shared memory, which its log needs; choose a local disk",
            name()
        );
        return Err(Problem::Answer(Error::Unavailable {
            action: ACTION,
            detail,
        }));
    }
    writer::configure(&connection)?;

    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if objects == 0 {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    transaction.execute(CREATE, [])?;
    let mut applied: Vec<(u32, Vec<u8>)> = Vec::new();
    {
        let mut statement = transaction.prepare(LIST)?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            applied.push((row.get(0)?, row.get(1)?));
        }
    }
    let known = migrations.last().map_or(0, |migration| migration.number);
    if let Some((found, _)) = applied.last().filter(|(found, _)| *found > known) {
        return Err(Problem::Answer(Error::Newer {
            file: name(),
            found: *found,
            known,
        }));
    }
    for migration in migrations {
        let sha256: [u8; 32] = Sha256::digest(migration.sql).into();
        match applied
            .iter()
            .find(|(number, _)| *number == migration.number)
        {
            Some((_, found)) if *found == sha256 => {}
            Some(_) => {
                return Err(Problem::Answer(Error::MigrationChanged {
                    file: name(),
                    number: migration.number,
                }));
            }
            None => {
                transaction.execute_batch(migration.sql)?;
                transaction.execute(INSERT, (migration.number, migration.name, sha256))?;
            }
        }
    }
    transaction.commit()?;
    check(&connection)?;
    Ok(connection)
}

/// Looks at one row of each end of the largest tables: cheap, and enough to find a file that was
/// cut short. Rows in between are checked when they are read.
fn check(connection: &Connection) -> Result<(), Problem> {
    for table in ["journal", "heads", "runs"] {
        for order in ["ASC", "DESC"] {
            let key = if table == "journal" { "id" } else { "run" };
            let sql = format!("SELECT {key} FROM {table} ORDER BY {key} {order} LIMIT 1");
            connection.query_row(&sql, [], |_| Ok(())).optional()?;
        }
    }
    Ok(())
}
