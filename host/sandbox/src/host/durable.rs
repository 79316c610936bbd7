//! `stepwell:workflow/durable`: hands each call to the engine's [`Durable`], switches worlds, and
//! keeps the protocol of a step.
//!
//! ```text
//! workflow world ── step or retry-step answers execute ──► step world
//!       ▲                                                     │ no operation until
//!       └────────────────────── finish-step ◄─────────────────┘
//! ```

use std::time::Duration;

use stepwell_core::id::Operation;
use stepwell_core::journal::Wake;
use stepwell_core::payload::Failure;
use stepwell_core::time::Timestamp;

use super::types::{
    failure, failure_out, instant, options, outcome, payload, payload_out, step_error_out,
};
use crate::bindings::stepwell::workflow::durable::{self as wit, Host as Imports};
use crate::bindings::stepwell::workflow::types as wit_types;
use crate::guest::{Asked, AttemptState, Durable, Outcome, Selected, StepState, Stop};
use crate::instance::{Host, Instance, World};
use crate::trap::Halt;

impl Instance {
    /// The engine's side of a run, for everything that may be asked at any time.
    fn run(&mut self, call: &str) -> wasmtime::Result<&mut dyn Durable> {
        match &mut self.host {
            Host::Workflow { durable, .. } => Ok(&mut **durable),
            Host::Task(_) => Err(Halt::misuse(format!(
                "`{call}` was called in a task; a task is one attempt without a journal, so only a workflow may call it"
            ))),
            Host::Nobody => Err(Halt::misuse(format!(
                "`{call}` was called in `describe`, where there is no run to ask for it"
            ))),
        }
    }

    /// The engine's side of a run, for an operation: none may be asked for while a body runs, for
    /// on replay the body does not run, and the operation would be missing.
    fn operation(&mut self, call: &str) -> wasmtime::Result<&mut dyn Durable> {
        if let World::Step {
            step: Some(step), ..
        } = self.world
        {
            return Err(Halt::misuse(format!(
                "`{call}` was called while the body of step {step} runs; finish the step first, and call it after"
            )));
        }
        self.run(call)
    }

    /// Takes note of where the guest stands now.
    fn answered<T>(&mut self, answer: Result<T, Stop>) -> wasmtime::Result<T> {
        if let Host::Workflow {
            durable, moment, ..
        } = &mut self.host
        {
            *moment = durable.moment();
        }
        answer.map_err(|stop| match stop {
            Stop::Now => Halt::Stopped.into(),
            Stop::Misuse(message) => Halt::misuse(message),
        })
    }

    /// The same for calls that may suspend. A stopped guest stays suspended and is dropped: an
    /// error would unwind it, and a backtrace of every evicted guest would be drawn up for nobody.
    async fn answered_or_stopped<T>(&mut self, answer: Result<T, Stop>) -> wasmtime::Result<T> {
        if matches!(answer, Err(Stop::Now)) {
            self.meter.stop();
            std::future::pending::<()>().await;
        }
        self.answered(answer)
    }

    /// What the guest is told about a step, with the change of worlds that goes with it.
    fn step_state(&mut self, state: StepState) -> wit::StepState {
        match state {
            StepState::Execute(attempt) => {
                self.enter_step(&attempt);
                wit::StepState::Execute(wit::StepAttempt {
                    step: attempt.step.0,
                    number: attempt.number,
                    key: attempt.key,
                })
            }
            StepState::Backoff(operation) => wit::StepState::Backoff(operation.0),
            StepState::Completed(output) => wit::StepState::Completed(payload_out(output)),
            StepState::Failed(error) => wit::StepState::Failed(step_error_out(error)),
            StepState::Cancelled(reason) => wit::StepState::Cancelled(reason),
        }
    }

    fn asked(
        &mut self,
        answer: Result<Asked, Stop>,
    ) -> wasmtime::Result<Result<wit::Operation, wit_types::Failure>> {
        Ok(self
            .answered(answer)?
            .map(|operation| operation.0)
            .map_err(failure_out))
    }
}

impl Imports for Instance {
    fn info(&mut self) -> wasmtime::Result<wit::RunInfo> {
        self.run("info")?;
        let Host::Workflow { info, .. } = &self.host else {
            unreachable!("there is a run")
        };
        Ok(wit::RunInfo {
            run_id: info.run_id.clone(),
            tenant: info.tenant.clone(),
            workflow: info.workflow.clone(),
            version: info.version.clone(),
            started_at: instant(info.started_at),
        })
    }

    fn now(&mut self) -> wasmtime::Result<wit_types::InstantMs> {
        self.run("now")?;
        Ok(instant(self.workflow_now()))
    }

    async fn step(
        &mut self,
        name: String,
        with: wit_types::StepOptions,
    ) -> wasmtime::Result<wit::StepState> {
        let answer = self.operation("step")?.step(name, options(with)).await;
        let state = self.answered_or_stopped(answer).await?;
        Ok(self.step_state(state))
    }

    async fn retry_step(
        &mut self,
        step: wit::Operation,
        with: wit_types::StepOptions,
    ) -> wasmtime::Result<wit::StepState> {
        let answer = self
            .operation("retry-step")?
            .retry_step(Operation(step), options(with))
            .await;
        let state = self.answered_or_stopped(answer).await?;
        Ok(self.step_state(state))
    }

