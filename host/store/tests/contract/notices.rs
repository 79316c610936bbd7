//! Watching one run.

use stepwell_store::{LogLevel, LogLine, Message, Then};

use crate::support::{World, acme, at, event, is_lease_lost, run, step, tenant};

claims! {
    a_watcher_is_told_of_every_durable_change_of_its_run,
    a_watcher_is_not_told_of_what_was_refused_or_of_other_runs,
    a_run_can_be_watched_before_it_is_started,
}

async fn a_watcher_is_told_of_every_durable_change_of_its_run(world: World) {
    world.start(7, 10).await;
    let mut watcher = world.store.watch(run(7));
    let mut last = *watcher.borrow_and_update();
    let mut grown = |what: &str| {
        assert!(watcher.has_changed().unwrap(), "{what}");
        let now = *watcher.borrow_and_update();
        assert!(now > last, "{what}");
        last = now;
    };
    world.accepted(7, event("a"), 11).await;
    grown("an event");
    let mut driven = world.claim_one(12).await;
    grown("a claim");
    driven.append(13, vec![step(13, 0)], Then::Run).await;
    grown("an append");
    world.accepted(7, Message::Pause, 14).await;
    grown("a pause");
    let line = LogLine {
        tenant: acme(),
        run: run(7),
        at: at(15),
        level: LogLevel::Info,
        message: "hello".to_owned(),
        fields: Vec::new(),
    };
    world.store.write_logs(vec![line]).await.unwrap();
    // Durable no later than they are read.
    assert_eq!(
        world
            .store
            .logs(&acme(), run(7), 0, 10)
            .await
            .unwrap()
            .len(),
        1
    );
    grown("a log line");
}

async fn a_watcher_is_not_told_of_what_was_refused_or_of_other_runs(world: World) {
    let mut driven = world.drive(7, 10).await;
    world.start(8, 10).await;
    let mut watcher = world.store.watch(run(7));
    watcher.borrow_and_update();
    world.accepted(8, event("a"), 11).await;
    world.send(7, Message::Resume, 12).await;
    world
        .store
        .deliver(&tenant("globex"), run(7), Message::Pause, at(12))
        .await
        .unwrap();
    driven.next = driven.next.plus(1);
    assert!(is_lease_lost(
        driven.try_append(13, vec![step(13, 0)], Then::Run).await
    ));
    world.run(7).await;
    assert!(!watcher.has_changed().unwrap());
}

async fn a_run_can_be_watched_before_it_is_started(world: World) {
    let mut watcher = world.store.watch(run(7));
    watcher.borrow_and_update();
    world.start(7, 10).await;
    assert!(watcher.has_changed().unwrap());
}
