//! Sleeping, for seconds or for years.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::FusedFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bindings::stepwell::workflow::durable::{self, Outcome};
use crate::error::Error;
use crate::operations::{Operations, Phase, unexpected};
use crate::span::{SpanError, whole_ms};
use crate::timestamp::Timestamp;

/// A sleep; made by [`Ctx::sleep`](crate::Ctx::sleep) and
/// [`Ctx::sleep_until`](crate::Ctx::sleep_until).
#[must_use = "a sleep begins when it is awaited"]
pub struct Sleep {
    operations: Rc<Operations>,
    name: String,
    end: End,
    phase: Phase,
}

/// Why a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wake {
    /// Its time came.
    Elapsed,
    /// Somebody ended it early.
    Woken,
}

#[derive(Debug)]
enum End {
    After(Result<Duration, SpanError>),
    At(Timestamp),
}

impl Sleep {
    pub(crate) fn span(
        operations: Rc<Operations>,
        name: &str,
        span: Result<Duration, SpanError>,
    ) -> Self {
        Self {
            operations,
            name: name.to_owned(),
            end: End::After(span),
            phase: Phase::Unasked,
        }
    }

    pub(crate) fn until(operations: Rc<Operations>, name: &str, at: Timestamp) -> Self {
        Self {
            operations,
            name: name.to_owned(),
            end: End::At(at),
            phase: Phase::Unasked,
        }
    }
}

impl Future for Sleep {
    type Output = Result<Wake, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            operations,
            name,
            end,
            phase,
        } = &mut *self;
        let polled = phase.poll(operations, cx, |host| match end {
            End::After(Ok(span)) => Ok(host.sleep(name, whole_ms(*span))),
            End::After(Err(error)) => Err(Error::bad_span(error, &format!("sleep `{name}`"))),
            End::At(at) => Ok(host.sleep_until(name, at.as_ms())),
        });
        polled.map_ok(|outcome| match outcome {
            Outcome::Slept(durable::Wake::Elapsed) => Wake::Elapsed,
            Outcome::Slept(durable::Wake::Woken) => Wake::Woken,
            Outcome::Event(_) | Outcome::TimedOut | Outcome::Task(_) => {
                unexpected("a sleep", &outcome)
            }
        })
    }
}

impl FusedFuture for Sleep {
    fn is_terminated(&self) -> bool {
        self.phase.is_done()
    }
}

impl std::fmt::Debug for Sleep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sleep")
            .field("name", &self.name)
            .field("end", &self.end)
            .field("phase", &self.phase)
            .finish()
    }
}