    fn finish_step(
        &mut self,
        outcome: Result<wit_types::Payload, wit_types::Failure>,
    ) -> wasmtime::Result<wit::AttemptState> {
        self.run("finish-step")?;
        if !self.in_step() {
            return Err(Halt::misuse(
                "`finish-step` was called, but no step's body runs; call `step` first",
            ));
        }
        let outcome = match outcome {
            Ok(output) => Ok(payload(output)),
            Err(value) => Err(failure(value, &self.limits)),
        };
        self.leave_step();
        let answer = self.run("finish-step")?.finish_step(outcome);
        Ok(match self.answered(answer)? {
            AttemptState::Completed => wit::AttemptState::Completed,
            AttemptState::Backoff(operation) => wit::AttemptState::Backoff(operation.0),
            AttemptState::Failed(error) => wit::AttemptState::Failed(step_error_out(error)),
        })
    }

    fn sleep(
        &mut self,
        name: String,
        duration: wit_types::DurationMs,
    ) -> wasmtime::Result<Result<wit::Operation, wit_types::Failure>> {
        let answer = self
            .operation("sleep")?
            .sleep(name, Duration::from_millis(duration));
        self.asked(answer)
    }

    fn sleep_until(
        &mut self,
        name: String,
        at: wit_types::InstantMs,
    ) -> wasmtime::Result<Result<wit::Operation, wit_types::Failure>> {
        let answer = self
            .operation("sleep-until")?
            .sleep_until(name, Timestamp::from_ms(at));
        self.asked(answer)
    }

    fn wait_for_event(
        &mut self,
        event: String,
        timeout: Option<wit_types::DurationMs>,
    ) -> wasmtime::Result<Result<wit::Operation, wit_types::Failure>> {
        let answer = self
            .operation("wait-for-event")?
            .wait_for_event(event, timeout.map(Duration::from_millis));
        self.asked(answer)
    }

    fn call_task(
        &mut self,
        task: String,
        input: wit_types::Payload,
        with: wit_types::StepOptions,
    ) -> wasmtime::Result<Result<wit::Operation, wit_types::Failure>> {
        let answer = self
            .operation("call-task")?
            .call_task(task, payload(input), options(with));
        self.asked(answer)
    }

    fn withdraw(&mut self, operation: wit::Operation) -> wasmtime::Result<()> {
        let answer = self.operation("withdraw")?.withdraw(Operation(operation));
        self.answered(answer)
    }

    async fn select(&mut self, among: Vec<wit::Operation>) -> wasmtime::Result<wit::Selected> {
        self.operation("select")?;
        if among.is_empty() {
            return Err(Halt::misuse(
                "`select` was called with an empty list: nothing would ever answer it",
            ));
        }
        if among.len() > self.limits.open_operations_max {
            return Err(Halt::misuse(format!(
                "`select` was called with {} operations, and at most {} may be open at once",
                among.len(),
                self.limits.open_operations_max
            )));
        }
        let among = among.into_iter().map(Operation).collect();
        let resident_bytes = self.limiter.resident_bytes();
        let answer = self
            .operation("select")?
            .select(among, resident_bytes)
            .await;
        Ok(match self.answered_or_stopped(answer).await? {
            Selected::Answered(operation, outcome) => wit::Selected::Answered(wit::Answer {
                operation: operation.0,
                outcome: outcome_out(outcome),
            }),
            Selected::Cancelled(reason) => wit::Selected::Cancelled(reason),
        })
    }

    fn reply(
        &mut self,
        event: String,
        answer: Result<wit_types::Payload, wit_types::Failure>,
    ) -> wasmtime::Result<Result<(), wit_types::Failure>> {
        let answer = outcome(answer, &self.limits);
        let answer = self.operation("reply")?.reply(event, answer);
        self.done(answer)
    }

    fn publish(
        &mut self,
        key: String,
        value: wit_types::Payload,
    ) -> wasmtime::Result<Result<(), wit_types::Failure>> {
        let answer = self.operation("publish")?.publish(key, payload(value));
        self.done(answer)
    }
}

impl Instance {
    fn done(
        &mut self,
        answer: Result<Result<(), Failure>, Stop>,
    ) -> wasmtime::Result<Result<(), wit_types::Failure>> {
        Ok(self.answered(answer)?.map_err(failure_out))
    }
}

fn outcome_out(outcome: Outcome) -> wit::Outcome {
    match outcome {
        Outcome::Slept(Wake::Elapsed) => wit::Outcome::Slept(wit::Wake::Elapsed),
        Outcome::Slept(Wake::Woken) => wit::Outcome::Slept(wit::Wake::Woken),
        Outcome::Event(event) => wit::Outcome::Event(wit::EventMessage {
            id: event.id.to_string(),
            payload: payload_out(event.payload),
            sent_at: instant(event.sent_at),
        }),
        Outcome::TimedOut => wit::Outcome::TimedOut,
        Outcome::Task(result) => {
            wit::Outcome::Task(result.map(payload_out).map_err(step_error_out))
        }
    }
}
