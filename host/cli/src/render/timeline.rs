//! A run's journal, folded into operations and drawn in time.
//!
//! ```text
//!    0 ✓ step   reserve          120 ms  █
//!    1 ✓ step   charge      ×3    2.1 s  ▔██████████████████
//!    2 … wait   approval         23 min                    ░░░░░░
//! ```
//!
//! The journal does not say when a step without a failure began. A workflow does one thing after
//! the other, so the entry before it is taken for that: right but for the time between.

use std::collections::BTreeMap;

use stepwell_core::time::Timestamp;
use stepwell_server::wire::{Entry, EntryType, Failure, Instant};

use super::style::{Paint, Style};
use super::text::short;
use super::time::{ahead, between, span};

/// Columns of the time axis.
const AXIS: u64 = 32;
/// Operations that are drawn from the beginning, and from the end.
const FIRST_MAX: usize = 20;
const LAST_MAX: usize = 60;
/// Characters of a name, a message and a value.
const NAME_MAX: usize = 28;
const MESSAGE_MAX: usize = 100;
const VALUE_MAX: usize = 100;
/// Failed attempts that are told one by one.
const ATTEMPTS_MAX: usize = 3;

/// One operation, as far as it got.
#[derive(Debug)]
struct Operation {
    kind: &'static str,
    name: String,
    began: Instant,
    ended: Option<Instant>,
    state: State,
    attempts: u32,
    failed_attempts: usize,
    /// What a person wants to know beside it.
    notes: Vec<String>,
    value: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Waits, or runs.
    Open {
        until: Option<Instant>,
    },
    Done,
    Failed,
    /// Not answered, and never will be.
    Dropped,
}

/// Where and when a timeline is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) style: Style,
    pub(super) now: Timestamp,
    /// When the run began.
    pub(super) from: Instant,
    /// When it ended, if it has.
    pub(super) until: Option<Instant>,
    /// Whether to show what operations returned.
    pub(super) has_values: bool,
}

/// Draws the operations of a journal; empty if there are none.
pub(super) fn timeline(frame: Frame, entries: &[Entry]) -> String {
    let operations = fold(frame, entries);
    let name_width = operations
        .values()
        .map(|operation| operation.name.chars().count())
        .max()
        .unwrap_or(0)
        .min(NAME_MAX);
    let skipped = operations.len().saturating_sub(FIRST_MAX + LAST_MAX);
    let mut drawn = String::new();
    for (index, (number, operation)) in operations.iter().enumerate() {
        if skipped > 0 && (FIRST_MAX..FIRST_MAX + skipped).contains(&index) {
            if index == FIRST_MAX {
                let text = format!("     ⋮ {skipped} operations; `--json` has them all\n");
                drawn.push_str(&frame.style.paint(Paint::Dim, &text));
            }
            continue;
        }
        drawn.push_str(&row(frame, *number, operation, name_width));
    }
    drawn
}

