//! Native tests of workflows: a run on a scripted host, in a blink, without a server.
//!
//! The host here keeps the contract but not the sandbox: steps run as ordinary code, the clock is
//! virtual and jumps to whatever happens next, tasks run one after the other, and a panic is a
//! panic. What needs the real host (crashes, limits, timeouts of a body that blocks) is tested on
//! the real host.
//!
//! ```
//! use stepwell_sdk::testing::TestRun;
//! use stepwell_sdk::{Ctx, Error, Event, Wake, http, workflow};
//!
//! const APPROVAL: Event<bool> = Event::new("approval");
//!
//! /// Ships what has been approved.
//! #[workflow(events(APPROVAL))]
//! async fn ship(ctx: Ctx, item: String) -> Result<u16, Error> {
//!     let approval = ctx.wait_for_event(&APPROVAL).timeout("3 days").await?;
//!     if !approval.is_some_and(|message| message.payload) {
//!         return Ok(0);
//!     }
//!     let body = || Ok(http::post(format!("http://shop/{item}")).send()?.error_for_status()?.status);
//!     ctx.step("ship", body).await
//! }
//!
//! let shop = || TestRun::new().http(|_| http::Response::new(201, ""));
//! let shipped = shop().event_after("1 day", &APPROVAL, &true).run::<ship>("tea".to_owned());
//! assert_eq!(shipped.result, Ok(201));
//!
//! let waited = shop().run::<ship>("tea".to_owned());
//! assert_eq!(waited.result, Ok(0));
//! assert_eq!(waited.attempts, Vec::<String>::new());
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::component::Workflow;
use crate::context::Ctx;
use crate::error::Error;
use crate::event::Event;
use crate::executor;
use crate::failure::Failure;
use crate::http::{Request, Response};
use crate::operations::Operations;
use crate::payload;
use crate::span::{IntoSpan, whole_ms};
use crate::task::{Task, TaskContext};

mod script;
mod scripted_host;
mod transcript;

use script::{Script, Stimulus};
use scripted_host::ScriptedHost;
use transcript::ReplayingHost;

/// A run of a workflow on a scripted host. Build the script, then [`run`](Self::run).
///
/// Spans of the script count from the start of the run; text that is not a span panics, as any
/// mistake in a test should.
#[derive(Debug, Default)]
pub struct TestRun {
    script: Script,
    check_replay: bool,
}

/// What a run did.
#[derive(Debug)]
pub struct Outcome<T> {
    /// What the workflow returned.
    pub result: Result<T, Error>,
    /// The attempts that were made, of steps and tasks, by name, in order.
    pub attempts: Vec<String>,
    /// The latest value under every key.
    pub published: BTreeMap<String, Value>,
    /// The answers to senders of events, in order; a failure shows as its kind.
    pub replies: Vec<Result<Value, String>>,
    /// What the run was waiting for when it withdrew it, by name, in order.
    pub withdrawn: Vec<String>,
    /// How long the run took on its virtual clock.
    pub elapsed: Duration,
}

/// A request as the scripted HTTP server sees it.
#[derive(Debug, Clone, Copy)]
pub struct SentRequest<'a> {
    /// For example `POST`.
    pub method: &'a str,
    /// Whole, as it was given.
    pub url: &'a str,
    /// As they were given.
    pub headers: &'a [(String, String)],
    /// The bytes.
    pub body: &'a [u8],
}

