//! Claims, leases, and what becomes of a lost host's runs.

use stepwell_core::id::{Epoch, HostId};
use stepwell_core::run::Status;
use stepwell_store::{Change, Room, Then};

use crate::support::{
    World, at, attempt, event, host, is_lease_lost, new_run, run, sleeping_until, step, told,
    waiting_for,
};

claims! {
    a_claim_raises_the_epoch_and_holds_the_run,
    the_oldest_readiness_is_claimed_first_and_no_more_than_asked_for,
    readiness_does_not_wait_for_a_clock_that_went_back,
    a_host_without_a_lease_claims_nothing,
    a_run_is_held_until_its_hosts_lease_runs_out_and_no_longer,
    a_renewed_lease_holds_on,
    a_lost_host_is_told_so_only_if_its_guest_ran,
    a_lost_host_is_told_of_until_the_guest_has_got_further,
    a_lost_hosts_sleeping_run_is_due_as_before,
    a_lost_hosts_run_with_a_met_wait_is_ready,
    a_lost_hosts_run_with_tasks_is_ready,
    a_host_that_comes_back_too_late_can_write_nothing,
    claims_without_progress_are_counted_and_progress_ends_the_count,
    suspects_are_claimed_only_as_far_as_there_is_room_for_them,
    released_runs_are_ready_at_once,
    a_host_finds_what_it_holds_and_nothing_else,
    an_abandoned_run_is_claimed_as_after_a_lost_host,
    an_abandoned_run_that_slept_is_due_as_before,
    only_the_epoch_that_holds_a_run_can_abandon_it,
}

async fn a_claim_raises_the_epoch_and_holds_the_run(world: World) {
    world.start(7, 10).await;
    let mut driven = world.claim_one(20).await;
    assert_eq!(driven.epoch, Epoch(1));
    assert_eq!(world.run(7).await.host, Some(host(1)));
    driven.append(21, vec![step(21, 0)], Then::Release).await;
    let driven = world.claim_one(22).await;
    assert_eq!(driven.epoch, Epoch(2));
    assert!(world.claimable(23).await.is_empty());
}

async fn the_oldest_readiness_is_claimed_first_and_no_more_than_asked_for(world: World) {
    for (number, ms) in [(1, 30), (2, 10), (3, 20)] {
        world.start(number, ms).await;
    }
    for (number, due) in [(4, 15), (5, 25), (6, 99)] {
        let mut new = new_run(number, 5);
        new.start_at = Some(at(due));
        world.store.start(new, None).await.unwrap();
    }
    let mut order = Vec::new();
    loop {
        let claims = world
            .store
            .claim(host(1), at(40), Room::any(2))
            .await
            .unwrap();
        if claims.is_empty() {
            break;
        }
        assert!(claims.len() <= 2);
        order.extend(claims.into_iter().map(|claim| claim.run.raw()));
    }
    assert_eq!(order, [2, 4, 3, 5, 1]);
}

async fn readiness_does_not_wait_for_a_clock_that_went_back(world: World) {
    world.start(7, 1_000).await;
    assert_eq!(world.claimable(500).await, [run(7)]);
}

async fn a_host_without_a_lease_claims_nothing(world: World) {
    world.start(7, 10).await;
    assert!(
        world
            .store
            .claim(host(99), at(20), Room::any(10))
            .await
            .unwrap()
            .is_empty()
    );
    world.store.renew_lease(host(99), at(30)).await.unwrap();
    assert!(
        world
            .store
            .claim(host(99), at(30), Room::any(10))
            .await
            .unwrap()
            .is_empty()
    );
    world.store.renew_lease(host(99), at(31)).await.unwrap();
    assert_eq!(
        world
            .store
            .claim(host(99), at(30), Room::any(10))
            .await
            .unwrap()
            .len(),
        1
    );
}

