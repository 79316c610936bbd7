//! Cancels: accepted once, never overtaken by an end.

use stepwell_core::id::EventId;
use stepwell_core::journal::Ending;
use stepwell_core::run::Status;
use stepwell_store::{Change, Delivered, InboxMessage, Message, Suspension, Then};

use crate::support::{
    World, at, cancel, cancel_delivered, completed, is_cancel_requested, json, new_run, run,
    sleeping_until, step, told, waiting_for,
};

claims! {
    a_cancel_is_shown_and_told_to_the_host,
    a_second_cancel_is_answered_as_done,
    an_end_that_has_not_seen_the_cancel_writes_nothing,
    an_end_that_has_seen_the_cancel_is_written,
    continue_as_new_does_not_overtake_a_cancel,
    a_cancel_makes_a_suspended_run_ready,
    a_cancel_makes_a_scheduled_run_ready,
    a_cancel_lifts_a_pause,
    a_run_released_without_having_seen_the_cancel_is_ready_at_once,
    a_run_that_cleans_up_may_sleep,
    a_delivered_cancel_leaves_the_inbox,
    a_cancel_of_a_finished_run_is_refused_or_done,
}

async fn a_cancel_is_shown_and_told_to_the_host(world: World) {
    let _driven = world.drive(7, 10).await;
    let mut changes = world.store.changes();
    world.accepted(7, cancel(), 11).await;
    assert_eq!(world.status(7).await, Status::Cancelling);
    assert_eq!(told(&mut changes), [Change::Inbox { run: run(7) }]);
    let inbox = world.store.inbox(run(7), EventId(0)).await.unwrap();
    assert_eq!(
        inbox.items[0].what,
        InboxMessage::Cancel {
            reason: "no longer wanted".to_owned()
        }
    );
}

async fn a_second_cancel_is_answered_as_done(world: World) {
    world.start(7, 10).await;
    world.accepted(7, cancel(), 11).await;
    assert_eq!(
        world.send(7, cancel(), 12).await,
        Delivered::Already { id: None }
    );
    assert_eq!(world.inbox(7).await, [1]);
}

async fn an_end_that_has_not_seen_the_cancel_writes_nothing(world: World) {
    let mut driven = world.drive(7, 10).await;
    world.accepted(7, cancel(), 11).await;
    let before = world.run(7).await;
    assert!(is_cancel_requested(driven.end(12, completed()).await));
    assert_eq!(world.run(7).await, before);
    assert!(world.history(7).await.is_empty());
    // It still holds the run.
    driven.append(13, vec![step(13, 0)], Then::Run).await;
}

async fn an_end_that_has_seen_the_cancel_is_written(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven.inbox_seen = world.accepted(7, cancel(), 11).await;
    driven.cancel_seen = true;
    driven
        .end(
            12,
            Ending::Cancelled {
                reason: "r".to_owned(),
            },
        )
        .await
        .unwrap();
    assert_eq!(world.status(7).await, Status::Cancelled);
}

async fn continue_as_new_does_not_overtake_a_cancel(world: World) {
    let mut driven = world.drive(7, 10).await;
    world.accepted(7, cancel(), 11).await;
    assert!(is_cancel_requested(
        driven.end(12, Ending::ContinuedAsNew(json("2"))).await
    ));
    let found = world.run(7).await;
    assert_eq!(
        (found.generation, found.input),
        (0, json(r#"{"total":42}"#))
    );
}

async fn a_cancel_makes_a_suspended_run_ready(world: World) {
    world
        .drive(7, 10)
        .await
        .suspend(20, sleeping_until(500))
        .await;
    world
        .drive(8, 10)
        .await
        .suspend(20, waiting_for(&["paid"]))
        .await;
    for number in [7, 8] {
        let mut changes = world.store.changes();
        world.accepted(number, cancel(), 30).await;
        assert_eq!(told(&mut changes), [Change::Ready { run: run(number) }]);
    }
    assert_eq!(world.claimable(31).await, [run(7), run(8)]);
}

async fn a_cancel_makes_a_scheduled_run_ready(world: World) {
    let mut new = new_run(7, 10);
    new.start_at = Some(at(1_000));
    world.store.start(new, None).await.unwrap();
    world.accepted(7, cancel(), 30).await;
    assert_eq!(world.claimable(31).await, [run(7)]);
}

async fn a_cancel_lifts_a_pause(world: World) {
    world
        .drive(7, 10)
        .await
        .suspend(20, sleeping_until(500))
        .await;
    world.accepted(7, Message::Pause, 21).await;
    let mut changes = world.store.changes();
    world.accepted(7, cancel(), 22).await;
    assert_eq!(world.status(7).await, Status::Cancelling);
    assert_eq!(told(&mut changes), [Change::Ready { run: run(7) }]);
    assert!(!world.claim_one(23).await.claim.paused);
}

async fn a_run_released_without_having_seen_the_cancel_is_ready_at_once(world: World) {
    let mut driven = world.drive(7, 10).await;
    world.accepted(7, cancel(), 11).await;
    let mut changes = world.store.changes();
    driven.suspend(20, sleeping_until(500)).await;
    assert_eq!(told(&mut changes), [Change::Ready { run: run(7) }]);
    assert_eq!(world.claimable(21).await, [run(7)]);
}

async fn a_run_that_cleans_up_may_sleep(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven.inbox_seen = world.accepted(7, cancel(), 11).await;
    driven.cancel_seen = true;
    let entries = vec![cancel_delivered(12)];
    driven
        .append(12, entries, Then::Suspend(sleeping_until(500)))
        .await;
    assert_eq!(world.status(7).await, Status::Cancelling);
    assert!(world.claimable(499).await.is_empty());
    assert_eq!(world.claimable(500).await, [run(7)]);
}

async fn a_delivered_cancel_leaves_the_inbox(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven.inbox_seen = world.accepted(7, cancel(), 11).await;
    driven.cancel_seen = true;
    driven
        .suspend(
            12,
            Suspension {
                release: false,
                ..sleeping_until(500)
            },
        )
        .await;
    assert_eq!(world.inbox(7).await, [1]);
    driven
        .append(13, vec![cancel_delivered(13)], Then::Run)
        .await;
    assert!(world.inbox(7).await.is_empty());
}

async fn a_cancel_of_a_finished_run_is_refused_or_done(world: World) {
    world.drive(7, 10).await.end(11, completed()).await.unwrap();
    assert_eq!(
        world.send(7, cancel(), 12).await,
        Delivered::Refused {
            status: Status::Completed
        }
    );
    world
        .drive(8, 10)
        .await
        .end(
            11,
            Ending::Cancelled {
                reason: "r".to_owned(),
            },
        )
        .await
        .unwrap();
    assert_eq!(
        world.send(8, cancel(), 12).await,
        Delivered::Already { id: None }
    );
}
