//! One run, drawn: who it is, what it did when, what it shows, how it ended, and what to do next.

use std::collections::BTreeMap;

use stepwell_core::time::Timestamp;
use stepwell_server::wire::{Entry, Failure, Json, Line, PublishedValue, Run, Source};

use super::live::line;
use super::sketch::sketch;
use super::style::{Paint, Style};
use super::text::{bytes, plain, short, word};
use super::time::{ago, ahead, between, point, span};
use super::timeline::{Frame, open_waits, timeline};

/// Lines of an input, a result or a published value.
const VALUE_LINES_MAX: usize = 40;

/// Frames of a backtrace.
const FRAMES_MAX: usize = 12;

/// All that is known about a run.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) run: Run,
    /// Its whole newest journal.
    pub(crate) entries: Vec<Entry>,
    pub(crate) published: Vec<PublishedValue>,
    /// Its last log lines.
    pub(crate) logs: Vec<Line>,
    /// JSON Schemas of events, by name, as far as the workflow says.
    pub(crate) event_schemas: BTreeMap<String, String>,
    /// Whether to show what operations returned.
    pub(crate) has_values: bool,
}

/// Draws a run.
pub(crate) fn run(style: Style, now: Timestamp, shown: &Shown) -> String {
    let run = &shown.run;
    let until = run.is_final.then_some(run.updated_at);
    // The journal of a later generation began long after the run did.
    let from = match shown.entries.first() {
        Some(entry) if run.generation > 0 => entry.at,
        _ => run.created_at,
    };
    let mut drawn = header(style, now, run);
    let frame = Frame {
        style,
        now,
        from,
        until,
        has_values: shown.has_values,
    };
    section(&mut drawn, &timeline(frame, &shown.entries));
    section(&mut drawn, &published(style, &shown.published));
    section(
        &mut drawn,
        &shown
            .logs
            .iter()
            .map(|entry| line(style, entry))
            .collect::<String>(),
    );
    section(
        &mut drawn,
        &titled(
            style,
            "input",
            run.input.as_ref(),
            run.input_base64.as_deref(),
        ),
    );
    section(&mut drawn, &ended(style, run));
    section(&mut drawn, &advice(style, now, shown));
    drawn
}

fn section(drawn: &mut String, text: &str) {
    if !text.is_empty() {
        drawn.push('\n');
        drawn.push_str(text);
    }
}

fn header(style: Style, now: Timestamp, run: &Run) -> String {
    let status = style.status(&run.status);
    let when = match run.due_at {
        _ if run.is_final => format!(" in {}", span(between(run.created_at, run.updated_at))),
        Some(due) if run.status != "running" => format!(", due {}", ahead(now, due)),
        _ => format!(
            ", {} so far",
            span(between(run.created_at, stepwell_server::wire::Instant(now)))
        ),
    };
    let continued = match run.generation {
        0 => String::new(),
        1 => " · continued once".to_owned(),
        times => format!(" · continued {times} times"),
    };
    let facts = format!(
        "version {} · started {} ({}) · {} journal {}, {}{continued}",
        plain(&run.version),
        point(run.created_at),
        ago(now, run.created_at),
        run.entries,
        if run.entries == 1 { "entry" } else { "entries" },
        bytes(run.journal_bytes),
    );
    format!(
        "{} {}  {status}{when}\n{}\n",
        style.paint(Paint::Strong, &plain(&run.workflow)),
        run.run,
        style.paint(Paint::Dim, &facts),
    )
}

fn published(style: Style, values: &[PublishedValue]) -> String {
    values
        .iter()
        .map(|published| {
            let value = text_of(published.value.as_ref(), published.value_base64.as_deref())
                .unwrap_or_default();
            format!(
                "{} {} = {}\n",
                style.paint(Paint::Active, "◆"),
                plain(&published.key),
                short(&value, 200)
            )
        })
        .collect()
}

/// How the run ended: its result, failure or reason; empty if it has not.
pub(crate) fn ended(style: Style, run: &Run) -> String {
    match (&run.failure, &run.reason) {
        (Some(failure), _) => failed(style, failure),
        (None, Some(reason)) if !reason.is_empty() => {
            format!(
                "{} {}\n",
                style.paint(Paint::Warn, &format!("{}:", run.status)),
                plain(reason)
            )
        }
        _ if run.status == "completed" => {
            let null = || Some("null".to_owned());
            let text = text_of(run.result.as_ref(), run.result_base64.as_deref())
                .or_else(null)
                .unwrap_or_default();
            block(style, Paint::Good, "result", &text)
        }
        _ => String::new(),
    }
}

