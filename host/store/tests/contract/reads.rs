//! Lists of runs.

use stepwell_core::run::Status;
use stepwell_store::{Message, RunFilter, Then};

use crate::support::{World, acme, completed, order, run, sleeping_until, terminate, version};

claims! {
    runs_are_listed_newest_first_in_pages,
    runs_are_filtered_by_workflow,
    runs_are_filtered_by_visible_status,
    an_unknown_run_is_absent_from_every_read,
    a_list_without_a_limit_is_empty,
}

fn first(limit: usize) -> RunFilter {
    RunFilter {
        limit,
        ..RunFilter::default()
    }
}

async fn runs_are_listed_newest_first_in_pages(world: World) {
    // Ids sort by age, in whatever order the starts arrive.
    for number in [3, 1, 5, 2, 4] {
        world.start(number, 10).await;
    }
    assert_eq!(world.runs(first(2)).await, [5, 4]);
    let second = RunFilter {
        before: Some(run(4)),
        ..first(2)
    };
    assert_eq!(world.runs(second).await, [3, 2]);
    let third = RunFilter {
        before: Some(run(2)),
        ..first(2)
    };
    assert_eq!(world.runs(third).await, [1]);
    let listed = world.store.runs(&acme(), first(1)).await.unwrap().remove(0);
    assert_eq!(listed, world.run(5).await);
}

async fn runs_are_filtered_by_workflow(world: World) {
    let mut refund = version(acme(), b"refunds", "1");
    refund.workflows[0].0 = "refund".parse().unwrap();
    let digest = refund.digest;
    world.store.register(refund).await.unwrap();
    for number in 1..=3 {
        world.start(number, 10).await;
    }
    let mut new = crate::support::new_run(4, 10);
    (new.workflow, new.digest) = ("refund".parse().unwrap(), digest);
    world.store.start(new, None).await.unwrap();
    let of = |workflow: &str| RunFilter {
        workflow: Some(workflow.parse().unwrap()),
        ..first(10)
    };
    assert_eq!(world.runs(of(order().as_str())).await, [3, 2, 1]);
    assert_eq!(world.runs(of("refund")).await, [4]);
    assert_eq!(world.runs(of("nothing")).await, [0; 0]);
}

async fn runs_are_filtered_by_visible_status(world: World) {
    world.start(1, 10).await;
    let _running = world.drive(2, 10).await;
    world.drive(3, 10).await.end(20, completed()).await.unwrap();
    world
        .drive(4, 10)
        .await
        .suspend(20, sleeping_until(500))
        .await;
    world
        .drive(5, 10)
        .await
        .suspend(20, sleeping_until(500))
        .await;
    world.accepted(5, Message::Pause, 21).await;
    world
        .drive(6, 10)
        .await
        .append(
            20,
            Vec::new(),
            Then::Stick {
                reason: "no".to_owned(),
            },
        )
        .await;
    world.start(7, 10).await;
    world.accepted(7, terminate(), 20).await;
    world.drive(8, 10).await.end(20, completed()).await.unwrap();
    let cases = [
        (vec![Status::Queued], vec![1]),
        (vec![Status::Running], vec![2]),
        (vec![Status::Completed], vec![8, 3]),
        (vec![Status::Sleeping], vec![4]),
        (vec![Status::Paused], vec![5]),
        (vec![Status::Stuck, Status::Terminated], vec![7, 6]),
        (vec![Status::Completed, Status::Stuck], vec![8, 6, 3]),
        (vec![Status::Failed], vec![]),
        (vec![], vec![8, 7, 6, 5, 4, 3, 2, 1]),
    ];
    for (statuses, expected) in cases {
        let filter = RunFilter {
            statuses: statuses.clone(),
            ..first(10)
        };
        assert_eq!(world.runs(filter).await, expected, "{statuses:?}");
    }
    let older = RunFilter {
        statuses: vec![Status::Completed],
        before: Some(run(8)),
        ..first(10)
    };
    assert_eq!(world.runs(older).await, [3]);
}

async fn an_unknown_run_is_absent_from_every_read(world: World) {
    let store = &world.store;
    assert_eq!(store.run(&acme(), run(9)).await.unwrap(), None);
    assert_eq!(
        store
            .history(&acme(), run(9), stepwell_core::id::Sequence(0), 9)
            .await
            .unwrap(),
        None
    );
    assert!(store.events(&acme(), run(9)).await.unwrap().is_empty());
    assert!(store.published(&acme(), run(9)).await.unwrap().is_empty());
    assert!(store.logs(&acme(), run(9), 0, 9).await.unwrap().is_empty());
    assert!(store.journal(run(9)).await.unwrap().is_empty());
}

async fn a_list_without_a_limit_is_empty(world: World) {
    world.start(1, 10).await;
    assert_eq!(world.runs(RunFilter::default()).await, [0; 0]);
}
