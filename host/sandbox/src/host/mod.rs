//! The functions that guests import, one file per WIT interface (per package, where its interfaces
//! are one idea), implemented on [`Instance`].
//!
//! Everything that tells the time, draws randomness, waits or writes is our own, because it
//! depends on the world the guest is in; what is taken from `wasmtime-wasi` as it is (files, HTTP
//! fields and messages) holds no clock and reaches nothing outside.

mod cli;
mod clocks;
mod durable;
pub(crate) mod http;
mod log;
mod poll;
pub(crate) mod random;
mod streams;
pub(crate) mod types;

use wasmtime::component::{HasSelf, Linker, ResourceTable};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings as wasi;

use crate::bindings::Workflow;
use crate::instance::Instance;

/// Everything a guest may import.
///
/// # Errors
/// None that a guest could cause: two definitions of one name.
pub(crate) fn link(linker: &mut Linker<Instance>) -> wasmtime::Result<()> {
    Workflow::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;

    wasi::clocks::wall_clock::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;
    wasi::clocks::monotonic_clock::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| {
        instance
    })?;
    wasi::random::random::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;
    wasi::random::insecure::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;
    wasi::random::insecure_seed::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| {
        instance
    })?;

    wasi::io::error::add_to_linker::<_, Table>(linker, |instance| &mut instance.table)?;
    wasi::io::poll::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;
    wasi::io::streams::add_to_linker::<_, HasSelf<Instance>>(linker, |instance| instance)?;

    cli::link(linker)?;
    http::link(linker)?;

    wasi::filesystem::types::add_to_linker::<_, WasiFilesystem>(linker, filesystem)?;
    wasi::filesystem::preopens::add_to_linker::<_, WasiFilesystem>(linker, filesystem)?;
    Ok(())
}

/// Gives an interface the resource table and nothing else.
struct Table;

impl wasmtime::component::HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

fn filesystem(instance: &mut Instance) -> WasiFilesystemCtxView<'_> {
    WasiFilesystemCtxView {
        ctx: &mut instance.filesystem,
        table: &mut instance.table,
    }
}
