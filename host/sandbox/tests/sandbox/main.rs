//! The sandbox against real guests: what they may learn, reach and use, and how they end.

#![allow(clippy::unwrap_used, reason = "a failed test")]

mod cache;
mod compiler;
mod ends;
mod http;
mod limits;
mod protocol;
mod registration;
mod scripted;
mod small;
mod support;
mod world;
