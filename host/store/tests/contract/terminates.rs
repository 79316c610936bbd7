//! Terminates: at once, and the host is fenced off.

use stepwell_core::id::Sequence;
use stepwell_core::journal::{Ending, Record};
use stepwell_core::run::Status;
use stepwell_store::{Change, Delivered, Message, Then};

use crate::support::{World, at, entry, is_lease_lost, run, sleeping_until, step, terminate, told};

claims! {
    a_terminate_ends_the_run_and_fences_its_host,
    a_terminate_ends_a_run_that_nobody_holds,
    a_terminate_ends_a_stuck_and_a_paused_run,
    a_terminate_twice_is_answered_as_done,
    the_last_entry_is_never_earlier_than_the_one_before,
}

fn ended(ms: u64) -> stepwell_core::journal::Entry {
    entry(
        ms,
        Record::Ended(Ending::Terminated {
            reason: "enough".to_owned(),
        }),
    )
}

async fn a_terminate_ends_the_run_and_fences_its_host(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven.append(20, vec![step(20, 0)], Then::Run).await;
    let before = world.run(7).await;
    let mut changes = world.store.changes();
    world.accepted(7, terminate(), 30).await;
    assert_eq!(told(&mut changes), [Change::Terminated { run: run(7) }]);
    let found = world.run(7).await;
    assert_eq!(
        (found.status, found.host, found.entries),
        (Status::Terminated, None, Sequence(2))
    );
    assert_eq!(
        found.ending,
        Some(Ending::Terminated {
            reason: "enough".to_owned()
        })
    );
    assert!(found.journal_bytes > before.journal_bytes);
    assert_eq!(world.history(7).await, [step(20, 0), ended(30)]);

    assert!(is_lease_lost(
        driven.try_append(31, vec![step(31, 1)], Then::Run).await
    ));
    driven.next = Sequence(2);
    assert!(is_lease_lost(
        driven.try_append(31, vec![step(31, 1)], Then::Run).await
    ));
    assert_eq!(world.history(7).await.len(), 2);
}

async fn a_terminate_ends_a_run_that_nobody_holds(world: World) {
    world.start(7, 10).await;
    world
        .drive(8, 10)
        .await
        .suspend(20, sleeping_until(500))
        .await;
    for number in [7, 8] {
        world.accepted(number, terminate(), 30).await;
        let found = world.run(number).await;
        assert_eq!((found.status, found.due), (Status::Terminated, None));
        assert_eq!(world.history(number).await, [ended(30)]);
    }
    assert!(world.claimable(1_000).await.is_empty());
    assert!(
        world
            .store
            .due(at(0), at(1_000), 10)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn a_terminate_ends_a_stuck_and_a_paused_run(world: World) {
    world
        .drive(7, 10)
        .await
        .append(
            20,
            Vec::new(),
            Then::Stick {
                reason: "no".to_owned(),
            },
        )
        .await;
    world.start(8, 10).await;
    world.accepted(8, Message::Pause, 20).await;
    for number in [7, 8] {
        world.accepted(number, terminate(), 30).await;
        let found = world.run(number).await;
        assert_eq!(
            (found.status, found.stuck_reason),
            (Status::Terminated, None)
        );
    }
}

async fn a_terminate_twice_is_answered_as_done(world: World) {
    world.start(7, 10).await;
    world.accepted(7, terminate(), 20).await;
    assert_eq!(
        world.send(7, terminate(), 21).await,
        Delivered::Already { id: None }
    );
    assert_eq!(
        world.send(7, Message::Pause, 21).await,
        Delivered::Refused {
            status: Status::Terminated
        }
    );
    assert_eq!(world.history(7).await.len(), 1);
}

async fn the_last_entry_is_never_earlier_than_the_one_before(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven.append(100, vec![step(100, 0)], Then::Run).await;
    world.accepted(7, terminate(), 50).await;
    assert_eq!(world.history(7).await, [step(100, 0), ended(100)]);
}
