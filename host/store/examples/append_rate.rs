//! How fast journals grow: `cargo run --release -p stepwell-store --example append_rate [FOLDER]`.
//!
//! Prints three rates on the file system of FOLDER (the system's temporary folder unless given):
//! bare commits of one small row, which is what the disk allows; appends one after another; and
//! appends of many runs at once, which share commits.

#![allow(clippy::print_stdout, reason = "it prints a table")]
#![allow(
    clippy::cast_precision_loss,
    reason = "rates need no more digits than a double has"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stepwell_core::id::{
    ComponentDigest, Epoch, EventId, HostId, Operation, RunId, Sequence, TenantName, VersionLabel,
    WorkflowName,
};
use stepwell_core::journal::{Entry, Record};
use stepwell_core::payload::Payload;
use stepwell_core::time::Timestamp;
use stepwell_store::{Append, NewRun, NewVersion, SqliteStore, Started, Store, Then};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How long each rate is measured.
const SPAN: Duration = Duration::from_secs(4);
/// Rounds of bare commits and sequential appends, in turns, since disks are moody.
const ROUNDS: u32 = 40;
const CONCURRENT_RUNS: u32 = 200;
const AT: Timestamp = Timestamp::from_ms(1_700_000_000_000);

fn main() -> Result<()> {
    let parent = std::env::args_os()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::Builder::new()
        .prefix("stepwell-append-rate-")
        .tempdir_in(parent)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let store = Arc::new(SqliteStore::open(&folder.path().join("store"))?);
    let version = runtime.block_on(register(&*store))?;

    let (mut bare, mut sequential) = (Rate::default(), Rate::default());
    let mut run = runtime.block_on(start(&*store, &version, 0))?;
    let database = bare_database(folder.path())?;
    for _ in 0..ROUNDS {
        bare.add(bare_commits(&database, SPAN / ROUNDS)?);
        let commits_before = store.counts().commits;
        let measured = runtime.block_on(appends(&*store, &mut run, SPAN / ROUNDS))?;
        let commits = store.counts().commits - commits_before;
        assert_eq!(
            commits,
            measured.took.len() as u64,
            "a sequential append costs one commit"
        );
        sequential.add(measured);
    }

    let commits_before = store.counts().commits;
    let mut concurrent = runtime.block_on(async {
        let mut tasks = Vec::new();
        for number in 1..=CONCURRENT_RUNS {
            let mut run = start(&*store, &version, number).await?;
            let store = Arc::clone(&store);
            tasks.push(tokio::spawn(async move {
                appends(&*store, &mut run, SPAN).await
            }));
        }
        let mut all = Rate::default();
        for task in tasks {
            all.add(task.await??);
        }
        // They ran side by side.
        all.span = SPAN;
        Result::Ok(all)
    })?;
    let commits = store.counts().commits - commits_before;

    println!(
        "{:34}{:>10}{:>10}{:>9}{:>9}{:>9}",
        "", "a second", "µs each", "p50 µs", "p99 µs", "max µs"
    );
    bare.print("bare commits of one small row");
    sequential.print("appends one after another");
    concurrent.print(&format!("appends of {CONCURRENT_RUNS} runs at once"));
    println!();
    println!(
        "an append one after another costs {:.2} × a bare commit (medians)",
        sequential.median() / bare.median()
    );
    println!(
        "{:.0} appends of {CONCURRENT_RUNS} runs at once share a commit",
        concurrent.count() / commits as f64
    );
    Ok(())
}

/// How long each of many calls took.
#[derive(Default)]
struct Rate {
    took: Vec<Duration>,
    span: Duration,
}

impl Rate {
    fn add(&mut self, other: Self) {
        self.took.extend(other.took);
        self.span += other.span;
    }

    fn count(&self) -> f64 {
        self.took.len() as f64
    }

    fn micros(&self) -> f64 {
        self.span.as_secs_f64() * 1e6 / self.count()
    }

