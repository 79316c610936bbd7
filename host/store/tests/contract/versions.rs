//! Registering components, and finding versions.

use std::sync::Arc;

use stepwell_store::Registered;

use crate::support::{COMPONENT, World, acme, at, digest_of, label, order, version};

claims! {
    a_version_comes_back_as_it_was_registered,
    the_same_registration_again_changes_nothing,
    a_label_is_never_given_to_another_component_or_environment,
    a_conflict_on_one_workflow_registers_none_of_them,
    the_newest_registration_becomes_the_default,
    a_repeated_registration_does_not_move_the_default,
    versions_are_listed_by_workflow_and_newest_first,
    a_component_that_was_never_registered_is_absent,
}

async fn a_version_comes_back_as_it_was_registered(world: World) {
    let found = world
        .store
        .version(&acme(), &order(), Some(&label("1")))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.workflow, order());
    assert_eq!(found.label, label("1"));
    assert_eq!(found.digest, digest_of(COMPONENT));
    assert_eq!(found.manifest, r#"{"name":"order"}"#);
    assert_eq!(found.environment, [("REGION".to_owned(), "eu".to_owned())]);
    assert_eq!(found.registered_at, at(1));
    assert!(found.is_default);
    let component = world
        .store
        .component(&acme(), found.digest)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&*component, COMPONENT);
    assert_eq!(
        world
            .store
            .version(&acme(), &order(), Some(&label("2")))
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        world
            .store
            .version(&acme(), &"other".parse().unwrap(), None)
            .await
            .unwrap(),
        None
    );
}

async fn the_same_registration_again_changes_nothing(world: World) {
    let before = world.store.versions(&acme()).await.unwrap();
    let mut again = version(acme(), COMPONENT, "1");
    again.at = at(9);
    assert_eq!(world.store.register(again).await.unwrap(), Registered::Same);
    assert_eq!(world.store.versions(&acme()).await.unwrap(), before);
}

async fn a_label_is_never_given_to_another_component_or_environment(world: World) {
    let conflict = Registered::Conflict {
        workflow: order(),
        digest: digest_of(COMPONENT),
    };
    assert_eq!(
        world
            .store
            .register(version(acme(), b"component 2", "1"))
            .await
            .unwrap(),
        conflict
    );
    let mut elsewhere = version(acme(), COMPONENT, "1");
    elsewhere.environment[0].1 = "us".to_owned();
    assert_eq!(world.store.register(elsewhere).await.unwrap(), conflict);
    let found = world
        .store
        .version(&acme(), &order(), None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (found.digest, &*found.environment[0].1),
        (digest_of(COMPONENT), "eu")
    );
    assert_eq!(
        world
            .store
            .component(&acme(), digest_of(b"component 2"))
            .await
            .unwrap(),
        None
    );
}

async fn a_conflict_on_one_workflow_registers_none_of_them(world: World) {
    let mut both = version(acme(), b"component 2", "1");
    both.workflows
        .insert(0, ("refund".parse().unwrap(), "{}".to_owned()));
    let conflict = Registered::Conflict {
        workflow: order(),
        digest: digest_of(COMPONENT),
    };
    assert_eq!(world.store.register(both).await.unwrap(), conflict);
    assert_eq!(
        world
            .store
            .version(&acme(), &"refund".parse().unwrap(), None)
            .await
            .unwrap(),
        None
    );
}

async fn the_newest_registration_becomes_the_default(world: World) {
    assert_eq!(
        world
            .store
            .register(version(acme(), b"component 2", "2"))
            .await
            .unwrap(),
        Registered::New
    );
    let default = world
        .store
        .version(&acme(), &order(), None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((&default.label, default.is_default), (&label("2"), true));
    let earlier = world
        .store
        .version(&acme(), &order(), Some(&label("1")))
        .await
        .unwrap()
        .unwrap();
    assert!(!earlier.is_default);
}

async fn a_repeated_registration_does_not_move_the_default(world: World) {
    world
        .store
        .register(version(acme(), b"component 2", "2"))
        .await
        .unwrap();
    assert_eq!(
        world
            .store
            .register(version(acme(), COMPONENT, "1"))
            .await
            .unwrap(),
        Registered::Same
    );
    let default = world
        .store
        .version(&acme(), &order(), None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(default.label, label("2"));
}

async fn versions_are_listed_by_workflow_and_newest_first(world: World) {
    let mut both = version(acme(), b"component 2", "2");
    both.workflows
        .push(("audit".parse().unwrap(), "{}".to_owned()));
    world.store.register(both).await.unwrap();
    let mut third = version(acme(), b"component 3", "0.9");
    third.component = Arc::from(&b"component 3"[..]);
    world.store.register(third).await.unwrap();
    let listed: Vec<_> = world
        .store
        .versions(&acme())
        .await
        .unwrap()
        .into_iter()
        .map(|version| {
            format!(
                "{} {} {}",
                version.workflow, version.label, version.is_default
            )
        })
        .collect();
    assert_eq!(
        listed,
        [
            "audit 2 true",
            "order 0.9 true",
            "order 2 false",
            "order 1 false"
        ]
    );
}

async fn a_component_that_was_never_registered_is_absent(world: World) {
    assert_eq!(
        world
            .store
            .component(&acme(), digest_of(b"other"))
            .await
            .unwrap(),
        None
    );
}
