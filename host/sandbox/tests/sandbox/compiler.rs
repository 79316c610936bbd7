//! Compiling in a process of its own, which ends when it takes too much.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use stepwell_core::limits::Limits;
use stepwell_sandbox::guest::{Completion, Exit};
use stepwell_sandbox::{CheckError, Config, Error, Rejected, Sandbox, Worker};

use crate::small::{Small, small};
use crate::support::{Run, guest_in};

/// Cargo builds the examples beside the tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/compile_worker")
}

fn sandbox(change: impl FnOnce(&mut Worker)) -> Sandbox {
    let mut worker = Worker::this_program("").unwrap();
    worker.program = program();
    change(&mut worker);
    Sandbox::new(Config {
        compile_worker: Some(worker),
        instances_max: 10,
        ..Config::default()
    })
    .unwrap()
}

/// A component whose compile takes longer than anybody would wait.
fn bomb() -> std::sync::Arc<[u8]> {
    let depth = 20_000;
    let body = "loop local.get 0 br_if 0 ".repeat(depth) + &"end ".repeat(depth);
    Small {
        fields: format!("(func (param i32) {body})"),
        ..Small::default()
    }
    .build()
}

async fn rejected(sandbox: &Sandbox, bytes: std::sync::Arc<[u8]>) -> Rejected {
    match sandbox.check(bytes, &Limits::default()).await {
        Err(CheckError::Rejected(rejected)) => rejected,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn code_from_the_worker_runs() {
    let sandbox = sandbox(|_| ());
    let component = guest_in(&sandbox).await;
    let exit = Run::of("nap").exit_in(&*component).await;
    assert!(
        matches!(exit, Exit::Returned(Completion::Done(_))),
        "{exit:?}"
    );
}

#[tokio::test]
async fn a_compile_that_takes_too_long_is_ended() {
    let sandbox = sandbox(|worker| worker.time_max = Duration::from_secs(1));
    let begun = Instant::now();
    let rejected = rejected(&sandbox, bomb()).await;
    assert!(
        matches!(&rejected, Rejected::TooComplex { limit } if limit == "1 s"),
        "{rejected}"
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
    sandbox.check(small(), &Limits::default()).await.unwrap();
}

#[tokio::test]
async fn a_compile_that_takes_too_much_memory_is_ended() {
    let sandbox = sandbox(|worker| worker.memory_bytes_max = 1);
    let rejected = rejected(&sandbox, bomb()).await;
    assert!(
        matches!(&rejected, Rejected::TooComplex { limit } if limit == "0 MiB of memory"),
        "{rejected}"
    );
}

#[tokio::test]
async fn what_is_not_valid_is_told_by_the_worker_too() {
    let ill_typed = Small {
        fields: "(func (result i32) i64.const 0)".to_owned(),
        ..Small::default()
    }
    .build();
    let rejected = rejected(&sandbox(|_| ()), ill_typed).await;
    assert!(rejected.to_string().contains("type mismatch"), "{rejected}");
}

#[tokio::test]
async fn a_worker_that_cannot_run_or_says_nothing_blames_the_right_side() {
    let missing = sandbox(|worker| worker.program = "/nowhere/compiler".into());
    match missing.check(small(), &Limits::default()).await {
        Err(CheckError::Host(Error::Compiler(reason))) => {
            assert!(reason.contains("/nowhere/compiler"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let silent = sandbox(|worker| worker.program = "/bin/true".into());
    let silent = rejected(&silent, small()).await;
    assert!(matches!(silent, Rejected::CompilerFailed), "{silent}");
}
