//! Tenants: another's things answer exactly like things that don't exist.

use stepwell_core::id::Sequence;
use stepwell_core::run::Status;
use stepwell_store::{Delivered, Error, Message, Registered, Room, RunFilter, Started, Then};

use crate::support::{
    COMPONENT, World, acme, at, cancel, digest_of, event, host, keyed_event, label, new_run, order,
    run, step, tenant, terminate, version,
};

claims! {
    another_tenants_run_reads_as_absent,
    another_tenants_run_takes_no_message,
    a_component_is_read_only_by_a_tenant_that_registered_it,
    equal_names_labels_and_keys_of_two_tenants_never_meet,
    a_tenant_without_rows_reads_as_empty,
    claims_name_their_tenant,
}

async fn another_tenants_run_reads_as_absent(world: World) {
    let mut driven = world.drive(7, 10).await;
    world.accepted(7, event("paid"), 11).await;
    driven.append(12, vec![step(12, 0)], Then::Run).await;
    let other = tenant("globex");
    world
        .store
        .register(version(other.clone(), COMPONENT, "1"))
        .await
        .unwrap();
    let store = &world.store;
    assert_eq!(store.run(&other, run(7)).await.unwrap(), None);
    assert_eq!(
        store.history(&other, run(7), Sequence(0), 9).await.unwrap(),
        None
    );
    assert!(store.events(&other, run(7)).await.unwrap().is_empty());
    assert!(store.published(&other, run(7)).await.unwrap().is_empty());
    assert!(
        store
            .runs(
                &other,
                RunFilter {
                    limit: 9,
                    ..RunFilter::default()
                }
            )
            .await
            .unwrap()
            .is_empty()
    );
}

async fn another_tenants_run_takes_no_message(world: World) {
    world.start(7, 10).await;
    world
        .store
        .register(version(tenant("globex"), COMPONENT, "1"))
        .await
        .unwrap();
    let before = world.run(7).await;
    for other in [tenant("globex"), tenant("nobody")] {
        for message in [
            event("paid"),
            cancel(),
            Message::Pause,
            Message::Resume,
            Message::Wake,
            terminate(),
        ] {
            let answer = world
                .store
                .deliver(&other, run(7), message, at(11))
                .await
                .unwrap();
            assert_eq!(answer, Delivered::NoSuchRun);
        }
    }
    assert_eq!(world.run(7).await, before);
    assert_eq!(before.status, Status::Queued);
}

async fn a_component_is_read_only_by_a_tenant_that_registered_it(world: World) {
    let other = tenant("globex");
    let digest = digest_of(COMPONENT);
    assert_eq!(world.store.component(&other, digest).await.unwrap(), None);
    world
        .store
        .register(version(other.clone(), b"component 2", "1"))
        .await
        .unwrap();
    assert_eq!(world.store.component(&other, digest).await.unwrap(), None);
    assert_eq!(
        world
            .store
            .component(&acme(), digest_of(b"component 2"))
            .await
            .unwrap(),
        None
    );
    assert!(
        world
            .store
            .component(&other, digest_of(b"component 2"))
            .await
            .unwrap()
            .is_some()
    );
}

async fn equal_names_labels_and_keys_of_two_tenants_never_meet(world: World) {
    let other = tenant("globex");
    // The same workflow and label with another component is no conflict.
    assert_eq!(
        world
            .store
            .register(version(other.clone(), b"component 2", "1"))
            .await
            .unwrap(),
        Registered::New
    );
    let found = world
        .store
        .version(&acme(), &order(), Some(&label("1")))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (found.digest, found.is_default),
        (digest_of(COMPONENT), true)
    );

    let mut ours = new_run(7, 10);
    ours.idempotency_key = Some("k".to_owned());
    let mut theirs = new_run(8, 10);
    (theirs.tenant, theirs.digest) = (other.clone(), digest_of(b"component 2"));
    (theirs.idempotency_key, theirs.input_digest) = (Some("k".to_owned()), [2; 32]);
    for new in [ours, theirs] {
        let started = world.store.start(new, None).await.unwrap();
        assert!(matches!(started, Started::Created(None)), "{started:?}");
    }
    world.accepted(7, keyed_event("paid", Some("k")), 11).await;
    let answer = world
        .store
        .deliver(&other, run(8), keyed_event("paid", Some("k")), at(11))
        .await
        .unwrap();
    assert!(matches!(answer, Delivered::Accepted { .. }), "{answer:?}");
    assert_eq!(
        world
            .runs(RunFilter {
                limit: 9,
                ..RunFilter::default()
            })
            .await,
        [7]
    );

    // A version is found by its own tenant only.
    let mut stray = new_run(9, 10);
    stray.tenant = other;
    let refused = world.store.start(stray, None).await;
    assert!(
        matches!(refused, Err(Error::NoSuchVersion { .. })),
        "{refused:?}"
    );
}

async fn a_tenant_without_rows_reads_as_empty(world: World) {
    let nobody = tenant("nobody");
    let store = &world.store;
    assert!(store.versions(&nobody).await.unwrap().is_empty());
    assert_eq!(store.version(&nobody, &order(), None).await.unwrap(), None);
    assert_eq!(
        store
            .component(&nobody, digest_of(COMPONENT))
            .await
            .unwrap(),
        None
    );
    assert!(
        store
            .runs(
                &nobody,
                RunFilter {
                    limit: 9,
                    ..RunFilter::default()
                }
            )
            .await
            .unwrap()
            .is_empty()
    );
}

async fn claims_name_their_tenant(world: World) {
    let other = tenant("globex");
    let mut theirs = version(other.clone(), b"component 2", "1");
    theirs.environment.clear();
    world.store.register(theirs).await.unwrap();
    world.start(7, 10).await;
    let mut new = new_run(8, 11);
    (new.tenant, new.digest) = (other.clone(), digest_of(b"component 2"));
    world.store.start(new, None).await.unwrap();
    let claims = world
        .store
        .claim(host(1), at(20), Room::any(10))
        .await
        .unwrap();
    let named: Vec<_> = claims
        .into_iter()
        .map(|claim| (claim.tenant, claim.environment.len()))
        .collect();
    assert_eq!(named, [(acme(), 1), (other, 0)]);
}
