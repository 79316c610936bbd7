//! Runs that wait: what makes them ready, held or released.

use stepwell_core::run::Status;
use stepwell_store::{Change, Suspension, Then};

use crate::support::{World, at, event, host, run, sleeping_until, step, taken, told, waiting_for};

claims! {
    a_released_sleeper_is_due_at_its_time_and_told_so,
    a_released_run_is_ready_by_an_event_it_waits_for_and_by_no_other,
    an_unseen_event_makes_a_released_run_ready_at_once,
    a_seen_event_does_not_make_a_released_run_ready,
    a_taken_event_does_not_make_a_released_run_ready,
    a_run_that_is_not_released_stays_held,
    a_held_run_is_told_of_every_event,
    a_running_run_forgets_what_it_waited_for,
    due_lists_only_runs_that_nobody_holds_soonest_first,
    a_run_that_is_ready_and_due_is_claimed_once,
}

async fn a_released_sleeper_is_due_at_its_time_and_told_so(world: World) {
    let mut driven = world.drive(7, 10).await;
    let mut changes = world.store.changes();
    driven
        .append(20, vec![step(20, 0)], Then::Suspend(sleeping_until(500)))
        .await;
    assert_eq!(
        told(&mut changes),
        [Change::Due {
            run: run(7),
            at: at(500)
        }]
    );
    let found = world.run(7).await;
    assert_eq!(
        (found.status, found.due, found.host),
        (Status::Sleeping, Some(at(500)), None)
    );
    assert_eq!(
        world.store.due(at(500), at(501), 10).await.unwrap(),
        [(at(500), run(7))]
    );
    assert_eq!(world.store.due(at(0), at(500), 10).await.unwrap(), []);
    assert!(world.claimable(499).await.is_empty());
    let claimed = world.claim_one(500).await;
    assert!(!claimed.claim.host_lost);
    assert_eq!(world.run(7).await.due, None);
}

async fn a_released_run_is_ready_by_an_event_it_waits_for_and_by_no_other(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven.suspend(20, waiting_for(&["paid", "refunded"])).await;
    assert_eq!(world.status(7).await, Status::Waiting);
    let mut changes = world.store.changes();
    world.accepted(7, event("shipped"), 30).await;
    assert_eq!(told(&mut changes), []);
    assert!(world.claimable(30).await.is_empty());
    world.accepted(7, event("refunded"), 40).await;
    assert_eq!(told(&mut changes), [Change::Ready { run: run(7) }]);
    let claimed = world.claim_one(41).await;
    let items: Vec<_> = claimed
        .claim
        .inbox
        .iter()
        .map(|item| (item.id.0, item.at))
        .collect();
    assert_eq!(items, [(1, at(30)), (2, at(40))]);
}

async fn an_unseen_event_makes_a_released_run_ready_at_once(world: World) {
    let mut driven = world.drive(7, 10).await;
    world.accepted(7, event("shipped"), 11).await;
    driven.inbox_seen = world.accepted(7, event("other"), 12).await;
    world.accepted(7, event("paid"), 13).await;
    let mut changes = world.store.changes();
    driven.suspend(20, waiting_for(&["paid"])).await;
    assert_eq!(told(&mut changes), [Change::Ready { run: run(7) }]);
    assert_eq!(world.status(7).await, Status::Waiting);
    assert_eq!(world.claimable(20).await, [run(7)]);
}

async fn a_seen_event_does_not_make_a_released_run_ready(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven.inbox_seen = world.accepted(7, event("paid"), 11).await;
    world.accepted(7, event("other"), 12).await;
    driven.suspend(20, waiting_for(&["paid"])).await;
    assert!(world.claimable(30).await.is_empty());
}

async fn a_taken_event_does_not_make_a_released_run_ready(world: World) {
    let mut driven = world.drive(7, 10).await;
    world.accepted(7, event("paid"), 11).await;
    // An odd caller: it takes the event, and says that it has not seen it.
    driven
        .append(
            20,
            vec![taken(20, 1, "paid")],
            Then::Suspend(waiting_for(&["paid"])),
        )
        .await;
    assert!(world.claimable(30).await.is_empty());
}

async fn a_run_that_is_not_released_stays_held(world: World) {
    let mut driven = world.drive(7, 10).await;
    let mut changes = world.store.changes();
    driven
        .suspend(
            20,
            Suspension {
                release: false,
                ..sleeping_until(500)
            },
        )
        .await;
    assert_eq!(told(&mut changes), []);
    let found = world.run(7).await;
    assert_eq!(
        (found.status, found.due, found.host),
        (Status::Sleeping, Some(at(500)), Some(host(1)))
    );
    assert!(world.claimable(600).await.is_empty());
    driven.append(600, vec![step(600, 0)], Then::Run).await;
    let found = world.run(7).await;
    assert_eq!((found.status, found.due), (Status::Running, None));
}

async fn a_held_run_is_told_of_every_event(world: World) {
    let mut driven = world.drive(7, 10).await;
    let mut changes = world.store.changes();
    world.accepted(7, event("a"), 11).await;
    driven
        .suspend(
            20,
            Suspension {
                release: false,
                ..waiting_for(&["b"])
            },
        )
        .await;
    world.accepted(7, event("a"), 21).await;
    world.accepted(7, event("b"), 22).await;
    assert_eq!(told(&mut changes), [Change::Inbox { run: run(7) }; 3]);
    assert!(world.claimable(30).await.is_empty());
}

async fn a_running_run_forgets_what_it_waited_for(world: World) {
    let mut driven = world.drive(7, 10).await;
    driven
        .suspend(
            20,
            Suspension {
                release: false,
                ..waiting_for(&["paid"])
            },
        )
        .await;
    driven.append(30, vec![step(30, 0)], Then::Run).await;
    driven.suspend(40, waiting_for(&["shipped"])).await;
    world.accepted(7, event("paid"), 50).await;
    assert!(world.claimable(60).await.is_empty());
}

async fn due_lists_only_runs_that_nobody_holds_soonest_first(world: World) {
    for (number, due) in [(1, 300), (2, 100), (3, 200), (4, 400)] {
        world
            .drive(number, 10)
            .await
            .suspend(20, sleeping_until(due))
            .await;
    }
    let held = Suspension {
        release: false,
        ..sleeping_until(150)
    };
    world.drive(5, 10).await.suspend(20, held).await;
    let all = world.store.due(at(0), at(1_000), 3).await.unwrap();
    assert_eq!(
        all,
        [(at(100), run(2)), (at(200), run(3)), (at(300), run(1))]
    );
}

async fn a_run_that_is_ready_and_due_is_claimed_once(world: World) {
    let wait = Suspension {
        due: Some(at(50)),
        ..waiting_for(&["paid"])
    };
    world.drive(7, 10).await.suspend(20, wait).await;
    world.accepted(7, event("paid"), 60).await;
    assert_eq!(world.claimable(70).await, [run(7)]);
}
