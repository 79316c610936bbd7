//! What only a store in a file has to promise: the lock, the schema, damage, restarts, and what a
//! commit costs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use stepwell_core::id::{EventId, RunId, Sequence};
use stepwell_core::run::Status;
use stepwell_store::{Error, Message, RunFilter, SqliteStore, Store, Then};
use tempfile::TempDir;

#[allow(
    dead_code,
    reason = "shared with the contract suite, which uses all of it"
)]
#[path = "contract/support.rs"]
mod support;

use support::{
    Driven, World, acme, at, attempt, completed, event, host, run, sleeping_until, step,
    waiting_for,
};

const DATABASE: &str = "stepwell.sqlite";

/// A world whose folder outlives it.
async fn world(folder: &TempDir) -> World {
    World::over(Arc::new(SqliteStore::open(folder.path()).unwrap())).await
}

fn reopened(folder: &TempDir) -> World {
    World {
        store: Arc::new(SqliteStore::open(folder.path()).unwrap()),
        folder: None,
    }
}

fn database(folder: &TempDir) -> Connection {
    Connection::open(folder.path().join(DATABASE)).unwrap()
}

async fn appended(driven: &mut Driven<'_>, entries: u32) {
    for number in 0..entries {
        driven.append(20, vec![step(20, number)], Then::Run).await;
    }
}

#[tokio::test]
async fn a_folder_belongs_to_one_host_until_that_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let first = SqliteStore::open(folder.path()).unwrap();
    let second = SqliteStore::open(folder.path());
    assert!(matches!(second, Err(Error::InUse { .. })), "{second:?}");
    drop(first);
    SqliteStore::open(folder.path()).unwrap();
}

#[tokio::test]
async fn the_folder_and_its_files_are_for_their_owner_only() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("a/b");
    let _store = SqliteStore::open(&folder).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for file in fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn a_restart_keeps_everything() {
    let folder = tempfile::tempdir().unwrap();
    let before = world(&folder).await;
    let mut driven = before.drive(1, 10).await;
    appended(&mut driven, 100).await;
    before.accepted(1, event("paid"), 30).await;
    driven.end(40, completed()).await.unwrap();
    before
        .drive(2, 10)
        .await
        .suspend(20, sleeping_until(500))
        .await;
    before
        .drive(3, 10)
        .await
        .append(
            20,
            Vec::new(),
            Then::Stick {
                reason: "no".to_owned(),
            },
        )
        .await;
    before.accepted(2, Message::Pause, 30).await;
    let read = |world: &World| {
        let store = Arc::clone(&world.store);
        async move {
            let filter = RunFilter {
                limit: 10,
                ..RunFilter::default()
            };
            let mut read = vec![
                format!("{:?}", store.versions(&acme()).await.unwrap()),
                format!("{:?}", store.runs(&acme(), filter).await.unwrap()),
                format!("{:?}", store.due(at(0), at(1_000), 10).await.unwrap()),
            ];
            for number in 1..=3 {
                read.push(format!(
                    "{:?}",
                    store
                        .history(&acme(), run(number), Sequence(0), 500)
                        .await
                        .unwrap()
                ));
                read.push(format!(
                    "{:?}",
                    store.events(&acme(), run(number)).await.unwrap()
                ));
                read.push(format!(
                    "{:?}",
                    store.inbox(run(number), EventId(0)).await.unwrap()
                ));
            }
            read
        }
    };
    let expected = read(&before).await;
    drop(before);
    assert_eq!(read(&reopened(&folder)).await, expected);
}

#[tokio::test]
async fn a_restart_takes_all_runs_from_the_hosts_before() {
    let folder = tempfile::tempdir().unwrap();
    let before = world(&folder).await;
    let _running = before.drive(1, 10).await;
    let resident = stepwell_store::Suspension {
        release: false,
        ..sleeping_until(500)
    };
    before.drive(2, 10).await.suspend(20, resident).await;
    let met = stepwell_store::Suspension {
        release: false,
        ..waiting_for(&["paid"])
    };
    before.drive(3, 10).await.suspend(20, met).await;
    before.accepted(3, event("paid"), 30).await;
    drop(before);

    let after = reopened(&folder);
    assert_eq!(after.status(1).await, Status::Queued);
    assert_eq!(after.run(1).await.host, None);
    assert_eq!(
        after.store.due(at(0), at(1_000), 10).await.unwrap(),
        [(at(500), run(2))]
    );
    // The host before is not known any more, though its lease has not run out.
    assert!(after.claim(40).await.is_empty());
    after.store.renew_lease(host(2), at(1_000)).await.unwrap();
    let claims = after.store.claim(host(2), at(40), 10).await.unwrap();
    let lost: Vec<_> = claims
        .iter()
        .map(|claim| (claim.run.raw(), claim.host_lost))
        .collect();
    assert_eq!(lost, [(1, true), (3, false)]);
}

