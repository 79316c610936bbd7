//! A guest played from a list asks as a real one does.

use std::time::Duration;

use stepwell_core::payload::Payload;
use stepwell_core::retry::Options;
use stepwell_sandbox::guest::{Completion, Component as _, Exit, Stop, TrapKind};
use stepwell_sandbox::scripted::{Action, Attempt, Effect, Script, Scripted, Wait};

use crate::support::{Engine, Run, task};

fn step(name: &str, attempts: Vec<Attempt>) -> Action {
    Action::Step {
        name: name.to_owned(),
        options: Options::default(),
        attempts,
    }
}

fn nap() -> Action {
    Action::Together(vec![Wait::Sleep("nap".to_owned(), Duration::from_secs(60))])
}

#[tokio::test]
async fn a_script_makes_the_calls_of_the_guest_that_it_stands_for() {
    let real = Run::of("nap");
    let seen_of_real = real.engine.clone();
    real.output().await;

    let script = Scripted::new(Script {
        actions: vec![nap()],
        ..Script::default()
    });
    let played = Run::of("any");
    let seen_of_played = played.engine.clone();
    assert!(matches!(
        played.exit_in(&script).await,
        Exit::Returned(Completion::Done(_))
    ));
    assert_eq!(
        seen_of_played.0.lock().unwrap().calls,
        seen_of_real.0.lock().unwrap().calls
    );
}

#[tokio::test]
async fn attempts_are_effects_and_a_replay_has_none() {
    let script = Scripted::new(Script {
        actions: vec![step("one", Vec::new()), step("two", Vec::new())],
        ..Script::default()
    });
    Run::of("any")
        .engine(|engine| engine.recorded = vec![Payload::null()])
        .exit_in(&script)
        .await;
    assert_eq!(
        script.effects(),
        [Effect {
            key: "run_1/1".to_owned(),
            attempt: 1
        }]
    );
}

#[tokio::test]
async fn a_script_traps_stops_and_runs_tasks_as_it_is_written() {
    let script = Scripted::new(Script {
        actions: vec![step("one", vec![Attempt::Traps])],
        ..Script::default()
    });
    let exit = Run::of("any").exit_in(&script).await;
    assert!(matches!(exit, Exit::Trapped(trap) if trap.kind == TrapKind::Panic));

    let script = Scripted::new(Script {
        actions: vec![nap()],
        ..Script::default()
    });
    let exit = Run::of("any")
        .engine(|engine| engine.stop = Some(Stop::Now))
        .exit_in(&script)
        .await;
    assert!(matches!(exit, Exit::Stopped));

    let answer = || Attempt::Returns(Ok(Payload::Json("7".to_owned())));
    let tasks = [("echo".to_owned(), vec![Attempt::Traps, answer()])].into();
    let script = Scripted::new(Script {
        tasks,
        ..Script::default()
    });
    // The third attempt does what the last one written down does.
    let exit = script
        .run_task(task("echo"), Box::new(Engine::default()))
        .await;
    assert!(matches!(exit, Exit::Returned(Ok(Payload::Json(text))) if text == "7"));
}
