//! Limits: each ends in a trap or an error that names it, and no guest hurts another.

use std::time::{Duration, Instant};

use stepwell_core::payload::{Failure, Payload};
use stepwell_sandbox::guest::{Completion, Exit, LogLevel, TrapKind};

use crate::support::{Engine, Run, guest, task};

const MIB: u64 = 1024 * 1024;

#[tokio::test]
async fn growing_over_the_memory_limit_traps_and_names_the_limit() {
    let trap = Run::of("grow")
        .limits(|limits| limits.memory_bytes_max = 16 * MIB)
        .trap()
        .await;
    assert_eq!(trap.kind, TrapKind::MemoryLimit);
    assert!(
        trap.message.contains("its limit is 16777216 bytes"),
        "{}",
        trap.message
    );
    assert!(trap.backtrace.contains("grow"), "{}", trap.backtrace);

    let trap = Run::of("grow-too-far-at-once").trap().await;
    assert_eq!(trap.kind, TrapKind::MemoryLimit, "{}", trap.message);
}

#[tokio::test]
async fn the_cpu_limit_traps_between_waits_in_a_step_and_in_a_task() {
    let limit = Duration::from_millis(150);
    for (workflow, scope) in [
        ("spin", "between two waits"),
        ("spin-in-step", "in one attempt"),
    ] {
        let trap = Run::of(workflow)
            .limits(|limits| limits.cpu_max = limit)
            .trap()
            .await;
        assert_eq!(trap.kind, TrapKind::CpuLimit);
        assert!(
            trap.message.contains("150ms") && trap.message.contains(scope),
            "{}",
            trap.message
        );
        assert!(trap.backtrace.contains("spin"), "{}", trap.backtrace);
    }
    let mut call = task("spin");
    call.limits.cpu_max = limit;
    match guest()
        .await
        .run_task(call, Box::new(Engine::default()))
        .await
    {
        Exit::Trapped(trap) => assert_eq!(trap.kind, TrapKind::CpuLimit),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_wait_gives_a_guest_its_whole_cpu_limit_again() {
    let run = |limit| {
        Run::of("work-between-naps")
            .input(50_000_000)
            .limits(|limits| limits.cpu_max = limit)
    };
    let begun = Instant::now();
    assert_eq!(run(Duration::from_secs(60)).output().await, "done");
    // Three stretches of work, each of them far shorter than this.
    let limit = begun.elapsed() * 3 / 4;
    assert_eq!(run(limit).output().await, "done");
}

#[tokio::test(flavor = "current_thread")]
async fn an_endless_loop_does_not_keep_another_guest_from_running() {
    let guest = guest().await;
    let endless = Run::of("spin").exit_in(&*guest);
    let orderly = async {
        for _ in 0..5 {
            match Run::of("nap").exit_in(&*guest).await {
                Exit::Returned(Completion::Done(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    tokio::select! {
        biased;
        exit = endless => panic!("the endless loop ended first: {exit:?}"),
        () = orderly => {}
    }
}

#[tokio::test]
async fn a_guest_that_meets_its_limit_takes_no_other_guest_with_it() {
    let guest = guest().await;
    let bystander = tokio::spawn({
        let guest = guest.clone();
        async move { Run::of("steps").input(200).exit_in(&*guest).await }
    });
    for workflow in ["grow", "recurse", "out-of-bounds", "panic", "hoard"] {
        assert!(
            matches!(Run::of(workflow).exit_in(&*guest).await, Exit::Trapped(_)),
            "{workflow}"
        );
    }
    match bystander.await.unwrap() {
        Exit::Returned(Completion::Done(Payload::Json(text))) => assert_eq!(text, "200"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn hoarding_resources_traps() {
    let trap = Run::of("hoard").trap().await;
    assert_eq!(trap.kind, TrapKind::MemoryLimit, "{}", trap.message);
    assert!(trap.message.contains("1000 resources"), "{}", trap.message);
}

#[tokio::test]
async fn handing_the_host_more_than_it_should_hold_traps() {
    let trap = Run::of("too-much-at-once").trap().await;
    assert!(trap.message.contains("fuel"), "{}", trap.message);
    let trap = Run::of("too-many-zeroes").trap().await;
    assert!(
        trap.message.contains("1099511627776 bytes"),
        "{}",
        trap.message
    );
    let trap = Run::of("random-much").trap().await;
    assert!(
        trap.message.contains("1048576 random bytes"),
        "{}",
        trap.message
    );
}

#[tokio::test]
async fn large_results_reach_the_engine_which_judges_them() {
    let run = Run::of("large-step").input(2_000_000);
    let engine = run.engine.clone();
    assert!(matches!(
        run.exit().await,
        Exit::Returned(Completion::Done(_))
    ));
    let finished = engine.0.lock().unwrap().finished.pop().unwrap();
    assert_eq!(finished.unwrap().size_bytes(), 2_000_000);

    let mut call = task("large");
    call.input = Payload::Json("2000000".to_owned());
    let exit = guest()
        .await
        .run_task(call, Box::new(Engine::default()))
        .await;
    assert!(matches!(exit, Exit::Returned(Ok(output)) if output.size_bytes() == 2_000_000));
}

#[tokio::test]
async fn a_failure_is_cut_to_what_is_kept() {
    let run = Run::of("long-failure")
        .input(2_000_000)
        .limits(|limits| limits.payload_bytes_max = 1_048_576);
    let engine = run.engine.clone();
    run.output().await;
    let Err(Failure {
        kind,
        message,
        details,
        retryable,
        retry_after,
    }) = engine.0.lock().unwrap().finished.pop().unwrap()
    else {
        panic!("it failed")
    };
    assert_eq!(kind.len(), 256);
    assert!(message.ends_with(
        "its details of 2000000 bytes were dropped: the payload limit is 1048576 bytes]"
    ));
    assert!(message.len() < 20_000);
    assert_eq!(details, None);
    assert!(retryable);
    assert_eq!(retry_after, Some(Duration::from_millis(5)));
}

#[tokio::test]
async fn the_log_limit_is_told_once() {
    let run = Run::of("print-much")
        .input(1_000)
        .limits(|limits| limits.log_bytes_max = 100);
    let engine = run.engine.clone();
    run.output().await;
    let lines = std::mem::take(&mut engine.0.lock().unwrap().lines);
    let (last, before) = lines.split_last().unwrap();
    assert!(before.iter().map(|(_, line)| line.len()).sum::<usize>() <= 100);
    assert_eq!(last.0, LogLevel::Warn);
    assert!(last.1.contains("log limit of 100 bytes"), "{}", last.1);
}