#[tokio::test]
async fn a_sequential_append_costs_one_commit() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(&folder).await;
    let mut driven = world.drive(1, 10).await;
    let before = world.store.counts();
    appended(&mut driven, 200).await;
    let after = world.store.counts();
    assert_eq!(
        (
            after.commits - before.commits,
            after.entries - before.entries
        ),
        (200, 200)
    );
}

#[tokio::test]
async fn what_is_refused_costs_no_commit() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(&folder).await;
    let mut driven = world.drive(1, 10).await;
    let before = world.store.counts();
    driven.next = Sequence(9);
    assert!(
        driven
            .try_append(20, vec![step(20, 0)], Then::Run)
            .await
            .is_err()
    );
    world.send(1, Message::Resume, 20).await;
    assert_eq!(world.store.counts(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_appends_share_commits() {
    const RUNS: u128 = 200;
    const APPENDS: u32 = 20;
    let folder = tempfile::tempdir().unwrap();
    let world = Arc::new(world(&folder).await);
    for number in 0..RUNS {
        world.start(number, 10).await;
    }
    assert_eq!(
        world
            .store
            .claim(host(1), at(11), 1_000)
            .await
            .unwrap()
            .len(),
        200
    );
    let before = world.store.counts();
    let tasks: Vec<_> = (0..RUNS)
        .map(|number| {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                for next in 0..APPENDS {
                    let append = stepwell_store::Append {
                        run: run(number),
                        epoch: stepwell_core::id::Epoch(1),
                        next: Sequence(u64::from(next)),
                        entries: vec![step(20, next)],
                        inbox_seen: EventId(0),
                        cancel_seen: false,
                        then: Then::Run,
                        at: at(20),
                    };
                    world.store.append(append).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let after = world.store.counts();
    let (commits, entries) = (
        after.commits - before.commits,
        after.entries - before.entries,
    );
    assert_eq!(entries, 4_000);
    assert!(
        commits < entries / 4,
        "{commits} commits of {entries} appends"
    );
    for number in 0..RUNS {
        assert_eq!(
            world.run(number).await.entries,
            Sequence(u64::from(APPENDS))
        );
    }
}

#[tokio::test]
async fn a_dropped_call_is_carried_out_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(&folder).await;
    let driven = world.drive(1, 10).await;
    {
        let mut call = std::pin::pin!(world.store.append(driven.append_of(
            20,
            vec![step(20, 0)],
            Then::Run
        )));
        // Once polled, it is on its way.
        let waker = std::task::Waker::noop();
        let _ = call
            .as_mut()
            .poll(&mut std::task::Context::from_waker(waker));
    }
    // A later call is behind it.
    world.accepted(1, event("a"), 21).await;
    assert_eq!(world.history(1).await, [step(20, 0)]);
}

#[tokio::test]
async fn log_lines_need_no_commit_of_their_own_and_are_written_when_the_store_closes() {
    let folder = tempfile::tempdir().unwrap();
    let before = world(&folder).await;
    let mut driven = before.drive(1, 10).await;
    let line = |message: &str| stepwell_store::LogLine {
        tenant: acme(),
        run: run(1),
        at: at(20),
        level: stepwell_store::LogLevel::Info,
        message: message.to_owned(),
        fields: Vec::new(),
    };
    let commits = before.store.counts().commits;
    before.store.write_logs(vec![line("a")]).await.unwrap();
    driven.append(20, vec![step(20, 0)], Then::Run).await;
    assert_eq!(before.store.counts().commits, commits + 1);
    assert_eq!(
        before
            .store
            .logs(&acme(), run(1), 0, 10)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(before.store.counts().commits, commits + 1);

    before.store.write_logs(vec![line("b")]).await.unwrap();
    drop(before);
    assert_eq!(
        reopened(&folder)
            .store
            .logs(&acme(), run(1), 0, 10)
            .await
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn log_lines_without_any_other_call_are_written_soon() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(&folder).await;
    world.start(1, 10).await;
    let mut watcher = world.store.watch(run(1));
    watcher.borrow_and_update();
    let line = stepwell_store::LogLine {
        tenant: acme(),
        run: run(1),
        at: at(20),
        level: stepwell_store::LogLevel::Info,
        message: "a".to_owned(),
        fields: Vec::new(),
    };
    world.store.write_logs(vec![line]).await.unwrap();
    let told = tokio::time::timeout(std::time::Duration::from_secs(10), watcher.changed()).await;
    told.unwrap().unwrap();
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(world(&folder).await);
    database(&folder)
        .execute(
            "INSERT INTO migrations (number, name, sha256) VALUES (4711, 'later', x'00')",
            [],
        )
        .unwrap();
    let opened = SqliteStore::open(folder.path());
    let Err(Error::Newer { found, known, .. }) = &opened else {
        panic!("{opened:?}")
    };
    assert_eq!((*found, *known < 4_711), (4_711, true));
}

#[tokio::test]
async fn a_migration_that_was_changed_after_it_ran_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(world(&folder).await);
    let zeros = [0_u8; 32];
    database(&folder)
        .execute(
            "UPDATE migrations SET sha256 = ?1 WHERE number = 1",
            [zeros],
        )
        .unwrap();
    let opened = SqliteStore::open(folder.path());
    assert!(
        matches!(opened, Err(Error::MigrationChanged { number: 1, .. })),
        "{opened:?}"
    );
}

#[tokio::test]
async fn what_is_no_database_is_refused_as_damaged() {
    let contents: [&[u8]; 3] = [
        b"hello, this is not a database, only text that is long enough",
        &[0; 8_192],
        &[0xff; 100],
    ];
    for content in contents {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(DATABASE), content).unwrap();
        let opened = SqliteStore::open(folder.path());
        let Err(Error::Damaged { what, .. }) = &opened else {
            panic!("{opened:?}")
        };
        assert!(what.contains(DATABASE), "{what}");
        // And it is left as it was.
        assert_eq!(fs::read(folder.path().join(DATABASE)).unwrap(), content);
    }
}

#[tokio::test]
async fn another_programs_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    database(&folder)
        .execute("CREATE TABLE theirs (x)", [])
        .unwrap();
    let before = fs::read(folder.path().join(DATABASE)).unwrap();
    let opened = SqliteStore::open(folder.path());
    assert!(matches!(opened, Err(Error::Damaged { .. })), "{opened:?}");
    assert_eq!(fs::read(folder.path().join(DATABASE)).unwrap(), before);
}

#[tokio::test]
async fn a_database_that_was_cut_short_is_refused_or_found_out_when_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let before = world(&folder).await;
    let mut driven = before.drive(1, 10).await;
    appended(&mut driven, 500).await;
    drop(before);
    let file = folder.path().join(DATABASE);
    let whole = fs::read(&file).unwrap();
    for pages in 1..whole.len() / 4_096 {
        fs::write(&file, &whole[..pages * 4_096]).unwrap();
        let store = match SqliteStore::open(folder.path()) {
            Ok(store) => store,
            Err(Error::Damaged { .. }) => continue,
            Err(other) => panic!("{pages} pages: {other}"),
        };
        match store.history(&acme(), run(1), Sequence(0), 1_000).await {
            Err(Error::Damaged { .. }) => {}
            Ok(Some(entries)) => assert_eq!(entries.len(), 500, "{pages} pages"),
            other => panic!("{pages} pages: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_flipped_bit_in_a_journal_is_damage_and_is_never_misread() {
    let folder = tempfile::tempdir().unwrap();
    let before = world(&folder).await;
    let mut driven = before.drive(1, 10).await;
    appended(&mut driven, 3).await;
    drop(before);
    let rows = database(&folder);
    let entries: Vec<u8> = rows
        .query_row("SELECT entries FROM journal WHERE first = 1", [], |row| {
            row.get(0)
        })
        .unwrap();
    for at_byte in 0..entries.len() {
        let mut flipped = entries.clone();
        flipped[at_byte] ^= 1 << (at_byte % 8);
        rows.execute(
            "UPDATE journal SET entries = ?1 WHERE first = 1",
            [&flipped],
        )
        .unwrap();
        let read = reopened(&folder)
            .store
            .history(&acme(), run(1), Sequence(0), 10)
            .await;
        let Err(Error::Damaged { what, .. }) = &read else {
            panic!("byte {at_byte}: {read:?}")
        };
        assert!(what.contains(&run(1).to_string()), "{what}");
    }
}

#[tokio::test]
async fn a_missing_or_foreign_journal_row_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let before = world(&folder).await;
    for number in [1, 2] {
        appended(&mut before.drive(number, 10).await, 3).await;
    }
    drop(before);
    let rows = database(&folder);
    // Rows 4 to 6 are those of the second run.
    rows.execute("UPDATE journal SET previous = 2 WHERE id = 6", [])
        .unwrap();
    let foreign = reopened(&folder).store.journal(run(2)).await;
    assert!(matches!(foreign, Err(Error::Damaged { .. })), "{foreign:?}");
    rows.execute("UPDATE journal SET previous = 99 WHERE id = 6", [])
        .unwrap();
    let missing = reopened(&folder).store.journal(run(2)).await;
    assert!(matches!(missing, Err(Error::Damaged { .. })), "{missing:?}");
    rows.execute("UPDATE journal SET previous = 6 WHERE id = 6", [])
        .unwrap();
    let circle = reopened(&folder).store.journal(run(2)).await;
    assert!(matches!(circle, Err(Error::Damaged { .. })), "{circle:?}");
    assert_eq!(
        reopened(&folder).store.journal(run(1)).await.unwrap().len(),
        3
    );
}

#[tokio::test]
async fn a_component_whose_bytes_changed_is_never_handed_out() {
    let folder = tempfile::tempdir().unwrap();
    drop(world(&folder).await);
    database(&folder)
        .execute("UPDATE components SET bytes = x'00'", [])
        .unwrap();
    let read = reopened(&folder)
        .store
        .component(&acme(), support::digest_of(support::COMPONENT))
        .await;
    assert!(matches!(read, Err(Error::Damaged { .. })), "{read:?}");
}

#[tokio::test]
async fn a_long_journal_is_read_back_in_few_rows_after_any_number_of_restarts() {
    let folder = tempfile::tempdir().unwrap();
    drop(world(&folder).await);
    let mut expected = Vec::new();
    for restart in 0..5_u64 {
        let world = reopened(&folder);
        world
            .store
            .renew_lease(host(1), at(1_000_000))
            .await
            .unwrap();
        let mut driven = if restart == 0 {
            world.drive(1, 10).await
        } else {
            world.claim_one(20).await
        };
        for number in 0..100 {
            let entry = if number % 9 == 0 {
                attempt(20)
            } else {
                step(20, number)
            };
            expected.push(entry.clone());
            driven.append(20, vec![entry], Then::Run).await;
        }
        assert_eq!(world.store.journal(run(1)).await.unwrap(), expected);
    }
    let rows = database(&folder);
    let mut at_row: Option<i64> = rows
        .query_row("SELECT tail FROM heads", [], |row| row.get(0))
        .unwrap();
    let mut count = 0;
    while let Some(id) = at_row {
        count += 1;
        at_row = rows
            .query_row("SELECT previous FROM journal WHERE id = ?1", [id], |row| {
                row.get(0)
            })
            .unwrap();
    }
    // Each stretch of 100 is one row of 64 and 36 of one; nothing is folded over a restart.
    assert_eq!(count, 5 * 37);
}

#[tokio::test]
async fn runs_are_found_without_a_look_at_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    drop(world(&folder).await);
    let rows = database(&folder);
    let plan = |sql: &str| -> String {
        let mut statement = rows.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let lines = statement
            .query_map([], |row| row.get::<_, String>(3))
            .unwrap();
        lines
            .collect::<rusqlite::Result<Vec<_>>>()
            .unwrap()
            .join("; ")
    };
    for (table, sql) in support_statements() {
        let plan = plan(sql);
        assert!(
            !plan.contains(&format!("SCAN {table}")) || plan.contains("USING"),
            "{sql}: {plan}"
        );
        assert!(!plan.contains("TEMP B-TREE"), "{sql}: {plan}");
    }
}

/// The queries of the paths that must stay fast however many runs there are; their text is that of
/// `src/sqlite/heads.rs` with values in it.
fn support_statements() -> [(&'static str, &'static str); 4] {
    [
        (
            "heads",
            "SELECT ready_since, run FROM heads WHERE claimable = 1 AND ready_since IS NOT NULL
             ORDER BY ready_since, run LIMIT 10",
        ),
        (
            "heads",
            "SELECT due, run FROM heads WHERE claimable = 1 AND due IS NOT NULL AND due <= 5
             ORDER BY due, run LIMIT 10",
        ),
        (
            "heads",
            "SELECT run FROM heads INDEXED BY heads_notable
             WHERE completed = 0 AND tenant = 1 AND run < x'ff' ORDER BY run DESC",
        ),
        (
            "runs",
            "SELECT run FROM runs WHERE tenant = 1 AND run < x'ff' ORDER BY run DESC",
        ),
    ]
}

#[tokio::test]
async fn an_unknown_run_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(&folder).await;
    assert!(
        world
            .store
            .journal(RunId::from_raw(99))
            .await
            .unwrap()
            .is_empty()
    );
}
