//! A run as it happens: one line for each thing that a person wants to see go by.

use std::collections::HashMap;

use stepwell_server::wire::{Entry, EntryType, Failure, Instant, Line};

use super::style::{Paint, Style};
use super::text::{plain, short};
use super::time::{between, clock, span};
use super::timeline::value;

/// Turns entries into lines; remembers names, which only the first entry of an operation has.
#[derive(Debug)]
pub(crate) struct Live {
    style: Style,
    operations: HashMap<u32, (Instant, String)>,
    /// The entry before.
    last: Option<Instant>,
}

impl Live {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            style,
            operations: HashMap::new(),
            last: None,
        }
    }

    /// The line for an entry, if it is worth one. Entries come in order; `began` stands in for the
    /// entry before the first.
    pub(crate) fn entry(&mut self, began: Instant, entry: &Entry) -> Option<String> {
        let before = self.last.replace(entry.at).unwrap_or(began);
        let (since, name) = self.operation(before, entry);
        let took = span(between(since, entry.at));
        let attempts = match entry.attempts {
            Some(attempts) if attempts > 1 => format!(", {attempts} attempts"),
            _ => String::new(),
        };
        let (mark, paint, text) = match entry.r#type {
            EntryType::StepCompleted => {
                ("✓", Paint::Good, format!("step {name}  {took}{attempts}"))
            }
            EntryType::TaskCompleted => {
                ("✓", Paint::Good, format!("task {name}  {took}{attempts}"))
            }
            EntryType::StepFailed => (
                "✗",
                Paint::Bad,
                format!("step {name}{attempts}: {}", message(entry)),
            ),
            EntryType::TaskFailed => (
                "✗",
                Paint::Bad,
                format!("task {name}{attempts}: {}", message(entry)),
            ),
            EntryType::OperationRefused => (
                "✗",
                Paint::Bad,
                format!("{name} refused: {}", message(entry)),
            ),
            EntryType::AttemptEnded => {
                let again = entry.retry_at.map_or(0, |at| between(entry.at, at));
                let number = entry.attempt.unwrap_or(0);
                let text = format!(
                    "{name}  attempt {number}: {}; again in {}",
                    message(entry),
                    span(again)
                );
                ("↻", Paint::Warn, text)
            }
            EntryType::SleepStarted => {
                let left = entry.due_at.map_or(0, |due| between(entry.at, due));
                (
                    "☾",
                    Paint::Active,
                    format!("sleep {name}  for {}", span(left)),
                )
            }
            EntryType::Slept if entry.wake.as_deref() == Some("woken") => (
                "☀",
                Paint::Warn,
                format!("sleep {name}  woken after {took}"),
            ),
            EntryType::Slept => ("☀", Paint::Good, format!("sleep {name}  over after {took}")),
            EntryType::WaitStarted => {
                let limit = entry.timeout_at.map_or(String::new(), |at| {
                    format!(", at most {}", span(between(entry.at, at)))
                });
                ("…", Paint::Active, format!("wait for {name}{limit}"))
            }
            EntryType::EventTaken => {
                let payload = value(entry).unwrap_or_default();
                (
                    "✉",
                    Paint::Good,
                    format!("event {name}  after {took}  {payload}"),
                )
            }
            EntryType::WaitTimedOut => (
                "✗",
                Paint::Warn,
                format!("wait for {name}  timed out after {took}"),
            ),
            EntryType::TaskStarted => ("…", Paint::Active, format!("task {name}")),
            EntryType::Published => {
                let key = plain(entry.key.as_deref().unwrap_or_default());
                (
                    "◆",
                    Paint::Active,
                    format!("{key} = {}", value(entry).unwrap_or_default()),
                )
            }
            EntryType::Replied => (
                "✉",
                Paint::Active,
                format!("reply to {}", entry.event.as_deref().unwrap_or_default()),
            ),
            EntryType::CancelDelivered => {
                let reason = plain(entry.reason.as_deref().unwrap_or_default());
                (
                    "■",
                    Paint::Warn,
                    format!("asked to stop, cleaning up  {reason}"),
                )
            }
            EntryType::ContinuedAsNew => {
                // The fresh journal numbers its operations from 0 again.
                self.operations.clear();
                (
                    "»",
                    Paint::Active,
                    "goes on with a fresh journal".to_owned(),
                )
            }
            // Ends are told by the run itself; the rest would be noise.
            _ => return None,
        };
        let at = self.style.paint(Paint::Dim, &clock(entry.at));
        Some(format!(
            "{at} {} {}\n",
            self.style.paint(paint, mark),
            text.trim_end()
        ))
    }

    /// When the entry's operation began, and its name.
    fn operation(&mut self, before: Instant, entry: &Entry) -> (Instant, String) {
        let name = || short(entry.name.as_deref().unwrap_or_default(), 60);
        let Some(number) = entry.operation else {
            return (before, name());
        };
        match entry.r#type {
            // These say when they begin.
            EntryType::SleepStarted | EntryType::WaitStarted | EntryType::TaskStarted => {
                self.operations.insert(number, (entry.at, name()));
                (entry.at, name())
            }
            _ => self
                .operations
                .entry(number)
                .or_insert_with(|| (before, name()))
                .clone(),
        }
    }
}

fn message(entry: &Entry) -> String {
    let said = |failure: &Failure| short(&format!("{}: {}", failure.kind, failure.message), 100);
    entry.failure.as_ref().map_or_else(String::new, said)
}

/// Of a field, its first line: a backtrace has its own place.
fn field(value: &str) -> String {
    let mut lines = value.lines();
    let first = short(lines.next().unwrap_or_default(), 100);
    if lines.next().is_some() {
        format!("{first} …")
    } else {
        first
    }
}

/// A log line.
pub(crate) fn line(style: Style, line: &Line) -> String {
    let paint = match line.level.as_str() {
        "error" => Paint::Bad,
        "warn" => Paint::Warn,
        "info" => Paint::Active,
        _ => Paint::Dim,
    };
    let fields: String = line
        .fields
        .iter()
        .map(|(key, value)| format!("  {}={}", plain(key), field(value)))
        .collect();
    format!(
        "{} {} {}{}\n",
        style.paint(Paint::Dim, &clock(line.at)),
        style.paint(paint, &format!("{:<5}", line.level)),
        plain(line.message.trim_end()),
        style.paint(Paint::Dim, &fields),
    )
}
