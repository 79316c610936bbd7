//! Log lines that wait for a commit to go along with. Bounded: when the writer cannot keep up,
//! lines are dropped and counted, and no run waits for its log.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::log::LogLine;

/// Lines that may wait, and bytes of them.
const LINES_MAX: usize = 16_384;
const BYTES_MAX: usize = 16 * 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct LogQueue(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<LogLine>,
    bytes: usize,
    /// Since lines last found room.
    dropped: u64,
}

/// What became of lines that were put into the queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Queued {
    /// Nothing waited before: the writer does not know yet.
    pub(super) first: bool,
}

impl LogQueue {
    /// Puts lines into the queue, as far as there is room.
    pub(super) fn put(&self, lines: Vec<LogLine>) -> Queued {
        let mut waiting = self.lock();
        let first = waiting.lines.is_empty() && !lines.is_empty();
        for line in lines {
            let bytes = size_bytes(&line);
            if waiting.lines.len() >= LINES_MAX || waiting.bytes + bytes > BYTES_MAX {
                waiting.dropped += 1;
                // Once per overload: a warning a line would add to it.
                if waiting.dropped == 1 {
                    tracing::warn!(
                        run = %line.run,
                        "log lines are dropped: more of them wait for the disk than the {LINES_MAX} that may"
                    );
                }
                continue;
            }
            waiting.bytes += bytes;
            waiting.lines.push(line);
        }
        Queued { first }
    }

    /// Takes all that wait.
    pub(super) fn take(&self) -> Vec<LogLine> {
        let mut waiting = self.lock();
        if waiting.dropped > 0 {
            tracing::warn!(
                lines = waiting.dropped,
                "log lines were dropped; the disk keeps up again"
            );
            waiting.dropped = 0;
        }
        waiting.bytes = 0;
        std::mem::take(&mut waiting.lines)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().lines.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size_bytes(line: &LogLine) -> usize {
    let fields: usize = line
        .fields
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    line.message.len() + fields
}
