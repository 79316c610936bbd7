//! The contract, generated.

#![allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    unsafe_code,
    clippy::all,
    reason = "generated"
)]

wit_bindgen::generate!({
    path: "../../../wit",
    world: "workflow",
});

use crate::Raw;

export!(Raw with_types_in self);
