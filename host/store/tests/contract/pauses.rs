//! Pauses and resumes.

use stepwell_core::id::EventId;
use stepwell_core::run::Status;
use stepwell_store::{Change, Delivered, Message, Then};

use crate::support::{World, at, completed, event, run, sleeping_until, step, told, waiting_for};

claims! {
    a_paused_run_is_not_claimed_and_not_due,
    a_held_run_is_told_of_pause_and_resume_and_may_go_on_writing,
    what_fell_due_during_a_pause_is_ready_on_resume,
    what_is_still_ahead_on_resume_is_due_again,
    an_event_during_a_pause_makes_the_run_ready_on_resume,
    a_pause_twice_is_answered_as_done_and_a_resume_without_one_is_refused,
    a_finished_run_is_not_paused,
    pauses_leave_no_inbox_item,
}

async fn a_paused_run_is_not_claimed_and_not_due(world: World) {
    world.start(7, 10).await;
    world
        .drive(8, 10)
        .await
        .suspend(20, sleeping_until(100))
        .await;
    for number in [7, 8] {
        world.accepted(number, Message::Pause, 30).await;
        assert_eq!(world.status(number).await, Status::Paused);
    }
    assert!(world.claimable(200).await.is_empty());
    assert!(
        world
            .store
            .due(at(0), at(1_000), 10)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn a_held_run_is_told_of_pause_and_resume_and_may_go_on_writing(world: World) {
    let mut driven = world.drive(7, 10).await;
    let mut changes = world.store.changes();
    world.accepted(7, Message::Pause, 11).await;
    assert!(world.store.inbox(run(7), EventId(0)).await.unwrap().paused);
    // The attempt in flight may finish.
    driven.append(12, vec![step(12, 0)], Then::Run).await;
    assert_eq!(world.status(7).await, Status::Paused);
    world.accepted(7, Message::Resume, 13).await;
    assert!(!world.store.inbox(run(7), EventId(0)).await.unwrap().paused);
    assert_eq!(world.status(7).await, Status::Running);
    assert_eq!(told(&mut changes), [Change::Inbox { run: run(7) }; 2]);
}

async fn what_fell_due_during_a_pause_is_ready_on_resume(world: World) {
    world
        .drive(7, 10)
        .await
        .suspend(20, sleeping_until(100))
        .await;
    world.accepted(7, Message::Pause, 30).await;
    let mut changes = world.store.changes();
    world.accepted(7, Message::Resume, 200).await;
    assert_eq!(told(&mut changes), [Change::Ready { run: run(7) }]);
    assert_eq!(world.claimable(200).await, [run(7)]);
}

async fn what_is_still_ahead_on_resume_is_due_again(world: World) {
    world
        .drive(7, 10)
        .await
        .suspend(20, sleeping_until(100))
        .await;
    world.accepted(7, Message::Pause, 30).await;
    let mut changes = world.store.changes();
    world.accepted(7, Message::Resume, 40).await;
    assert_eq!(
        told(&mut changes),
        [Change::Due {
            run: run(7),
            at: at(100)
        }]
    );
    assert_eq!(world.status(7).await, Status::Sleeping);
}

async fn an_event_during_a_pause_makes_the_run_ready_on_resume(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven.suspend(20, waiting_for(&["paid"])).await;
    world.accepted(7, Message::Pause, 30).await;
    let mut changes = world.store.changes();
    world.accepted(7, event("paid"), 40).await;
    assert_eq!(told(&mut changes), []);
    world.accepted(7, Message::Resume, 50).await;
    assert_eq!(told(&mut changes), [Change::Ready { run: run(7) }]);
    assert_eq!(world.claimable(50).await, [run(7)]);
}

async fn a_pause_twice_is_answered_as_done_and_a_resume_without_one_is_refused(world: World) {
    world.start(7, 10).await;
    assert_eq!(
        world.send(7, Message::Resume, 11).await,
        Delivered::Refused {
            status: Status::Queued
        }
    );
    world.accepted(7, Message::Pause, 12).await;
    let before = world.run(7).await;
    assert_eq!(
        world.send(7, Message::Pause, 13).await,
        Delivered::Already { id: None }
    );
    assert_eq!(world.run(7).await, before);
}

async fn a_finished_run_is_not_paused(world: World) {
    world.drive(7, 10).await.end(11, completed()).await.unwrap();
    assert_eq!(
        world.send(7, Message::Pause, 12).await,
        Delivered::Refused {
            status: Status::Completed
        }
    );
}

async fn pauses_leave_no_inbox_item(world: World) {
    world.start(7, 10).await;
    world.accepted(7, Message::Pause, 11).await;
    world.accepted(7, Message::Resume, 12).await;
    assert!(world.inbox(7).await.is_empty());
}
