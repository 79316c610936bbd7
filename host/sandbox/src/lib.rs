//! Runs guests: the only crate that names wasmtime. It knows nothing of SQL, leases or journals.
//!
//! ```text
//! check ──► component ──► instance ──► host/* (the imports, in two worlds)
//!   │           │             └── meter, limits, console (what a guest may use)
//!   └── compiler, cache (code)                   └── trap, backtrace (how it ended)
//! ```

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")
)]

mod backtrace;
mod bindings;
mod cache;
mod check;
mod code;
mod compiler;
mod component;
mod console;
mod engine;
pub mod guest;
mod host;
mod imports;
mod instance;
mod limits;
mod meter;
mod sandbox;
pub mod scripted;
mod symbols;
mod ticker;
mod trap;

pub use cache::Error as CacheError;
pub use check::{Checked, Error as CheckError, Rejected};
pub use compiler::{Worker, compile_worker};
pub use sandbox::{Config, Error, Sandbox};
