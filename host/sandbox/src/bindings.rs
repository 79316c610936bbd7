//! The contract with guests as Rust types: the one `bindgen!` call over `wit/`. Nothing else.
//!
//! Only the calls that may suspend the guest are async; the others cost no future.

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "workflow",
    imports: {
        "stepwell:workflow/durable.step": async | trappable,
        "stepwell:workflow/durable.retry-step": async | trappable,
        "stepwell:workflow/durable.select": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    require_store_data_send: true,
});
