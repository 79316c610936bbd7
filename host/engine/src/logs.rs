//! Guests' log lines on their way to the store: best effort, bounded, never in anybody's way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stepwell_store::{LogLine, Store};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Lines that may wait for the store; more are dropped and counted.
const WAITING_LINES_MAX: usize = 10_000;
/// Lines that go to the store in one call.
const BATCH_LINES_MAX: usize = 500;

/// Takes lines. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Logs {
    sender: mpsc::Sender<LogLine>,
    dropped: Arc<AtomicU64>,
}

impl Logs {
    /// Starts the task that hands lines to the store; it ends, with all lines handed over, once
    /// every clone is gone.
    pub(crate) fn start(store: Arc<dyn Store>) -> (Self, JoinHandle<()>) {
        let (sender, mut receiver) = mpsc::channel(WAITING_LINES_MAX);
        let logs = Self { sender, dropped: Arc::default() };
        let dropped = Arc::clone(&logs.dropped);
        let task = tokio::spawn(async move {
            loop {
                let mut lines = Vec::new();
                if receiver.recv_many(&mut lines, BATCH_LINES_MAX).await == 0 {
                    return;
                }
                if let Err(error) = store.write_logs(lines).await {
                    tracing::warn!(%error, "log lines of runs were not kept");
                }
                let count = dropped.swap(0, Ordering::Relaxed);
                if count > 0 {
                    tracing::warn!(count, "log lines of runs were dropped: they came faster than the store keeps them");
                }
            }
        });
        (logs, task)
    }

    /// Takes a line, or drops it if too many wait.
    pub(crate) fn write(&self, line: LogLine) {
        if self.sender.try_send(line).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}
