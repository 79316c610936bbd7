//! Appends: fencing, what they imply, and how runs end.

use stepwell_core::id::{Epoch, EventId, Operation, Sequence};
use stepwell_core::journal::{Ending, Record, RunFailure};
use stepwell_core::payload::Failure;
use stepwell_core::run::Status;
use stepwell_store::{Change, Then};

use crate::support::{
    World, acme, at, completed, entry, event, host, is_lease_lost, json, run, step, taken, told,
};

claims! {
    appended_entries_come_back_in_order,
    append_with_an_old_epoch_is_refused_and_writes_nothing,
    append_to_another_length_is_refused_and_writes_nothing,
    append_to_an_unknown_run_is_refused,
    append_to_a_run_that_nobody_holds_is_refused,
    a_published_value_replaces_the_one_before_under_its_key,
    a_taken_event_leaves_the_inbox_and_stays_among_the_events,
    a_reply_is_kept_with_its_event,
    an_ended_run_has_its_ending_and_is_never_claimed_again,
    every_ending_has_its_status,
    a_stuck_run_waits_for_an_operator,
    a_resume_makes_a_stuck_run_ready_and_forgets_claims,
    a_long_journal_is_read_back_whole,
    appends_grow_revision_and_bytes,
    updated_at_never_goes_back,
}

async fn appended_entries_come_back_in_order(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven
        .append(20, vec![step(20, 0), step(21, 1)], Then::Run)
        .await;
    driven.append(22, vec![step(22, 2)], Then::Run).await;
    let expected = [step(20, 0), step(21, 1), step(22, 2)];
    assert_eq!(world.store.journal(run(7)).await.unwrap(), expected);
    assert_eq!(world.history(7).await, expected);
    let middle = world
        .store
        .history(&acme(), run(7), Sequence(1), 1)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(middle, [(Sequence(1), step(21, 1))]);
    let last = world
        .store
        .history(&acme(), run(7), Sequence(2), 9)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(last, [(Sequence(2), step(22, 2))]);
    assert_eq!(
        world
            .store
            .history(&acme(), run(7), Sequence(3), 9)
            .await
            .unwrap()
            .unwrap(),
        []
    );
    assert_eq!(world.run(7).await.entries, Sequence(3));
}

async fn append_with_an_old_epoch_is_refused_and_writes_nothing(world: World) {
    let mut old = world.drive(7, 10).await;
    old.append(20, vec![step(20, 0)], Then::Release).await;
    let mut new = world.claim_one(21).await;
    let before = world.run(7).await;
    let publish = Record::Published {
        operation: Operation(0),
        key: "k".to_owned(),
        value: json("1"),
    };
    for then in [
        Then::Run,
        Then::Release,
        Then::Stick {
            reason: "no".to_owned(),
        },
    ] {
        let entries = vec![step(22, 1), entry(22, publish.clone())];
        assert!(is_lease_lost(old.try_append(22, entries, then).await));
    }
    assert!(is_lease_lost(old.end(22, completed()).await));
    assert_eq!(world.run(7).await, before);
    assert_eq!(world.history(7).await, [step(20, 0)]);
    assert!(
        world
            .store
            .published(&acme(), run(7))
            .await
            .unwrap()
            .is_empty()
    );
    new.append(23, vec![step(23, 1)], Then::Run).await;
}

async fn append_to_another_length_is_refused_and_writes_nothing(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven.append(20, vec![step(20, 0)], Then::Run).await;
    for next in [0, 2] {
        driven.next = Sequence(next);
        assert!(
            is_lease_lost(driven.try_append(21, vec![step(21, 1)], Then::Run).await),
            "{next}"
        );
    }
    assert_eq!(world.history(7).await, [step(20, 0)]);
    driven.next = Sequence(1);
    driven.append(22, vec![step(22, 1)], Then::Run).await;
}

async fn append_to_an_unknown_run_is_refused(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven.run = run(8);
    assert!(is_lease_lost(
        driven.try_append(20, vec![step(20, 0)], Then::Run).await
    ));
}

async fn append_to_a_run_that_nobody_holds_is_refused(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven.append(20, Vec::new(), Then::Release).await;
    assert!(is_lease_lost(
        driven.try_append(21, vec![step(21, 0)], Then::Run).await
    ));
    world.start(8, 30).await;
    let mut forged = world.drive(9, 30).await;
    (forged.run, forged.epoch) = (run(8), Epoch(0));
    assert!(is_lease_lost(
        forged.try_append(31, vec![step(31, 0)], Then::Run).await
    ));
}

