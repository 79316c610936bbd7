//! Registration: everything that must be right about a component before it may run.
//!
//! Checks go from cheap to dear, so that most of what is wrong is found before anything is
//! compiled. A [`Rejected`] is the component's fault and can be shown to whoever uploaded it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use stepwell_core::id::{ComponentDigest, WorkflowName};
use stepwell_core::limits::Limits;

use crate::bindings::exports::stepwell::workflow::guest as exports;
use crate::component::Compiled;
use crate::guest::{Component, Exit, Manifest, TaskSpec, Trap, TrapKind, WorkflowSpec};
use crate::imports::{CONTRACT_VERSION, GUEST};
use crate::sandbox;

/// `describe` does next to nothing; what takes longer does something else.
const DESCRIBE_CPU_MAX: Duration = Duration::from_secs(2);

/// A component that may be registered.
#[derive(Debug)]
pub struct Checked {
    /// The SHA-256 of its bytes.
    pub digest: ComponentDigest,
    /// What it says it offers.
    pub manifest: Manifest,
    /// Ready to run.
    pub component: Arc<dyn Component>,
}

/// A component was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Because of what it is.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// Because of the host, which says nothing about the component; it may be tried again.
    #[error(transparent)]
    Host(#[from] sandbox::Error),
}

/// What is wrong with a component.
#[derive(Debug, thiserror::Error)]
pub enum Rejected {
    /// More bytes than may be uploaded.
    #[error(
        "the component has {size} bytes, and the limit is {limit} bytes; build it with optimisation, \
         and strip what is not needed"
    )]
    TooLarge {
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Something else.
    #[error(
        "these bytes are not WebAssembly: a component begins with `\\0asm`; upload the .wasm file itself"
    )]
    NotWebAssembly,
    /// A module, not a component.
    #[error(
        "this is a core WebAssembly module, not a component; build with --target wasm32-wasip2, \
         or make a component of it with `wasm-tools component new`"
    )]
    CoreModule,
    /// Not valid.
    #[error("the component is not valid: {0}")]
    Invalid(String),
    /// Wants what no component is given.
    #[error("the component imports `{import}`, which is not available: {reason}")]
    ForbiddenImport {
        /// The import.
        import: String,
        /// Why it is not available, and what to do.
        reason: &'static str,
    },
    /// Speaks another version of the contract.
    #[error(
        "the component was built against `{found}`, and this host offers version {CONTRACT_VERSION}; \
         build it with an SDK for that version"
    )]
    ContractVersion {
        /// The interface as the component names it.
        found: String,
    },
    /// Has nothing to call.
    #[error(
        "the component does not export `{GUEST}`{}; mark a function as a workflow with the SDK, \
         and build a library (crate-type cdylib)",
        listed(found)
    )]
    MissingExport {
        /// What it exports instead.
        found: Vec<String>,
    },
    /// Functions with other signatures than ours.
    #[error(
        "the component does not fit this host: {0}; build it against the contract of version {CONTRACT_VERSION}"
    )]
    Unlinkable(String),
    /// The compiler took too long over it, or too much.
    #[error(
        "the component is too complex: its compile was ended after {limit}; split large functions, or link fewer of them"
    )]
    TooComplex {
        /// What it met.
        limit: String,
    },
    /// The compiler gave up on it.
    #[error(
        "the compiler failed on this component; build it with another optimisation level, and report it"
    )]
    CompilerFailed,
    /// Did not survive being asked what it offers.
    #[error("`describe` of the component failed ({}): {}{}", .0.kind.as_str(), .0.message, indented(&.0.backtrace))]
    DescribeTrapped(Trap),
    /// Offers too much.
    #[error(
        "what the component says about itself has {size} bytes, and the limit is {limit} bytes; shorten its schemas"
    )]
    ManifestTooLarge {
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Offers nothing.
    #[error("the component offers no workflow; mark a function as a workflow with the SDK")]
    NoWorkflow,
    /// Offers something under a name that cannot be used.
    #[error("the component offers a {what} under a name that cannot be used: {problem}")]
    BadName {
        /// A workflow, a task or an event.
        what: &'static str,
        /// What is wrong with the name.
        problem: String,
    },
    /// Offers two things under one name.
    #[error("the component offers two {what}s under the name `{name}`; rename one")]
    DuplicateName {
        /// A workflow, a task or an event.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A schema that cannot be one.
    #[error("the schema of {of} is not a JSON Schema: {problem}")]
    BadSchema {
        /// What the schema is for.
        of: String,
        /// What is wrong with it.
        problem: String,
    },
}

fn listed(exports: &[String]) -> String {
    match exports {
        [] => " (it exports nothing)".to_owned(),
        some => format!(
            " (it exports {})",
            some.iter().take(5).cloned().collect::<Vec<_>>().join(", ")
        ),
    }
}

fn indented(backtrace: &str) -> String {
    backtrace
        .lines()
        .map(|line| format!("\n    {line}"))
        .collect()
}

/// Asks a compiled component what it offers, and checks it.
pub(crate) async fn describe(component: &Compiled, limits: &Limits) -> Result<Manifest, Error> {
    let describe_limits = Limits {
        cpu_max: limits.cpu_max.min(DESCRIBE_CPU_MAX),
        ..limits.clone()
    };
    let manifest = match component.describe(describe_limits).await {
        Exit::Returned(manifest) => manifest,
        Exit::Trapped(trap) => return Err(Rejected::DescribeTrapped(trap).into()),
        Exit::Stopped => {
            let message = "it was stopped".to_owned();
            let trap = Trap {
                kind: TrapKind::Other,
                message,
                backtrace: String::new(),
            };
            return Err(Rejected::DescribeTrapped(trap).into());
        }
        Exit::Fault(reason) => return Err(sandbox::Error::Busy(reason).into()),
    };
    let manifest = convert(manifest);
    check_manifest(&manifest, limits)?;
    Ok(manifest)
}

fn convert(manifest: exports::Manifest) -> Manifest {
    let workflows = manifest.workflows.into_iter().map(|workflow| WorkflowSpec {
        name: workflow.name,
        summary: workflow.summary,
        input_schema: workflow.input_schema,
        output_schema: workflow.output_schema,
        events: workflow
            .events
            .into_iter()
            .map(|event| (event.name, event.schema))
            .collect(),
    });
    let tasks = manifest.tasks.into_iter().map(|task| TaskSpec {
        name: task.name,
        summary: task.summary,
    });
    Manifest {
        sdk: manifest.sdk,
        workflows: workflows.collect(),
        tasks: tasks.collect(),
    }
}

fn check_manifest(manifest: &Manifest, limits: &Limits) -> Result<(), Rejected> {
    let size = size_bytes(manifest);
    if size > limits.manifest_bytes_max {
        return Err(Rejected::ManifestTooLarge {
            size,
            limit: limits.manifest_bytes_max,
        });
    }
    if manifest.workflows.is_empty() {
        return Err(Rejected::NoWorkflow);
    }
    check_names(
        "workflow",
        manifest
            .workflows
            .iter()
            .map(|workflow| workflow.name.as_str()),
    )?;
    check_names("task", manifest.tasks.iter().map(|task| task.name.as_str()))?;
    for workflow in &manifest.workflows {
        let name = &workflow.name;
        check_events(workflow, limits)?;
        check_schema(
            || format!("the input of workflow `{name}`"),
            workflow.input_schema.as_deref(),
        )?;
        check_schema(
            || format!("the output of workflow `{name}`"),
            workflow.output_schema.as_deref(),
        )?;
        for (event, schema) in &workflow.events {
            check_schema(
                || format!("event `{event}` of workflow `{name}`"),
                schema.as_deref(),
            )?;
        }
    }
    Ok(())
}

fn check_names<'a>(
    what: &'static str,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), Rejected> {
    let mut seen = BTreeSet::new();
    for name in names {
        if let Err(error) = name.parse::<WorkflowName>() {
            return Err(Rejected::BadName {
                what,
                problem: error.to_string(),
            });
        }
        if !seen.insert(name) {
            return Err(Rejected::DuplicateName {
                what,
                name: name.to_owned(),
            });
        }
    }
    Ok(())
}

