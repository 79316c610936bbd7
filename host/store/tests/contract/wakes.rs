//! Wakes: an early end of a sleep.

use stepwell_core::run::Status;
use stepwell_store::{Change, Delivered, InboxMessage, Message, Suspension, Then};

use crate::support::{World, at, completed, run, sleeping_until, step, told, waiting_for};

claims! {
    a_wake_makes_a_sleeping_run_ready,
    a_wake_reaches_a_sleep_that_is_waited_for_beside_an_event,
    a_wake_without_a_sleep_is_refused,
    a_second_wake_of_the_same_sleep_is_answered_as_done,
    a_wake_leaves_the_inbox_with_the_append_that_has_seen_it,
    an_unseen_wake_stays_and_makes_a_released_sleeper_ready,
    a_held_sleeper_is_told_of_a_wake,
}

async fn a_wake_makes_a_sleeping_run_ready(world: World) {
    world
        .drive(7, 10)
        .await
        .suspend(20, sleeping_until(500))
        .await;
    let mut changes = world.store.changes();
    world.accepted(7, Message::Wake, 30).await;
    assert_eq!(told(&mut changes), [Change::Ready { run: run(7) }]);
    let claimed = world.claim_one(30).await;
    assert_eq!(claimed.claim.inbox[0].what, InboxMessage::Wake);
    assert_eq!(claimed.claim.inbox[0].at, at(30));
}

async fn a_wake_reaches_a_sleep_that_is_waited_for_beside_an_event(world: World) {
    let both = Suspension {
        sleeps: true,
        tasks_run: false,
        due: Some(at(500)),
        ..waiting_for(&["paid"])
    };
    world.drive(7, 10).await.suspend(20, both).await;
    assert_eq!(world.status(7).await, Status::Waiting);
    world.accepted(7, Message::Wake, 30).await;
    assert_eq!(world.claimable(30).await, [run(7)]);
}

async fn a_wake_without_a_sleep_is_refused(world: World) {
    let _running = world.drive(7, 10).await;
    assert_eq!(
        world.send(7, Message::Wake, 20).await,
        Delivered::Refused {
            status: Status::Running
        }
    );
    world
        .drive(8, 10)
        .await
        .suspend(20, waiting_for(&["paid"]))
        .await;
    assert_eq!(
        world.send(8, Message::Wake, 30).await,
        Delivered::Refused {
            status: Status::Waiting
        }
    );
    world.drive(9, 10).await.end(20, completed()).await.unwrap();
    assert_eq!(
        world.send(9, Message::Wake, 30).await,
        Delivered::Refused {
            status: Status::Completed
        }
    );
}

async fn a_second_wake_of_the_same_sleep_is_answered_as_done(world: World) {
    world
        .drive(7, 10)
        .await
        .suspend(20, sleeping_until(500))
        .await;
    world.accepted(7, Message::Wake, 30).await;
    assert_eq!(
        world.send(7, Message::Wake, 31).await,
        Delivered::Already { id: None }
    );
    assert_eq!(world.inbox(7).await.len(), 1);
}

async fn a_wake_leaves_the_inbox_with_the_append_that_has_seen_it(world: World) {
    world
        .drive(7, 10)
        .await
        .suspend(20, sleeping_until(500))
        .await;
    let wake = world.accepted(7, Message::Wake, 30).await;
    let mut driven = world.claim_one(30).await;
    driven.append(31, vec![step(31, 0)], Then::Run).await;
    assert_eq!(world.inbox(7).await, [wake.0]);
    driven.inbox_seen = wake;
    driven.suspend(32, sleeping_until(600)).await;
    assert!(world.inbox(7).await.is_empty());
    assert!(world.claimable(599).await.is_empty());
    // And the next sleep can be woken too.
    world.accepted(7, Message::Wake, 40).await;
    assert_eq!(world.claimable(40).await, [run(7)]);
}

async fn an_unseen_wake_stays_and_makes_a_released_sleeper_ready(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven
        .suspend(
            20,
            Suspension {
                release: false,
                ..sleeping_until(500)
            },
        )
        .await;
    world.accepted(7, Message::Wake, 30).await;
    driven.suspend(31, sleeping_until(500)).await;
    assert_eq!(world.claimable(31).await, [run(7)]);
}

async fn a_held_sleeper_is_told_of_a_wake(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven
        .suspend(
            20,
            Suspension {
                release: false,
                ..sleeping_until(500)
            },
        )
        .await;
    let mut changes = world.store.changes();
    world.accepted(7, Message::Wake, 30).await;
    assert_eq!(told(&mut changes), [Change::Inbox { run: run(7) }]);
}