    /// Of what was printed, since that sorts.
    fn median(&self) -> f64 {
        self.took[(self.took.len() - 1) / 2].as_secs_f64()
    }

    fn print(&mut self, name: &str) {
        self.took.sort_unstable();
        let percentile = |share: usize| self.took[(self.took.len() - 1) * share / 100].as_micros();
        println!(
            "{name:34}{:>10.0}{:>10.2}{:>9}{:>9}{:>9}",
            self.count() / self.span.as_secs_f64(),
            self.micros(),
            percentile(50),
            percentile(99),
            percentile(100),
        );
    }
}

/// A database with the store's settings and one table. Kept open all the while, like the store: a
/// log that is written over syncs faster than one that grows.
fn bare_database(folder: &Path) -> Result<rusqlite::Connection> {
    let connection = rusqlite::Connection::open(folder.join("bare.sqlite"))?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 4_096)?;
    connection.execute(
        "CREATE TABLE bare (id INTEGER PRIMARY KEY, row BLOB NOT NULL)",
        [],
    )?;
    Ok(connection)
}

fn bare_commits(connection: &rusqlite::Connection, span: Duration) -> Result<Rate> {
    let mut statement = connection.prepare_cached("INSERT INTO bare (row) VALUES (?1)")?;
    let began = Instant::now();
    let mut took = Vec::new();
    while began.elapsed() < span {
        let before = Instant::now();
        statement.execute([[7_u8; 64]])?;
        took.push(before.elapsed());
    }
    Ok(Rate {
        took,
        span: began.elapsed(),
    })
}

async fn register(store: &impl Store) -> Result<NewVersion> {
    let version = NewVersion {
        tenant: "bench".parse::<TenantName>()?,
        label: "1".parse::<VersionLabel>()?,
        digest: ComponentDigest::from_bytes([1; 32]),
        component: Arc::from(&b"no component"[..]),
        workflows: vec![("order".parse::<WorkflowName>()?, "{}".to_owned())],
        environment: Vec::new(),
        at: AT,
    };
    store.register(version.clone()).await?;
    store
        .renew_lease(HostId::from_raw(1), Timestamp::from_ms(u64::MAX))
        .await?;
    Ok(version)
}

/// Where a run's journal ends.
struct Running {
    run: RunId,
    epoch: Epoch,
    next: Sequence,
}

async fn start(store: &impl Store, version: &NewVersion, number: u32) -> Result<Running> {
    let run = RunId::from_raw(0x0192_0000_0000_7000_8000_0000_0000_0000 + u128::from(number));
    let new = NewRun {
        tenant: version.tenant.clone(),
        run,
        workflow: version.workflows[0].0.clone(),
        label: version.label.clone(),
        digest: version.digest,
        input: Payload::null(),
        input_digest: [0; 32],
        idempotency_key: None,
        start_at: None,
        at: AT,
    };
    match store.start(new, Some(HostId::from_raw(1))).await? {
        Started::Created(Some(claim)) => Ok(Running {
            run,
            epoch: claim.epoch,
            next: claim.next,
        }),
        other => Err(format!("the run was not claimed: {other:?}").into()),
    }
}

/// Appends one entry after another for a while.
async fn appends(store: &impl Store, run: &mut Running, span: Duration) -> Result<Rate> {
    let began = Instant::now();
    let mut took = Vec::new();
    while began.elapsed() < span {
        let record = Record::StepCompleted {
            operation: Operation(u32::try_from(run.next.0)?),
            name: "charge".to_owned(),
            attempts: 1,
            output: Payload::Json("{\"charged\":4200}".to_owned()),
        };
        let append = Append {
            run: run.run,
            epoch: run.epoch,
            next: run.next,
            entries: vec![Entry { at: AT, record }],
            inbox_seen: EventId(0),
            cancel_seen: false,
            then: Then::Run,
            at: AT,
        };
        let before = Instant::now();
        store.append(append).await?;
        took.push(before.elapsed());
        run.next = run.next.plus(1);
    }
    Ok(Rate {
        took,
        span: began.elapsed(),
    })
}
