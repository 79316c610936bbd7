//! Everything that a guest writes for people to read, on its way to the log: lines of stdout and
//! stderr, and the log's own. Bounded at every point, and silent on replay.

use std::collections::VecDeque;

use crate::guest::{LogLevel, LogSink};

/// One line, in bytes; the rest of a longer one is dropped.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// What stands at the end of a line that was cut.
const CUT_MARK: &str = " [cut]";

/// Fields of one log line.
const FIELDS_MAX: usize = 32;

/// Lines of stderr that are kept to find a panic's message in: its head, its text (a failed
/// assertion has three lines), and a note.
const STDERR_LINES_KEPT: usize = 16;

/// Where lines go; nowhere on replay.
pub(crate) type Sink<'a> = Option<&'a mut (dyn LogSink + 'static)>;

/// A guest's output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// Takes what a guest writes apart into lines, and counts them against the limit.
#[derive(Debug)]
pub(crate) struct Console {
    stdout: Line,
    stderr: Line,
    /// Also filled on replay: a trap comes again then, and its message with it.
    stderr_kept: VecDeque<String>,
    bytes_max: usize,
    bytes_left: usize,
    told: bool,
}

/// A line that is not finished.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    cut: bool,
}

impl Console {
    /// `bytes_max` is for all lines of one activation.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            stdout: Line::default(),
            stderr: Line::default(),
            stderr_kept: VecDeque::new(),
            bytes_max,
            bytes_left: bytes_max,
            told: false,
        }
    }

    /// Output of a guest. Without a sink (on replay) lines are dropped once they are complete.
    pub(crate) fn write(&mut self, stream: Stream, mut bytes: &[u8], mut sink: Sink<'_>) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            self.line(stream).push(&bytes[..end]);
            self.finish(stream, sink.as_deref_mut());
            bytes = &bytes[end + 1..];
        }
        self.line(stream).push(bytes);
    }

    /// What stands in unfinished lines becomes lines of their own.
    pub(crate) fn flush(&mut self, mut sink: Sink<'_>) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if !self.line(stream).bytes.is_empty() {
                self.finish(stream, sink.as_deref_mut());
            }
        }
    }

    /// A line of the log proper.
    pub(crate) fn log(
        &mut self,
        level: LogLevel,
        mut message: String,
        mut fields: Vec<(String, String)>,
        sink: &mut dyn LogSink,
    ) {
        cut(&mut message);
        fields.truncate(FIELDS_MAX);
        for (name, value) in &mut fields {
            cut(name);
            cut(value);
        }
        self.emit(level, message, fields, sink);
    }

    /// The message of a Rust panic, if the guest wrote one to stderr: `panicked at
    /// src/lib.rs:12:5: index out of bounds`.
    pub(crate) fn panic_message(&self) -> Option<String> {
        let head = self
            .stderr_kept
            .iter()
            .rposition(|line| line.contains("panicked at "))?;
        let (_, location) = self.stderr_kept[head].split_once("panicked at ")?;
        let mut message = format!("panicked at {}", location.trim_end());
        for line in self.stderr_kept.iter().skip(head + 1) {
            if line.starts_with("note: run with `RUST_BACKTRACE") {
                break;
            }
            message.push(' ');
            message.push_str(line.trim());
        }
        cut(&mut message);
        Some(message)
    }

    fn line(&mut self, stream: Stream) -> &mut Line {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn finish(&mut self, stream: Stream, sink: Sink<'_>) {
        let text = self.line(stream).take();
        let level = match stream {
            Stream::Stdout => LogLevel::Info,
            Stream::Stderr => {
                if self.stderr_kept.len() == STDERR_LINES_KEPT {
                    self.stderr_kept.pop_front();
                }
                self.stderr_kept.push_back(text.clone());
                LogLevel::Warn
            }
        };
        if let Some(sink) = sink.filter(|_| !text.is_empty()) {
            self.emit(level, text, Vec::new(), sink);
        }
    }

    fn emit(
        &mut self,
        level: LogLevel,
        message: String,
        fields: Vec<(String, String)>,
        sink: &mut dyn LogSink,
    ) {
        let bytes = message.len()
            + fields
                .iter()
                .map(|(name, value)| name.len() + value.len())
                .sum::<usize>();
        match self.bytes_left.checked_sub(bytes) {
            Some(left) if !self.told => {
                self.bytes_left = left;
                sink.log(level, message, fields);
            }
            _ if self.told => {}
            _ => {
                // No shorter line is let through after this one: a log with holes in it would lie.
                self.told = true;
                let notice = format!(
                    "this activation has met its log limit of {} bytes; its further lines are dropped",
                    self.bytes_max
                );
                sink.log(LogLevel::Warn, notice, Vec::new());
            }
        }
    }
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES_MAX - self.bytes.len();
        self.cut |= bytes.len() > room;
        self.bytes
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn take(&mut self) -> String {
        let bytes = std::mem::take(&mut self.bytes);
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if text.ends_with('\r') {
            text.pop();
        }
        if std::mem::take(&mut self.cut) {
            text.push_str(CUT_MARK);
        }
        text
    }
}