async fn a_run_is_held_until_its_hosts_lease_runs_out_and_no_longer(world: World) {
    world.store.renew_lease(host(2), at(100)).await.unwrap();
    world.start(7, 10).await;
    assert_eq!(
        world
            .store
            .claim(host(2), at(20), Room::any(10))
            .await
            .unwrap()
            .len(),
        1
    );
    assert!(world.claimable(99).await.is_empty());
    let driven = world.claim_one(100).await;
    assert_eq!((driven.epoch, driven.claim.host_lost), (Epoch(2), true));
}

async fn a_renewed_lease_holds_on(world: World) {
    world.store.renew_lease(host(2), at(100)).await.unwrap();
    world.start(7, 10).await;
    world
        .store
        .claim(host(2), at(20), Room::any(10))
        .await
        .unwrap();
    world.store.renew_lease(host(2), at(200)).await.unwrap();
    assert!(world.claimable(199).await.is_empty());
    assert_eq!(world.claimable(200).await, [run(7)]);
}

async fn a_lost_host_is_told_so_only_if_its_guest_ran(world: World) {
    world.store.renew_lease(host(2), at(100)).await.unwrap();
    for number in [7, 8] {
        world.start(number, 10).await;
    }
    let mut claims = world
        .store
        .claim(host(2), at(20), Room::any(10))
        .await
        .unwrap();
    let mut resident = world.driven(claims.remove(1));
    let sleep = stepwell_store::Suspension {
        release: false,
        ..sleeping_until(50)
    };
    resident
        .append(21, vec![step(21, 0)], Then::Suspend(sleep))
        .await;
    assert_eq!(world.status(8).await, Status::Sleeping);

    let lost: Vec<_> = world
        .claim(100)
        .await
        .into_iter()
        .map(|claim| (claim.run.raw(), claim.host_lost))
        .collect();
    assert_eq!(lost, [(8, false), (7, true)]);
}

async fn a_lost_host_is_told_of_until_the_guest_has_got_further(world: World) {
    world.store.renew_lease(host(2), at(100)).await.unwrap();
    world.start(7, 10).await;
    let room = Room::any(10);
    world.store.claim(host(2), at(20), room).await.unwrap();
    // Released, or set aside, before the guest has asked for anything.
    let mut driven = world.claim_one(100).await;
    assert!(driven.claim.host_lost);
    driven.append(101, Vec::new(), Then::Release).await;
    let mut driven = world.claim_one(102).await;
    assert!(driven.claim.host_lost);
    let reason = "of a test".to_owned();
    driven.append(103, Vec::new(), Then::Stick { reason }).await;
    world
        .accepted(7, stepwell_store::Message::Resume, 104)
        .await;
    let mut driven = world.claim_one(105).await;
    assert!(driven.claim.host_lost);
    driven.append(106, vec![step(106, 0)], Then::Run).await;
    driven.append(107, Vec::new(), Then::Release).await;
    assert!(!world.claim_one(108).await.claim.host_lost);
}

async fn a_lost_hosts_sleeping_run_is_due_as_before(world: World) {
    world.store.renew_lease(host(2), at(100)).await.unwrap();
    world.start(7, 10).await;
    let claim = world
        .store
        .claim(host(2), at(20), Room::any(10))
        .await
        .unwrap()
        .remove(0);
    let sleep = stepwell_store::Suspension {
        release: false,
        ..sleeping_until(500)
    };
    world.driven(claim).suspend(30, sleep).await;
    assert!(
        world
            .store
            .due(at(0), at(1_000), 10)
            .await
            .unwrap()
            .is_empty()
    );

    let mut changes = world.store.changes();
    assert!(world.claimable(100).await.is_empty());
    assert_eq!(
        told(&mut changes),
        [Change::Due {
            run: run(7),
            at: at(500)
        }]
    );
    assert_eq!(
        world.store.due(at(0), at(1_000), 10).await.unwrap(),
        [(at(500), run(7))]
    );
    let found = world.run(7).await;
    assert_eq!((found.status, found.host), (Status::Sleeping, None));
    assert!(!world.claim_one(500).await.claim.host_lost);
}

