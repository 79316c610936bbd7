//! `wasi:clocks`: workflow time outside steps, the real time inside.
//!
//! The monotonic clock of the workflow world is workflow time too, in nanoseconds; inside a step
//! it goes on from there, so that an instant taken before the step can be compared.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use crate::instance::{Constant, Instance, World, monotonic_ns};

/// Of both clocks in both worlds, in nanoseconds: workflow time has whole milliseconds, and a step
/// need not know how fine the host's clock is.
const RESOLUTION_NS: u32 = 1_000_000;

impl wall_clock::Host for Instance {
    fn now(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        let now = match self.world {
            World::Workflow => Duration::from_millis(self.workflow_now().as_ms()),
            World::Step { .. } => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default(),
        };
        Ok(wall_clock::Datetime {
            seconds: now.as_secs(),
            nanoseconds: now.subsec_nanos(),
        })
    }

    fn resolution(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        Ok(wall_clock::Datetime {
            seconds: 0,
            nanoseconds: RESOLUTION_NS,
        })
    }
}

impl monotonic_clock::Host for Instance {
    fn now(&mut self) -> wasmtime::Result<monotonic_clock::Instant> {
        Ok(match self.world {
            World::Workflow => monotonic_ns(self.workflow_now()),
            World::Step {
                since,
                monotonic_ns,
                ..
            } => monotonic_ns
                .saturating_add(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)),
        })
    }

    fn resolution(&mut self) -> wasmtime::Result<monotonic_clock::Duration> {
        Ok(u64::from(RESOLUTION_NS))
    }

    fn subscribe_instant(
        &mut self,
        when: monotonic_clock::Instant,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        let now = monotonic_clock::Host::now(self)?;
        self.timer(Duration::from_nanos(when.saturating_sub(now)))
    }

    fn subscribe_duration(
        &mut self,
        span: monotonic_clock::Duration,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        self.timer(Duration::from_nanos(span))
    }
}

impl Instance {
    /// A pollable that is ready after so much real time. It can be made in either world, but
    /// waited for, or looked at, inside a step only; unless it is ready from the start.
    fn timer(&mut self, span: Duration) -> wasmtime::Result<Resource<DynPollable>> {
        // A span that no clock can hold is forever.
        let due = tokio::time::Instant::now().checked_add(span);
        let timer = self.table.push(Timer {
            due: due.filter(|_| !span.is_zero()),
            ready: span.is_zero(),
        })?;
        let pollable = subscribe(&mut self.table, timer)?;
        if span.is_zero() {
            self.constant.insert(pollable.rep(), Constant::Ready);
        }
        Ok(pollable)
    }
}

struct Timer {
    /// `None` if never, or if it was due at once.
    due: Option<tokio::time::Instant>,
    ready: bool,
}

#[async_trait]
impl Pollable for Timer {
    async fn ready(&mut self) {
        match self.due {
            Some(due) => tokio::time::sleep_until(due).await,
            // A guest that polls in a loop without waiting lets others run.
            None if self.ready => tokio::task::yield_now().await,
            None => std::future::pending().await,
        }
    }
}
