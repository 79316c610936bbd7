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
#[derive(Clone, Copy)]
struct Layout {
    name: &'static str,
    create: &'static str,
    /// Of run, sequence, previous row, entries.
    insert: &'static str,
    read: Read,
    /// Every so many rows, one takes the place of all of them.
    fold: Option<u64>,
}

#[derive(Clone, Copy)]
enum Read {
    /// One query, of the run.
    InOrder(&'static str),
    /// A query per row, of the row's number, back from the tail.
    Back(&'static str),
}

const IN_ORDER: Read = Read::InOrder("SELECT entries FROM journal WHERE run = ?1 ORDER BY first");
const INSERT_IN_ORDER: &str = "INSERT INTO journal (run, first, tenant, generation, entries) VALUES (?1, ?2, 1, iif(?3, 0, 0), ?4)";
const POINTING_BACK: Layout = Layout {
    name: "(c) appended, pointing back",
    create: "CREATE TABLE journal (id INTEGER PRIMARY KEY, previous INTEGER, folded INTEGER, first INTEGER NOT NULL,
        tenant INTEGER NOT NULL, run BLOB NOT NULL, generation INTEGER NOT NULL, entries BLOB NOT NULL) STRICT",
    insert: "INSERT INTO journal (run, first, tenant, generation, previous, entries) VALUES (?1, ?2, 1, 0, ?3, ?4)",
    read: Read::Back("SELECT previous, entries FROM journal WHERE id = ?1"),
    fold: None,
};

const LAYOUTS: [Layout; 4] = [
    Layout {
        name: "(a) clustered by run",
        create: "CREATE TABLE journal (run BLOB NOT NULL, first INTEGER NOT NULL, tenant INTEGER NOT NULL,
            generation INTEGER NOT NULL, entries BLOB NOT NULL, PRIMARY KEY (run, first)) STRICT, WITHOUT ROWID",
        insert: INSERT_IN_ORDER,
        read: IN_ORDER,
        fold: None,
    },
    Layout {
        name: "(b) appended, with an index",
        create: "CREATE TABLE journal (id INTEGER PRIMARY KEY, run BLOB NOT NULL, first INTEGER NOT NULL,
            tenant INTEGER NOT NULL, generation INTEGER NOT NULL, entries BLOB NOT NULL) STRICT;
            CREATE UNIQUE INDEX journal_run ON journal (run, first)",
        insert: INSERT_IN_ORDER,
        read: IN_ORDER,
        fold: None,
    },
    POINTING_BACK,
    Layout { name: "(d) as (c), every 64 rows folded", fold: Some(64), ..POINTING_BACK },
];

/// How appends come.
struct Load {
    name: &'static str,
    runs: u64,
    /// Appends in one commit, each of another run.
    batch: u64,
}

