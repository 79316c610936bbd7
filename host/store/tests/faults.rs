//! The memory store's faults do what their names say.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use stepwell_core::run::Status;
use stepwell_store::{Call, Error, Fault, MemoryStore, Room, Store, Then};

#[allow(
    dead_code,
    reason = "shared with the contract suite, which uses all of it"
)]
#[path = "contract/support.rs"]
mod support;

use support::{World, acme, at, host, is_lease_lost, run, step};

/// A world, and the store behind it with its faults.
async fn world() -> (World, Arc<MemoryStore>) {
    let store = Arc::new(MemoryStore::new());
    (World::over(Arc::<MemoryStore>::clone(&store)).await, store)
}

fn every(method: &'static str, fault: Fault) -> impl FnMut(Call) -> Option<Fault> {
    move |call| (call.method == method).then_some(fault)
}

#[tokio::test]
async fn a_failure_before_the_write_writes_nothing() {
    let (world, store) = world().await;
    let mut driven = world.drive(7, 10).await;
    for fault in [Fault::FailBefore, Fault::DiskFull] {
        store.faults().script(every("append", fault));
        let failed = driven.try_append(20, vec![step(20, 0)], Then::Run).await;
        assert!(
            matches!(failed, Err(Error::Unavailable { .. })),
            "{failed:?}"
        );
        assert!(world.history(7).await.is_empty());
    }
    store.faults().clear();
    driven.append(21, vec![step(21, 0)], Then::Run).await;
}

#[tokio::test]
async fn a_lost_acknowledgement_leaves_the_write() {
    let (world, store) = world().await;
    let mut driven = world.drive(7, 10).await;
    store.faults().script(every("append", Fault::FailAfter));
    let failed = driven.try_append(20, vec![step(20, 0)], Then::Run).await;
    assert!(matches!(failed, Err(Error::Unknown { .. })), "{failed:?}");
    assert_eq!(world.history(7).await, [step(20, 0)]);
    // Whoever tries the same again learns that it has been done, or that the lease is lost.
    store.faults().clear();
    assert!(is_lease_lost(
        driven.try_append(20, vec![step(20, 0)], Then::Run).await
    ));
}

#[tokio::test]
async fn a_full_disk_can_be_read() {
    let (world, store) = world().await;
    world.start(7, 10).await;
    store.faults().script(|_| Some(Fault::DiskFull));
    assert_eq!(world.status(7).await, Status::Queued);
    assert!(store.claim(host(1), at(11), Room::any(10)).await.is_err());
    store.faults().script(|_| Some(Fault::FailBefore));
    assert!(store.run(&acme(), run(7)).await.is_err());
}

#[tokio::test]
async fn a_lost_lease_frees_the_run_for_others() {
    let (world, store) = world().await;
    let mut driven = world.drive(7, 10).await;
    store.faults().script(every("append", Fault::LoseLease));
    assert!(is_lease_lost(
        driven.try_append(20, vec![step(20, 0)], Then::Run).await
    ));
    store.faults().clear();
    assert!(world.claim_one(21).await.claim.host_lost);
}

#[tokio::test(start_paused = true)]
async fn slow_calls_are_overtaken_and_carried_out_in_the_end() {
    let (world, store) = world().await;
    world.start(7, 10).await;
    for fault in [Fault::Slow(Duration::from_secs(3)), Fault::Yield(20)] {
        let number = store.faults().calls();
        store.faults().schedule([(number, fault)]);
        let order = Mutex::new(Vec::new());
        let call = |name| {
            let (order, store) = (&order, &store);
            async move {
                store.run(&acme(), run(7)).await.unwrap();
                order.lock().unwrap().push(name);
            }
        };
        tokio::join!(call("slow"), call("quick"));
        assert_eq!(*order.lock().unwrap(), ["quick", "slow"]);
    }
}

#[tokio::test]
async fn calls_are_numbered_and_named_for_the_script() {
    let (world, store) = world().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    store.faults().script(move |call| {
        kept.lock().unwrap().push(call);
        None
    });
    let first = store.faults().calls();
    world.start(7, 10).await;
    world.status(7).await;
    store.due(at(0), at(1), 1).await.unwrap();
    let expected = [
        ("start", Some(run(7))),
        ("run", Some(run(7))),
        ("due", None),
    ];
    let expected: Vec<_> = (first..)
        .zip(expected)
        .map(|(number, (method, run))| Call {
            number,
            method,
            run,
        })
        .collect();
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn expired_leases_free_every_run() {
    let (world, store) = world().await;
    world.drive(7, 10).await;
    store.expire_leases();
    assert!(
        store
            .claim(host(1), at(20), Room::any(10))
            .await
            .unwrap()
            .is_empty()
    );
    store.renew_lease(host(2), at(1_000)).await.unwrap();
    assert!(store.claim(host(2), at(20), Room::any(10)).await.unwrap()[0].host_lost);
}
