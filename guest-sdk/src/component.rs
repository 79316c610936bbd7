//! What a component offers to its host: a manifest, and the way from a name to the function that
//! carries it.

use std::rc::Rc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::exports::stepwell::workflow::guest::{
    Completion, EventSpec, Guest, Manifest, TaskSpec, WorkflowSpec,
};
use crate::bindings::stepwell::workflow::types;
use crate::context::Ctx;
use crate::error::Error;
use crate::event::Event;
use crate::executor;
use crate::failure::Failure;
use crate::host::Contract;
use crate::operations::Operations;
use crate::payload;
use crate::task::{Task, TaskContext};

/// What [`#[workflow]`](crate::workflow) makes of a function. Not written by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a workflow",
    note = "put `#[workflow]` on the function, and name it here without calling it"
)]
pub trait Workflow {
    /// What it is given.
    type Input: DeserializeOwned + JsonSchema + 'static;
    /// What it returns.
    type Output: Serialize + JsonSchema + 'static;
    /// Its name, as registered.
    const NAME: &'static str;
    /// The first paragraph of its documentation.
    const SUMMARY: &'static str;

    /// The events that it says it waits for.
    fn events() -> Vec<DeclaredEvent>;

    /// Runs it.
    fn run(ctx: Ctx, input: Self::Input) -> impl Future<Output = Result<Self::Output, Error>>;
}

/// An event that a workflow says it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredEvent(EventSpecification);

#[derive(Debug, Clone, PartialEq, Eq)]
struct EventSpecification {
    name: String,
    schema: Option<String>,
}

impl<T: JsonSchema + 'static> From<&Event<T>> for DeclaredEvent {
    fn from(event: &Event<T>) -> Self {
        Self(EventSpecification {
            name: event.name().to_owned(),
            schema: payload::schema::<T>(),
        })
    }
}

/// What [`component!`](crate::component) makes of its lists.
#[doc(hidden)]
pub trait Component {
    fn workflows() -> Vec<WorkflowSpec>;
    fn tasks() -> Vec<TaskSpec>;
    /// `None` if there is no workflow of this name.
    fn run(workflow: &str, input: &types::Payload) -> Option<Completion>;
    /// `None` if there is no task of this name.
    fn run_task(
        task: &str,
        input: &types::Payload,
        context: TaskContext,
    ) -> Option<Result<types::Payload, types::Failure>>;
}

impl<C: Component> Guest for C {
    fn describe() -> Manifest {
        Manifest {
            sdk: concat!("stepwell-sdk ", env!("CARGO_PKG_VERSION")).to_owned(),
            workflows: C::workflows(),
            tasks: C::tasks(),
        }
    }

    fn run(workflow: String, input: types::Payload) -> Completion {
        <C as Component>::run(&workflow, &input).unwrap_or_else(|| {
            let message = format!("this component has no workflow `{workflow}`");
            Completion::Failed(
                Failure::new("unknown-workflow", message)
                    .permanent()
                    .into_wire(),
            )
        })
    }

    fn run_task(
        task: String,
        input: types::Payload,
        attempt: u32,
        key: String,
    ) -> Result<types::Payload, types::Failure> {
        <C as Component>::run_task(&task, &input, TaskContext { attempt, key }).unwrap_or_else(
            || {
                let message = format!("this component has no task `{task}`");
                Err(Failure::new("unknown-task", message)
                    .permanent()
                    .into_wire())
            },
        )
    }
}

/// A workflow as the manifest shows it.
#[doc(hidden)]
pub fn describe_workflow<W: Workflow>() -> WorkflowSpec {
    WorkflowSpec {
        name: W::NAME.to_owned(),
        summary: W::SUMMARY.to_owned(),
        input_schema: payload::schema::<W::Input>(),
        output_schema: payload::schema::<W::Output>(),
        events: W::events()
            .into_iter()
            .map(|DeclaredEvent(event)| EventSpec {
                name: event.name,
                schema: event.schema,
            })
            .collect(),
    }
}

/// A task as the manifest shows it.
#[doc(hidden)]
pub fn describe_task<T: Task>() -> TaskSpec {
    TaskSpec {
        name: T::NAME.to_owned(),
        summary: T::SUMMARY.to_owned(),
    }
}

/// Runs a workflow in its component.
#[doc(hidden)]
pub fn run_workflow<W: Workflow>(input: &types::Payload) -> Completion {
    run_on::<W>(&Operations::new(Rc::new(Contract)), input)
}