const LOADS: [Load; 3] = [
    Load {
        name: "5,000 runs, 100 a commit",
        runs: 5_000,
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
/// Rounds in which the layouts take turns, each for this long; the best round counts, since
/// whatever else the machine does only slows a round down.
const ROUNDS: usize = 4;
const SPAN: Duration = Duration::from_millis(700);

fn main() -> Result<()> {
    let parent = std::env::args_os()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    println!(
        "{:34}{:28}{:>12}{:>16}",
        "layout", "load", "appends/s", "bytes an append"
    );
    for load in &LOADS {
        let folder = tempfile::Builder::new()
            .prefix("stepwell-layout-")
            .tempdir_in(&parent)?;
        let mut journals = Vec::new();
        for (number, layout) in LAYOUTS.iter().enumerate() {
            let file = folder.path().join(format!("layout-{number}.sqlite"));
            let mut journal = Journal::create(&file, *layout, load.runs)?;
            journal.grow(load)?;
            let bytes = journal.bytes_an_append(&file, load)?;
            journals.push((journal, bytes, 0.0));
        }
        for _ in 0..ROUNDS {
            for (journal, _, best) in &mut journals {
                *best = journal.rate(load)?.max(*best);
            }
        }
        for (journal, bytes, best) in journals {
            println!(
                "{:34}{:28}{best:>12.0}{bytes:>16.0}",
                journal.layout.name, load.name
            );
        }
    }
    println!();
    println!(
        "{:34}{:28}{:>12}{:>16}",
        "layout", "a run of 10,000 entries", "first ms", "again ms"
    );
    for layout in LAYOUTS {
        let folder = tempfile::Builder::new()
            .prefix("stepwell-layout-")
            .tempdir_in(&parent)?;
        let (first, again) = read_back(&folder.path().join("layout.sqlite"), layout)?;
        println!("{:34}{:28}{first:>12.1}{again:>16.1}", layout.name, "");
    }
    Ok(())
}

/// A journal under one layout.
struct Journal {
    layout: Layout,
    connection: Connection,
    runs: Vec<Run>,
    picks: Picks,
}

/// Where a run's journal ends.
#[derive(Clone, Default)]
struct Run {
    next: u64,
    tail: Option<i64>,
    /// The row before those that are not folded, and their entries.
    before: Option<i64>,
    unfolded: Vec<u8>,
}

impl Journal {
    fn create(file: &Path, layout: Layout, runs: u64) -> Result<Self> {
        let connection = Connection::open(file)?;
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.pragma_update(None, "cache_size", -64 * 1024)?;
        connection.pragma_update(None, "wal_autocheckpoint", 4_096)?;
        connection.execute_batch(HEADS)?;
        connection.execute_batch(layout.create)?;
        connection.execute_batch("BEGIN")?;
        for run in 0..runs {
            connection
                .prepare_cached(INSERT_HEAD)?
                .execute([key(run)])?;
        }
        connection.execute_batch("COMMIT")?;
        let runs = vec![Run::default(); usize::try_from(runs)?];
        Ok(Self {
            layout,
            connection,
            runs,
            picks: Picks::default(),
        })
    }

    /// So many entries that each run has pages of its own, where the layout gives it some.
    fn grow(&mut self, load: &Load) -> Result<()> {
        for _ in 0..(load.runs * 40 / load.batch).min(20_000) {
            self.commit(load)?;
        }
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(())
    }

    /// What an append adds to the write-ahead log.
    fn bytes_an_append(&mut self, file: &Path, load: &Load) -> Result<f64> {
        // As many commits as make every run fold once, where the layout folds, but no checkpoint.
        let commits = (load.runs * 64 / load.batch).clamp(64, 20_000);
        self.connection
            .pragma_update(None, "wal_autocheckpoint", 0)?;
        self.connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        self.connection.pragma_update(None, "synchronous", "OFF")?;
        for _ in 0..commits {
            self.commit(load)?;
        }
        let bytes = std::fs::metadata(file.with_extension("sqlite-wal"))?.len();
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        self.connection
            .pragma_update(None, "wal_autocheckpoint", 4_096)?;
        self.connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(bytes as f64 / (commits * load.batch) as f64)
    }

    /// Appends a second.
    fn rate(&mut self, load: &Load) -> Result<f64> {
        let began = Instant::now();
        let mut appends = 0;
        while began.elapsed() < SPAN {
            self.commit(load)?;
            appends += load.batch;
        }
        Ok(appends as f64 / began.elapsed().as_secs_f64())
    }

    fn commit(&mut self, load: &Load) -> Result<()> {
        let runs = self.picks.distinct(load);
        self.append(runs)
    }

    fn append(&mut self, runs: impl Iterator<Item = u64>) -> Result<()> {
        self.connection
            .prepare_cached("BEGIN IMMEDIATE")?
            .execute([])?;
        for number in runs {
            // As the store does: the condition is read, then the row and the head are written.
            let mut find = self.connection.prepare_cached(FIND_HEAD)?;
            let _next: i64 = find.query_row([key(number)], |row| row.get(3))?;
            let run = &mut self.runs[usize::try_from(number)?];
            let mut insert = self.connection.prepare_cached(self.layout.insert)?;
            run.unfolded.extend_from_slice(&ENTRY);
            let rows = (run.unfolded.len() / ENTRY.len()) as u64;
            if self.layout.fold == Some(rows) {
                let first = run.next + 1 - rows;
                insert.execute((
                    key(number),
                    i64::try_from(first)?,
                    run.before,
                    &*run.unfolded,
                ))?;
                run.before = Some(self.connection.last_insert_rowid());
                run.unfolded.clear();
            } else {
                insert.execute((key(number), i64::try_from(run.next)?, run.tail, ENTRY))?;
                if self.layout.fold.is_none() {
                    run.unfolded.clear();
                }
            }
            run.next += 1;
            run.tail = Some(self.connection.last_insert_rowid());
            let mut update = self.connection.prepare_cached(UPDATE_HEAD)?;
            update.execute((key(number), i64::try_from(run.next)?, run.tail))?;
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }
}

/// Milliseconds that it takes to read one long run on a new connection, and again.
fn read_back(file: &Path, layout: Layout) -> Result<(f64, f64)> {
    let mut journal = Journal::create(file, layout, LONG_RUN_NEIGHBOURS)?;
    for _ in 0..LONG_RUN_ENTRIES {
        journal.append(0..LONG_RUN_NEIGHBOURS)?;
    }
    let tail = journal.runs[7].tail;
    drop(journal);
    let (mut first, mut again) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.pragma_update(None, "cache_size", -64 * 1024)?;
        for best in [&mut first, &mut again] {
            let began = Instant::now();
            let entries = read(&connection, layout.read, 7, tail)?;
            *best = best.min(began.elapsed().as_secs_f64() * 1e3);
            assert_eq!(entries as u64, LONG_RUN_ENTRIES);
        }
    }
    Ok((first, again))
}

/// Reads a run's entries in order and counts them.
fn read(connection: &Connection, read: Read, run: u64, tail: Option<i64>) -> Result<usize> {
    let mut rows = Vec::new();
    match read {
        Read::InOrder(sql) => {
            let mut statement = connection.prepare_cached(sql)?;
            let mut found = statement.query([key(run)])?;
            while let Some(row) = found.next()? {
                rows.push(row.get_ref(0)?.as_blob()?.to_vec());
            }
        }
        Read::Back(sql) => {
            let mut statement = connection.prepare_cached(sql)?;
            let mut at = tail;
            while let Some(id) = at {
                let mut found = statement.query([id])?;
                let row = found.next()?.ok_or("a row is missing")?;
                at = row.get(0)?;
                rows.push(row.get_ref(1)?.as_blob()?.to_vec());
            }
            rows.reverse();
        }
    }
    Ok(rows.iter().map(|row| row.len() / ENTRY.len()).sum())
}

/// Run ids as the host makes them: a time, then bits without order. Runs that were started one
/// after the other are neighbours in every table that has their id first.
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
