//! `wasi:io/poll`: waiting for the real world, which only a step may do.
//!
//! Even asking whether something is ready is refused outside a step: the answer would depend on
//! the time. What is always ready (stdout, a time that has passed) may be asked for anywhere.

use wasmtime::component::Resource;
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::io::poll;

use crate::instance::Instance;
use crate::trap::Halt;

/// Pollables in one list: the host has to hold them.
const POLLABLES_MAX: usize = crate::instance::RESOURCES_MAX;

impl Instance {
    /// Whether all of these are ready whenever they are asked.
    fn all_constant(&self, pollables: &[Resource<DynPollable>]) -> bool {
        pollables
            .iter()
            .all(|pollable| self.constant.contains_key(&pollable.rep()))
    }

    fn check_may_wait(&self, pollables: &[Resource<DynPollable>]) -> wasmtime::Result<()> {
        if self.in_step() || self.all_constant(pollables) {
            return Ok(());
        }
        Err(Halt::forbidden(
            "the guest waits for a clock or a stream outside a step, and a replay would not wait the same; \
             use sleep or sleep-until of stepwell:workflow/durable, or do it inside a step",
        ))
    }
}

impl poll::Host for Instance {
    async fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        if pollables.is_empty() {
            return Err(Halt::misuse(
                "`poll` was called with an empty list: nothing would ever be ready",
            ));
        }
        if pollables.len() > POLLABLES_MAX {
            return Err(Halt::misuse(format!(
                "`poll` was called with more than {POLLABLES_MAX} pollables"
            )));
        }
        self.check_may_wait(&pollables)?;
        if self.all_constant(&pollables) && !self.in_step() {
            return Ok((0..).take(pollables.len()).collect());
        }
        poll::Host::poll(&mut self.table, pollables).await
    }
}

impl poll::HostPollable for Instance {
    async fn ready(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<bool> {
        self.check_may_wait(std::slice::from_ref(&pollable))?;
        if self.constant.contains_key(&pollable.rep()) {
            return Ok(true);
        }
        poll::HostPollable::ready(&mut self.table, pollable).await
    }

    async fn block(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        self.check_may_wait(std::slice::from_ref(&pollable))?;
        if self.constant.contains_key(&pollable.rep()) && !self.in_step() {
            return Ok(());
        }
        poll::HostPollable::block(&mut self.table, pollable).await
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        self.constant.remove(&pollable.rep());
        poll::HostPollable::drop(&mut self.table, pollable)
    }
}
