//! The two worlds: every row of their table.

use stepwell_core::payload::Payload;
use stepwell_sandbox::guest::{Exit, TrapKind};

use crate::support::{Engine, Run, guest, task};

fn now_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis()
        .try_into()
        .unwrap()
}

fn numbers(text: &str) -> Vec<u64> {
    text.split(' ')
        .map(|number| number.parse().unwrap())
        .collect()
}

#[tokio::test]
async fn outside_steps_both_clocks_show_workflow_time_and_stand_still_between_operations() {
    // The guest itself asserts that a reading repeated after some work is the same.
    let output = Run::of("clocks").output().await;
    assert_eq!(output, "1000 1000000000 61000 61000000000");
}

#[tokio::test]
async fn inside_a_step_both_clocks_are_real() {
    let before = now_ms();
    let seen = numbers(&Run::of("clocks-in-step").output().await);
    assert!((before..=now_ms()).contains(&seen[0]));
    assert!(
        seen[1] >= 20 && seen[2] >= 20,
        "a sleep of 20 ms took {seen:?}"
    );
}

#[tokio::test]
async fn an_instant_from_before_a_step_can_be_compared_inside_it() {
    let elapsed: u64 = Run::of("instants-across-a-step")
        .output()
        .await
        .parse()
        .unwrap();
    assert!((20..5_000).contains(&elapsed), "{elapsed}");
}

#[tokio::test]
async fn outside_steps_randomness_follows_from_the_seed_alone() {
    let first = Run::of("random").output().await;
    assert_eq!(first, Run::of("random").output().await);
    assert_ne!(first, Run::of("random").seed(43).output().await);
}

#[tokio::test]
async fn what_steps_draw_does_not_move_the_workflows_stream() {
    let without_steps = Run::of("random").output().await;
    let live = Run::of("random-with-steps-between").output().await;
    let replayed = Run::of("random-with-steps-between")
        .engine(|engine| engine.recorded = vec![Payload::null(), Payload::null()])
        .output()
        .await;
    assert_eq!(live, without_steps);
    assert_eq!(replayed, without_steps);
}

#[tokio::test]
async fn inside_a_step_randomness_is_real() {
    assert_ne!(
        Run::of("random-in-step").output().await,
        Run::of("random-in-step").output().await
    );
}

#[tokio::test]
async fn hash_maps_iterate_in_the_same_order_in_every_activation() {
    let first = Run::of("hash-order").output().await;
    assert_eq!(first, Run::of("hash-order").output().await);
    assert_ne!(first, Run::of("hash-order").seed(43).output().await);
}

#[tokio::test]
async fn blocking_outside_a_step_traps_and_names_sleep() {
    for workflow in [
        "thread-sleep",
        "poll-outside",
        "ready-outside",
        "pollable-kept-from-a-step",
    ] {
        let trap = Run::of(workflow).trap().await;
        assert_eq!(trap.kind, TrapKind::Forbidden, "{workflow}: {trap:?}");
        assert!(
            trap.message.contains("use sleep or sleep-until"),
            "{workflow}: {}",
            trap.message
        );
    }
}

#[tokio::test]
async fn blocking_inside_a_step_works() {
    Run::of("thread-sleep-in-step").output().await;
    assert_eq!(
        Run::of("pollable-kept-into-a-step").output().await,
        "blocked"
    );
}

#[tokio::test]
async fn what_is_always_ready_may_be_polled_anywhere() {
    assert_eq!(
        Run::of("poll-what-is-ready").output().await,
        "[0, 1] true true"
    );
}

#[tokio::test]
async fn a_guest_sees_its_environment_and_nothing_else() {
    let mut run = Run::of("surroundings");
    run.activation.environment = vec![
        ("REGION".to_owned(), "eu".to_owned()),
        ("MODE".to_owned(), "test".to_owned()),
    ];
    assert_eq!(
        run.output().await,
        "[\"MODE=test\", \"REGION=eu\"] [] Ok(0) Err(NotFound) false"
    );
}

#[tokio::test]
async fn a_task_is_in_the_step_world_from_the_start() {
    let before = now_ms();
    let engine = Engine::default();
    match guest()
        .await
        .run_task(task("world"), Box::new(engine))
        .await
    {
        Exit::Returned(Ok(Payload::Json(text))) => {
            let seen = numbers(&text);
            assert!((before..=now_ms()).contains(&seen[0]));
            assert!(seen[1] >= 20 && seen[2] >= 20, "{text}");
        }
        other => panic!("{other:?}"),
    }
}
