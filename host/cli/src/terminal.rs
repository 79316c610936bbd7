//! Where text goes: documents and results to standard output, all else to standard error.

use std::io::{self, IsTerminal, Write};

use stepwell_core::time::Timestamp;
use stepwell_engine::clock::{Clock, SystemClock};

use crate::render::{Paint, Style, plain};

/// The two streams, and how to paint each.
#[derive(Debug)]
pub(crate) struct Terminal {
    is_json: bool,
    out: Style,
    err: Style,
    out_is_terminal: bool,
}

impl Terminal {
    pub(crate) fn new(is_json: bool) -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let wants_none =
            is_set("NO_COLOR") || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let style = |is_terminal: bool| {
            if is_terminal && !wants_none {
                Style::COLOUR
            } else {
                Style::PLAIN
            }
        };
        let out_is_terminal = io::stdout().is_terminal();
        Self {
            is_json,
            out: style(out_is_terminal),
            err: style(io::stderr().is_terminal()),
            out_is_terminal,
        }
    }

    /// Whether one JSON document is wanted instead of text.
    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    /// How to paint what [`Terminal::print`] prints.
    pub(crate) fn style(&self) -> Style {
        self.out
    }

    /// How to paint what [`Terminal::tell`] tells.
    pub(crate) fn err_style(&self) -> Style {
        self.err
    }

    /// Whether a person reads standard output, and not a program.
    pub(crate) fn is_read_by_person(&self) -> bool {
        self.out_is_terminal && !self.is_json
    }

    pub(crate) fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    /// Writes to standard output.
    pub(crate) fn print(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// The same with a line's end.
    pub(crate) fn print_line(&self, text: &str) -> io::Result<()> {
        self.print(&format!("{text}\n"))
    }

    /// Writes to standard error. Nobody is left to be told if that fails.
    pub(crate) fn tell(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Advice, for people only.
    pub(crate) fn advise(&self, text: &str) {
        if self.is_read_by_person() {
            self.tell(&format!("{}\n", self.err.paint(Paint::Dim, text)));
        }
    }

    /// Tells what went wrong, with all its causes.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        let mut text = String::new();
        for cause in error.chain() {
            let cause = cause.to_string();
            // Some errors repeat what they were caused by.
            if text.contains(&cause) {
                continue;
            }
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&cause);
        }
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        self.tell(&format!(
            "{} {}\n",
            self.err.paint(Paint::Bad, "error:"),
            plain(first)
        ));
        for line in lines {
            self.tell(&format!("  {}\n", plain(line)));
        }
    }
}
