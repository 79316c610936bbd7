//! How guests end: traps with their names and backtraces, stops, drops, and faults of the host.

use std::time::Duration;

use stepwell_core::limits::Limits;
use stepwell_sandbox::guest::{Completion, Exit, LogLevel, Stop, TrapKind};
use stepwell_sandbox::{Config, Sandbox};

use crate::small::Small;
use crate::support::{Engine, Run, guest_in, raw_guest, sandbox, task};

#[tokio::test]
async fn a_panic_tells_its_message_its_place_and_a_symbolised_backtrace() {
    for workflow in ["panic", "panic-in-step"] {
        let run = Run::of(workflow);
        let engine = run.engine.clone();
        let trap = run.trap().await;
        assert_eq!(trap.kind, TrapKind::Panic);
        assert!(
            trap.message
                .starts_with("panicked at tests/guests/raw/src/ends.rs:"),
            "{}",
            trap.message
        );
        assert!(
            trap.message
                .ends_with(": index out of bounds: the len is 0 but the index is 7"),
            "{}",
            trap.message
        );
        let frame = trap
            .backtrace
            .lines()
            .find(|line| line.starts_with("raw_guest::ends::outer_function ("))
            .unwrap();
        assert!(frame.contains("ends.rs:"), "{frame}");
        assert!(trap.backtrace.lines().count() <= 51);
        let lines = &engine.0.lock().unwrap().lines;
        assert!(
            lines
                .iter()
                .any(|(level, line)| *level == LogLevel::Warn && line.contains("panicked at")),
            "{lines:?}"
        );
    }
}

#[tokio::test]
async fn traps_are_told_apart() {
    for (workflow, kind, message) in [
        ("unreachable", TrapKind::Panic, "no panic message"),
        (
            "out-of-bounds",
            TrapKind::OutOfBounds,
            "out of bounds memory access",
        ),
        ("recurse", TrapKind::StackOverflow, "stack of 512 KiB"),
        ("exit", TrapKind::Exit, "called exit("),
    ] {
        let trap = Run::of(workflow).input(3).trap().await;
        assert_eq!(trap.kind, kind, "{workflow}: {}", trap.message);
        assert!(
            trap.message.contains(message),
            "{workflow}: {}",
            trap.message
        );
        assert!(!trap.backtrace.is_empty(), "{workflow}");
    }
}

#[tokio::test]
async fn recursion_is_folded_in_a_backtrace() {
    let trap = Run::of("recurse").trap().await;
    assert!(trap.backtrace.contains("more times"), "{}", trap.backtrace);
    assert!(trap.backtrace.lines().count() < 20, "{}", trap.backtrace);
}

#[tokio::test]
async fn the_engine_can_stop_a_guest_and_end_it_for_misuse() {
    let exit = Run::of("nap")
        .engine(|engine| engine.stop = Some(Stop::Now))
        .exit()
        .await;
    assert!(matches!(exit, Exit::Stopped), "{exit:?}");
    let trap = Run::of("nap")
        .engine(|engine| engine.stop = Some(Stop::Misuse("no such operation".to_owned())))
        .trap()
        .await;
    assert_eq!(
        (trap.kind, trap.message.as_str()),
        (TrapKind::Misuse, "no such operation")
    );
    let trap = Run::of("retry-unknown").trap().await;
    assert_eq!(
        (trap.kind, trap.message.as_str()),
        (TrapKind::Misuse, "operation 99 was never given out")
    );
}

#[tokio::test]
async fn a_panic_of_the_host_is_a_fault_and_ends_nothing_else() {
    let exit = Run::of("steps")
        .input(1)
        .engine(|engine| engine.panics = true)
        .exit()
        .await;
    assert!(matches!(exit, Exit::Fault(_)), "{exit:?}");
    assert_eq!(Run::of("steps").input(1).output().await, "1");
}

#[tokio::test]
async fn dropping_the_future_frees_the_instance_and_a_full_pool_is_a_fault() {
    let sandbox = Sandbox::new(Config {
        instances_max: 1,
        ..Config::default()
    })
    .unwrap();
    let guest = guest_in(&sandbox).await;
    for workflow in ["nap", "spin"] {
        let run = Run::of(workflow).engine(|engine| engine.park = true);
        let engine = run.engine.clone();
        let mut resident = Box::pin(run.exit_in(&*guest));
        let started = tokio::time::timeout(Duration::from_millis(50), &mut resident).await;
        assert!(started.is_err(), "it goes on");
        assert_eq!(engine.0.lock().unwrap().parked, workflow == "nap");

        match Run::of("nothing").exit_in(&*guest).await {
            Exit::Fault(reason) => assert!(reason.contains("no instance is free"), "{reason}"),
            other => panic!("{other:?}"),
        }
        drop(resident);
        assert_eq!(
            std::sync::Arc::strong_count(&engine.0),
            1,
            "its engine was dropped with it"
        );
        assert!(matches!(
            Run::of("nothing").exit_in(&*guest).await,
            Exit::Returned(Completion::Done(_))
        ));
    }
}

#[tokio::test]
async fn a_sandbox_that_is_dropped_leaves_its_guests_running() {
    let sandbox = Sandbox::new(Config {
        instances_max: 4,
        ..Config::default()
    })
    .unwrap();
    let guest = sandbox
        .check(raw_guest(), &Limits::default())
        .await
        .unwrap()
        .component;
    drop(sandbox);
    let exit = Run::of("spin")
        .limits(|limits| limits.cpu_max = Duration::from_millis(50))
        .exit_in(&*guest)
        .await;
    assert!(
        matches!(exit, Exit::Trapped(_)),
        "still preempted: {exit:?}"
    );
    let exit = guest
        .run_task(task("echo"), Box::new(Engine::default()))
        .await;
    assert!(matches!(exit, Exit::Returned(Ok(_))), "{exit:?}");
}

#[tokio::test]
async fn debug_sections_that_make_no_sense_cost_a_backtrace_only_its_lines() {
    let garbage = [".debug_abbrev", ".debug_info", ".debug_line", ".debug_str"]
        .map(|name| format!(r#"(@custom "{name}" "\20\00\00\00\04\00\ff\ff\ff\ff\ff")"#))
        .concat();
    let component = Small {
        fields: garbage,
        ..Small::default()
    }
    .build();
    let guest = sandbox()
        .check(component, &Limits::default())
        .await
        .unwrap()
        .component;
    match Run::of("w").exit_in(&*guest).await {
        Exit::Trapped(trap) => assert!(trap.backtrace.contains("(offset 0x"), "{}", trap.backtrace),
        other => panic!("{other:?}"),
    }
}
