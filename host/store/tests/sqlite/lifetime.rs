//! Opening, locking, closing and opening again.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use stepwell_core::id::{EventId, Sequence};
use stepwell_core::run::Status;
use stepwell_store::{Error, Message, Room, RunFilter, SqliteStore, Suspension, Then};

use crate::support::{
    World, acme, at, attempt, completed, event, host, run, sleeping_until, step, waiting_for,
};
use crate::{DATABASE, appended, database, reopened, world};

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
    let resident = Suspension {
        release: false,
        ..sleeping_until(500)
    };
    before.drive(2, 10).await.suspend(20, resident).await;
    let met = Suspension {
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
    let claims = after
        .store
        .claim(host(2), at(40), Room::any(10))
        .await
        .unwrap();
    let lost: Vec<_> = claims
        .iter()
        .map(|claim| (claim.run.raw(), claim.host_lost))
        .collect();
    assert_eq!(lost, [(1, true), (3, false)]);
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
