//! How wasmtime is set up: determinism, preemption, and pools of everything an instance needs.

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig,
    WasmBacktraceDetails,
};

/// Stack of a guest, in bytes.
pub(crate) const STACK_BYTES_MAX: usize = 512 * 1024;

/// Stack of a guest together with the host functions it calls, in bytes. Only address space: what
/// is never touched costs no memory.
const FIBER_STACK_BYTES: usize = STACK_BYTES_MAX + 512 * 1024;

/// Core modules of one component. A Rust component has three or four: the program, and the shims
/// that tie it to its imports.
pub(crate) const CORE_INSTANCES_MAX: u32 = 16;

/// Linear memories of one component.
pub(crate) const MEMORIES_MAX: u32 = 2;

/// Tables of one component.
pub(crate) const TABLES_MAX: u32 = 8;

/// The largest linear memory a slot of the pool can hold, in bytes. The versions' own limits are
/// below it.
pub(crate) const MEMORY_SLOT_BYTES: usize = 4 << 30;

/// Frames that are recorded of a stack; recursion is folded before they are shown.
const BACKTRACE_FRAMES_MAX: usize = 256;

/// Sets wasmtime up for so many component instances.
///
/// # Errors
/// When wasmtime refuses, for example because the kernel has no address space left for the pools.
pub(crate) fn new(instances_max: u32, table_elements_max: usize) -> wasmtime::Result<Engine> {
    let mut config = Config::new();

    // The same on every machine and in every replay. Threads and shared memory are not compiled
    // into our wasmtime at all.
    config.cranelift_nan_canonicalization(true);
    config.relaxed_simd_deterministic(true);

    config.epoch_interruption(true);
    config.max_wasm_stack(STACK_BYTES_MAX);
    config.async_stack_size(FIBER_STACK_BYTES);
    config.cranelift_opt_level(OptLevel::Speed);

    // Wasmtime would look up lines anew for every frame of every guest that is unwound, also of
    // one that is merely dropped: milliseconds each. `symbols` does it once, for traps only.
    config.wasm_backtrace_details(WasmBacktraceDetails::Disable);
    config.wasm_backtrace_max_frames(std::num::NonZeroUsize::new(BACKTRACE_FRAMES_MAX));

    // A compile takes one core and no more, so that registering a large component slows the guests
    // of others down by a bounded share. How many run at once is bounded by whoever compiles.
    config.parallel_compilation(false);

    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pools(
        instances_max,
        table_elements_max,
    )));
    Engine::new(&config)
}

fn pools(instances_max: u32, table_elements_max: usize) -> PoolingAllocationConfig {
    let mut pools = PoolingAllocationConfig::new();
    pools.total_component_instances(instances_max);
    pools.total_stacks(instances_max);
    // For the most that every component may have, so that instances are the one thing that runs
    // out. Slots cost address space, and kernel mappings only once they are used.
    pools.total_core_instances(instances_max.saturating_mul(CORE_INSTANCES_MAX));
    pools.total_memories(instances_max.saturating_mul(MEMORIES_MAX));
    pools.total_tables(instances_max.saturating_mul(TABLES_MAX));
    pools.max_core_instances_per_component(CORE_INSTANCES_MAX);
    pools.max_memories_per_component(MEMORIES_MAX);
    pools.max_tables_per_component(TABLES_MAX);
    pools.max_memories_per_module(1);
    pools.max_tables_per_module(4);
    pools.table_elements(table_elements_max);
    pools.max_memory_size(MEMORY_SLOT_BYTES);
    // A slot that is given back is cleaned by writing over what was dirtied, up to this much, and
    // not by giving pages back to the kernel and faulting them in again: a start costs half as
    // much. What this keeps is bounded by the instances that were alive at once.
    pools.linear_memory_keep_resident(64 * 1024);
    pools.table_keep_resident(16 * 1024);
    pools.pagemap_scan(Enabled::Auto);
    pools
}