/// The names of events are free text: they come from other systems.
fn check_events(workflow: &WorkflowSpec, limits: &Limits) -> Result<(), Rejected> {
    let mut seen = BTreeSet::new();
    for (name, _) in &workflow.events {
        let what = "event";
        if name.is_empty() || name.len() > limits.name_bytes_max {
            let problem = format!(
                "it has {} bytes, and must have 1 to {}",
                name.len(),
                limits.name_bytes_max
            );
            return Err(Rejected::BadName { what, problem });
        }
        if !seen.insert(name) {
            return Err(Rejected::DuplicateName {
                what,
                name: name.clone(),
            });
        }
    }
    Ok(())
}

fn check_schema(of: impl Fn() -> String, schema: Option<&str>) -> Result<(), Rejected> {
    let Some(schema) = schema else { return Ok(()) };
    match serde_json::from_str::<serde_json::Value>(schema) {
        Ok(serde_json::Value::Object(_) | serde_json::Value::Bool(_)) => Ok(()),
        Ok(_) => Err(Rejected::BadSchema {
            of: of(),
            problem: "it is neither an object nor a boolean".to_owned(),
        }),
        Err(error) => Err(Rejected::BadSchema {
            of: of(),
            problem: error.to_string(),
        }),
    }
}

fn size_bytes(manifest: &Manifest) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let workflows = manifest.workflows.iter().map(|workflow| {
        let events = workflow
            .events
            .iter()
            .map(|(name, schema)| name.len() + optional(schema));
        workflow.name.len()
            + workflow.summary.len()
            + optional(&workflow.input_schema)
            + optional(&workflow.output_schema)
            + events.sum::<usize>()
    });
    let tasks = manifest
        .tasks
        .iter()
        .map(|task| task.name.len() + task.summary.len());
    manifest.sdk.len() + workflows.sum::<usize>() + tasks.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workflow(name: &str) -> WorkflowSpec {
        WorkflowSpec {
            name: name.to_owned(),
            summary: String::new(),
            input_schema: None,
            output_schema: None,
            events: Vec::new(),
        }
    }

    /// One good workflow with a change.
    fn check(change: impl FnOnce(&mut Manifest)) -> String {
        let mut manifest = Manifest {
            workflows: vec![workflow("order")],
            ..Manifest::default()
        };
        change(&mut manifest);
        match check_manifest(&manifest, &Limits::default()) {
            Ok(()) => "accepted".to_owned(),
            Err(rejected) => rejected.to_string(),
        }
    }

    #[test]
    fn names_are_plain_and_unique_of_their_kind() {
        assert_eq!(check(|_| ()), "accepted");
        let task = || TaskSpec {
            name: "order".to_owned(),
            summary: String::new(),
        };
        assert_eq!(check(|manifest| manifest.tasks.push(task())), "accepted");

        let bad = check(|manifest| manifest.workflows.push(workflow("a b")));
        assert!(
            bad.contains("a workflow under a name that cannot be used: `a b` is not"),
            "{bad}"
        );
        let double = check(|manifest| manifest.workflows.push(workflow("order")));
        assert!(
            double.contains("two workflows under the name `order`"),
            "{double}"
        );
        let double = check(|manifest| manifest.tasks.extend([task(), task()]));
        assert!(
            double.contains("two tasks under the name `order`"),
            "{double}"
        );
        let events = |names: &[&str]| {
            names
                .iter()
                .map(|name| ((*name).to_owned(), None))
                .collect()
        };
        let double = check(|manifest| manifest.workflows[0].events = events(&["paid", "paid"]));
        assert!(
            double.contains("two events under the name `paid`"),
            "{double}"
        );
        let empty = check(|manifest| manifest.workflows[0].events = events(&[""]));
        assert!(empty.contains("it has 0 bytes"), "{empty}");
    }

    #[test]
    fn schemas_are_objects_or_booleans() {
        for good in ["{}", "true", r#"{"type": "string"}"#] {
            let schema = Some(good.to_owned());
            assert_eq!(
                check(|manifest| manifest.workflows[0].input_schema = schema),
                "accepted"
            );
        }
        let number = check(|manifest| manifest.workflows[0].output_schema = Some("1".to_owned()));
        assert!(
            number.contains("the output of workflow `order`") && number.contains("neither"),
            "{number}"
        );
        let broken = check(|manifest| {
            manifest.workflows[0].events = vec![("paid".to_owned(), Some("{".to_owned()))];
        });
        assert!(
            broken.contains("event `paid` of workflow `order`") && broken.contains("EOF"),
            "{broken}"
        );
        let deep = "[".repeat(100_000);
        assert!(
            check(|manifest| manifest.workflows[0].input_schema = Some(deep))
                .contains("recursion limit")
        );
    }
}
