//! Which layout of the journal table is best:
//! `cargo run --release -p stepwell-store --example layout [FOLDER]`.
//!
//! Bare SQLite with the settings of the store, no store around it. Each layout gets the same
//! appends of one small entry, each with the update of the run's head; figures and the choice are
//! in `README.md`.

#![allow(clippy::print_stdout, reason = "it prints a table")]
#![allow(
    clippy::cast_precision_loss,
    reason = "rates need no more digits than a double has"
)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// As long as a small `StepCompleted`, encoded.
const ENTRY: [u8; 48] = [7; 48];
/// Entries of the run that is read back, and runs that were active while it grew.
const LONG_RUN_ENTRIES: u64 = 10_000;
const LONG_RUN_NEIGHBOURS: u64 = 100;

const HEADS: &str = "CREATE TABLE heads (run BLOB NOT NULL PRIMARY KEY, tenant INTEGER NOT NULL, status TEXT NOT NULL,
    host BLOB NOT NULL, next INTEGER NOT NULL, tail INTEGER, updated_at INTEGER NOT NULL) STRICT, WITHOUT ROWID";
const INSERT_HEAD: &str = "INSERT INTO heads VALUES (?1, 1, 'running', ?1, 0, NULL, 1700000000000)";
const FIND_HEAD: &str =
    "SELECT tenant, status, host, next, tail, updated_at FROM heads WHERE run = ?1";
const UPDATE_HEAD: &str =
    "UPDATE heads SET next = ?2, tail = ?3, updated_at = 1700000000001 WHERE run = ?1";

/// A way to lay out the journal.
struct Layout {
    name: &'static str,
    create: &'static str,
    /// Of run, sequence, previous row, entry.
    insert: &'static str,
    read: Read,
}

enum Read {
    /// One query, of the run.
    InOrder(&'static str),
    /// A query per row, of the row's number, back from the tail.
    Back(&'static str),
}

const LAYOUTS: [Layout; 3] = [
    Layout {
        name: "(a) clustered by run and sequence",
        create: "CREATE TABLE journal (run BLOB NOT NULL, first INTEGER NOT NULL, tenant INTEGER NOT NULL,
            generation INTEGER NOT NULL, entries BLOB NOT NULL, PRIMARY KEY (run, first)) STRICT, WITHOUT ROWID",
        insert: "INSERT INTO journal (run, first, tenant, generation, entries) VALUES (?1, ?2, 1, iif(?3, 0, 0), ?4)",
        read: Read::InOrder("SELECT first, entries FROM journal WHERE run = ?1 ORDER BY first"),
    },
    Layout {
        name: "(b) appended, with an index",
        create: "CREATE TABLE journal (id INTEGER PRIMARY KEY, run BLOB NOT NULL, first INTEGER NOT NULL,
            tenant INTEGER NOT NULL, generation INTEGER NOT NULL, entries BLOB NOT NULL) STRICT;
            CREATE UNIQUE INDEX journal_run ON journal (run, first)",
        insert: "INSERT INTO journal (run, first, tenant, generation, entries) VALUES (?1, ?2, 1, iif(?3, 0, 0), ?4)",
        read: Read::InOrder("SELECT first, entries FROM journal WHERE run = ?1 ORDER BY first"),
    },
    Layout {
        name: "(c) appended, each row points back",
        create: "CREATE TABLE journal (id INTEGER PRIMARY KEY, previous INTEGER, first INTEGER NOT NULL,
            tenant INTEGER NOT NULL, run BLOB NOT NULL, generation INTEGER NOT NULL, entries BLOB NOT NULL) STRICT",
        insert: "INSERT INTO journal (run, first, tenant, generation, previous, entries) VALUES (?1, ?2, 1, 0, ?3, ?4)",
        read: Read::Back("SELECT previous, first, run, entries FROM journal WHERE id = ?1"),
    },
];

/// How appends come.
struct Load {
    name: &'static str,
    runs: u64,
    /// Appends in one commit, each of another run.
    batch: u64,
}

const LOADS: [Load; 4] = [
    Load {
        name: "5,000 runs, 100 a commit",
        runs: 5_000,
        batch: 100,
    },
    Load {
        name: "50,000 runs, 100 a commit",
        runs: 50_000,
        batch: 100,
    },
    Load {
        name: "200 runs, 200 a commit",
        runs: 200,
        batch: 200,
    },
    Load {
        name: "1 run, 1 a commit",
        runs: 1,
        batch: 1,
    },
];
const SPAN: Duration = Duration::from_secs(3);

fn main() -> Result<()> {
    let parent = std::env::args_os()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    println!(
        "{:36}{:28}{:>12}{:>16}",
        "layout", "load", "appends/s", "bytes an append"
    );
    for layout in &LAYOUTS {
        for load in &LOADS {
            let folder = tempfile::Builder::new()
                .prefix("stepwell-layout-")
                .tempdir_in(&parent)?;
            let (rate, bytes) = append(&folder.path().join("layout.sqlite"), layout, load)?;
            println!(
                "{:36}{:28}{rate:>12.0}{bytes:>16.0}",
                layout.name, load.name
            );
        }
    }
    println!();
    println!(
        "{:36}{:>28}{:>12}{:>16}",
        "layout", "a run of 10,000 entries", "first ms", "again ms"
    );
    for layout in &LAYOUTS {
        let folder = tempfile::Builder::new()
            .prefix("stepwell-layout-")
            .tempdir_in(&parent)?;
        let (first, again) = read_back(&folder.path().join("layout.sqlite"), layout)?;
        println!("{:36}{:>28}{first:>12.1}{again:>16.1}", layout.name, "");
    }
    Ok(())
}

