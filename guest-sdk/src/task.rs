//! Tasks: exported functions that the host runs in instances of their own, in parallel.

use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_util::future::FusedFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::stepwell::workflow::durable::Outcome;
use crate::bindings::stepwell::workflow::types::Payload;
use crate::error::{Error, StepError};
use crate::failure::Failure;
use crate::operations::{Operations, Phase, unexpected};
use crate::payload;
use crate::retry::{Retry, Rules};
use crate::span::IntoSpan;

/// What [`#[task]`](crate::task) makes of a function. Not written by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a task",
    note = "put `#[task]` on the function, and name it here without calling it"
)]
pub trait Task {
    /// What it is given.
    type Input: Serialize + DeserializeOwned + 'static;
    /// What it returns.
    type Output: Serialize + DeserializeOwned + 'static;
    /// Its name, as in the journal.
    const NAME: &'static str;
    /// The first paragraph of its documentation.
    const SUMMARY: &'static str;

    /// Runs one attempt.
    ///
    /// # Errors
    /// Whatever the function returns.
    fn run(context: TaskContext, input: Self::Input) -> Result<Self::Output, Failure>;
}

/// What a task is told about the attempt that runs. Take it as the first parameter, if at all.
///
/// ```
/// use stepwell_sdk::{Failure, TaskContext, task};
///
/// /// Gives up politely.
/// #[task]
/// fn try_twice(context: TaskContext, input: u32) -> Result<u32, Failure> {
///     if context.attempt > 2 { Ok(0) } else { Err(Failure::new("not-yet", "try again")) }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskContext {
    /// From 1.
    pub attempt: u32,
    /// The same for every attempt of this call, and for no other call. The host sends it as the
    /// `Idempotency-Key` of every request that the task makes and that sets none itself.
    pub key: String,
}

/// A task that runs beside the workflow; made by [`Ctx::call_task`](crate::Ctx::call_task).
///
/// Left out, its rules are the host's default, as for a [`Step`](crate::Step).
#[must_use = "a task is called when it is awaited"]
pub struct TaskCall<O> {
    operations: Rc<Operations>,
    name: String,
    input: Result<Payload, Failure>,
    rules: Rules,
    phase: Phase,
    output: PhantomData<fn() -> O>,
}

impl<O: DeserializeOwned + 'static> TaskCall<O> {
    pub(crate) fn new(
        operations: Rc<Operations>,
        name: &str,
        input: Result<Payload, Failure>,
    ) -> Self {
        Self {
            operations,
            name: name.to_owned(),
            input,
            rules: Rules::default(),
            phase: Phase::Unasked,
            output: PhantomData,
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

impl<O: DeserializeOwned + 'static> Future for TaskCall<O> {
    type Output = Result<O, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            operations,
            name,
            input,
            rules,
            phase,
            ..
        } = &mut *self;
        let polled = phase.poll(operations, cx, |host| {
            let options = rules.to_wire(&format!("task `{name}`"))?;
            let input = input
                .as_ref()
                .map_err(|failure| Error::Failed(failure.clone()))?;
            Ok(host.call_task(name, input, options))
        });
        polled.map(|answer| match answer? {
            Outcome::Task(Ok(output)) => Ok(payload::decode(
                &output,
                &format!("the result of task `{}`", self.name),
            )?),
            Outcome::Task(Err(error)) => Err(StepError::from_wire(error).into()),
            outcome @ (Outcome::Slept(_) | Outcome::Event(_) | Outcome::TimedOut) => {
                unexpected("a task", &outcome)
            }
        })
    }
}

impl<O: DeserializeOwned + 'static> FusedFuture for TaskCall<O> {
    fn is_terminated(&self) -> bool {
        self.phase.is_done()
    }
}

impl<O> std::fmt::Debug for TaskCall<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskCall")
            .field("name", &self.name)
            .field("rules", &self.rules)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}
