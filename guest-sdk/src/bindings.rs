//! The contract of `wit/`, as Rust. The one `generate!` call of the SDK; it generates types and
//! calls for every target, and the calls work in a component only.
#![allow(
    unsafe_code,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    clippy::allow_attributes_without_reason,
    clippy::cast_possible_truncation,
    clippy::semicolon_if_nothing_returned,
    reason = "generated from wit/, which has the documentation"
)]

wit_bindgen::generate!({
    path: "../wit",
    world: "workflow",
    additional_derives: [PartialEq],
    pub_export_macro: true,
    default_bindings_module: "::stepwell_sdk::__private::bindings",
});