/// Cuts a text to one line's bytes.
fn cut(text: &mut String) {
    if text.len() > LINE_BYTES_MAX {
        text.truncate(text.floor_char_boundary(LINE_BYTES_MAX));
        text.push_str(CUT_MARK);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test")]

    use super::*;

    #[derive(Default)]
    struct Lines(Vec<(LogLevel, String)>);

    impl LogSink for Lines {
        fn log(&mut self, level: LogLevel, message: String, _fields: Vec<(String, String)>) {
            self.0.push((level, message));
        }
    }

    #[test]
    fn output_is_split_into_lines_and_the_last_one_needs_a_flush() {
        let mut lines = Lines::default();
        let mut console = Console::new(1000);
        console.write(Stream::Stdout, b"one\ntw", Some(&mut lines));
        console.write(Stream::Stderr, b"err\r\n", Some(&mut lines));
        console.write(Stream::Stdout, b"o\n\nthree", Some(&mut lines));
        let expected = [
            (LogLevel::Info, "one"),
            (LogLevel::Warn, "err"),
            (LogLevel::Info, "two"),
        ];
        assert_eq!(
            lines.0,
            expected.map(|(level, text)| (level, text.to_owned()))
        );
        console.flush(Some(&mut lines));
        assert_eq!(lines.0.last().unwrap().1, "three");
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let mut lines = Lines::default();
        let mut console = Console::new(1_000_000);
        console.write(
            Stream::Stdout,
            &vec![b'x'; LINE_BYTES_MAX + 1],
            Some(&mut lines),
        );
        console.write(Stream::Stdout, b"yyy\nz\n", Some(&mut lines));
        assert_eq!(lines.0[0].1.len(), LINE_BYTES_MAX + CUT_MARK.len());
        assert!(lines.0[0].1.ends_with("x [cut]"));
        assert_eq!(lines.0[1].1, "z");
    }

    #[test]
    fn the_limit_is_told_once_and_ends_the_log() {
        let mut lines = Lines::default();
        let mut console = Console::new(5);
        for text in ["abc", "defg", "h"] {
            console.log(LogLevel::Error, text.to_owned(), Vec::new(), &mut lines);
        }
        let texts: Vec<&str> = lines.0.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "abc",
                "this activation has met its log limit of 5 bytes; its further lines are dropped"
            ]
        );
    }

    #[test]
    fn a_panic_is_found_in_stderr_also_without_a_sink() {
        let mut console = Console::new(0);
        console.write(
            Stream::Stderr,
            b"something else\n\nthread '<unnamed>' (1) panicked at src/lib.rs:12:5:\nindex out of bounds\n\
              note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
            None,
        );
        assert_eq!(
            console.panic_message().unwrap(),
            "panicked at src/lib.rs:12:5: index out of bounds"
        );
    }
}
