//! What a run asked of its host and what it was answered; and the host that plays it back.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::bindings::stepwell::workflow::{durable, types};
use crate::host::{Asked, Host};

/// What was asked for. Two calls are the same if a replay may answer one with the other's answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Call {
    Step(String),
    RetryStep(durable::Operation),
    Sleep(String),
    Wait(String),
    Task(String, types::Payload),
    Withdraw(durable::Operation),
    Select(Vec<durable::Operation>),
    Reply(String),
    Publish(String),
}

/// What was answered.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    Step(durable::StepState),
    Asked(Asked),
    Selected(durable::Selected),
    Said(Result<(), types::Failure>),
    Nothing,
}

/// Every call and its answer and time, in order. Attempts of a body are left out: a call of a step
/// has the answer that a replay gets.
#[derive(Debug, Default)]
pub(super) struct Transcript(VecDeque<(Call, Answer, u64)>);

impl Transcript {
    pub(super) fn add(&mut self, call: Call, answer: Answer, now: u64) {
        self.0.push_back((call, answer, now));
    }

    /// Says how the attempt ended that the latest call began.
    pub(super) fn finish_step(&mut self, state: durable::StepState, now: u64) {
        if let Some((_, answer, at)) = self.0.back_mut() {
            *answer = Answer::Step(state);
            *at = now;
        }
    }
}

/// Answers from a transcript, and panics at the first call that is not in it.
#[derive(Debug)]
pub(super) struct ReplayingHost {
    workflow: &'static str,
    rest: RefCell<Transcript>,
    now: RefCell<u64>,
}

impl ReplayingHost {
    pub(super) fn new(workflow: &'static str, transcript: Transcript) -> Self {
        Self {
            workflow,
            rest: RefCell::new(transcript),
            now: RefCell::new(super::scripted_host::START_MS),
        }
    }

    pub(super) fn assert_used_up(&self) {
        let rest = self.rest.borrow();
        assert!(
            rest.0.is_empty(),
            "workflow `{}` did less on replay; left: {:?}",
            self.workflow,
            rest.0
        );
    }

    fn next(&self, asked: &Call) -> Answer {
        match self.rest.borrow_mut().0.pop_front() {
            Some((call, answer, now)) if call == *asked => {
                *self.now.borrow_mut() = now;
                answer
            }
            recorded => panic!(
                "workflow `{}` does not repeat itself: it asked for {asked:?} where it had asked for {:?}",
                self.workflow,
                recorded.map(|(call, ..)| call)
            ),
        }
    }

    fn state(&self, call: &Call) -> durable::StepState {
        match self.next(call) {
            Answer::Step(state) => state,
            other => unreachable!("a step was answered {other:?}"),
        }
    }

    fn asked(&self, call: &Call) -> Asked {
        match self.next(call) {
            Answer::Asked(asked) => asked,
            other => unreachable!("an operation was answered {other:?}"),
        }
    }

    fn said(&self, call: &Call) -> Result<(), types::Failure> {
        match self.next(call) {
            Answer::Said(said) => said,
            other => unreachable!("an announcement was answered {other:?}"),
        }
    }
}

impl Host for ReplayingHost {
    fn info(&self) -> durable::RunInfo {
        super::scripted_host::info(self.workflow)
    }

    fn now(&self) -> types::InstantMs {
        *self.now.borrow()
    }

    fn step(&self, name: &str, _: types::StepOptions) -> durable::StepState {
        self.state(&Call::Step(name.to_owned()))
    }

    fn retry_step(&self, step: durable::Operation, _: types::StepOptions) -> durable::StepState {
        self.state(&Call::RetryStep(step))
    }

    fn finish_step(&self, _: Result<&types::Payload, &types::Failure>) -> durable::AttemptState {
        unreachable!("a replay runs no body")
    }

    fn sleep(&self, name: &str, _: types::DurationMs) -> Asked {
        self.asked(&Call::Sleep(name.to_owned()))
    }

    fn sleep_until(&self, name: &str, _: types::InstantMs) -> Asked {
        self.asked(&Call::Sleep(name.to_owned()))
    }

    fn wait_for_event(&self, event: &str, _: Option<types::DurationMs>) -> Asked {
        self.asked(&Call::Wait(event.to_owned()))
    }

    fn call_task(&self, task: &str, input: &types::Payload, _: types::StepOptions) -> Asked {
        self.asked(&Call::Task(task.to_owned(), input.clone()))
    }

    fn withdraw(&self, operation: durable::Operation) {
        self.next(&Call::Withdraw(operation));
    }

    fn select(&self, among: &[durable::Operation]) -> durable::Selected {
        match self.next(&Call::Select(among.to_vec())) {
            Answer::Selected(selected) => selected,
            other => unreachable!("a select was answered {other:?}"),
        }
    }

    fn reply(
        &self,
        event: &str,
        _: Result<&types::Payload, &types::Failure>,
    ) -> Result<(), types::Failure> {
        self.said(&Call::Reply(event.to_owned()))
    }

    fn publish(&self, key: &str, _: &types::Payload) -> Result<(), types::Failure> {
        self.said(&Call::Publish(key.to_owned()))
    }
}
