//! The life of a run, as section 6 of the design says: one test per claim, on the real engine, the
//! SQLite store and real guests.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use stepwell_core::id::{Operation, RunId};
use stepwell_core::journal::{Ending, Record};
use stepwell_core::limits::Limits;
use stepwell_core::retry::AttemptEnd;
use stepwell_core::run::Status;
use stepwell_engine::Config;
use stepwell_store::{Delivered, Message};
use stepwell_tests::Effects;

use crate::in_process::{World, attempts, cancel, event, start, tenant};

#[tokio::test(flavor = "multi_thread")]
async fn a_sequential_step_costs_exactly_one_commit() {
    let world = World::new().await;
    world.register("guest-steps", "1.0", &[]).await;
    let before = world.store().counts();
    let run = world.start("steps", json!({ "count": 50 })).await;
    assert_eq!(world.result(run).await, json!(1225));
    let after = world.store().counts();
    // One for the start, which claims the run too; one for each step; the end shares the last.
    assert_eq!(after.commits - before.commits, 51);
    assert_eq!(after.entries - before.entries, 51);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_attempts_count_and_are_retried_as_the_policy_says() {
    let world = World::new().await;
    world.register("guest-retry", "1.0", &[]).await;
    let run = world
        .start(
            "retry",
            json!({ "failures": 2, "max_attempts": 3, "delay_ms": 1 }),
        )
        .await;
    assert_eq!(world.result(run).await, json!(3));
    assert_eq!(attempts(&world.records(run).await, Operation(0)), 3);

    let run = world
        .start(
            "catch",
            json!({ "failures": 9, "max_attempts": 3, "delay_ms": 1 }),
        )
        .await;
    let caught = world.result(run).await;
    assert_eq!(
        (&caught["attempts"], &caught["end"]),
        (&json!(3), &json!("failed")),
        "{caught}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_error_that_nobody_catches_tells_where_the_run_failed() {
    let world = World::new().await;
    world.register("guest-steps", "1.0", &[]).await;
    let run = world
        .start(
            "steps",
            json!({ "count": 3, "fail": { "1": "no such card" } }),
        )
        .await;
    let Ending::Failed(failure) = world.end(run).await else {
        panic!("it must fail")
    };
    let step = failure.step.expect("it came from a step");
    assert_eq!(
        (step.step.as_str(), step.attempts, step.end),
        ("step-1", 1, AttemptEnd::Failed)
    );
    assert_eq!(
        (failure.cause.kind.as_str(), failure.cause.message.as_str()),
        ("told-to-fail", "no such card")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_in_a_step_costs_the_attempt_and_not_the_run() {
    let world = World::new().await;
    world.register("guest-retry", "1.0", &[]).await;
    for (mode, end) in [
        ("panic", "trapped"),
        ("memory", "limit-exceeded"),
        ("sleep", "timed-out"),
    ] {
        let input = json!({ "failures": 1, "mode": mode, "max_attempts": 3, "delay_ms": 1, "timeout_ms": 300 });
        let run = world.start("retry", input).await;
        assert_eq!(world.result(run).await, json!(2), "{mode}");
        let input = json!({ "failures": 9, "mode": mode, "max_attempts": 2, "delay_ms": 1, "timeout_ms": 300 });
        let run = world.start("catch", input).await;
        let caught = world.result(run).await;
        assert_eq!(
            (&caught["attempts"], &caught["end"]),
            (&json!(2), &json!(end)),
            "{mode}: {caught}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_loop_in_a_step_ends_at_its_timeout() {
    let world = World::new().await;
    world.register("guest-retry", "1.0", &[]).await;
    let input = json!({ "failures": 1, "mode": "loop", "max_attempts": 2, "delay_ms": 1, "timeout_ms": 200 });
    let run = world.start("retry", input).await;
    assert_eq!(world.result(run).await, json!(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_over_the_payload_limit_is_a_typed_error_and_not_retried() {
    let world = World::new().await;
    world.register("guest-retry", "1.0", &[]).await;
    let run = world
        .start(
            "catch",
            json!({ "failures": 9, "mode": "large", "delay_ms": 1 }),
        )
        .await;
    let caught = world.result(run).await;
    assert_eq!(
        (&caught["attempts"], &caught["end"]),
        (&json!(1), &json!("limit-exceeded")),
        "{caught}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_outside_a_step_fails_the_run_with_a_symbolised_backtrace() {
    let world = World::new().await;
    world.register("guest-trap", "1.0", &[]).await;
    for (mode, kind) in [
        ("panic", "panic"),
        ("stack", "stack-overflow"),
        ("memory", "memory-limit"),
        ("sleep", "forbidden"),
        ("http", "forbidden"),
        ("exit", "exit"),
    ] {
        let run = world
            .start("trap", json!({ "mode": mode, "place": "workflow" }))
            .await;
        let Ending::Failed(failure) = world.end(run).await else {
            panic!("{mode}: it must fail")
        };
        assert_eq!(failure.cause.kind, kind, "{mode}: {failure:?}");
        assert!(failure.step.is_none(), "{mode}");
        if mode == "panic" {
            let backtrace = failure.backtrace.expect("a panic has a backtrace");
            assert!(
                backtrace.contains("guest_trap") || backtrace.contains("trap::"),
                "{backtrace}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sleep_of_nothing_elapses_at_once_and_one_beyond_ten_years_is_refused() {
    let world = World::new().await;
    world.register("guest-sleeper", "1.0", &[]).await;
    let run = world.start("sleeper", json!({ "ms": 0 })).await;
    assert_eq!(world.result(run).await["woken"], 0);
    let run = world.start("sleeper", json!({ "until_ms": 1 })).await;
    assert_eq!(world.result(run).await["woken"], 0);
    let run = world
        .start("sleeper", json!({ "ms": 3653_u64 * 24 * 60 * 60 * 1000 }))
        .await;
    let Ending::Failed(failure) = world.end(run).await else {
        panic!("it must be refused")
    };
    assert_eq!(failure.cause.kind, "sleep-too-long");
    assert!(
        world
            .records(run)
            .await
            .iter()
            .any(|record| matches!(record, Record::Refused { .. }))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wake_ends_the_sleep_in_progress_and_the_guest_is_told() {
    let world = World::new().await;
    world.register("guest-sleeper", "1.0", &[]).await;
    // Resident, and far enough off to be evicted at once.
    for ms in [3_000, 86_400_000] {
        let run = world.start("sleeper", json!({ "ms": ms })).await;
        world.until(run, Status::Sleeping).await;
        assert!(matches!(
            world.deliver(run, Message::Wake).await,
            Delivered::Accepted { .. }
        ));
        assert_eq!(world.result(run).await["woken"], 1);
    }
    let run = world.start("sleeper", json!({ "ms": 0 })).await;
    world.end(run).await;
    let status = Status::Completed;
    assert_eq!(
        world.deliver(run, Message::Wake).await,
        Delivered::Refused { status }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_moves_no_due_time() {
    let world = World::new().await;
    world.register("guest-sleeper", "1.0", &[]).await;
    let run = world.start("sleeper", json!({ "ms": 1_200 })).await;
    let due = world.until(run, Status::Sleeping).await.due;
    let world = world.restart().await;
    assert_eq!(world.run(run).await.due, due);
    let result = world.result(run).await;
    let slept_ms = result["slept_ms"].as_u64().unwrap();
    assert!((1_200..2_200).contains(&slept_ms), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_before_its_wait_is_kept_first_in_first_out() {
    let world = World::new().await;
    world.register("guest-waiter", "1.0", &[]).await;
    let mut later = start("waiter", None, json!({ "event": "go", "count": 3 }));
    later.start_at = Some(stepwell_core::time::Timestamp::from_ms(u64::MAX / 2));
    let scheduled = world.engine.start(later).await.unwrap().run;
    assert_eq!(world.run(scheduled).await.status, Status::Scheduled);

    let run = world
        .start("waiter", json!({ "event": "go", "count": 3 }))
        .await;
    world.send(run, "other", json!("kept")).await;
    for number in 0..3 {
        world.send(run, "go", json!(number)).await;
    }
    assert_eq!(world.result(run).await["payloads"], json!([0, 1, 2]));
    let events = world.store().events(&tenant(), run).await.unwrap();
    assert_eq!(
        events.iter().map(|event| event.taken).collect::<Vec<_>>(),
        [false, true, true, true]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_with_the_same_delivery_key_is_delivered_once() {
    let world = World::new().await;
    world.register("guest-waiter", "1.0", &[]).await;
    let run = world
        .start("waiter", json!({ "event": "go", "count": 2 }))
        .await;
    let Delivered::Accepted { id } = world.deliver(run, event("go", json!(1), Some("k"))).await
    else {
        panic!("the first is accepted")
    };
    let again = world.deliver(run, event("go", json!(2), Some("k"))).await;
    assert_eq!(again, Delivered::Already { id: Some(id) });
    world.send(run, "go", json!(3)).await;
    assert_eq!(world.result(run).await["payloads"], json!([1, 3]));
    let status = Status::Completed;
    assert_eq!(
        world.send(run, "go", json!(4)).await,
        Delivered::Refused { status }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sender_of_an_event_is_answered_once() {
    let world = World::new().await;
    world.register("guest-waiter", "1.0", &[]).await;
    let run = world
        .start("waiter", json!({ "event": "ask", "reply": true }))
        .await;
    world.send(run, "ask", json!({ "n": 7 })).await;
    world.result(run).await;
    let events = world.store().events(&tenant(), run).await.unwrap();
    let reply = events[0]
        .reply
        .clone()
        .expect("it was answered")
        .expect("with a value");
    let reply: serde_json::Value = serde_json::from_slice(reply.as_bytes()).unwrap();
    assert_eq!(reply, json!({ "got": { "n": 7 } }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_times_out_and_a_late_event_stays_in_the_mailbox() {
    let world = World::new().await;
    world.register("guest-race", "1.0", &[]).await;
    let run = world
        .start(
            "race",
            json!({ "sleep_ms": 50, "task_ms": 60_000, "then_wait_ms": 20_000 }),
        )
        .await;
    tokio::time::sleep(Duration::from_millis(150)).await;
    world.send(run, "flag", json!("late")).await;
    let result = world.result(run).await;
    assert_eq!(
        (&result["winner"], &result["later"]),
        (&json!("sleep"), &json!("late")),
        "{result}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_is_told_once_and_the_run_ends_cancelled_after_its_clean_up() {
    let world = World::new().await;
    world.register("guest-cancel", "1.0", &[]).await;
    for place in ["wait", "sleep", "steps", "backoff", "all"] {
        let run = world.start("cancel", json!({ "place": place })).await;
        world
            .until_that(run, "an entry", |run| run.entries.0 > 0)
            .await;
        world.deliver(run, cancel("no longer wanted")).await;
        let again = world.deliver(run, cancel("twice")).await;
        assert!(
            matches!(again, Delivered::Already { .. } | Delivered::Refused { .. }),
            "{place}: {again:?}"
        );
        let reason = "no longer wanted".to_owned();
        assert_eq!(
            world.end(run).await,
            Ending::Cancelled { reason },
            "{place}"
        );
        let records = world.records(run).await;
        let told = records
            .iter()
            .filter(|record| matches!(record, Record::CancelDelivered { .. }))
            .count();
        assert_eq!(told, 1, "{place}");
        let is_cleaned = |record: &Record| matches!(record, Record::StepCompleted { name, .. } if name == "clean-up");
        assert!(records.iter().any(is_cleaned), "{place}: {records:#?}");
        assert!(
            world.published(run, "cleaned-up").await.is_some(),
            "{place}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_swallows_a_cancel_ends_cancelled_all_the_same() {
    let world = World::new().await;
    world.register("guest-cancel", "1.0", &[]).await;
    let run = world
        .start("cancel", json!({ "place": "wait", "swallow": true }))
        .await;
    world.until(run, Status::Waiting).await;
    world.deliver(run, cancel("stop")).await;
    assert_eq!(
        world.end(run).await,
        Ending::Cancelled {
            reason: "stop".to_owned()
        }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_up_is_stopped_when_its_grace_period_has_passed() {
    let mut config = Config::default();
    config.limits.cancel_grace = Duration::from_millis(200);
    let world = World::with(config).await;
    world.register("guest-cancel", "1.0", &[]).await;
    for input in [
        json!({ "place": "wait", "linger_ms": 60_000 }),
        json!({ "place": "wait", "clean_up_ms": 60_000 }),
    ] {
        let run = world.start("cancel", input.clone()).await;
        world.until(run, Status::Waiting).await;
        world.deliver(run, cancel("stop")).await;
        assert_eq!(
            world.end(run).await,
            Ending::Cancelled {
                reason: "stop".to_owned()
            },
            "{input}"
        );
        assert!(
            world.published(run, "cleaned-up").await.is_none(),
            "{input}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_body_that_runs_on_is_stopped_after_the_grace_period() {
    let mut config = Config::default();
    config.limits.cancel_grace = Duration::from_millis(300);
    let world = World::with(config).await;
    world.register("guest-cancel", "1.0", &[]).await;
    let run = world
        .start("cancel", json!({ "place": "steps", "step_ms": 60_000 }))
        .await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    world.deliver(run, cancel("stop")).await;
    assert_eq!(
        world.end(run).await,
        Ending::Cancelled {
            reason: "stop".to_owned()
        }
    );
    let records = world.records(run).await;
    let is_stopped = |record: &Record| matches!(record, Record::StepFailed { error, .. } if error.end == AttemptEnd::Cancelled);
    assert!(records.iter().any(is_stopped), "{records:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_cancelled_before_it_began_never_begins() {
    let world = World::new().await;
    world.register("guest-steps", "1.0", &[]).await;
    let mut later = start("steps", None, json!({ "count": 1 }));
    later.start_at = Some(stepwell_core::time::Timestamp::from_ms(u64::MAX / 2));
    let run = world.engine.start(later).await.unwrap().run;
    world.deliver(run, cancel("never mind")).await;
    assert_eq!(
        world.end(run).await,
        Ending::Cancelled {
            reason: "never mind".to_owned()
        }
    );
    assert_eq!(world.records(run).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_performs_nothing_until_it_is_resumed() {
    let world = World::new().await;
    world.register("guest-sleeper", "1.0", &[]).await;
    world.register("guest-steps", "1.0", &[]).await;
    let run = world.start("sleeper", json!({ "ms": 200 })).await;
    world.until(run, Status::Sleeping).await;
    world.deliver(run, Message::Pause).await;
    let due = world.until(run, Status::Paused).await.due;
    assert_eq!(
        world.deliver(run, Message::Pause).await,
        Delivered::Already { id: None }
    );
    tokio::time::sleep(Duration::from_millis(400)).await;
    let paused = world.run(run).await;
    assert_eq!((paused.status, paused.due), (Status::Paused, due));
    world.deliver(run, Message::Resume).await;
    assert_eq!(world.result(run).await["woken"], 0);

    // The attempt in flight may finish and is recorded.
    let effects = Effects::listen().unwrap();
    effects.hold("effect");
    let url = format!("{}/effect", effects.url());
    let run = world
        .start("steps", json!({ "count": 3, "effect_url": url }))
        .await;
    effects.wait_for("effect", 1).unwrap();
    world.deliver(run, Message::Pause).await;
    effects.release();
    world
        .until_that(run, "the first step", |run| {
            run.entries.0 == 1 && run.host.is_none()
        })
        .await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(
        (effects.count("effect"), world.run(run).await.status),
        (1, Status::Paused)
    );
    world.deliver(run, Message::Resume).await;
    assert_eq!(world.result(run).await, json!(3));
    assert_eq!(effects.count("effect"), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_run_ends_at_once_without_clean_up() {
    let world = World::new().await;
    world.register("guest-cancel", "1.0", &[]).await;
    for place in ["wait", "steps", "sleep"] {
        let run = world.start("cancel", json!({ "place": place })).await;
        world
            .until_that(run, "an entry", |run| run.entries.0 > 0)
            .await;
        let reason = "enough".to_owned();
        world
            .deliver(
                run,
                Message::Terminate {
                    reason: reason.clone(),
                },
            )
            .await;
        assert_eq!(
            world.run(run).await.ending,
            Some(Ending::Terminated { reason }),
            "{place}"
        );
        let length = world.run(run).await.entries;
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(
            world.run(run).await.entries,
            length,
            "{place}: nothing is written after the end"
        );
    }
    let give_up = tokio::time::Instant::now() + Duration::from_secs(10);
    while world.engine.driven() > 0 {
        assert!(
            tokio::time::Instant::now() < give_up,
            "terminated runs must be dropped"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn continue_as_new_starts_a_fresh_journal_under_the_same_id() {
    for world in [World::new().await, World::evicting().await] {
        world.register("guest-continue", "1.0", &[]).await;
        let run = world
            .start("continue", json!({ "left": 3, "steps": 2, "sleep_ms": 5 }))
            .await;
        let journals = world.result(run).await;
        let row = world.run(run).await;
        assert_eq!(json!(row.generation + 1), journals);
        assert!(row.entries.0 < 12, "the newest journal is short: {row:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_run_in_parallel_with_retries_of_their_own() {
    let world = World::new().await;
    world.register("guest-fan-out", "1.0", &[]).await;
    let begun = tokio::time::Instant::now();
    let run = world
        .start("fan-out", json!({ "tasks": 16, "sleep_ms": 300 }))
        .await;
    assert_eq!(
        world.result(run).await["sum"],
        (0..16).map(|n| n * n).sum::<u64>()
    );
    assert!(
        begun.elapsed() < Duration::from_millis(16 * 300 / 2),
        "they ran one after the other"
    );

    let run = world
        .start(
            "fan-out",
            json!({ "tasks": 6, "fail_once": [1], "fail": [2], "panic": [3], "catch": true }),
        )
        .await;
    let result = world.result(run).await;
    assert_eq!(result["succeeded"], 4, "{result}");
    let records = world.records(run).await;
    assert_eq!(
        (1..4)
            .map(|number| attempts(&records, Operation(number)))
            .collect::<Vec<_>>(),
        [2, 2, 2]
    );

    let run = world
        .start("fan-out", json!({ "tasks": 3, "fail": [1] }))
        .await;
    assert!(matches!(world.end(run).await, Ending::Failed(failure) if failure.step.is_some()));
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_tasks_finish_and_their_sum_is_right() {
    let world = World::new().await;
    world.register("guest-fan-out", "1.0", &[]).await;
    let run = world.start("fan-out", json!({ "tasks": 2_000 })).await;
    assert_eq!(
        world.result(run).await["sum"],
        (0..2_000_u64).map(|n| n * n).sum::<u64>()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn resident_and_evicted_at_every_wait_leave_the_same_journal() {
    let mut journals = Vec::new();
    for world in [World::new().await, World::evicting().await] {
        world.register("guest-clock-random-hash", "1.0", &[]).await;
        let run = world
            .start(
                "clock-random-hash",
                json!({ "rounds": 4, "sleep_ms": 20, "wait_ms": 20 }),
            )
            .await;
        let result = world.result(run).await;
        assert_eq!(result["mismatches"], json!([]), "{result}");
        journals.push(shape(&world.records(run).await));
    }
    assert_eq!(journals[0], journals[1]);
    assert!(journals[0].len() > 16, "{:?}", journals[0]);
}

/// What a journal says apart from times, ids and values that differ from run to run.
fn shape(records: &[Record]) -> Vec<String> {
    records
        .iter()
        .map(|record| match record {
            Record::Opened {
                operation, name, ..
            } => format!("{operation} opened {name}"),
            Record::StepCompleted {
                operation,
                name,
                attempts,
                ..
            } => format!("{operation} step {name} {attempts}"),
            Record::Slept { operation, wake } => format!("{operation} slept {wake:?}"),
            Record::TimedOut { operation } => format!("{operation} timed out"),
            Record::Published { operation, key, .. } => format!("{operation} published {key}"),
            Record::Ended(Ending::Completed(_)) => "completed".to_owned(),
            other => format!("{other:?}"),
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_run_side_by_side_each_on_its_own_code_across_a_restart() {
    let world = World::new().await;
    world.register("guest-diverge", "1.0", &[]).await;
    world
        .register("guest-diverge", "2.0", &[("VARIANT", "renamed-step")])
        .await;
    let old = world
        .start_version("diverge", Some("1.0"), json!(null))
        .await;
    let new = world.start("diverge", json!(null)).await;
    for run in [old, new] {
        waits_for_go(&world, run).await;
    }
    let world = world.restart().await;
    for run in [old, new] {
        world.send(run, "go", json!(1)).await;
    }
    assert_ne!(
        world.result(old).await["variant"],
        world.result(new).await["variant"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_does_not_fit_the_journal_diverges_and_writes_nothing() {
    for (variant, found) in [
        ("renamed-step", "operation 0: this code asks for step"),
        ("renamed-sleep", "operation 2: this code asks for sleep"),
        ("kind-changed", "operation 2: this code asks for step"),
        ("reordered", "this code asks for"),
        (
            "other-input",
            "operation 1: this code asks for task `double` with input sha256:",
        ),
        ("extra-step", "this code asks for step"),
        ("missing-publish", "this code asks for"),
        ("ends-early", "the end of the workflow"),
    ] {
        let world = World::new().await;
        world
            .register("guest-diverge", "changed", &[("VARIANT", variant)])
            .await;
        world.register("guest-diverge", "1.0", &[]).await;
        let run = world.start("diverge", json!(null)).await;
        waits_for_go(&world, run).await;
        let before = world.history(run).await;
        let world = world.restart_after(change_version).await;
        world.send(run, "go", json!(1)).await;
        let stuck = world.until(run, Status::Stuck).await;
        let reason = stuck.stuck_reason.expect("a stuck run has a reason");
        assert!(
            reason.starts_with("diverged: ") && reason.contains(found),
            "{variant}: {reason}"
        );
        assert_eq!(
            world.history(run).await,
            before,
            "{variant}: nothing is written"
        );
    }
    for variant in ["other-value", "later-step"] {
        let world = World::new().await;
        world
            .register("guest-diverge", "changed", &[("VARIANT", variant)])
            .await;
        world.register("guest-diverge", "1.0", &[]).await;
        let run = world.start("diverge", json!(null)).await;
        waits_for_go(&world, run).await;
        let world = world.restart_after(change_version).await;
        world.send(run, "go", json!(1)).await;
        world.result(run).await;
    }
}

/// Step, task (opened, started, ended), sleep (opened, ended), publish, wait.
async fn waits_for_go(world: &World, run: RunId) {
    world
        .until_that(run, "the wait for `go`", |run| {
            run.entries.0 == 8 && run.status == Status::Waiting
        })
        .await;
}

/// Changes the code of version 1.0 underneath its runs to that of `changed`, which nobody can do
/// from outside.
fn change_version(folder: &Path) {
    let changed = database(folder).execute(
        "UPDATE versions SET environment = (SELECT environment FROM versions WHERE label = 'changed') WHERE label = '1.0'",
        [],
    );
    assert_eq!(changed.unwrap(), 1);
}

/// Takes the components away from their tenants, or gives them back.
fn move_components(folder: &Path, by: i64) {
    let changed = database(folder).execute("UPDATE components SET tenant = tenant + ?1", [by]);
    assert_eq!(changed.unwrap(), 1);
}

fn database(folder: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(folder.join("stepwell.sqlite")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_names_of_two_tenants_never_meet() {
    let world = World::new().await;
    let (ours, theirs) = (tenant(), "theirs".parse().unwrap());
    world.register("guest-diverge", "1.0", &[]).await;
    world
        .register_for(
            &theirs,
            "guest-diverge",
            "1.0",
            &[("VARIANT", "other-value")],
        )
        .await;
    let begin = |tenant: &stepwell_core::id::TenantName| {
        let mut begin = start("diverge", None, json!(null));
        begin.tenant = tenant.clone();
        begin.idempotency_key = Some("the same key".to_owned());
        begin
    };
    let mine = world.engine.start(begin(&ours)).await.unwrap();
    let foreign = world.engine.start(begin(&theirs)).await.unwrap();
    assert!(mine.is_new && foreign.is_new && mine.run != foreign.run);
    assert!(!world.engine.start(begin(&ours)).await.unwrap().is_new);
    assert_eq!(world.store().run(&ours, foreign.run).await.unwrap(), None);
    let sent = world
        .engine
        .deliver(&theirs, mine.run, event("go", json!(1), None))
        .await
        .unwrap();
    assert_eq!(sent, Delivered::NoSuchRun);
    for verb in [
        Message::Pause,
        Message::Wake,
        cancel("x"),
        Message::Terminate {
            reason: String::new(),
        },
    ] {
        assert_eq!(
            world.engine.deliver(&theirs, mine.run, verb).await.unwrap(),
            Delivered::NoSuchRun
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_used_twice_is_the_same_run_or_a_conflict() {
    let world = World::new().await;
    world.register("guest-steps", "1.0", &[]).await;
    let begin = |count: u32| {
        let mut begin = start("steps", None, json!({ "count": count }));
        begin.idempotency_key = Some("order-17".to_owned());
        begin
    };
    let first = world.engine.start(begin(1)).await.unwrap();
    let again = world.engine.start(begin(1)).await.unwrap();
    assert_eq!(
        (first.run, first.is_new, again.is_new),
        (again.run, true, false)
    );
    let error = world.engine.start(begin(2)).await.unwrap_err();
    assert!(
        matches!(error, stepwell_engine::start::Error::KeyConflict { run, .. } if run == first.run),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_does_not_fit_the_schema_starts_nothing() {
    let world = World::new().await;
    world.register("guest-steps", "1.0", &[]).await;
    for (input, message) in [
        (r#"{"count":"two"}"#, "does not fit the schema"),
        (r#"{"count":}"#, "is not JSON"),
        // Text that passes for JSON and stands for no value.
        (
            r#"{"count":1,"effect_url":"\ud800"}"#,
            "is not JSON that stands",
        ),
    ] {
        let mut begin = start("steps", None, json!(null));
        begin.input = stepwell_core::payload::Payload::Json(input.to_owned());
        let error = world.engine.start(begin).await.unwrap_err().to_string();
        assert!(error.contains(message), "{input}: {error}");
    }
    let none = stepwell_store::RunFilter {
        limit: 10,
        ..Default::default()
    };
    assert!(
        world
            .store()
            .runs(&tenant(), none)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_at_its_limit_fails_the_run_and_says_so() {
    let mut config = Config::default();
    config.limits.journal_entries_max = 20;
    let world = World::with(config).await;
    world.register("guest-steps", "1.0", &[]).await;
    let run = world.start("steps", json!({ "count": 100 })).await;
    let Ending::Failed(failure) = world.end(run).await else {
        panic!("it must fail")
    };
    assert_eq!(failure.cause.kind, "journal-limit");
    assert!(
        failure.cause.message.contains("20 entries"),
        "{}",
        failure.cause.message
    );
    world.log_line(run, "half of what is allowed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_waits_for_no_sleep_and_gives_an_attempt_its_grace() {
    let world = World::new().await;
    world.register("guest-sleeper", "1.0", &[]).await;
    world.register("guest-steps", "1.0", &[]).await;
    let asleep = world.start("sleeper", json!({ "ms": 4_000 })).await;
    let busy = world
        .start("steps", json!({ "count": 2, "sleep_ms_in_step": 500 }))
        .await;
    world.until(asleep, Status::Sleeping).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let begun = tokio::time::Instant::now();
    let world = world.restart().await;
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    world.result(busy).await;
    assert_eq!(
        attempts(&world.records(busy).await, Operation(0)),
        1,
        "the attempt in flight was recorded"
    );
    world.result(asleep).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_cut_off_by_a_shutdown_are_lost_attempts_and_run_again() {
    let world = World::with(Config {
        shutdown_grace: Duration::from_millis(100),
        ..Config::default()
    })
    .await;
    world.register("guest-fan-out", "1.0", &[]).await;
    let run = world
        .start(
            "fan-out",
            json!({ "tasks": 4, "sleep_ms": 1_500, "max_attempts": 3 }),
        )
        .await;
    world
        .until_that(run, "running tasks", |run| {
            run.entries.0 == 8 && run.status == Status::Waiting
        })
        .await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let world = world.restart().await;
    assert_eq!(world.result(run).await["sum"], 14);
    let records = world.records(run).await;
    assert_eq!(
        (0..4)
            .map(|number| attempts(&records, Operation(number)))
            .collect::<Vec<_>>(),
        [2, 2, 2, 2]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_are_written_once_however_often_the_run_is_replayed() {
    let world = World::evicting().await;
    world.register("guest-publisher", "1.0", &[]).await;
    let run = world
        .start(
            "publisher",
            json!({ "count": 3, "sleep_ms": 10, "log": true }),
        )
        .await;
    world.result(run).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let lines = world.store().logs(&tenant(), run, 0, 1_000).await.unwrap();
    let mut messages: Vec<_> = lines.iter().map(|row| row.line.message.clone()).collect();
    let all = messages.len();
    messages.sort();
    messages.dedup();
    assert!(all >= 3 && messages.len() == all, "{lines:#?}");
    assert!(world.published(run, "finished").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_component_is_missing_is_stuck_until_it_is_resumed() {
    let world = World::new().await;
    world.register("guest-waiter", "1.0", &[]).await;
    let run = world.start("waiter", json!({ "event": "go" })).await;
    world.until(run, Status::Waiting).await;
    let refused = world.deliver(run, Message::Resume).await;
    assert_eq!(
        refused,
        Delivered::Refused {
            status: Status::Waiting
        }
    );

    let world = world.with_empty_sandbox();
    let world = world
        .restart_after(|folder| move_components(folder, 1_000))
        .await;
    world.send(run, "go", json!(1)).await;
    let stuck = world.until(run, Status::Stuck).await;
    assert!(
        stuck
            .stuck_reason
            .unwrap()
            .contains("is missing; register it again")
    );
    let world = world
        .restart_after(|folder| move_components(folder, -1_000))
        .await;
    assert!(matches!(
        world.deliver(run, Message::Resume).await,
        Delivered::Accepted { .. }
    ));
    assert_eq!(world.result(run).await["payloads"], json!([1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_only_continues_as_new_fails_at_the_limit_and_one_that_works_does_not() {
    let limits = Limits {
        idle_generations_max: 5,
        ..Limits::default()
    };
    let config = Config {
        limits,
        ..Config::default()
    };
    let world = World::with(config).await;
    world.register("guest-continue", "1.0", &[]).await;
    let idle = world
        .start("continue", json!({ "left": 20, "steps": 0 }))
        .await;
    let Ending::Failed(failure) = world.end(idle).await else {
        panic!("{:#?}", world.run(idle).await);
    };
    assert_eq!(failure.cause.kind, "continue-limit");
    assert_eq!(world.run(idle).await.generation, 5);
    let busy = world
        .start("continue", json!({ "left": 20, "steps": 1 }))
        .await;
    assert_eq!(world.result(busy).await, json!(21));
}
