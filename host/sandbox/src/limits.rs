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
    /// The part of it that they began with.
    initial_bytes: usize,
}

/// What an instance of a small guest costs while it waits: 57 to 63 KiB of its own memory were
/// measured (ARCHITECTURE.md, "What costs what").
const INSTANCE_BYTES: usize = 64 * 1024;
/// Of the memory that a guest begins with, so much is taken for a stack that it never touches: 1 MiB
/// is what toolchains reserve, and the kernel gives no page before it is written to.
const UNTOUCHED_BYTES: usize = 2 * 1024 * 1024;

impl Limiter {
    /// `memory_bytes_max` counts all linear memories together, `table_elements_max` one table.
    pub(crate) fn new(memory_bytes_max: u64, table_elements_max: u64) -> Self {
        Self {
            memory_bytes_max: usize::try_from(memory_bytes_max)
                .unwrap_or(usize::MAX)
                .min(engine::MEMORY_SLOT_BYTES),
            table_elements_max: usize::try_from(table_elements_max).unwrap_or(usize::MAX),
            memory_bytes: 0,
            initial_bytes: 0,
        }
    }

    /// About what the instance costs in memory: what it has grown by is counted whole, and so is
    /// what it began with beyond an ordinary stack. An estimate, for only the kernel knows which
    /// pages were written to, and asking it at every wait costs more than the wait.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let grown = self.memory_bytes - self.initial_bytes;
        let initial = self.initial_bytes.saturating_sub(UNTOUCHED_BYTES);
        (INSTANCE_BYTES + grown + initial) as u64
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
        if current == 0 {
            self.initial_bytes += desired;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn growth_counts_whole_and_a_stack_that_is_never_touched_does_not() {
        let mut limiter = Limiter::new(64 * MIB as u64, 100);
        let mut grow = |from, to| {
            assert!(limiter.memory_growing(from, to, None).unwrap());
            limiter.resident_bytes()
        };
        let instance = INSTANCE_BYTES as u64;
        assert_eq!(grow(0, MIB), instance);
        assert_eq!(grow(MIB, 3 * MIB), instance + 2 * MIB as u64);
        // A second memory that begins large.
        assert_eq!(
            grow(0, 10 * MIB),
            instance + 2 * MIB as u64 + 9 * MIB as u64
        );
    }
}
