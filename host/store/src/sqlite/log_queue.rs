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
    /// Lines were taken and are not durable yet.
    in_commit: bool,
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

    /// Takes all that wait, into a commit that [`Self::committed`] ends.
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
        waiting.in_commit = !waiting.lines.is_empty();
        std::mem::take(&mut waiting.lines)
    }

    /// What was taken is durable, or dropped.
    pub(super) fn committed(&self) {
        self.lock().in_commit = false;
    }

    /// Whether lines wait to be taken.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().lines.is_empty()
    }

    /// Whether every line that was put is durable, or dropped.
    pub(super) fn is_settled(&self) -> bool {
        let waiting = self.lock();
        waiting.lines.is_empty() && !waiting.in_commit
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

#[cfg(test)]
mod tests {
    use stepwell_core::id::RunId;
    use stepwell_core::time::Timestamp;

    use super::*;
    use crate::log::LogLevel;

    fn line(message: String) -> LogLine {
        LogLine {
            tenant: "acme".parse().unwrap(),
            run: RunId::from_raw(1),
            at: Timestamp::EPOCH,
            level: LogLevel::Info,
            message,
            fields: Vec::new(),
        }
    }

    #[test]
    fn the_writer_is_told_only_of_the_first_line_that_waits() {
        let queue = LogQueue::default();
        assert!(!queue.put(Vec::new()).first);
        assert!(queue.put(vec![line("a".to_owned())]).first);
        assert!(!queue.put(vec![line("b".to_owned())]).first);
        assert_eq!(queue.take().len(), 2);
        assert!(queue.is_empty() && !queue.is_settled());
        queue.committed();
        assert!(queue.is_settled());
        assert!(queue.put(vec![line("c".to_owned())]).first);
    }

    #[test]
    fn lines_beyond_the_bounds_are_dropped_and_room_is_made_by_taking() {
        let queue = LogQueue::default();
        queue.put(
            (0..LINES_MAX + 10)
                .map(|number| line(number.to_string()))
                .collect(),
        );
        assert_eq!(queue.lock().dropped, 10);
        assert_eq!(queue.take().len(), LINES_MAX);
        let mebibyte = "x".repeat(1024 * 1024);
        queue.put((0..17).map(|_| line(mebibyte.clone())).collect());
        assert_eq!(queue.take().len(), BYTES_MAX / mebibyte.len());
        assert!(queue.put(vec![line("again".to_owned())]).first);
    }
}
