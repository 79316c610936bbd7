//! Files that are not what they must be.

use std::fs;

use stepwell_core::id::Sequence;
use stepwell_core::run::Status;
use stepwell_store::{Error, Room, SqliteStore, Store};

use crate::support::{COMPONENT, acme, at, digest_of, host, run};
use crate::{DATABASE, appended, database, reopened, world};

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
        .component(&acme(), digest_of(COMPONENT))
        .await;
    assert!(matches!(read, Err(Error::Damaged { .. })), "{read:?}");
}

#[tokio::test]
async fn a_run_with_damaged_rows_is_set_aside_and_keeps_nobody_from_the_others() {
    let damages = [
        (
            "UPDATE runs SET input = x'ff' WHERE run = ?1",
            Some(Status::Stuck),
        ),
        (
            "UPDATE runs SET started_at = -1 WHERE run = ?1",
            Some(Status::Stuck),
        ),
        ("DELETE FROM runs WHERE run = ?1", Some(Status::Stuck)),
        ("UPDATE heads SET waits = x'ff' WHERE run = ?1", None),
        ("UPDATE heads SET epoch = -1 WHERE run = ?1", None),
    ];
    for (damage, shown) in damages {
        let folder = tempfile::tempdir().unwrap();
        let before = world(&folder).await;
        for number in [1, 2] {
            before.start(number, 10).await;
        }
        drop(before);
        let changed = database(&folder)
            .execute(damage, [run(1).raw().to_be_bytes()])
            .unwrap();
        assert_eq!(changed, 1, "{damage}");
        let store = reopened(&folder).store;
        store.renew_lease(host(1), at(1_000_000)).await.unwrap();
        let claims = store.claim(host(1), at(20), Room::any(10)).await.unwrap();
        let claimed: Vec<_> = claims.iter().map(|claim| claim.run).collect();
        assert_eq!(claimed, [run(2)], "{damage}");
        if let Some(shown) = shown {
            // What can be told of it is told: why it is stuck.
            let head: (String, String) = database(&folder)
                .query_row(
                    "SELECT status, stuck_reason FROM heads WHERE run = ?1",
                    [run(1).raw().to_be_bytes()],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .unwrap();
            assert_eq!(head.0, shown.as_str(), "{damage}");
            assert!(head.1.contains("damaged"), "{damage}: {}", head.1);
        }
    }
}
