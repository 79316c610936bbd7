//! The contract: calls arrive as they were made, misuse traps, and the log is written once.

use stepwell_core::payload::Payload;
use stepwell_sandbox::guest::{Exit, LogLevel, TrapKind};

use crate::support::{Engine, Run, guest, task};

#[tokio::test]
async fn every_call_arrives_as_it_was_made_and_is_answered_as_it_was_meant() {
    let run = Run::of("every-call");
    let engine = run.engine.clone();
    let output = run.output().await;
    assert!(
        output.starts_with(
            "run_1 acme every-call 1.0 1000 Ok(()) Err(Failure { kind: \"unknown-event\""
        ),
        "{output}"
    );
    assert!(
        output.contains("operation: 1, outcome: Outcome::Event(EventMessage { id: \"evt_1\""),
        "{output}"
    );
    assert_eq!(
        engine.0.lock().unwrap().calls,
        [
            "sleep-until until 5",
            "wait greeting Some(1s)",
            "task echo Json(\"1\")",
            "withdraw 2",
            "publish state Binary([1, 2, 3])",
            "reply evt_1 Ok(Json(\"2\"))",
            "select [Operation(0), Operation(1)]",
        ]
    );
}

#[tokio::test]
async fn steps_are_executed_live_and_answered_on_replay() {
    let run = Run::of("steps")
        .input(3)
        .engine(|engine| engine.recorded = vec![Payload::null(), Payload::null()]);
    let engine = run.engine.clone();
    assert_eq!(run.output().await, "3");
    let engine = engine.0.lock().unwrap();
    assert_eq!(engine.calls.len(), 3);
    assert_eq!(engine.finished, [Ok(Payload::Json("2".to_owned()))]);
}

#[tokio::test]
async fn no_operation_may_be_asked_for_while_a_body_runs() {
    for workflow in [
        "step-in-step",
        "sleep-in-step",
        "sleep-until-in-step",
        "wait-in-step",
        "task-in-step",
        "select-in-step",
        "withdraw-in-step",
        "retry-in-step",
        "reply-in-step",
        "publish-in-step",
    ] {
        let run = Run::of(workflow);
        let engine = run.engine.clone();
        let trap = run.trap().await;
        assert_eq!(trap.kind, TrapKind::Misuse, "{workflow}: {trap:?}");
        assert!(
            trap.message.contains("while the body of step 0 runs"),
            "{workflow}: {}",
            trap.message
        );
        assert_eq!(
            engine.0.lock().unwrap().calls.len(),
            1,
            "{workflow} must not reach the engine"
        );
    }
}

#[tokio::test]
async fn inside_a_step_a_guest_may_still_ask_who_it_is_and_write_to_the_log() {
    let run = Run::of("ask-in-step");
    let engine = run.engine.clone();
    assert_eq!(run.output().await, "acme 1000");
    assert_eq!(
        engine.0.lock().unwrap().lines,
        [(LogLevel::Info, "from the step".to_owned())]
    );
}

#[tokio::test]
async fn calls_that_make_no_sense_trap_and_say_why() {
    for (workflow, message) in [
        ("finish-without-a-step", "no step's body runs"),
        ("select-nothing", "empty list"),
        ("select-too-many", "100000 operations, and at most 10000"),
    ] {
        let trap = Run::of(workflow).trap().await;
        assert_eq!(trap.kind, TrapKind::Misuse, "{workflow}: {trap:?}");
        assert!(
            trap.message.contains(message),
            "{workflow}: {}",
            trap.message
        );
    }
}

#[tokio::test]
async fn stdout_stderr_and_the_log_become_lines() {
    let run = Run::of("print");
    let engine = run.engine.clone();
    run.output().await;
    let engine = engine.0.lock().unwrap();
    let line = |level, text: &str| (level, text.to_owned());
    assert_eq!(
        engine.lines,
        [
            line(LogLevel::Info, "to stdout"),
            line(LogLevel::Warn, "to stderr"),
            line(LogLevel::Debug, "to the log"),
            line(LogLevel::Info, "without an end"),
        ]
    );
    assert_eq!(engine.fields, [("key".to_owned(), "value".to_owned())]);
}

#[tokio::test]
async fn a_replay_writes_no_line_again() {
    let run = Run::of("print-across-a-nap").engine(|engine| engine.recorded_naps = 1);
    let engine = run.engine.clone();
    run.output().await;
    assert_eq!(
        engine.0.lock().unwrap().lines,
        [(LogLevel::Info, "after".to_owned())]
    );
}

#[tokio::test]
async fn a_task_gets_its_input_attempt_and_key_and_no_operation() {
    let guest = guest().await;
    match guest
        .run_task(task("echo"), Box::new(Engine::default()))
        .await
    {
        Exit::Returned(Ok(Payload::Json(text))) => assert_eq!(text, "\"in\" 3 run_1/7"),
        other => panic!("{other:?}"),
    }
    match guest
        .run_task(task("operation"), Box::new(Engine::default()))
        .await
    {
        Exit::Trapped(trap) => {
            assert_eq!(trap.kind, TrapKind::Misuse);
            assert!(trap.message.contains("in a task"), "{}", trap.message);
        }
        other => panic!("{other:?}"),
    }
}