/// Runs a workflow on any host.
pub(crate) fn run_on<W: Workflow>(
    operations: &Rc<Operations>,
    input: &types::Payload,
) -> Completion {
    let input = match payload::decode(input, &format!("the input of workflow `{}`", W::NAME)) {
        Ok(input) => input,
        Err(failure) => return Completion::Failed(failure.into_wire()),
    };
    let ctx = Ctx {
        operations: Rc::clone(operations),
    };
    let ended = executor::drive(operations, W::run(ctx, input)).and_then(|output| {
        Ok(payload::encode(
            &output,
            &format!("the result of workflow `{}`", W::NAME),
        )?)
    });
    match ended {
        Ok(output) => Completion::Done(output),
        Err(error) => error.into_completion(),
    }
}

/// Runs one attempt of a task.
#[doc(hidden)]
pub fn run_task<T: Task>(
    input: &types::Payload,
    context: TaskContext,
) -> Result<types::Payload, types::Failure> {
    payload::decode(input, &format!("the input of task `{}`", T::NAME))
        .and_then(|input| T::run(context, input))
        .and_then(|output| payload::encode(&output, &format!("the result of task `{}`", T::NAME)))
        .map_err(Failure::into_wire)
}

/// Whether no name is in the list twice; evaluated by the compiler.
#[doc(hidden)]
pub const fn are_distinct(names: &[&str]) -> bool {
    const fn are_equal(left: &[u8], right: &[u8]) -> bool {
        if left.len() != right.len() {
            return false;
        }
        let mut at = 0;
        while at < left.len() {
            if left[at] != right[at] {
                return false;
            }
            at += 1;
        }
        true
    }
    let mut left = 0;
    while left < names.len() {
        let mut right = left + 1;
        while right < names.len() {
            if are_equal(names[left].as_bytes(), names[right].as_bytes()) {
                return false;
            }
            right += 1;
        }
        left += 1;
    }
    true
}

/// Says what this component offers; once, at the root of the crate.
///
/// ```
/// use stepwell_sdk::{Ctx, Error, Failure, component, task, workflow};
///
/// /// Greets in capitals.
/// #[workflow]
/// async fn greet(ctx: Ctx, name: String) -> Result<String, Error> {
///     ctx.call_task(shout, format!("hello {name}")).await
/// }
///
/// /// Says it louder.
/// #[task]
/// fn shout(text: String) -> Result<String, Failure> {
///     Ok(text.to_uppercase())
/// }
///
/// component! { workflows: [greet], tasks: [shout] }
/// ```
#[macro_export]
macro_rules! component {
    (workflows: [$($workflow:path),* $(,)?] $(, tasks: [$($task:path),* $(,)?])? $(,)?) => {
        #[allow(unsafe_code, clippy::allow_attributes_without_reason, reason = "the exports are generated")]
        const _: () = {
            ::std::assert!(
                $crate::__private::are_distinct(&[$(<$workflow as $crate::Workflow>::NAME),*]),
                "two workflows of this component have one name; give one another with #[workflow(name = \"…\")]",
            );
            ::std::assert!(
                $crate::__private::are_distinct(&[$($(<$task as $crate::Task>::NAME),*)?]),
                "two tasks of this component have one name; give one another with #[task(name = \"…\")]",
            );

            struct Offered;

            impl $crate::__private::Component for Offered {
                fn workflows() -> ::std::vec::Vec<$crate::__private::WorkflowSpec> {
                    ::std::vec![$($crate::__private::describe_workflow::<$workflow>()),*]
                }

                fn tasks() -> ::std::vec::Vec<$crate::__private::TaskSpec> {
                    ::std::vec![$($($crate::__private::describe_task::<$task>()),*)?]
                }

                fn run(
                    workflow: &str,
                    input: &$crate::__private::Payload,
                ) -> ::std::option::Option<$crate::__private::Completion> {
                    $(if workflow == <$workflow as $crate::Workflow>::NAME {
                        return ::std::option::Option::Some($crate::__private::run_workflow::<$workflow>(input));
                    })*
                    ::std::option::Option::None
                }

                #[allow(unused_variables, reason = "a component may have no task")]
                fn run_task(
                    task: &str,
                    input: &$crate::__private::Payload,
                    context: $crate::TaskContext,
                ) -> ::std::option::Option<
                    ::std::result::Result<$crate::__private::Payload, $crate::__private::WireFailure>,
                > {
                    $($(if task == <$task as $crate::Task>::NAME {
                        return ::std::option::Option::Some($crate::__private::run_task::<$task>(input, context));
                    })*)?
                    ::std::option::Option::None
                }
            }

            // Only a component has exports; a native build of this crate is for its tests.
            #[cfg(target_arch = "wasm32")]
            $crate::__private::export!(Offered with_types_in $crate::__private::bindings);
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_there_twice_is_found() {
        assert!(are_distinct(&[]));
        assert!(are_distinct(&["a", "b", "ab"]));
        assert!(!are_distinct(&["a", "b", "a"]));
    }
}
