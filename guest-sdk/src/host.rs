//! What a run asks of its host: one method for each function of `stepwell:workflow/durable`.
//!
//! In a component this is the contract itself. Natively it is the scripted host of
//! [`crate::testing`]. Nothing is decided here.

use crate::bindings::stepwell::workflow::{durable, types};

/// The host of one run. Calls take `&self`: the host has one guest, on one thread.
pub(crate) trait Host {
    fn info(&self) -> durable::RunInfo;
    fn now(&self) -> types::InstantMs;
    fn step(&self, name: &str, options: types::StepOptions) -> durable::StepState;
    fn retry_step(
        &self,
        step: durable::Operation,
        options: types::StepOptions,
    ) -> durable::StepState;
    fn finish_step(
        &self,
        outcome: Result<&types::Payload, &types::Failure>,
    ) -> durable::AttemptState;
    fn sleep(&self, name: &str, duration: types::DurationMs) -> Asked;
    fn sleep_until(&self, name: &str, at: types::InstantMs) -> Asked;
    fn wait_for_event(&self, event: &str, timeout: Option<types::DurationMs>) -> Asked;
    fn call_task(&self, task: &str, input: &types::Payload, options: types::StepOptions) -> Asked;
    fn withdraw(&self, operation: durable::Operation);
    fn select(&self, among: &[durable::Operation]) -> durable::Selected;
    fn reply(
        &self,
        event: &str,
        answer: Result<&types::Payload, &types::Failure>,
    ) -> Result<(), types::Failure>;
    fn publish(&self, key: &str, value: &types::Payload) -> Result<(), types::Failure>;
}

/// The number of an operation that is answered later, or why the host refused it.
pub(crate) type Asked = Result<durable::Operation, types::Failure>;

/// The host outside a component's sandbox: the contract's imports.
#[derive(Debug)]
pub(crate) struct Contract;

impl Host for Contract {
    fn info(&self) -> durable::RunInfo {
        durable::info()
    }

    fn now(&self) -> types::InstantMs {
        durable::now()
    }

    fn step(&self, name: &str, options: types::StepOptions) -> durable::StepState {
        durable::step(name, options)
    }

    fn retry_step(
        &self,
        step: durable::Operation,
        options: types::StepOptions,
    ) -> durable::StepState {
        durable::retry_step(step, options)
    }

    fn finish_step(
        &self,
        outcome: Result<&types::Payload, &types::Failure>,
    ) -> durable::AttemptState {
        durable::finish_step(outcome)
    }

    fn sleep(&self, name: &str, duration: types::DurationMs) -> Asked {
        durable::sleep(name, duration)
    }

    fn sleep_until(&self, name: &str, at: types::InstantMs) -> Asked {
        durable::sleep_until(name, at)
    }

    fn wait_for_event(&self, event: &str, timeout: Option<types::DurationMs>) -> Asked {
        durable::wait_for_event(event, timeout)
    }

    fn call_task(&self, task: &str, input: &types::Payload, options: types::StepOptions) -> Asked {
        durable::call_task(task, input, options)
    }

    fn withdraw(&self, operation: durable::Operation) {
        durable::withdraw(operation);
    }

    fn select(&self, among: &[durable::Operation]) -> durable::Selected {
        durable::select(among)
    }

    fn reply(
        &self,
        event: &str,
        answer: Result<&types::Payload, &types::Failure>,
    ) -> Result<(), types::Failure> {
        durable::reply(event, answer)
    }

    fn publish(&self, key: &str, value: &types::Payload) -> Result<(), types::Failure> {
        durable::publish(key, value)
    }
}
