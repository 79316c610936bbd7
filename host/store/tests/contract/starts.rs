//! Starting runs.

use stepwell_core::id::{Epoch, Sequence};
use stepwell_core::run::Status;
use stepwell_store::{Change, Claim, Error, Started};

use crate::support::{
    COMPONENT, World, acme, at, digest_of, host, json, label, new_run, order, run, told,
};

claims! {
    a_started_run_is_queued_and_told_to_hosts,
    a_start_with_a_claimant_is_claimed_at_once,
    a_start_whose_claimant_has_no_lease_is_queued,
    a_start_time_ahead_makes_a_run_scheduled_and_unclaimed,
    a_start_time_in_the_past_is_at_once,
    the_same_key_and_input_is_the_same_run,
    the_same_key_with_another_input_or_workflow_starts_nothing,
    a_key_that_was_refused_elsewhere_is_still_free,
    a_start_on_a_version_that_does_not_exist_is_refused,
    a_start_on_another_component_under_the_label_is_refused,
}

async fn a_started_run_is_queued_and_told_to_hosts(world: World) {
    let mut changes = world.store.changes();
    world.start(7, 10).await;
    let found = world.run(7).await;
    assert_eq!(found.status, Status::Queued);
    assert_eq!(
        (found.tenant, found.workflow, found.label),
        (acme(), order(), label("1"))
    );
    assert_eq!(
        (found.digest, found.generation, found.host),
        (digest_of(COMPONENT), 0, None)
    );
    assert_eq!(
        (found.created_at, found.updated_at, found.due),
        (at(10), at(10), None)
    );
    assert_eq!((found.entries, found.journal_bytes), (Sequence(0), 0));
    assert_eq!(
        (found.input, found.ending, found.stuck_reason),
        (json(r#"{"total":42}"#), None, None)
    );
    assert_eq!(told(&mut changes), [Change::Ready { run: run(7) }]);
}

async fn a_start_with_a_claimant_is_claimed_at_once(world: World) {
    let mut changes = world.store.changes();
    let driven = world.drive(7, 10).await;
    let expected = Claim {
        run: run(7),
        tenant: acme(),
        workflow: order(),
        label: label("1"),
        digest: digest_of(COMPONENT),
        environment: vec![("REGION".to_owned(), "eu".to_owned())],
        generation: 0,
        input: json(r#"{"total":42}"#),
        started_at: at(10),
        epoch: Epoch(1),
        next: Sequence(0),
        journal_bytes: 0,
        host_lost: false,
        claims_without_progress: 0,
        paused: false,
        inbox: Vec::new(),
    };
    assert_eq!(driven.claim, expected);
    let found = world.run(7).await;
    assert_eq!((found.status, found.host), (Status::Running, Some(host(1))));
    assert_eq!(told(&mut changes), []);
    assert!(world.claimable(10).await.is_empty());
}

async fn a_start_whose_claimant_has_no_lease_is_queued(world: World) {
    let mut changes = world.store.changes();
    let started = world
        .store
        .start(new_run(7, 10), Some(host(99)))
        .await
        .unwrap();
    assert!(matches!(started, Started::Created(None)), "{started:?}");
    let started = world
        .store
        .start(new_run(8, 1_000_000), Some(host(1)))
        .await
        .unwrap();
    assert!(matches!(started, Started::Created(None)), "{started:?}");
    assert_eq!(world.status(7).await, Status::Queued);
    assert_eq!(
        told(&mut changes),
        [Change::Ready { run: run(7) }, Change::Ready { run: run(8) }]
    );
}

async fn a_start_time_ahead_makes_a_run_scheduled_and_unclaimed(world: World) {
    let mut changes = world.store.changes();
    let mut new = new_run(7, 10);
    new.start_at = Some(at(50));
    let started = world.store.start(new, Some(host(1))).await.unwrap();
    assert!(matches!(started, Started::Created(None)), "{started:?}");
    let found = world.run(7).await;
    assert_eq!((found.status, found.due), (Status::Scheduled, Some(at(50))));
    assert_eq!(
        told(&mut changes),
        [Change::Due {
            run: run(7),
            at: at(50)
        }]
    );
    assert!(world.claimable(49).await.is_empty());
    assert_eq!(world.claimable(50).await, [run(7)]);
}

async fn a_start_time_in_the_past_is_at_once(world: World) {
    let mut new = new_run(7, 10);
    new.start_at = Some(at(10));
    let started = world.store.start(new, Some(host(1))).await.unwrap();
    assert!(matches!(started, Started::Created(Some(_))), "{started:?}");
}

async fn the_same_key_and_input_is_the_same_run(world: World) {
    let mut first = new_run(7, 10);
    first.idempotency_key = Some("k".to_owned());
    world.store.start(first, None).await.unwrap();
    let mut changes = world.store.changes();
    let mut second = new_run(8, 20);
    second.idempotency_key = Some("k".to_owned());
    let started = world.store.start(second, Some(host(1))).await.unwrap();
    assert!(
        matches!(started, Started::Existing { run } if run == crate::support::run(7)),
        "{started:?}"
    );
    assert_eq!(world.store.run(&acme(), run(8)).await.unwrap(), None);
    assert_eq!(told(&mut changes), []);
}

async fn the_same_key_with_another_input_or_workflow_starts_nothing(world: World) {
    let mut refund = crate::support::version(acme(), b"refunds", "1");
    refund.workflows[0].0 = "refund".parse().unwrap();
    world.store.register(refund).await.unwrap();
    let mut first = new_run(7, 10);
    first.idempotency_key = Some("k".to_owned());
    world.store.start(first.clone(), None).await.unwrap();

    let mut other_input = first.clone();
    (other_input.run, other_input.input_digest) = (run(8), [2; 32]);
    let mut other_workflow = first;
    (other_workflow.run, other_workflow.workflow) = (run(9), "refund".parse().unwrap());
    other_workflow.digest = digest_of(b"refunds");
    for new in [other_input, other_workflow] {
        let refused = new.run;
        let started = world.store.start(new, None).await.unwrap();
        let Started::KeyConflict {
            run: earlier,
            workflow,
            input_digest,
        } = started
        else {
            panic!("not a conflict: {started:?}")
        };
        assert_eq!(
            (earlier, workflow, input_digest),
            (run(7), order(), [1; 32])
        );
        assert_eq!(world.store.run(&acme(), refused).await.unwrap(), None);
    }
}

async fn a_key_that_was_refused_elsewhere_is_still_free(world: World) {
    let mut wrong = new_run(7, 10);
    (wrong.idempotency_key, wrong.label) = (Some("k".to_owned()), label("2"));
    assert!(world.store.start(wrong, None).await.is_err());
    let mut right = new_run(8, 10);
    right.idempotency_key = Some("k".to_owned());
    let started = world.store.start(right, None).await.unwrap();
    assert!(matches!(started, Started::Created(None)), "{started:?}");
}

async fn a_start_on_a_version_that_does_not_exist_is_refused(world: World) {
    let mut new = new_run(7, 10);
    new.label = label("2");
    let refused = world.store.start(new, None).await;
    assert!(
        matches!(refused, Err(Error::NoSuchVersion { .. })),
        "{refused:?}"
    );
    assert_eq!(world.store.run(&acme(), run(7)).await.unwrap(), None);
}

async fn a_start_on_another_component_under_the_label_is_refused(world: World) {
    let mut new = new_run(7, 10);
    new.digest = digest_of(b"component 2");
    let refused = world.store.start(new, None).await;
    assert!(
        matches!(refused, Err(Error::NoSuchVersion { .. })),
        "{refused:?}"
    );
}
