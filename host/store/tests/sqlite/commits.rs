//! What calls cost in commits, and what becomes of calls that nobody waits for.

use std::sync::Arc;
use std::time::Duration;

use stepwell_core::id::{Epoch, EventId, Sequence};
use stepwell_store::{Append, LogLevel, LogLine, Message, Room, Then};

use crate::support::{acme, at, event, host, run, step};
use crate::{appended, reopened, world};

fn line(message: &str) -> LogLine {
    LogLine {
        tenant: acme(),
        run: run(1),
        at: at(20),
        level: LogLevel::Info,
        message: message.to_owned(),
        fields: Vec::new(),
    }
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
            .claim(host(1), at(11), Room::any(1_000))
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
                    let append = Append {
                        run: run(number),
                        epoch: Epoch(1),
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
    world.store.write_logs(vec![line("a")]).await.unwrap();
    let told = tokio::time::timeout(Duration::from_secs(10), watcher.changed()).await;
    told.unwrap().unwrap();
}
