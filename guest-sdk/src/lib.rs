//! What workflow authors import: durable workflows as ordinary async functions.
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use stepwell_sdk::{Ctx, Error, component, http, workflow};
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct Order { item: String, cents: u64 }
//!
//! /// Charges an order and, a day later, asks how it was.
//! #[workflow]
//! async fn order(ctx: Ctx, order: Order) -> Result<String, Error> {
//!     let receipt: String = ctx
//!         .step("charge", || http::post("https://pay.example/charges").json(&order).send()?.error_for_status()?.json())
//!         .await?;
//!     ctx.sleep("a day", "1 day").await?;
//!     ctx.step("ask", || Ok(http::post("https://mail.example/ask").json(&order).send()?.status)).await?;
//!     Ok(receipt)
//! }
//!
//! component! { workflows: [order] }
//! ```
//!
//! # What the sandbox enforces
//!
//! A run is replayed from its journal after a crash, an eviction or a wake-up, so a workflow has to
//! ask for the same operations again. That is not left to discipline:
//!
//! - **Everywhere**: [`std::time::SystemTime`], [`std::time::Instant`], random numbers, `HashMap`s,
//!   `println!`. Outside a step the clock stands still between operations, random numbers come from
//!   a stream of the run, and hash orders are fixed: a replay sees the same. Output is written once.
//! - **Only inside a step or a task**: [`http`] and blocking, such as [`std::thread::sleep`].
//!   Anywhere else they end the run with a message that says so.
//! - **Nowhere**: files, sockets, threads, processes. Environment variables are the version's
//!   configuration, pinned when it was registered.
//!
//! # At once
//!
//! The futures of operations are combined with [`join!`], [`try_join!`], [`select!`] and what is in
//! [`futures`]. All of these poll in the order written, so a replay takes the same path. A workflow
//! may await operations and what is built of them, and nothing else: another future could never
//! wake it, and the executor says so.
//!
//! # Testing
//!
//! [`testing::TestRun`] runs a workflow natively on a scripted host with a virtual clock.
//! The crate compiles for every target, but only a component has a host: operations that are
//! awaited elsewhere come from a `TestRun`.

// The macros name the crate from outside, also in its own tests.
extern crate self as stepwell_sdk;

#[doc(hidden)]
pub mod bindings;
mod component;
mod context;
mod error;
mod event;
mod executor;
mod failure;
mod host;
pub mod http;
mod log;
mod operations;
mod payload;
mod retry;
mod sleep;
mod span;
mod step;
mod task;
// Part of the interface of native builds only: a component has a real host.
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod timestamp;

pub use component::{DeclaredEvent, Workflow};
pub use context::{Ctx, RunInfo};
pub use error::{AttemptEnd, Error, NextInput, StepError};
pub use event::{Event, Message, TimedWait, Wait};
pub use failure::Failure;
pub use payload::Binary;
pub use retry::Retry;
pub use sleep::{Sleep, Wake};
pub use span::{IntoSpan, SpanError};
pub use step::{Attempt, Step};
pub use stepwell_sdk_macros::{task, workflow};
pub use task::{Task, TaskCall, TaskContext};
pub use timestamp::Timestamp;

/// Waits for several futures, and returns all their outputs: `join!` of the futures crate.
///
/// ```
/// # use stepwell_sdk::{Ctx, Error, join, workflow};
/// # /// Waits.
/// # #[workflow]
/// # async fn wait(ctx: Ctx) -> Result<(), Error> {
/// let (long, short) = join!(ctx.sleep("long", "2 days"), ctx.sleep("short", "1 day"));
/// # long.and(short).map(|_| ())
/// # }
/// ```
pub use futures_util::join;

