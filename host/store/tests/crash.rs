//! A host that is killed, and a disk that is full: no acknowledged append is lost, and none is
//! made up. The host is this test program, started again with one of its tests as the main thing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
#![allow(
    clippy::print_stdout,
    reason = "the child tells its parent what was acknowledged"
)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use stepwell_core::id::{Epoch, EventId, Sequence};
use stepwell_store::{Append, Error, SqliteStore, Then};

#[allow(
    dead_code,
    reason = "shared with the contract suite, which uses all of it"
)]
#[path = "contract/support.rs"]
mod support;

use support::{World, at, run, step};

const FOLDER: &str = "STEPWELL_TEST_FOLDER";
const RUNS: u128 = 8;

/// Starts this program again as a host that appends until it is killed or refused.
fn child(folder: &Path, shell: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", shell])
        .arg(std::env::current_exe().unwrap())
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

const APPEND: &str =
    "exec \"$0\" --exact a_host_that_appends_until_it_is_stopped --nocapture --test-threads 1";

/// Not a test by itself: the child's part of the tests below.
#[test]
fn a_host_that_appends_until_it_is_stopped() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let store = Arc::new(SqliteStore::open(Path::new(&folder)).unwrap());
        let world = Arc::new(World::over(store).await);
        let mut tasks = Vec::new();
        for number in 0..RUNS {
            world.drive(number, 10).await;
            let world = Arc::clone(&world);
            tasks.push(tokio::task::spawn_local(async move {
                append_all(&world, number).await;
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
}

async fn append_all(world: &World, number: u128) {
    for next in 0.. {
        let append = Append {
            run: run(number),
            epoch: Epoch(1),
            next: Sequence(next),
            entries: vec![step(20, u32::try_from(next).unwrap())],
            inbox_seen: EventId(0),
            cancel_seen: false,
            then: Then::Run,
            at: at(20),
        };
        match world.store.append(append).await {
            Ok(()) => println!("\nacknowledged {number} {}", next + 1),
            Err(Error::Unavailable { detail, .. }) => {
                println!("\nrefused {number} {detail}");
                break;
            }
            Err(other) => panic!("{other}"),
        }
    }
    // What was refused is not there for readers either, and reading goes on.
    let entries = world.run(number).await.entries;
    println!("\nshown {number} {}", entries.0);
}

/// What the child said: the length of each journal as last acknowledged, and all lines.
fn heard(lines: impl Iterator<Item = String>) -> (Vec<u64>, Vec<String>) {
    let mut acknowledged = vec![0; RUNS as usize];
    let mut all = Vec::new();
    for line in lines {
        if let Some(rest) = line.strip_prefix("acknowledged ") {
            let (number, length) = rest.split_once(' ').unwrap();
            acknowledged[number.parse::<usize>().unwrap()] = length.parse().unwrap();
        }
        all.push(line);
    }
    (acknowledged, all)
}

/// Each journal is there as far as it was acknowledged, whole, and at most one append longer.
async fn check(folder: &Path, acknowledged: &[u64]) {
    let world = World {
        store: Arc::new(SqliteStore::open(folder).unwrap()),
        folder: None,
    };
    for (number, acknowledged) in (0..).zip(acknowledged) {
        let entries = world.history(number).await;
        let length = entries.len() as u64;
        assert!(
            (*acknowledged..=acknowledged + 1).contains(&length),
            "{acknowledged} acknowledged, {length} there"
        );
        let expected: Vec<_> = (0..entries.len())
            .map(|at| step(20, u32::try_from(at).unwrap()))
            .collect();
        assert_eq!(entries, expected);
    }
}

#[tokio::test]
async fn a_killed_host_has_lost_no_acknowledged_append() {
    for after_ms in [150, 400] {
        let folder = tempfile::tempdir().unwrap();
        let mut host = child(folder.path(), APPEND).spawn().unwrap();
        let lines = BufReader::new(host.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let mut lines = lines.peekable();
        // The first acknowledgement, then a while of work.
        while lines
            .next_if(|line| !line.starts_with("acknowledged"))
            .is_some()
        {}
        std::thread::sleep(Duration::from_millis(after_ms));
        host.kill().unwrap();
        let (acknowledged, _) = heard(lines);
        host.wait().unwrap();
        assert!(acknowledged.iter().sum::<u64>() > 0);
        check(folder.path(), &acknowledged).await;
    }
}

#[tokio::test]
async fn a_host_that_may_write_no_more_has_lost_no_acknowledged_append() {
    let folder = tempfile::tempdir().unwrap();
    // No file may grow beyond 512 KiB; with the signal ignored, writing fails like on a full disk.
    let limited = format!("trap '' XFSZ; ulimit -f 1024; {APPEND}");
    let host = child(folder.path(), &limited).output().unwrap();
    let (acknowledged, all) = heard(BufReader::new(&*host.stdout).lines().map_while(Result::ok));
    assert!(host.status.success(), "{all:?}");
    let refused = all
        .iter()
        .filter(|line| line.starts_with("refused"))
        .count();
    assert_eq!(refused, RUNS as usize, "{all:?}");
    for (number, acknowledged) in acknowledged.iter().enumerate() {
        assert!(*acknowledged > 0);
        let shown = format!("shown {number} {acknowledged}");
        assert!(all.contains(&shown), "{shown} is missing");
    }
    check(folder.path(), &acknowledged).await;
}