fn row(frame: Frame, number: u32, operation: &Operation, name_width: usize) -> String {
    let style = frame.style;
    let now = Instant(frame.now);
    let (mark, paint) = match operation.state {
        State::Open { .. } => ("…", Paint::Active),
        State::Done if operation.failed_attempts > 0 => ("✓", Paint::Warn),
        State::Done => ("✓", Paint::Good),
        State::Failed => ("✗", Paint::Bad),
        State::Dropped => ("–", Paint::Dim),
    };
    let is_moment = matches!(operation.kind, "publish" | "reply");
    let name = short(&operation.name, NAME_MAX);
    let padding = " ".repeat(name_width - name.chars().count().min(name_width));
    let attempts = if operation.attempts > 1 {
        format!("×{}", operation.attempts)
    } else {
        String::new()
    };
    let end = operation.ended.unwrap_or(frame.until.unwrap_or(now));
    let took = if is_moment {
        String::new()
    } else {
        span(between(operation.began, end))
    };
    let mut line = format!(
        "{} {} {} {}{padding} {} {took:>11}  {}",
        style.paint(Paint::Dim, &format!("{number:>4}")),
        style.paint(paint, mark),
        style.paint(Paint::Dim, &format!("{:<7}", operation.kind)),
        style.paint(Paint::Strong, &name),
        style.paint(Paint::Warn, &format!("{attempts:>4}")),
        style.paint(paint, &bar(frame, operation, end, is_moment)),
    );
    if let State::Open { until: Some(until) } = operation.state {
        let what = match operation.kind {
            "sleep" => "over",
            "wait" => "times out",
            _ => "again",
        };
        line.push_str(&style.paint(Paint::Dim, &format!("  {what} {}", ahead(frame.now, until))));
    }
    let mut drawn = line.trim_end().to_owned();
    drawn.push('\n');
    let value = operation
        .value
        .as_ref()
        .filter(|_| frame.has_values || is_moment);
    for note in operation.notes.iter().chain(value) {
        drawn.push_str(&style.paint(Paint::Dim, &format!("       └ {note}")));
        drawn.push('\n');
    }
    drawn
}

/// The operation's place on the axis; at least one column.
fn bar(frame: Frame, operation: &Operation, end: Instant, is_moment: bool) -> String {
    let axis_end = frame.until.unwrap_or(Instant(frame.now));
    let whole = between(frame.from, axis_end).max(1);
    let column = |at: Instant| between(frame.from, at).min(whole) * AXIS / whole;
    let begin = column(operation.began).min(AXIS - 1);
    let width = column(end).saturating_sub(begin).clamp(1, AXIS - begin);
    let glyph = match operation.kind {
        _ if is_moment => "◆",
        "step" | "task" => "█",
        _ => "░",
    };
    let repeat = |text: &str, times: u64| text.repeat(usize::try_from(times).unwrap_or(0));
    format!("{}{}", repeat(" ", begin), repeat(glyph, width))
}

/// Folds entries into operations.
fn fold(frame: Frame, entries: &[Entry]) -> BTreeMap<u32, Operation> {
    let mut operations = BTreeMap::new();
    let mut last = frame.from;
    for entry in entries {
        if let Some(number) = entry.operation {
            let operation = operations.entry(number).or_insert_with(|| Operation {
                kind: kind(entry),
                name: entry
                    .name
                    .clone()
                    .or_else(|| entry.key.clone())
                    .or_else(|| entry.event.clone())
                    .unwrap_or_default(),
                began: last.min(entry.at),
                ended: None,
                state: State::Open { until: None },
                attempts: 0,
                failed_attempts: 0,
                notes: Vec::new(),
                value: None,
            });
            apply(operation, entry);
        }
        last = last.max(entry.at);
    }
    for operation in operations.values_mut() {
        if frame.until.is_some() && matches!(operation.state, State::Open { .. }) {
            operation.state = State::Dropped;
        }
        if operation.failed_attempts > ATTEMPTS_MAX {
            let more = operation.failed_attempts - ATTEMPTS_MAX;
            operation
                .notes
                .insert(ATTEMPTS_MAX, format!("{more} more attempts failed"));
        }
    }
    operations
}

fn kind(entry: &Entry) -> &'static str {
    match entry.r#type {
        EntryType::SleepStarted | EntryType::Slept => "sleep",
        EntryType::WaitStarted | EntryType::EventTaken | EntryType::WaitTimedOut => "wait",
        EntryType::TaskStarted | EntryType::TaskCompleted | EntryType::TaskFailed => "task",
        EntryType::Published => "publish",
        EntryType::Replied => "reply",
        EntryType::OperationRefused => match entry.kind.as_deref() {
            Some("sleep") => "sleep",
            Some("wait") => "wait",
            Some("task") => "task",
            Some("publish") => "publish",
            Some("reply") => "reply",
            _ => "step",
        },
        // A task is opened before its attempts, so attempts that come first are those of a step.
        _ => "step",
    }
}

