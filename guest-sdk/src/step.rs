//! Steps: code that runs inside the guest, may talk to the outside, and whose result is recorded.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_util::future::FusedFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::stepwell::workflow::durable::{
    AttemptState, Operation, StepAttempt, StepState,
};
use crate::error::{Error, StepError};
use crate::failure::Failure;
use crate::operations::{Operations, Pending};
use crate::payload;
use crate::retry::{Retry, Rules};
use crate::span::IntoSpan;

/// One execution of a step's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// The same for every attempt of this step, and for no other step. The host sends it as the
    /// `Idempotency-Key` of every request that the body makes and that sets none itself.
    pub key: String,
}

/// A step; made by [`Ctx::step`](crate::Ctx::step) and [`Ctx::step_with`](crate::Ctx::step_with).
///
/// Left out, its rules are the host's default: 5 attempts, 1 second, doubling, at most 60 seconds,
/// full jitter, and 5 minutes for one attempt.
#[must_use = "a step runs when it is awaited"]
pub struct Step<F> {
    operations: Rc<Operations>,
    name: String,
    rules: Rules,
    body: F,
    phase: Phase,
}

enum Phase {
    Unasked,
    /// The last attempt has failed and the next may not begin yet.
    Backoff {
        step: Operation,
        pending: Pending,
    },
    Done,
}

impl<F> Step<F> {
    pub(crate) fn new(operations: Rc<Operations>, name: &str, body: F) -> Self {
        Self {
            operations,
            name: name.to_owned(),
            rules: Rules::default(),
            body,
            phase: Phase::Unasked,
        }
    }

    /// When, and how often, to try again.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.rules.retry = Some(retry);
        self
    }

    /// The longest that one attempt may take; at least 1 ms.
    pub fn timeout(mut self, span: impl IntoSpan) -> Self {
        self.rules.timeout = Some(span.into_span());
        self
    }

    /// The longest that all attempts and the delays between them may take.
    pub fn deadline(mut self, span: impl IntoSpan) -> Self {
        self.rules.deadline = Some(span.into_span());
        self
    }
}

impl<T, F> Step<F>
where
    T: Serialize + DeserializeOwned + 'static,
    F: Fn(&Attempt) -> Result<T, Failure>,
{
    /// Goes on until the step has ended or has to wait for its next attempt.
    fn advance(&mut self, cx: &Context<'_>) -> Poll<Result<T, Error>> {
        let options = self.rules.to_wire(&format!("step `{}`", self.name))?;
        let host = Rc::clone(&self.operations.host);
        let state = match &mut self.phase {
            Phase::Unasked => host.step(&self.name, options),
            Phase::Backoff { step, pending } => {
                let step = *step;
                match pending.poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    // However the wait ended, elapsed or woken: the next attempt may begin.
                    Poll::Ready(answer) => answer?,
                };
                host.retry_step(step, options)
            }
            Phase::Done => panic!("polled step `{}` after its end", self.name),
        };
        let step = match state {
            StepState::Execute(attempt) => match self.attempt(attempt) {
                Ok(ended) => return Poll::Ready(ended),
                Err(step) => step,
            },
            StepState::Backoff(step) => step,
            StepState::Completed(output) => {
                let output = payload::decode(
                    &output,
                    &format!("the recorded result of step `{}`", self.name),
                );
                return Poll::Ready(output.map_err(Error::Failed));
            }
            StepState::Failed(error) => {
                return Poll::Ready(Err(StepError::from_wire(error).into()));
            }
            StepState::Cancelled(reason) => {
                self.operations.cancel(&reason);
                return Poll::Ready(Err(Error::Cancelled(reason)));
            }
        };
        let pending = Pending::new(&self.operations, step, cx.waker());
        self.phase = Phase::Backoff { step, pending };
        Poll::Pending
    }

    /// Runs the body once and hands its outcome in. The step's end, or the operation to wait for
    /// before the next attempt.
    fn attempt(&self, attempt: StepAttempt) -> Result<Result<T, Error>, Operation> {
        let attempt = Attempt {
            number: attempt.number,
            key: attempt.key,
        };
        let what = format!("the result of step `{}`", self.name);
        // The value is read back before it is recorded: what a replay could not read must fail
        // this attempt, not every replay.
        let outcome = (self.body)(&attempt).and_then(|value| {
            let output = payload::encode(&value, &what)?;
            let read_back = payload::decode(&output, &what)?;
            Ok((output, read_back))
        });
        match outcome {
            Ok((output, value)) => match self.operations.host.finish_step(Ok(&output)) {
                AttemptState::Completed => Ok(Ok(value)),
                AttemptState::Backoff(step) => Err(step),
                AttemptState::Failed(error) => Ok(Err(StepError::from_wire(error).into())),
            },
            Err(failure) => match self.operations.host.finish_step(Err(&failure.into_wire())) {
                AttemptState::Completed => panic!(
                    "the host took the failure of step `{}` for a result",
                    self.name
                ),
                AttemptState::Backoff(step) => Err(step),
                AttemptState::Failed(error) => Ok(Err(StepError::from_wire(error).into())),
            },
        }
    }
}

impl<T, F> Future for Step<F>
where
    T: Serialize + DeserializeOwned + 'static,
    F: Fn(&Attempt) -> Result<T, Failure>,
{
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.advance(cx);
        if polled.is_ready() {
            self.phase = Phase::Done;
        }
        polled
    }
}

// The body is only ever called through a reference, so nothing is pinned.
impl<F> Unpin for Step<F> {}

impl<T, F> FusedFuture for Step<F>
where
    T: Serialize + DeserializeOwned + 'static,
    F: Fn(&Attempt) -> Result<T, Failure>,
{
    fn is_terminated(&self) -> bool {
        matches!(self.phase, Phase::Done)
    }
}

impl<F> std::fmt::Debug for Step<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Step")
            .field("name", &self.name)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