impl TestRun {
    /// A run to which nothing happens.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends an event before the run begins.
    #[must_use]
    pub fn event<T: Serialize + 'static>(self, event: &Event<T>, payload: &T) -> Self {
        self.event_after(Duration::ZERO, event, payload)
    }

    /// Sends an event when this span has passed.
    ///
    /// # Panics
    /// If the span or the payload is none.
    #[must_use]
    pub fn event_after<T: Serialize + 'static>(
        self,
        span: impl IntoSpan,
        event: &Event<T>,
        payload: &T,
    ) -> Self {
        let payload = payload::encode(payload, "the payload of the event")
            .unwrap_or_else(|failure| panic!("{failure}"));
        self.stimulus(
            span,
            Stimulus::Event {
                name: event.name().to_owned(),
                payload,
            },
        )
    }

    /// Asks the run to stop when this span has passed.
    ///
    /// # Panics
    /// If the span is none.
    #[must_use]
    pub fn cancel_after(self, span: impl IntoSpan, reason: &str) -> Self {
        self.stimulus(
            span,
            Stimulus::Cancel {
                reason: reason.to_owned(),
            },
        )
    }

    /// Ends the oldest open sleep early when this span has passed.
    ///
    /// # Panics
    /// If the span is none.
    #[must_use]
    pub fn wake_after(self, span: impl IntoSpan) -> Self {
        self.stimulus(span, Stimulus::Wake)
    }

    /// Answers the HTTP requests of steps and tasks. Without this, a request panics.
    #[must_use]
    pub fn http(mut self, server: impl Fn(SentRequest<'_>) -> Response + 'static) -> Self {
        self.script.http = Some(Rc::new(server));
        self
    }

    /// Lets the workflow call this task. Without this, a call panics.
    ///
    /// ```
    /// use stepwell_sdk::testing::TestRun;
    /// use stepwell_sdk::{Ctx, Error, Failure, task, workflow};
    ///
    /// /// Doubles a number.
    /// #[task]
    /// fn double(number: u32) -> Result<u32, Failure> {
    ///     Ok(2 * number)
    /// }
    ///
    /// /// Quadruples a number.
    /// #[workflow]
    /// async fn quadruple(ctx: Ctx, number: u32) -> Result<u32, Error> {
    ///     let doubled = ctx.call_task(double, number).await?;
    ///     ctx.call_task(double, doubled).await
    /// }
    ///
    /// let outcome = TestRun::new().task(double).run::<quadruple>(3);
    /// assert_eq!(outcome.result, Ok(12));
    /// ```
    #[must_use]
    pub fn task<T: Task>(mut self, task: T) -> Self {
        let _ = task;
        self.script.tasks.insert(T::NAME, |input, attempt, key| {
            crate::component::run_task::<T>(input, TaskContext { attempt, key })
        });
        self
    }

    /// Runs the workflow a second time from what was recorded, and panics if it then asks for
    /// something else.
    ///
    /// In the sandbox, clocks, random numbers and hash orders repeat themselves; natively they do
    /// not. A workflow that lets them decide what it asks for fails this check without being
    /// wrong.
    #[must_use]
    pub fn check_replay(mut self) -> Self {
        self.check_replay = true;
        self
    }

    /// Runs the workflow to its end.
    ///
    /// # Panics
    /// If the run waits for something that the script never brings, asks for a task or an HTTP
    /// answer that the script does not have, or panics itself.
    pub fn run<W: Workflow>(self, input: W::Input) -> Outcome<W::Output>
    where
        W::Input: Clone,
    {
        let kept = self.check_replay.then(|| input.clone());
        let _server = Server::install(self.script.http.clone());
        let host = Rc::new(ScriptedHost::new(W::NAME, self.script));
        let result = drive::<W>(Operations::new(Rc::clone(&host) as _), input);
        let report = host.report();
        if let Some(input) = kept {
            let replaying = Rc::new(ReplayingHost::new(W::NAME, report.transcript));
            let replayed = drive::<W>(Operations::new(Rc::clone(&replaying) as _), input);
            replaying.assert_used_up();
            let read = |result: &Result<W::Output, Error>| match result {
                Ok(output) => Ok(serde_json::to_string(output).ok()),
                Err(error) => Err(error.clone()),
            };
            assert_eq!(
                read(&replayed),
                read(&result),
                "workflow `{}` ended otherwise on replay",
                W::NAME
            );
        }
        Outcome {
            result,
            attempts: report.attempts,
            published: report.published,
            replies: report.replies,
            withdrawn: report.withdrawn,
            elapsed: report.elapsed,
        }
    }

    fn stimulus(mut self, span: impl IntoSpan, stimulus: Stimulus) -> Self {
        let span = span.into_span().unwrap_or_else(|error| panic!("{error}"));
        self.script.add(whole_ms(span), stimulus);
        self
    }
}

impl SentRequest<'_> {
    /// The body, read as JSON.
    ///
    /// # Panics
    /// If it is no such JSON.
    pub fn json<T: DeserializeOwned>(&self) -> T {
        serde_json::from_slice(self.body).unwrap_or_else(|error| {
            panic!(
                "{} {}: the body is not what the test expects: {error}",
                self.method, self.url
            )
        })
    }
}

fn drive<W: Workflow>(operations: Rc<Operations>, input: W::Input) -> Result<W::Output, Error> {
    executor::drive(
        &operations,
        W::run(
            Ctx {
                operations: Rc::clone(&operations),
            },
            input,
        ),
    )
}

pub(crate) type Serve = Rc<dyn Fn(SentRequest<'_>) -> Response>;

thread_local! {
    /// A step body sends its requests without a handle on its run, as in a component, so the run
    /// that is being tested on this thread is found here.
    static SERVER: RefCell<Option<Serve>> = const { RefCell::new(None) };
}

/// Puts the script's server in place, and the earlier one back at the end of the run.
struct Server(Option<Serve>);

impl Server {
    fn install(serve: Option<Serve>) -> Self {
        Self(SERVER.replace(serve))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        SERVER.set(self.0.take());
    }
}

/// What `send` does natively.
pub(crate) fn answer_request(request: &Request) -> Result<Response, Failure> {
    let Some(serve) = SERVER.with_borrow(Clone::clone) else {
        panic!(
            "{}: natively there is no HTTP; let the test answer with `TestRun::new().http(…)`, or build the component",
            request.name()
        )
    };
    let sent = SentRequest {
        method: request.method,
        url: &request.url,
        headers: &request.headers,
        body: &request.body,
    };
    Ok(serve(sent).answering(request.name()))
}
