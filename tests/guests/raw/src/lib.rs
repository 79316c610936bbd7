//! The bare contract, without the SDK: one component with a workflow for each thing that the
//! sandbox promises or refuses. Inputs and outputs are plain text in JSON payloads, so that there
//! is nothing to parse.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what a guest prints is what is tested"
)]
#![allow(
    clippy::redundant_closure,
    reason = "the closure is a frame that a test looks for"
)]
#![cfg(target_arch = "wasm32")]

mod bindings;
mod ends;
mod http;
mod misuse;
mod steps;
mod world;

use bindings::exports::stepwell::workflow::guest::{
    Completion, Failure, Guest, Manifest, Payload, TaskSpec, WorkflowSpec,
};

/// What a workflow is called by, and what it does with its input.
type Workflow = (&'static str, fn(&str) -> String);

fn workflows() -> impl Iterator<Item = &'static Workflow> {
    [
        world::WORKFLOWS,
        steps::WORKFLOWS,
        misuse::WORKFLOWS,
        http::WORKFLOWS,
        ends::WORKFLOWS,
    ]
    .into_iter()
    .flatten()
}

fn text(payload: Payload) -> String {
    match payload {
        Payload::Json(text) => text,
        Payload::Binary(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

struct Raw;

impl Guest for Raw {
    fn describe() -> Manifest {
        let workflow = |(name, _): &Workflow| WorkflowSpec {
            name: (*name).to_owned(),
            summary: String::new(),
            input_schema: None,
            output_schema: None,
            events: Vec::new(),
        };
        let task = |name: &str| TaskSpec {
            name: name.to_owned(),
            summary: String::new(),
        };
        Manifest {
            sdk: "none".to_owned(),
            workflows: workflows().map(workflow).collect(),
            tasks: ["echo", "world", "operation", "spin", "large"]
                .map(task)
                .to_vec(),
        }
    }

    fn run(workflow: String, input: Payload) -> Completion {
        match workflows().find(|(name, _)| *name == workflow) {
            Some((_, body)) => Completion::Done(Payload::Json(body(&text(input)))),
            None => Completion::Failed(failure("no-such-workflow")),
        }
    }

    fn run_task(
        task: String,
        input: Payload,
        attempt: u32,
        key: String,
    ) -> Result<Payload, Failure> {
        match task.as_str() {
            "echo" => Ok(Payload::Json(format!("{} {attempt} {key}", text(input)))),
            "world" => Ok(Payload::Json(world::in_task())),
            "operation" => Ok(Payload::Json(misuse::now())),
            "spin" => ends::spin(),
            "large" => Ok(Payload::Binary(vec![
                0;
                text(input).parse().unwrap_or_default()
            ])),
            _ => Err(failure("no-such-task")),
        }
    }
}

fn failure(kind: &str) -> Failure {
    Failure {
        kind: kind.to_owned(),
        message: String::new(),
        retryable: false,
        retry_after: None,
        details: None,
    }
}
