//! Lists: runs, versions, and what a registration brought.

use stepwell_core::time::Timestamp;
use stepwell_server::wire::{Registered, RunSummary, Runs, Task, Versions, Workflow};

use super::sketch::sketch;
use super::style::{Paint, Style};
use super::table::{Cell, table};
use super::text::{plain, short};
use super::time::{ago, ahead};

/// Runs, newest first.
pub(crate) fn runs(style: Style, now: Timestamp, runs: &Runs) -> String {
    if runs.runs.is_empty() {
        return "no runs; `stepwell start <workflow>` starts one\n".to_owned();
    }
    let rows: Vec<_> = runs
        .runs
        .iter()
        .map(|run| {
            vec![
                Cell::new(&run.run),
                Cell::painted(Paint::Strong, plain(&run.workflow)),
                Cell::new(plain(&run.version)),
                Cell::status(&run.status),
                Cell::new(ago(now, run.created_at)),
                Cell::painted(Paint::Dim, note(now, run)),
            ]
        })
        .collect();
    let mut drawn = table(
        style,
        &["run", "workflow", "version", "status", "started", ""],
        &rows,
    );
    if runs.before.is_some() {
        drawn.push_str(&style.paint(
            Paint::Dim,
            "there are more; --limit shows up to 200, --workflow and --status narrow it down",
        ));
        drawn.push('\n');
    }
    drawn
}

fn note(now: Timestamp, run: &RunSummary) -> String {
    if let Some(reason) = &run.reason {
        return short(reason, 60);
    }
    match (run.status.as_str(), run.due_at) {
        ("scheduled", Some(due)) => format!("starts {}", ahead(now, due)),
        ("sleeping", Some(due)) => format!("wakes {}", ahead(now, due)),
        ("waiting", Some(due)) => format!("times out {}", ahead(now, due)),
        ("retrying", Some(due)) => format!("tries again {}", ahead(now, due)),
        _ => String::new(),
    }
}

/// Versions, by workflow.
pub(crate) fn versions(style: Style, now: Timestamp, versions: &Versions) -> String {
    if versions.versions.is_empty() {
        return "nothing is registered; `stepwell register <file.wasm> --version <label>` does it\n".to_owned();
    }
    let rows: Vec<_> = versions
        .versions
        .iter()
        .map(|version| {
            let digest = version.digest.get(..19).unwrap_or(&version.digest);
            vec![
                Cell::painted(Paint::Strong, plain(&version.workflow)),
                Cell::new(plain(&version.version)),
                Cell::painted(Paint::Good, if version.is_default { "default" } else { "" }),
                Cell::new(ago(now, version.registered_at)),
                Cell::painted(Paint::Dim, digest),
                Cell::painted(
                    Paint::Dim,
                    version
                        .environment
                        .keys()
                        .cloned()
                        .collect::<Vec<_>>()
                        .join(" "),
                ),
            ]
        })
        .collect();
    table(
        style,
        &[
            "workflow",
            "version",
            "",
            "registered",
            "component",
            "environment",
        ],
        &rows,
    )
}

/// What a registration brought, and what to do with it.
pub(crate) fn registered(style: Style, registered: &Registered) -> String {
    let said = if registered.is_new {
        "registered version"
    } else {
        "nothing to do: this is registered as version"
    };
    let mut drawn = format!(
        "{said} {}\n",
        style.paint(Paint::Strong, &plain(&registered.version))
    );
    drawn.push_str(&offers(style, &registered.workflows, &registered.tasks));
    drawn.push_str(&style.paint(Paint::Dim, &registered.digest));
    drawn.push('\n');
    if let Some(workflow) = registered.workflows.first() {
        drawn.push_str(&format!("\nstart a run:  {}\n", start_command(workflow)));
    }
    drawn
}

/// The command that starts a run, with an input to fill in.
fn start_command(workflow: &Workflow) -> String {
    let name = plain(&workflow.name);
    match workflow
        .input_schema
        .as_ref()
        .and_then(|schema| sketch(schema.get()))
    {
        Some(input) => format!("stepwell start {name} --input '{}' --wait", plain(&input)),
        None => format!("stepwell start {name} --wait"),
    }
}

/// What a component offers, one line each.
pub(crate) fn offers(style: Style, workflows: &[Workflow], tasks: &[Task]) -> String {
    let workflows = workflows.iter().map(|workflow| {
        let events = match workflow.events.as_slice() {
            [] => String::new(),
            events => format!(
                "  (events: {})",
                events
                    .iter()
                    .map(|name| plain(name))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        };
        vec![
            Cell::new("  workflow"),
            Cell::painted(Paint::Strong, plain(&workflow.name)),
            Cell::painted(Paint::Dim, format!("{}{events}", plain(&workflow.summary))),
        ]
    });
    let tasks = tasks.iter().map(|task| {
        vec![
            Cell::new("  task"),
            Cell::painted(Paint::Strong, plain(&task.name)),
            Cell::painted(Paint::Dim, plain(&task.summary)),
        ]
    });
    let rows: Vec<_> = workflows.chain(tasks).collect();
    let drawn = table(style, &["", "", ""], &rows);
    // A list this short needs no headings.
    drawn
        .split_once('\n')
        .map_or(String::new(), |(_, rows)| rows.to_owned())
}