async fn a_lost_hosts_run_with_tasks_is_ready(world: World) {
    world.store.renew_lease(host(2), at(100)).await.unwrap();
    world.start(7, 10).await;
    let claim = world
        .store
        .claim(host(2), at(20), Room::any(10))
        .await
        .unwrap()
        .remove(0);
    let wait = stepwell_store::Suspension {
        release: false,
        tasks_run: true,
        ..waiting_for(&[])
    };
    world.driven(claim).suspend(30, wait).await;
    assert!(world.claimable(99).await.is_empty());
    let claim = world.claim_one(100).await.claim;
    assert_eq!((claim.run, claim.host_lost), (run(7), false));
}

async fn a_lost_hosts_run_with_a_met_wait_is_ready(world: World) {
    world.store.renew_lease(host(2), at(100)).await.unwrap();
    world.start(7, 10).await;
    let claim = world
        .store
        .claim(host(2), at(20), Room::any(10))
        .await
        .unwrap()
        .remove(0);
    let wait = stepwell_store::Suspension {
        release: false,
        ..waiting_for(&["paid"])
    };
    world.driven(claim).suspend(30, wait).await;
    // Told to the host, which is lost before it looks.
    world.accepted(7, event("paid"), 40).await;
    assert!(world.claimable(99).await.is_empty());
    assert_eq!(world.claimable(100).await, [run(7)]);
}

async fn a_host_that_comes_back_too_late_can_write_nothing(world: World) {
    world.store.renew_lease(host(2), at(100)).await.unwrap();
    world.start(7, 10).await;
    let claim = world
        .store
        .claim(host(2), at(20), Room::any(10))
        .await
        .unwrap()
        .remove(0);
    let mut late = world.driven(claim);
    // Taken for lost, but claimed by nobody yet: the delivery is what notices.
    world.accepted(7, event("paid"), 100).await;
    world.store.renew_lease(host(2), at(1_000)).await.unwrap();
    assert!(is_lease_lost(
        late.try_append(101, vec![step(101, 0)], Then::Run).await
    ));
    world.claim_one(102).await;
    assert!(is_lease_lost(
        late.try_append(103, vec![step(103, 0)], Then::Run).await
    ));
    assert!(world.history(7).await.is_empty());
}

async fn claims_without_progress_are_counted_and_progress_ends_the_count(world: World) {
    world.start(7, 10).await;
    for expected in 0..3 {
        let mut driven = world.claim_one(20).await;
        assert_eq!(driven.claim.claims_without_progress, expected);
        driven.append(21, vec![attempt(21)], Then::Release).await;
    }
    let mut driven = world.claim_one(22).await;
    assert_eq!(driven.claim.claims_without_progress, 3);
    driven
        .append(23, vec![attempt(23), step(23, 0)], Then::Release)
        .await;
    assert_eq!(world.claim_one(24).await.claim.claims_without_progress, 0);
}

async fn released_runs_are_ready_at_once(world: World) {
    let mut driven = world.drive(7, 10).await;
    let mut changes = world.store.changes();
    driven.append(20, vec![step(20, 0)], Then::Release).await;
    assert_eq!(told(&mut changes), [Change::Ready { run: run(7) }]);
    assert_eq!(world.status(7).await, Status::Queued);
    let again = world.claim_one(21).await;
    assert!(!again.claim.host_lost);
    assert_eq!(again.next.0, 1);
}

