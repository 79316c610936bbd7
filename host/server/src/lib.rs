//! The HTTP edge: JSON under `/v1/`, in front of an engine.
//!
//! It owns routes, the shape of requests and responses, limits on both, and the map from domain
//! errors to statuses. It decides nothing about workflows, runs no SQL and names no wasmtime.
//!
//! ```text
//! listen ──► routes ──► extract, body ──► handler ──► engine (writes), store (reads)
//!                                            │
//!                          error, wire ◄─────┘
//! ```

pub mod wire;

mod body;
mod error;
mod extract;
mod linger;
mod listen;
mod patience;
mod routes;
mod server;

pub use listen::serve;
pub use server::Server;
