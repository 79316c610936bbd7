//! What an instance may grow to.
//!
//! A growth beyond a limit traps, rather than answering -1 as WebAssembly has it: what a guest
//! makes of -1 is an abort without a word, and its run would fail for no reason that anybody could
//! read.

use wasmtime::ResourceLimiter;

use crate::engine;
use crate::guest::TrapKind;
use crate::trap::Halt;

/// Follows the growth of one instance.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory_bytes_max: usize,
    table_elements_max: usize,
    /// In all linear memories together.
    memory_bytes: usize,
}

impl Limiter {
    /// `memory_bytes_max` counts all linear memories together, `table_elements_max` one table.
    pub(crate) fn new(memory_bytes_max: u64, table_elements_max: u64) -> Self {
        Self {
            memory_bytes_max: usize::try_from(memory_bytes_max)
                .unwrap_or(usize::MAX)
                .min(engine::MEMORY_SLOT_BYTES),
            table_elements_max: usize::try_from(table_elements_max).unwrap_or(usize::MAX),
            memory_bytes: 0,
        }
    }

    /// A growth within the limits failed: the kernel refused, or the guest asked for more than its
    /// kind of memory can address, which is looked at before its limit is.
    fn grow_failed(&self, what: &str, error: &wasmtime::Error) -> Halt {
        if error.is::<std::io::Error>() {
            return Halt::Fault(format!(
                "the kernel gave no memory for a guest's {what}: {error:#}"
            ));
        }
        Halt::Trapped {
            kind: TrapKind::MemoryLimit,
            message: format!(
                "the guest's {what} cannot grow so far ({error:#}); its limits are {} bytes of memory and {} elements of a table",
                self.memory_bytes_max, self.table_elements_max
            ),
        }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            // The module's own bound: it asked for this answer.
            return Ok(false);
        }
        let all = self
            .memory_bytes
            .saturating_add(desired.saturating_sub(current));
        if all > self.memory_bytes_max {
            return Err(Halt::trapped(
                TrapKind::MemoryLimit,
                format!(
                    "the guest needs {all} bytes of memory, and its limit is {} bytes; use less, or raise the memory limit of this version",
                    self.memory_bytes_max
                ),
            ));
        }
        self.memory_bytes = all;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(self.grow_failed("memory", &error).into())
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > self.table_elements_max {
            return Err(Halt::trapped(
                TrapKind::MemoryLimit,
                format!(
                    "the guest needs a table of {desired} elements, and its limit is {} elements",
                    self.table_elements_max
                ),
            ));
        }
        Ok(maximum.is_none_or(|maximum| desired <= maximum))
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(self.grow_failed("table", &error).into())
    }
}