fn apply(operation: &mut Operation, entry: &Entry) {
    let end = |operation: &mut Operation, state| {
        operation.ended = Some(entry.at);
        operation.state = state;
        operation.attempts = entry.attempts.unwrap_or(operation.attempts);
        operation.value = value(entry);
    };
    match entry.r#type {
        EntryType::SleepStarted | EntryType::WaitStarted | EntryType::TaskStarted => {
            operation.began = entry.at;
            operation.state = State::Open {
                until: entry.due_at.or(entry.timeout_at),
            };
        }
        EntryType::AttemptStarted => operation.attempts = entry.attempt.unwrap_or(0),
        EntryType::AttemptEnded => {
            let number = entry.attempt.unwrap_or(0);
            operation.attempts = number;
            operation.failed_attempts += 1;
            operation.state = State::Open {
                until: entry.retry_at,
            };
            if operation.failed_attempts <= ATTEMPTS_MAX {
                operation
                    .notes
                    .push(format!("attempt {number} {}", ending(entry)));
            }
        }
        EntryType::BackoffOver => operation.state = State::Open { until: None },
        EntryType::StepCompleted | EntryType::TaskCompleted | EntryType::Published => {
            end(operation, State::Done);
        }
        EntryType::Slept => {
            end(operation, State::Done);
            if entry.wake.as_deref() == Some("woken") {
                operation.notes.push("woken early".to_owned());
            }
        }
        EntryType::EventTaken => {
            end(operation, State::Done);
            operation.notes.push(format!(
                "took event {}",
                entry.event.as_deref().unwrap_or("?")
            ));
        }
        EntryType::WaitTimedOut => {
            end(operation, State::Failed);
            operation.notes.push("timed out".to_owned());
        }
        EntryType::Replied => end(
            operation,
            if entry.failure.is_some() {
                State::Failed
            } else {
                State::Done
            },
        ),
        EntryType::StepFailed | EntryType::TaskFailed => {
            end(operation, State::Failed);
            operation.notes.push(format!("given up: {}", ending(entry)));
        }
        EntryType::OperationRefused => {
            end(operation, State::Failed);
            operation
                .notes
                .push(format!("refused: {}", message(entry.failure.as_ref())));
        }
        _ => {}
    }
}

/// How an attempt ended: `failed: card-declined: no funds`.
fn ending(entry: &Entry) -> String {
    let end = match entry.end.as_deref() {
        Some("timed-out") => "timed out",
        Some("host-lost") => "was lost with its host",
        Some("limit-exceeded") => "met a limit",
        Some(end) => end,
        None => "ended",
    };
    format!("{end}: {}", message(entry.failure.as_ref()))
}

fn message(failure: Option<&Failure>) -> String {
    failure.map_or_else(String::new, |failure| {
        short(
            &format!("{}: {}", failure.kind, failure.message),
            MESSAGE_MAX,
        )
    })
}

/// A value on one line.
pub(super) fn value(entry: &Entry) -> Option<String> {
    let text = match (&entry.value, &entry.value_base64) {
        (Some(json), _) => json.get().to_owned(),
        (None, Some(base64)) => format!("{} characters of base64", base64.len()),
        (None, None) => return None,
    };
    Some(short(&text, VALUE_MAX))
}

/// The names of the events that the run waits for now, as the guest gave them.
pub(super) fn open_waits(entries: &[Entry]) -> Vec<String> {
    let mut open = BTreeMap::new();
    for entry in entries {
        match (entry.r#type, entry.operation) {
            (EntryType::WaitStarted, Some(number)) => {
                open.insert(number, entry.name.clone().unwrap_or_default());
            }
            (EntryType::EventTaken | EntryType::WaitTimedOut, Some(number)) => {
                open.remove(&number);
            }
            _ => {}
        }
    }
    open.into_values().collect()
}
