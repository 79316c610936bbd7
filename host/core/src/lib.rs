//! The rules of Stepwell: pure, synchronous and deterministic.
//!
//! Core takes facts (the time, journal entries, what a guest asked for, a random draw) and returns
//! decisions for the engine to carry out. It never does IO, reads a clock, draws a random number or
//! awaits anything; its `Cargo.toml` and `clippy.toml` hold it to that.

#![warn(clippy::wildcard_enum_match_arm)]

pub mod id;
pub mod journal;
pub mod limits;
pub mod payload;
pub mod replay;
pub mod retry;
pub mod run;
pub mod time;
