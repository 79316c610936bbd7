//! What workflow authors import.
//! A workflow is an async function; what it awaits is recorded by the host.
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
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod timestamp;

pub use component::{DeclaredEvent, Workflow};
pub use context::{Ctx, RunInfo};
pub use error::{AttemptEnd, Error, NextInput, StepError};
pub use event::{Event, Message, TimedWait, Wait};
pub use failure::Failure;
pub use futures_util::{join, try_join};
pub use payload::Binary;
pub use retry::Retry;
pub use sleep::{Sleep, Wake};
pub use span::{IntoSpan, SpanError};
pub use step::{Attempt, Step};
pub use stepwell_sdk_macros::{task, workflow};
pub use task::{Task, TaskCall, TaskContext};
pub use timestamp::Timestamp;

/// The futures crate's `select_biased!`
pub use futures_util::select_biased as select;

/// Many futures at once, from the futures crate: all of these poll in a fixed order.
pub mod futures {
    pub use futures_util::future::{join_all, try_join_all};
    pub use futures_util::stream::{FuturesOrdered, FuturesUnordered, StreamExt, TryStreamExt};
}

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
