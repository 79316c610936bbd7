//! The attribute macros of `stepwell-sdk`, which documents and re-exports them.
//!
//! Each turns one function into a type that the component's manifest and dispatch are built from.
//! Nothing is registered behind the author's back: `component!` names what a component offers.

use proc_macro::TokenStream;

mod arguments;
mod function;
mod task;
mod workflow;

/// Makes a workflow of an async function.
///
/// The function takes the [`Ctx`] and, unless it needs none, one input; it returns
/// `Result<T, stepwell_sdk::Error>`. The input is anything that is `Deserialize` and `JsonSchema`,
/// the result anything that is `Serialize` and `JsonSchema`; their schemas are shown by the host,
/// and an input that does not fit is refused at the start. The first paragraph of the documentation
/// is the workflow's summary.
///
/// The name is the function's, or what `name = "…"` says. `events(…)` lists the [`Event`]
/// constants that it waits for, so that the host can check what is sent.
///
/// The function can be called as before. Beside it there is now a type of the same name, for
/// `component!` and for tests.
///
/// [`Ctx`]: https://docs.rs/stepwell-sdk
/// [`Event`]: https://docs.rs/stepwell-sdk
#[proc_macro_attribute]
pub fn workflow(arguments: TokenStream, item: TokenStream) -> TokenStream {
    workflow::expand(arguments.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Makes a task of a function: one that the host runs in an instance of its own, in parallel to
/// the workflow that calls it, with retries.
///
/// The function takes one input, or none, and before it a `TaskContext` if it wants to know its
/// attempt; it returns `Result<T, stepwell_sdk::Failure>`. Input and result are anything that is
/// `Serialize` and `Deserialize`. The name is the function's, or what `name = "…"` says.
///
/// The function becomes a value that stands for the task: `ctx.call_task(resize, input)` runs it in
/// its own instance, and `resize(input)` still calls it here and now, in a test for example.
#[proc_macro_attribute]
pub fn task(arguments: TokenStream, item: TokenStream) -> TokenStream {
    task::expand(arguments.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
