//! Events and the mailbox.

use stepwell_core::id::EventId;
use stepwell_core::run::Status;
use stepwell_store::{Delivered, InboxMessage, Then};

use crate::support::{
    MAILBOX_MAX, World, at, completed, event, json, keyed_event, run, step, taken, waiting_for,
};

claims! {
    items_keep_the_order_of_their_delivery,
    the_inbox_is_read_from_any_place,
    an_event_with_a_used_delivery_key_is_delivered_once,
    a_used_delivery_key_is_known_after_the_run_has_ended,
    a_full_mailbox_refuses_events_until_one_is_taken,
    a_full_mailbox_has_room_for_events_that_are_waited_for,
    an_event_to_a_finished_run_is_refused_with_its_status,
    an_event_to_an_unknown_run_is_answered_so,
    events_wait_while_a_run_is_scheduled_or_queued,
    an_empty_append_takes_no_event,
}

async fn items_keep_the_order_of_their_delivery(world: World) {
    world.start(7, 10).await;
    assert_eq!(world.accepted(7, event("b"), 11).await, EventId(1));
    assert_eq!(world.accepted(7, event("a"), 12).await, EventId(2));
    assert_eq!(
        world.accepted(7, crate::support::cancel(), 13).await,
        EventId(3)
    );
    let inbox = world.store.inbox(run(7), EventId(0)).await.unwrap();
    let what: Vec<_> = inbox
        .items
        .into_iter()
        .map(|item| (item.id.0, item.at, item.what))
        .collect();
    let event = |name: &str| InboxMessage::Event {
        name: name.to_owned(),
        payload: json(&format!("\"{name}\"")),
    };
    let cancel = InboxMessage::Cancel {
        reason: "no longer wanted".to_owned(),
    };
    assert_eq!(
        what,
        [
            (1, at(11), event("b")),
            (2, at(12), event("a")),
            (3, at(13), cancel)
        ]
    );
    assert!(!inbox.paused);
}

async fn the_inbox_is_read_from_any_place(world: World) {
    world.start(7, 10).await;
    for _ in 0..3 {
        world.accepted(7, event("a"), 11).await;
    }
    let inbox = world.store.inbox(run(7), EventId(2)).await.unwrap();
    assert_eq!(
        inbox
            .items
            .into_iter()
            .map(|item| item.id.0)
            .collect::<Vec<_>>(),
        [3]
    );
    assert!(
        world
            .store
            .inbox(run(8), EventId(0))
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

async fn an_event_with_a_used_delivery_key_is_delivered_once(world: World) {
    world.start(7, 10).await;
    world.start(8, 10).await;
    let first = world.accepted(7, keyed_event("paid", Some("k")), 11).await;
    let again = world.send(7, keyed_event("other", Some("k")), 12).await;
    assert_eq!(again, Delivered::Already { id: Some(first) });
    assert_eq!(world.inbox(7).await, [first.0]);
    // Another run's keys are its own.
    world.accepted(8, keyed_event("paid", Some("k")), 13).await;
}

async fn a_used_delivery_key_is_known_after_the_run_has_ended(world: World) {
    let mut driven = world.drive(7, 10).await;
    let first = world.accepted(7, keyed_event("paid", Some("k")), 11).await;
    driven
        .append(12, vec![taken(12, first.0, "paid")], Then::Run)
        .await;
    driven.end(13, completed()).await.unwrap();
    let again = world.send(7, keyed_event("paid", Some("k")), 14).await;
    assert_eq!(again, Delivered::Already { id: Some(first) });
}

async fn a_full_mailbox_refuses_events_until_one_is_taken(world: World) {
    let mut driven = world.drive(7, 10).await;
    for _ in 0..MAILBOX_MAX {
        world.accepted(7, keyed_event("a", None), 11).await;
    }
    assert_eq!(world.send(7, event("a"), 12).await, Delivered::MailboxFull);
    // Other messages are not events.
    world.accepted(7, crate::support::cancel(), 13).await;
    driven.append(14, vec![taken(14, 1, "a")], Then::Run).await;
    world.accepted(7, event("a"), 15).await;
    assert_eq!(world.send(7, event("a"), 16).await, Delivered::MailboxFull);
}

async fn a_full_mailbox_has_room_for_events_that_are_waited_for(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven
        .suspend(11, crate::support::waiting_for(&["paid"]))
        .await;
    for _ in 0..MAILBOX_MAX {
        world.accepted(7, keyed_event("other", None), 12).await;
    }
    assert_eq!(
        world.send(7, event("other"), 13).await,
        Delivered::MailboxFull
    );
    for _ in 0..MAILBOX_MAX {
        world.accepted(7, event("paid"), 14).await;
    }
    // It is bounded all the same.
    assert_eq!(
        world.send(7, event("paid"), 15).await,
        Delivered::MailboxFull
    );
}

async fn an_event_to_a_finished_run_is_refused_with_its_status(world: World) {
    world.drive(7, 10).await.end(11, completed()).await.unwrap();
    let refused = world.send(7, event("a"), 12).await;
    assert_eq!(
        refused,
        Delivered::Refused {
            status: Status::Completed
        }
    );
    assert!(world.inbox(7).await.is_empty());
}

async fn an_event_to_an_unknown_run_is_answered_so(world: World) {
    assert_eq!(world.send(7, event("a"), 12).await, Delivered::NoSuchRun);
}

async fn events_wait_while_a_run_is_scheduled_or_queued(world: World) {
    let mut new = crate::support::new_run(7, 10);
    new.start_at = Some(at(100));
    world.store.start(new, None).await.unwrap();
    world.accepted(7, event("a"), 11).await;
    assert!(world.claimable(50).await.is_empty());
    let claimed = world.claim_one(100).await;
    assert_eq!(claimed.claim.inbox.len(), 1);
}

async fn an_empty_append_takes_no_event(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven.inbox_seen = world.accepted(7, event("a"), 11).await;
    driven.suspend(12, waiting_for(&["b"])).await;
    let mut driven = world.claim_after_event(7, "b").await;
    assert_eq!(driven.claim.inbox.len(), 2);
    driven.append(30, vec![step(30, 0)], Then::Run).await;
    assert_eq!(world.inbox(7).await, [1, 2]);
}
