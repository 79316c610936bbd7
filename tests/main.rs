//! Tests across crates: one binary, one module per subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bench;
mod cli;
mod crash;
mod docs;
mod http_api;
mod in_process;
mod lifecycle;
mod simulation;
