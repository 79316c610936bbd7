//! What the file system and SQLite allow, without anything of ours in between.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::bench::Bench;
use crate::error::Error;
use crate::figure::Figure;
use crate::sample::{Sample, micros};

const BLOCK_BYTES: usize = 4_096;
/// Written over again and again: a file that grows syncs slower than one that does not.
const FILE_BLOCKS: u32 = 1_024;
/// One small row, about as large as a journal entry with its result.
const ROW: [u8; 64] = [7; 64];
const ROWS_A_BATCH: u32 = 100;
/// As the store has it: pages in the log before it is written back and begun anew.
const LOG_PAGES: u32 = 4_096;

/// The name of a figure: how much longer a slow fdatasync takes than a fast one.
pub(crate) const UNSTEADINESS: &str = "fdatasync of 4 KiB, p90 in p10";
/// From here on a sync has no one time that anything could be compared with.
pub(crate) const UNSTEADINESS_MAX: f64 = 5.0;

/// A file and a database beside the store's.
#[derive(Debug)]
pub(crate) struct Bare {
    file: File,
    database: Connection,
}

impl Bare {
    /// Both are made as large as they get, once: the log of a host that has run for a while is
    /// written over too.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let write = Error::system("a file of 4 MiB cannot be written");
        let path = folder.join("bare");
        let file = std::fs::write(&path, vec![0; BLOCK_BYTES * FILE_BLOCKS as usize])
            .and_then(|()| File::options().write(true).open(&path))
            .and_then(|file| file.sync_all().map(|()| file))
            .map_err(write)?;
        let database = Connection::open(folder.join("bare.sqlite"))?;
        database.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        // The store's settings; see host/store/src/sqlite/writer.rs.
        database.pragma_update(None, "synchronous", "FULL")?;
        database.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
        database.execute_batch(
            "CREATE TABLE bare (id INTEGER PRIMARY KEY, row BLOB NOT NULL);
             CREATE TABLE filler (id INTEGER PRIMARY KEY, row BLOB NOT NULL);",
        )?;
        // More than the log holds in one transaction: from then on it is written over.
        let filling = database.unchecked_transaction()?;
        for _ in 0..LOG_PAGES {
            filling
                .prepare_cached("INSERT INTO filler (row) VALUES (zeroblob(4000))")?
                .execute([])?;
        }
        filling.commit()?;
        Ok(Self { file, database })
    }

    pub(crate) fn measure(&self, bench: &Bench) -> Result<Vec<Figure>, Error> {
        let syncs = self.syncs(bench.load(1_000))?;
        let commits = self.commits(bench.load(1_000))?;
        let rows = self.rows_a_second(bench.load(1_000))?;
        Ok(vec![
            Figure::new("fdatasync of 4 KiB, p50", micros(syncs.median()), "µs"),
            Figure::new(
                "fdatasync of 4 KiB, p99",
                micros(syncs.percentile(99)),
                "µs",
            ),
            Figure::new(UNSTEADINESS, unsteadiness(&syncs), "×"),
            Figure::new(
                "SQLite FULL commit of one small row, p50",
                micros(commits.median()),
                "µs",
            ),
            Figure::new(
                "SQLite FULL commit of one small row, mean",
                micros(commits.mean()),
                "µs",
            ),
            Figure::new(
                "SQLite FULL commits of one small row",
                1.0 / commits.mean().as_secs_f64(),
                "/s",
            ),
            Figure::new("rows in batches of 100", rows, "/s"),
        ])
    }

    /// Writes and syncs of one block.
    pub(crate) fn syncs(&self, count: u32) -> Result<Sample, Error> {
        let block = [7; BLOCK_BYTES];
        let mut took = Vec::new();
        for number in 0..count {
            let place = u64::from(number % FILE_BLOCKS) * BLOCK_BYTES as u64;
            let before = Instant::now();
            self.file
                .write_all_at(&block, place)
                .and_then(|()| self.file.sync_data())
                .map_err(Error::system("a block cannot be written and synced"))?;
            took.push(before.elapsed());
        }
        Ok(Sample::new(took))
    }

    /// Commits of one small row each.
    pub(crate) fn commits(&self, count: u32) -> Result<Sample, Error> {
        let mut insert = self
            .database
            .prepare_cached("INSERT INTO bare (row) VALUES (?1)")?;
        let mut took: Vec<Duration> = Vec::new();
        for _ in 0..count {
            let before = Instant::now();
            insert.execute([ROW])?;
            took.push(before.elapsed());
        }
        Ok(Sample::new(took))
    }

    /// Rows a second, a hundred to a commit.
    fn rows_a_second(&self, batches: u32) -> Result<f64, Error> {
        let began = Instant::now();
        for _ in 0..batches {
            let batch = self.database.unchecked_transaction()?;
            let mut insert = batch.prepare_cached("INSERT INTO bare (row) VALUES (?1)")?;
            for _ in 0..ROWS_A_BATCH {
                insert.execute([ROW])?;
            }
            drop(insert);
            batch.commit()?;
        }
        Ok(f64::from(batches * ROWS_A_BATCH) / began.elapsed().as_secs_f64())
    }
}

fn unsteadiness(syncs: &Sample) -> f64 {
    syncs.percentile(90).as_secs_f64() / syncs.percentile(10).as_secs_f64()
}
