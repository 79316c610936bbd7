//! Lines of a run's log.

use stepwell_core::id::{RunId, TenantName};
use stepwell_core::time::Timestamp;

/// How grave a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Finest.
    Trace,
    /// For whoever debugs the workflow.
    Debug,
    /// Ordinary; also what the guest writes to stdout.
    Info,
    /// Something is off; also what the guest writes to stderr.
    Warn,
    /// Something failed.
    Error,
}

impl LogLevel {
    /// Lower-case, as in HTTP and the CLI.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

impl LogLevel {
    /// The level of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [
            Self::Trace,
            Self::Debug,
            Self::Info,
            Self::Warn,
            Self::Error,
        ]
        .into_iter()
        .find(|level| level.as_str() == name)
    }
}

/// A line for a run's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Owner of the run.
    pub tenant: TenantName,
    /// The run.
    pub run: RunId,
    /// When it was written.
    pub at: Timestamp,
    /// How grave.
    pub level: LogLevel,
    /// What it says.
    pub message: String,
    /// More, by key.
    pub fields: Vec<(String, String)>,
}

/// A log line as kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    /// Grows along a run's log; give it to [`Store::logs`](crate::Store::logs) for the lines after it.
    pub number: u64,
    /// The line.
    pub line: LogLine,
}
