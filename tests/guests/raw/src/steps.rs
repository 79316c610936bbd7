//! Operations as they are meant to be used.

use std::io::Write as _;

use crate::Workflow;
use crate::bindings::stepwell::workflow::durable::{
    self, AttemptState, Outcome, Selected, StepState,
};
use crate::bindings::stepwell::workflow::log;
use crate::bindings::stepwell::workflow::types::{Failure, Payload, StepOptions};

pub(crate) const WORKFLOWS: &[Workflow] = &[
    ("nothing", |_| "null".to_owned()),
    ("steps", steps),
    ("nap", |_| nap()),
    ("every-call", every_call),
    ("print", print),
    ("print-much", print_much),
    ("print-across-a-nap", print_across_a_nap),
    ("large-step", |bytes| {
        step_result("large", || {
            Payload::Binary(vec![7; bytes.parse().unwrap_or_default()])
        })
    }),
    ("large-result", |bytes| {
        "x".repeat(bytes.parse().unwrap_or_default())
    }),
    ("long-failure", long_failure),
];

pub(crate) const DEFAULT: StepOptions = StepOptions {
    retry: None,
    timeout: None,
    deadline: None,
};

/// Runs a body as a step and says what became of it.
pub(crate) fn step(name: &str, body: impl FnOnce() -> String) -> String {
    step_result(name, || Payload::Json(body()))
}

fn step_result(name: &str, body: impl FnOnce() -> Payload) -> String {
    match durable::step(name, DEFAULT) {
        StepState::Execute(_) => {
            let output = body();
            let text = crate::text(output.clone());
            match durable::finish_step(Ok(&output)) {
                AttemptState::Completed => text,
                AttemptState::Backoff(_) => "backoff".to_owned(),
                AttemptState::Failed(error) => {
                    format!("{} {}", error.cause.kind, error.cause.message)
                }
            }
        }
        StepState::Completed(output) => crate::text(output),
        StepState::Backoff(_) => "backoff".to_owned(),
        StepState::Failed(error) => error.cause.kind,
        StepState::Cancelled(reason) => reason,
    }
}

/// Sleeps as a workflow should.
pub(crate) fn nap() -> String {
    match durable::sleep("nap", 60_000) {
        Ok(operation) => match durable::select(&[operation]) {
            Selected::Answered(answer) => match answer.outcome {
                Outcome::Slept(wake) => format!("{wake:?}"),
                other => format!("{other:?}"),
            },
            Selected::Cancelled(reason) => reason,
        },
        Err(failure) => failure.kind,
    }
}

fn steps(count: &str) -> String {
    let count: u32 = count.parse().unwrap_or_default();
    for number in 0..count {
        match durable::step("step", DEFAULT) {
            StepState::Execute(_) => {
                durable::finish_step(Ok(&Payload::Json(number.to_string())));
            }
            StepState::Completed(_) => {}
            other => return format!("{other:?}"),
        }
    }
    count.to_string()
}

fn every_call(_: &str) -> String {
    let info = durable::info();
    let sleep = durable::sleep_until("until", 5).expect("accepted");
    let wait = durable::wait_for_event("greeting", Some(1_000)).expect("accepted");
    let task =
        durable::call_task("echo", &Payload::Json("1".to_owned()), DEFAULT).expect("accepted");
    durable::withdraw(task);
    let published = durable::publish("state", &Payload::Binary(vec![1, 2, 3]));
    let replied = durable::reply("evt_1", Ok(&Payload::Json("2".to_owned())));
    let selected = durable::select(&[sleep, wait]);
    format!(
        "{} {} {} {} {} {published:?} {replied:?} {selected:?}",
        info.run_id, info.tenant, info.workflow, info.version, info.started_at
    )
}

fn print(_: &str) -> String {
    println!("to stdout");
    eprintln!("to stderr");
    log::log(
        log::Level::Debug,
        "to the log",
        &[("key".to_owned(), "value".to_owned())],
    );
    print!("without an end");
    // Rust itself holds back what has no end yet.
    std::io::stdout().flush().expect("flushed");
    "null".to_owned()
}

fn print_much(lines: &str) -> String {
    for number in 0..lines.parse::<u32>().unwrap_or_default() {
        println!("line {number}");
    }
    "null".to_owned()
}

fn print_across_a_nap(_: &str) -> String {
    println!("before");
    nap();
    println!("after");
    "null".to_owned()
}

fn long_failure(bytes: &str) -> String {
    let bytes = bytes.parse().unwrap_or_default();
    durable::step("failing", DEFAULT);
    let failure = Failure {
        kind: "k".repeat(bytes),
        message: "m".repeat(bytes),
        retryable: true,
        retry_after: Some(5),
        details: Some(Payload::Binary(vec![0; bytes])),
    };
    format!("{:?}", durable::finish_step(Err(&failure)))
}