async fn a_published_value_replaces_the_one_before_under_its_key(world: World) {
    let mut driven = world.drive(7, 10).await;
    let publish = |ms, key: &str, value| {
        let record = Record::Published {
            operation: Operation(0),
            key: key.to_owned(),
            value: json(value),
        };
        entry(ms, record)
    };
    let entries = vec![
        publish(20, "progress", "1"),
        publish(21, "link", "\"x\""),
        publish(22, "progress", "2"),
    ];
    driven.append(22, entries, Then::Run).await;
    let shown = |values: Vec<stepwell_store::Published>| -> Vec<_> {
        values
            .into_iter()
            .map(|value| (value.key, value.value, value.at))
            .collect()
    };
    let found = shown(world.store.published(&acme(), run(7)).await.unwrap());
    let link = ("link".to_owned(), json("\"x\""), at(21));
    assert_eq!(
        found,
        [link.clone(), ("progress".to_owned(), json("2"), at(22))]
    );
    driven
        .append(30, vec![publish(30, "progress", "3")], Then::Run)
        .await;
    let found = shown(world.store.published(&acme(), run(7)).await.unwrap());
    assert_eq!(found, [link, ("progress".to_owned(), json("3"), at(30))]);
}

async fn a_taken_event_leaves_the_inbox_and_stays_among_the_events(world: World) {
    let mut driven = world.drive(7, 10).await;
    world.accepted(7, event("paid"), 11).await;
    world.accepted(7, event("paid"), 12).await;
    driven
        .append(20, vec![taken(20, 1, "paid")], Then::Run)
        .await;
    assert_eq!(world.inbox(7).await, [2]);
    let events: Vec<_> = world
        .store
        .events(&acme(), run(7))
        .await
        .unwrap()
        .into_iter()
        .map(|event| (event.id.0, event.name, event.sent_at, event.taken))
        .collect();
    let paid = || "paid".to_owned();
    assert_eq!(
        events,
        [(1, paid(), at(11), true), (2, paid(), at(12), false)]
    );
}

async fn a_reply_is_kept_with_its_event(world: World) {
    let mut driven = world.drive(7, 10).await;
    world.accepted(7, event("ask"), 11).await;
    world.accepted(7, event("ask"), 12).await;
    let reply = |id, answer| {
        entry(
            20,
            Record::Replied {
                operation: Operation(1),
                event: EventId(id),
                answer,
            },
        )
    };
    let failure = Failure::permanent("no", "never");
    let entries = vec![
        taken(20, 1, "ask"),
        reply(1, Ok(json("1"))),
        reply(2, Err(failure.clone())),
    ];
    driven.append(20, entries, Then::Run).await;
    let replies: Vec<_> = world
        .store
        .events(&acme(), run(7))
        .await
        .unwrap()
        .into_iter()
        .map(|event| event.reply)
        .collect();
    assert_eq!(replies, [Some(Ok(json("1"))), Some(Err(failure))]);
}

async fn an_ended_run_has_its_ending_and_is_never_claimed_again(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven.append(20, vec![step(20, 0)], Then::Run).await;
    driven.end(21, completed()).await.unwrap();
    let found = world.run(7).await;
    assert_eq!(
        (found.status, found.host, found.due),
        (Status::Completed, None, None)
    );
    assert_eq!(
        (found.ending, found.entries),
        (Some(completed()), Sequence(2))
    );
    assert!(world.claimable(1_000).await.is_empty());
    assert!(is_lease_lost(
        driven.try_append(22, vec![step(22, 1)], Then::Run).await
    ));
    assert_eq!(world.history(7).await.len(), 2);
}

async fn every_ending_has_its_status(world: World) {
    let failure = RunFailure {
        step: None,
        cause: Failure::permanent("no", "never"),
        backtrace: None,
    };
    let endings = [
        (completed(), Status::Completed),
        (Ending::Failed(failure.clone()), Status::Failed),
        (
            Ending::Cancelled {
                reason: "c".to_owned(),
            },
            Status::Cancelled,
        ),
        (
            Ending::Terminated {
                reason: "t".to_owned(),
            },
            Status::Terminated,
        ),
    ];
    for (number, (ending, status)) in (1..).zip(endings) {
        let mut driven = world.drive(number, 10).await;
        driven.end(20, ending.clone()).await.unwrap();
        let found = world.run(number).await;
        assert_eq!((found.status, &found.ending), (status, &Some(ending)));
        assert_eq!(found.failure().is_some(), status == Status::Failed);
    }
}

