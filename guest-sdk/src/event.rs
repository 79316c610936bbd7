//! Events: payloads that are sent to a run under a name.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::FusedFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::stepwell::workflow::durable::{self, Outcome};
use crate::bindings::stepwell::workflow::types;
use crate::error::Error;
use crate::failure::Failure;
use crate::operations::{Operations, Phase, unexpected};
use crate::payload;
use crate::span::{IntoSpan, SpanError, whole_ms};
use crate::timestamp::Timestamp;

/// The name of an event and the type of its payload, said once and used by every wait.
///
/// Named in `#[workflow(events(APPROVAL))]`, the event and its schema are part of what the
/// component says about itself, and the host refuses an event that does not fit.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use stepwell_sdk::{Ctx, Error, Event, workflow};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Approval { by: String }
///
/// const APPROVAL: Event<Approval> = Event::new("approval");
///
/// /// Waits for somebody to approve.
/// #[workflow(events(APPROVAL))]
/// async fn publish(ctx: Ctx) -> Result<String, Error> {
///     Ok(ctx.wait_for_event(&APPROVAL).await?.payload.by)
/// }
/// ```
pub struct Event<T> {
    name: Cow<'static, str>,
    payload: PhantomData<fn() -> T>,
}

impl<T> Event<T> {
    /// An event of this name.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            payload: PhantomData,
        }
    }

    /// An event whose name is only known at run time.
    ///
    /// ```
    /// use stepwell_sdk::Event;
    ///
    /// let event: Event<serde_json::Value> = Event::named(format!("item-{}", 7));
    /// assert_eq!(event.name(), "item-7");
    /// ```
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: Cow::Owned(name.into()),
            payload: PhantomData,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<T> std::fmt::Debug for Event<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Event").field(&self.name).finish()
    }
}

/// An event as it was delivered.
#[derive(Debug)]
pub struct Message<T> {
    /// Stands for this one delivery.
    pub id: String,
    /// What was sent.
    pub payload: T,
    /// When the host accepted it.
    pub sent_at: Timestamp,
    answer: Answer,
}

struct Answer(Rc<Operations>);

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answer")
    }
}

impl<T> Message<T> {
    /// Answers the sender, durably and once.
    ///
    /// # Errors
    /// [`Error::Failed`] if the sender has been answered before, or the answer cannot be written
    /// as JSON or is over the payload limit.
    pub fn reply<A: Serialize + 'static>(&self, answer: &A) -> Result<(), Error> {
        let answer = payload::encode(answer, "the answer to an event")?;
        self.send(Ok(&answer))
    }

    /// Answers the sender, durably and once, that its request failed. The run goes on.
    ///
    /// # Errors
    /// [`Error::Failed`] if the sender has been answered before.
    pub fn reply_failure(&self, failure: Failure) -> Result<(), Error> {
        self.send(Err(&failure.into_wire()))
    }

    fn send(&self, answer: Result<&types::Payload, &types::Failure>) -> Result<(), Error> {
        let replied = self.answer.0.host.reply(&self.id, answer);
        replied.map_err(|refused| Error::Failed(Failure::from_wire(refused)))
    }
}

/// A wait for an event; made by [`Ctx::wait_for_event`](crate::Ctx::wait_for_event).
///
/// A payload that is not a `T` is an [`Error::Failed`] of kind `decode`; the event is taken.
#[must_use = "a wait begins when it is awaited"]
pub struct Wait<T> {
    operations: Rc<Operations>,
    event: String,
    timeout: Option<Result<Duration, SpanError>>,
    phase: Phase,
    payload: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + 'static> Wait<T> {
    pub(crate) fn new(operations: Rc<Operations>, event: &str) -> Self {
        Self {
            operations,
            event: event.to_owned(),
            timeout: None,
            phase: Phase::Unasked,
            payload: PhantomData,
        }
    }

    /// Gives up after this span: then the answer is `None`, and an event that comes later stays
    /// for the next wait.
    ///
    /// ```
    /// # use stepwell_sdk::{Ctx, Error, Event, workflow};
    /// # const APPROVAL: Event<bool> = Event::new("approval");
    /// # /// Waits.
    /// # #[workflow]
    /// # async fn wait(ctx: Ctx) -> Result<bool, Error> {
    /// match ctx.wait_for_event(&APPROVAL).timeout("3 days").await? {
    ///     Some(approval) => Ok(approval.payload),
    ///     None => Ok(false),
    /// }
    /// # }
    /// ```
    pub fn timeout(mut self, span: impl IntoSpan) -> TimedWait<T> {
        self.timeout = Some(span.into_span());
        TimedWait(self)
    }

    /// The event, or none if the timeout passed first.
    fn poll_taken(&mut self, cx: &Context<'_>) -> Poll<Result<Option<Message<T>>, Error>> {
        let Self {
            operations,
            event,
            timeout,
            phase,
            ..
        } = self;
        let polled = phase.poll(operations, cx, |host| match timeout {
            None => Ok(host.wait_for_event(event, None)),
            Some(Ok(span)) => Ok(host.wait_for_event(event, Some(whole_ms(*span)))),
            Some(Err(error)) => Err(Error::bad_span(
                error,
                &format!("the wait for event `{event}`"),
            )),
        });
        polled.map(|answer| match answer? {
            Outcome::Event(message) => Ok(Some(self.message(message)?)),
            Outcome::TimedOut => Ok(None),
            outcome @ (Outcome::Slept(_) | Outcome::Task(_)) => {
                unexpected("a wait for an event", &outcome)
            }
        })
    }

    fn message(&self, message: durable::EventMessage) -> Result<Message<T>, Error> {
        Ok(Message {
            payload: payload::decode(
                &message.payload,
                &format!("the payload of event `{}`", self.event),
            )?,
            id: message.id,
            sent_at: Timestamp::from_ms(message.sent_at),
            answer: Answer(Rc::clone(&self.operations)),
        })
    }
}

impl<T: DeserializeOwned + 'static> Future for Wait<T> {
    type Output = Result<Message<T>, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_taken(cx).map_ok(|message| match message {
            Some(message) => message,
            None => unexpected("a wait without a timeout", &Outcome::TimedOut),
        })
    }
}

impl<T: DeserializeOwned + 'static> FusedFuture for Wait<T> {
    fn is_terminated(&self) -> bool {
        self.phase.is_done()
    }
}

impl<T> std::fmt::Debug for Wait<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wait")
            .field("event", &self.event)
            .field("timeout", &self.timeout)
            .field("phase", &self.phase)
            .finish()
    }
}

/// A wait that gives up in time; made by [`Wait::timeout`].
#[derive(Debug)]
#[must_use = "a wait begins when it is awaited"]
pub struct TimedWait<T>(Wait<T>);

impl<T: DeserializeOwned + 'static> Future for TimedWait<T> {
    /// The event, or none if the timeout passed first.
    type Output = Result<Option<Message<T>>, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_taken(cx)
    }
}

impl<T: DeserializeOwned + 'static> FusedFuture for TimedWait<T> {
    fn is_terminated(&self) -> bool {
        self.0.phase.is_done()
    }
}
