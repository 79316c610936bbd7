//! Continue-as-new: a fresh journal under the same run.

use stepwell_core::id::{Epoch, Operation, Sequence};
use stepwell_core::journal::{Ending, Record};
use stepwell_core::run::Status;
use stepwell_store::{Delivered, Then};

use crate::support::{
    World, acme, at, completed, entry, event, host, json, keyed_event, run, step, taken, told,
};

claims! {
    a_continued_run_goes_on_under_its_epoch_with_an_empty_journal,
    a_later_claim_is_given_the_newest_journal,
    mailbox_delivery_keys_and_published_values_outlive_a_journal,
    a_continued_run_ends_like_any_other,
}

async fn a_continued_run_goes_on_under_its_epoch_with_an_empty_journal(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven
        .append(20, vec![step(20, 0), step(21, 1)], Then::Run)
        .await;
    let mut changes = world.store.changes();
    driven
        .end(30, Ending::ContinuedAsNew(json("2")))
        .await
        .unwrap();
    assert_eq!(told(&mut changes), []);
    let found = world.run(7).await;
    assert_eq!(
        (found.status, found.host, found.generation),
        (Status::Running, Some(host(1)), 1)
    );
    assert_eq!(
        (found.entries, found.journal_bytes, found.ending),
        (Sequence(0), 0, None)
    );
    assert_eq!((found.input, found.created_at), (json("2"), at(10)));
    assert!(world.history(7).await.is_empty());

    driven.next = Sequence(0);
    driven.append(40, vec![step(40, 0)], Then::Run).await;
    assert_eq!(world.history(7).await, [step(40, 0)]);
    assert_eq!(world.store.journal(run(7)).await.unwrap(), [step(40, 0)]);
}

async fn a_later_claim_is_given_the_newest_journal(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven
        .end(30, Ending::ContinuedAsNew(json("2")))
        .await
        .unwrap();
    driven.next = Sequence(0);
    driven.append(40, vec![step(40, 0)], Then::Release).await;
    let claim = world.claim_one(50).await.claim;
    assert_eq!(
        (claim.generation, claim.input, claim.started_at),
        (1, json("2"), at(30))
    );
    assert_eq!(
        (claim.next, claim.epoch, claim.claims_without_progress),
        (Sequence(1), Epoch(2), 0)
    );
}

async fn mailbox_delivery_keys_and_published_values_outlive_a_journal(world: World) {
    let mut driven = world.drive(7, 10).await;
    let first = world.accepted(7, keyed_event("paid", Some("k")), 11).await;
    let second = world.accepted(7, event("paid"), 12).await;
    let value = Record::Published {
        operation: Operation(1),
        key: "progress".to_owned(),
        value: json("1"),
    };
    driven
        .append(
            20,
            vec![taken(20, first.0, "paid"), entry(20, value)],
            Then::Run,
        )
        .await;
    driven
        .end(30, Ending::ContinuedAsNew(json("2")))
        .await
        .unwrap();
    assert_eq!(world.inbox(7).await, [second.0]);
    let again = world.send(7, keyed_event("paid", Some("k")), 31).await;
    assert_eq!(again, Delivered::Already { id: Some(first) });
    assert_eq!(
        world.store.published(&acme(), run(7)).await.unwrap().len(),
        1
    );
    assert_eq!(world.store.events(&acme(), run(7)).await.unwrap().len(), 2);
}

async fn a_continued_run_ends_like_any_other(world: World) {
    let mut driven = world.drive(7, 10).await;
    for generation in 1..=3 {
        driven
            .end(
                20 + u64::from(generation),
                Ending::ContinuedAsNew(json("2")),
            )
            .await
            .unwrap();
        driven.next = Sequence(0);
        assert_eq!(world.run(7).await.generation, generation);
    }
    driven.end(30, completed()).await.unwrap();
    let found = world.run(7).await;
    assert_eq!(
        (found.status, found.ending, found.generation),
        (Status::Completed, Some(completed()), 3)
    );
}
