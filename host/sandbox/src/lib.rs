//! Runs guests: the only crate that names wasmtime. It knows nothing of SQL, leases or journals.

pub mod guest;