async fn a_host_finds_what_it_holds_and_nothing_else(world: World) {
    world.store.renew_lease(host(2), at(1_000)).await.unwrap();
    for number in [6, 7, 8, 9] {
        world
            .start(number, 10 + u64::try_from(number).unwrap())
            .await;
    }
    world
        .store
        .claim(host(1), at(20), Room::any(1))
        .await
        .unwrap();
    world
        .store
        .claim(host(2), at(20), Room::any(2))
        .await
        .unwrap();
    let held = |host: HostId| {
        let store = std::sync::Arc::clone(&world.store);
        async move {
            let mut held = store.held(host).await.unwrap();
            held.sort_unstable();
            held
        }
    };
    assert_eq!(held(host(1)).await, [(run(6), Epoch(1))]);
    assert_eq!(
        held(host(2)).await,
        [(run(7), Epoch(1)), (run(8), Epoch(1))]
    );
    assert!(held(host(3)).await.is_empty());
    world.accepted(7, crate::support::terminate(), 30).await;
    assert_eq!(held(host(2)).await, [(run(8), Epoch(1))]);
}

async fn an_abandoned_run_is_claimed_as_after_a_lost_host(world: World) {
    let mut driven = world.drive(7, 10).await;
    let mut changes = world.store.changes();
    world
        .store
        .abandon(run(7), driven.epoch, at(20))
        .await
        .unwrap();
    assert_eq!(told(&mut changes), [Change::Ready { run: run(7) }]);
    assert!(is_lease_lost(
        driven.try_append(21, vec![step(21, 0)], Then::Run).await
    ));
    let again = world.claim_one(22).await;
    assert_eq!((again.epoch, again.claim.host_lost), (Epoch(2), true));
    assert_eq!(again.claim.claims_without_progress, 1);
}

async fn an_abandoned_run_that_slept_is_due_as_before(world: World) {
    let mut driven = world.drive(7, 10).await;
    let sleep = stepwell_store::Suspension {
        release: false,
        ..sleeping_until(500)
    };
    driven.suspend(20, sleep).await;
    world
        .store
        .abandon(run(7), driven.epoch, at(30))
        .await
        .unwrap();
    assert_eq!(world.status(7).await, Status::Sleeping);
    assert!(world.claimable(499).await.is_empty());
    assert!(!world.claim_one(500).await.claim.host_lost);
}

async fn only_the_epoch_that_holds_a_run_can_abandon_it(world: World) {
    let mut driven = world.drive(7, 10).await;
    let mut changes = world.store.changes();
    for epoch in [Epoch(0), Epoch(2)] {
        world.store.abandon(run(7), epoch, at(20)).await.unwrap();
    }
    world
        .store
        .abandon(run(99), Epoch(1), at(20))
        .await
        .unwrap();
    driven.append(21, vec![step(21, 0)], Then::Release).await;
    world
        .store
        .abandon(run(7), driven.epoch, at(22))
        .await
        .unwrap();
    assert_eq!(told(&mut changes), [Change::Ready { run: run(7) }]);
    assert!(!world.claim_one(23).await.claim.host_lost);
}

async fn suspects_are_claimed_only_as_far_as_there_is_room_for_them(world: World) {
    for number in [6, 7, 8] {
        world.start(number, 10).await;
    }
    // Each is lost twice without progress, and comes back in this order.
    for (claimed_at, again_at) in [(20, 30), (40, 50)] {
        for (claim, later) in world.claim(claimed_at).await.into_iter().zip(0..) {
            let abandoned = world
                .store
                .abandon(claim.run, claim.epoch, at(again_at + later));
            abandoned.await.unwrap();
        }
    }
    world.start(9, 60).await;
    let claim = async |runs, suspects| {
        let room = Room { runs, suspects };
        let claims = world.store.claim(host(1), at(70), room).await.unwrap();
        let claimed = claims
            .iter()
            .map(|claim| (claim.run.raw(), claim.is_suspect()));
        claimed.collect::<Vec<_>>()
    };
    assert!(claim(0, 5).await.is_empty());
    assert_eq!(claim(1, 1).await, [(6, true)]);
    assert_eq!(claim(5, 0).await, [(9, false)]);
    assert_eq!(claim(5, 5).await, [(7, true), (8, true)]);
}