async fn a_stuck_run_waits_for_an_operator(world: World) {
    let mut driven = world.drive(7, 10).await;
    let mut changes = world.store.changes();
    driven
        .append(
            20,
            vec![step(20, 0)],
            Then::Stick {
                reason: "diverged".to_owned(),
            },
        )
        .await;
    let found = world.run(7).await;
    assert_eq!((found.status, found.host), (Status::Stuck, None));
    assert_eq!(found.stuck_reason.as_deref(), Some("diverged"));
    world.accepted(7, event("paid"), 21).await;
    world.accepted(7, crate::support::cancel(), 22).await;
    assert_eq!(told(&mut changes), []);
    assert!(world.claimable(1_000).await.is_empty());
    assert_eq!(world.status(7).await, Status::Stuck);
}

async fn a_resume_makes_a_stuck_run_ready_and_forgets_claims(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven
        .append(
            20,
            Vec::new(),
            Then::Stick {
                reason: "no progress".to_owned(),
            },
        )
        .await;
    let mut changes = world.store.changes();
    world.accepted(7, stepwell_store::Message::Resume, 30).await;
    assert_eq!(told(&mut changes), [Change::Ready { run: run(7) }]);
    let found = world.run(7).await;
    assert_eq!((found.status, found.stuck_reason), (Status::Queued, None));
    assert_eq!(world.claim_one(31).await.claim.claims_without_progress, 0);
}

async fn a_long_journal_is_read_back_whole(world: World) {
    let mut long = world.drive(7, 10).await;
    let mut neighbour = world.drive(8, 10).await;
    let mut expected = Vec::new();
    for number in 0..150_u32 {
        let mut entries = vec![step(20, number)];
        if number % 10 == 3 {
            entries.push(attempt_of(number));
        }
        if number == 77 {
            // Longer than a page.
            let value = json(&format!("\"{}\"", "x".repeat(10_000)));
            entries.push(entry(
                20,
                Record::Published {
                    operation: Operation(9),
                    key: "k".to_owned(),
                    value,
                },
            ));
        }
        expected.extend(entries.iter().cloned());
        long.append(20, entries, Then::Run).await;
        if number % 3 == 0 {
            neighbour
                .append(20, vec![step(20, number)], Then::Run)
                .await;
        }
    }
    assert_eq!(world.store.journal(run(7)).await.unwrap(), expected);
    assert_eq!(world.store.journal(run(8)).await.unwrap().len(), 50);
    for from in [0, 1, 63, 64, 65, 127, 128, 150, expected.len() - 1] {
        let page = world
            .store
            .history(&acme(), run(7), Sequence(from as u64), 20)
            .await
            .unwrap()
            .unwrap();
        let until = (from + 20).min(expected.len());
        let numbers: Vec<_> = page.iter().map(|(sequence, _)| sequence.0).collect();
        assert_eq!(numbers, (from as u64..until as u64).collect::<Vec<_>>());
        let entries: Vec<_> = page.into_iter().map(|(_, entry)| entry).collect();
        assert_eq!(entries, expected[from..until]);
    }
}

fn attempt_of(_: u32) -> stepwell_core::journal::Entry {
    crate::support::attempt(20)
}

async fn appends_grow_revision_and_bytes(world: World) {
    let mut driven = world.drive(7, 10).await;
    let first = world.run(7).await;
    driven.append(20, vec![step(20, 0)], Then::Run).await;
    let second = world.run(7).await;
    driven.append(30, vec![step(30, 1)], Then::Run).await;
    let third = world.run(7).await;
    assert!(first.revision < second.revision && second.revision < third.revision);
    assert!(0 < second.journal_bytes && second.journal_bytes < third.journal_bytes);
    assert_eq!((second.updated_at, third.updated_at), (at(20), at(30)));
    // What a later claim is told.
    driven.append(40, Vec::new(), Then::Release).await;
    assert_eq!(
        world.claim_one(41).await.claim.journal_bytes,
        third.journal_bytes
    );
    assert_eq!(world.run(7).await.host, Some(host(1)));
}

async fn updated_at_never_goes_back(world: World) {
    let mut driven = world.drive(7, 100).await;
    driven.append(50, vec![step(50, 0)], Then::Run).await;
    assert_eq!(world.run(7).await.updated_at, at(100));
}