/// A journal under one layout, and where each run's journal ends.
struct Journal {
    connection: Connection,
    insert: &'static str,
    tails: Vec<(u64, Option<i64>)>,
}

impl Journal {
    fn create(file: &Path, layout: &Layout, runs: u64) -> Result<Self> {
        let connection = Connection::open(file)?;
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.pragma_update(None, "cache_size", -64 * 1024)?;
        connection.pragma_update(None, "wal_autocheckpoint", 8_192)?;
        connection.execute_batch(HEADS)?;
        connection.execute_batch(layout.create)?;
        connection.execute_batch("BEGIN")?;
        for run in 0..runs {
            connection
                .prepare_cached(INSERT_HEAD)?
                .execute([key(run)])?;
        }
        connection.execute_batch("COMMIT")?;
        let tails = vec![(0, None); usize::try_from(runs)?];
        Ok(Self {
            connection,
            insert: layout.insert,
            tails,
        })
    }

    fn append(&mut self, runs: impl Iterator<Item = u64>) -> Result<()> {
        self.connection
            .prepare_cached("BEGIN IMMEDIATE")?
            .execute([])?;
        for run in runs {
            // As the store does: the condition is read, then the row and the head are written.
            let mut find = self.connection.prepare_cached(FIND_HEAD)?;
            let _next: i64 = find.query_row([key(run)], |row| row.get(3))?;
            let (next, tail) = &mut self.tails[usize::try_from(run)?];
            let mut insert = self.connection.prepare_cached(self.insert)?;
            insert.execute((key(run), i64::try_from(*next)?, *tail, ENTRY))?;
            *next += 1;
            *tail = Some(self.connection.last_insert_rowid());
            let mut update = self.connection.prepare_cached(UPDATE_HEAD)?;
            update.execute((key(run), i64::try_from(*next)?, *tail))?;
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }
}

/// Appends a second, and bytes that each adds to the write-ahead log.
fn append(file: &Path, layout: &Layout, load: &Load) -> Result<(f64, f64)> {
    let mut journal = Journal::create(file, layout, load.runs)?;
    // So many entries that each run has pages of its own, where the layout gives it some.
    let mut picks = Picks::default();
    for _ in 0..(load.runs * 40 / load.batch).min(20_000) {
        journal.append(picks.distinct(load))?;
    }
    journal
        .connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    journal
        .connection
        .pragma_update(None, "synchronous", "FULL")?;

    let began = Instant::now();
    let mut appends = 0;
    let mut log_bytes = 0;
    let log = file.with_extension("sqlite-wal");
    while began.elapsed() < SPAN {
        journal.append(picks.distinct(load))?;
        appends += load.batch;
        // Before it is reused from its beginning for the first time, it is as long as what was written.
        if log_bytes == 0 && appends >= 20 * load.batch {
            log_bytes = std::fs::metadata(&log)?.len() / appends;
        }
    }
    Ok((
        appends as f64 / began.elapsed().as_secs_f64(),
        log_bytes as f64,
    ))
}

/// Milliseconds that it takes to read one long run on a new connection, and again.
fn read_back(file: &Path, layout: &Layout) -> Result<(f64, f64)> {
    let mut journal = Journal::create(file, layout, LONG_RUN_NEIGHBOURS)?;
    for _ in 0..LONG_RUN_ENTRIES {
        journal.append(0..LONG_RUN_NEIGHBOURS)?;
    }
    let tail = journal.tails[7].1;
    drop(journal);
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.pragma_update(None, "cache_size", -64 * 1024)?;
    let mut millis = Vec::new();
    for _ in 0..3 {
        let began = Instant::now();
        let entries = read(&connection, &layout.read, 7, tail)?;
        assert_eq!(entries as u64, LONG_RUN_ENTRIES);
        millis.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok((millis[0], millis[2]))
}

fn read(connection: &Connection, read: &Read, run: u64, tail: Option<i64>) -> Result<usize> {
    let mut entries = Vec::new();
    match read {
        Read::InOrder(sql) => {
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query([key(run)])?;
            while let Some(row) = rows.next()? {
                entries.push(row.get_ref(1)?.as_blob()?.to_vec());
            }
        }
        Read::Back(sql) => {
            let mut statement = connection.prepare_cached(sql)?;
            let mut at = tail;
            while let Some(id) = at {
                let mut rows = statement.query([id])?;
                let row = rows.next()?.ok_or("a row is missing")?;
                at = row.get(0)?;
                entries.push(row.get_ref(3)?.as_blob()?.to_vec());
            }
            entries.reverse();
        }
    }
    Ok(entries.len())
}

/// Run ids as the host makes them: a time, then bits without order. One in a hundred of a second
/// starts, so neighbours in time are neighbours in the table.
fn key(run: u64) -> [u8; 16] {
    let mixed = run.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (u128::from(0x0192_0000_0000_0000 + (run << 16)) << 64 | u128::from(mixed)).to_be_bytes()
}

/// Draws runs, the same ones for every layout.
#[derive(Default)]
struct Picks(u64);

impl Picks {
    /// A batch of distinct runs without order.
    fn distinct(&mut self, load: &Load) -> impl Iterator<Item = u64> + use<> {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let (start, runs) = ((self.0 >> 33) % load.runs, load.runs);
        // A stride without a common factor with the number of runs meets no run twice.
        let stride = if runs % 7_919 == 0 { 7_927 } else { 7_919 };
        (0..load.batch).map(move |pick| (start + pick * stride) % runs)
    }
}