/// Waits for several futures, and returns all their values or the first error, withdrawing the
/// rest: `try_join!` of the futures crate.
///
/// ```
/// # use stepwell_sdk::{Ctx, Error, try_join, workflow};
/// # /// Does two things at once.
/// # #[workflow]
/// # async fn both(ctx: Ctx) -> Result<u32, Error> {
/// let one = ctx.step("one", || Ok(1));
/// let two = async {
///     ctx.sleep("first", "1 minute").await?;
///     ctx.step("two", || Ok(2)).await
/// };
/// let (one, two) = try_join!(one, two)?;
/// # Ok(one + two)
/// # }
/// ```
pub use futures_util::try_join;

/// Waits for whichever future is answered first, and withdraws the others: `select_biased!` of the
/// futures crate.
///
/// The arms are polled in the order written. (The `select!` of the futures crate polls in a random
/// order, to be fair; here the journal says which operation was answered first, and the order
/// written matters only for steps that are ready at once.)
///
/// ```
/// use stepwell_sdk::{Ctx, Error, Event, select, workflow};
///
/// const ANSWER: Event<String> = Event::new("answer");
///
/// /// Asks, and goes on without an answer after a week.
/// #[workflow(events(ANSWER))]
/// async fn ask(ctx: Ctx) -> Result<String, Error> {
///     select! {
///         answer = ctx.wait_for_event(&ANSWER) => Ok(answer?.payload),
///         slept = ctx.sleep("patience", "1 week") => slept.map(|_| "no answer".to_owned()),
///     }
/// }
/// ```
///
/// An arm takes an operation as it is, or the name of a variable that holds one and is to be kept
/// for the next round. A future of an `async` block is fused and pinned first, as everywhere:
/// `let mut future = std::pin::pin!(future.fuse())`, with `FutureExt` of [`futures`].
pub use futures_util::select_biased as select;

/// Many futures at once, from the futures crate: all of these poll in a fixed order.
///
/// ```
/// use stepwell_sdk::futures::{FuturesUnordered, StreamExt};
/// use stepwell_sdk::{Ctx, Error, Failure, task, workflow};
///
/// /// Squares a number.
/// #[task]
/// fn square(number: u64) -> Result<u64, Failure> {
///     Ok(number * number)
/// }
///
/// /// Sums up squares as they come in.
/// #[workflow]
/// async fn sum(ctx: Ctx, count: u64) -> Result<u64, Error> {
///     let mut squares: FuturesUnordered<_> = (0..count).map(|number| ctx.call_task(square, number)).collect();
///     let mut sum = 0;
///     while let Some(squared) = squares.next().await {
///         sum += squared?;
///     }
///     Ok(sum)
/// }
/// ```
pub mod futures {
    pub use futures_util::future::{FutureExt, join_all, try_join_all};
    pub use futures_util::stream::{FuturesOrdered, FuturesUnordered, StreamExt, TryStreamExt};
}

/// The README's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;

/// What the macros expand to. Not part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::bindings::exports::stepwell::workflow::guest::{
        Completion, TaskSpec, WorkflowSpec,
    };
    pub use crate::bindings::stepwell::workflow::types::{Failure as WireFailure, Payload};
    pub use crate::bindings::{self, export};
    pub use crate::component::{
        Component, are_distinct, describe_task, describe_workflow, run_task, run_workflow,
    };
    pub use crate::log::{Level, write as write_log};
    use crate::{Error, Failure};

    /// What a workflow returns.
    #[diagnostic::on_unimplemented(
        message = "a workflow returns `Result<T, stepwell_sdk::Error>`, not `{Self}`",
        label = "not what a workflow returns"
    )]
    pub trait WorkflowResult {
        type Output;
    }

    impl<T> WorkflowResult for Result<T, Error> {
        type Output = T;
    }

    /// What a task returns.
    #[diagnostic::on_unimplemented(
        message = "a task returns `Result<T, stepwell_sdk::Failure>`, not `{Self}`",
        label = "not what a task returns"
    )]
    pub trait TaskResult {
        type Output;
    }

    impl<T> TaskResult for Result<T, Failure> {
        type Output = T;
    }
}