fn failed(style: Style, failure: &Failure) -> String {
    let origin = match (failure.source, &failure.step) {
        (Some(Source::Step), Some(step)) => {
            let attempts = failure.attempts.unwrap_or(0);
            let plural = if attempts == 1 { "" } else { "s" };
            format!(" in {} after {attempts} attempt{plural}", plain(step))
        }
        _ => String::new(),
    };
    let kind = style.paint(
        Paint::Bad,
        &format!("failed{origin}: {}", plain(&failure.kind)),
    );
    let mut drawn = format!("{kind}\n");
    for line in failure.message.lines() {
        drawn.push_str(&format!("  {}\n", plain(line)));
    }
    if let Some(details) = text_of(failure.details.as_ref(), failure.details_base64.as_deref()) {
        drawn.push_str(&format!("  details: {}\n", short(&details, 500)));
    }
    for frame in failure.backtrace.as_deref().map(frames).unwrap_or_default() {
        drawn.push_str(&style.paint(Paint::Dim, &format!("    {frame}")));
        drawn.push('\n');
    }
    drawn
}

/// The frames of a backtrace that are the author's: those of Rust's own library only say how a
/// panic ends, and are counted instead.
fn frames(backtrace: &str) -> Vec<String> {
    let is_library = |frame: &&str| frame.contains("(/rustc/") || frame.trim() == "abort";
    let (library, own): (Vec<_>, Vec<_>) = backtrace.lines().partition(is_library);
    let mut frames: Vec<_> = own
        .iter()
        .take(FRAMES_MAX)
        .map(|frame| plain(frame.trim()))
        .collect();
    let hidden = library.len() + own.len() - frames.len();
    if hidden > 0 {
        frames.push(format!("({hidden} more frames; `--json` has them)"));
    }
    frames
}

fn titled(style: Style, title: &str, json: Option<&Json>, base64: Option<&str>) -> String {
    text_of(json, base64).map_or_else(String::new, |text| block(style, Paint::Dim, title, &text))
}

fn block(style: Style, paint: Paint, title: &str, text: &str) -> String {
    let title = style.paint(paint, title);
    let mut lines = text.lines();
    let (first, second) = (lines.next().unwrap_or_default(), lines.next());
    match second {
        None => format!("{title} {}\n", short(first, 2_000)),
        Some(_) => {
            let mut drawn = format!("{title}\n");
            for line in text.lines().take(VALUE_LINES_MAX) {
                drawn.push_str(&format!("  {}\n", short(line, 2_000)));
            }
            match text.lines().count().saturating_sub(VALUE_LINES_MAX) {
                0 => {}
                more => drawn.push_str(&style.paint(
                    Paint::Dim,
                    &format!("  ⋮ {more} more lines; `--json` has them\n"),
                )),
            }
            drawn
        }
    }
}

fn text_of(json: Option<&Json>, base64: Option<&str>) -> Option<String> {
    match (json, base64) {
        (Some(json), _) => Some(json.get().to_owned()),
        (None, Some(base64)) => Some(format!("base64 {base64}")),
        (None, None) => None,
    }
}

/// What one can do about the run as it stands.
fn advice(style: Style, now: Timestamp, shown: &Shown) -> String {
    let run = &shown.run;
    let id = &run.run;
    let lines: Vec<String> = match run.status.as_str() {
        "waiting" => open_waits(&shown.entries)
            .iter()
            .map(|event| {
                let payload = shown
                    .event_schemas
                    .get(event)
                    .and_then(|schema| sketch(schema));
                let payload = plain(payload.as_deref().unwrap_or("…"));
                let shown = plain(event);
                format!(
                    "waits for `{shown}`:  stepwell send {id} {} --payload '{payload}'",
                    word(event)
                )
            })
            .collect(),
        "sleeping" => vec![format!("end the sleep now:  stepwell wake {id}")],
        "retrying" => match run.due_at {
            Some(due) => vec![format!("tries again {}", ahead(now, due))],
            None => Vec::new(),
        },
        "paused" => vec![format!("let it go on:  stepwell resume {id}")],
        "stuck" => vec![
            format!("once the reason is gone:  stepwell resume {id}"),
            format!("or end it:  stepwell terminate {id} --reason '…'"),
        ],
        _ => Vec::new(),
    };
    lines
        .iter()
        .map(|line| style.paint(Paint::Dim, line) + "\n")
        .collect()
}
