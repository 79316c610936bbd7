//! A run's log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stepwell_store::LogRow;

use super::time::Instant;

/// A page of a run's log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Logs {
    /// The run.
    pub run: String,
    /// Its status now.
    pub status: String,
    /// In order.
    pub lines: Vec<Line>,
    /// What to give as `after` next.
    pub next: u64,
}

/// A line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Line {
    /// Grows along the log.
    pub number: u64,
    /// When it was written.
    pub at: Instant,
    /// `trace`, `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// What it says.
    pub message: String,
    /// More, by key; of two with one key the later one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}

impl Logs {
    pub(crate) fn page(run: &stepwell_store::Run, after: u64, rows: Vec<LogRow>) -> Self {
        Self {
            run: run.run.to_string(),
            status: run.status.to_string(),
            next: rows.last().map_or(after, |row| row.number),
            lines: rows.into_iter().map(Line::from).collect(),
        }
    }
}

impl From<LogRow> for Line {
    fn from(row: LogRow) -> Self {
        Self {
            number: row.number,
            at: Instant(row.line.at),
            level: row.line.level.as_str().to_owned(),
            message: row.line.message,
            fields: row.line.fields.into_iter().collect(),
        }
    }
}
