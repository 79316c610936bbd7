//! Guests' log lines on their way to the store: best effort, bounded, never in anybody's way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stepwell_store::{LogLine, Store};
use tokio::sync::{Notify, mpsc};
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
    /// Starts the task that hands lines to the store. It ends after `stop` has been notified, with
    /// the lines that wait by then handed over.
    pub(crate) fn start(store: Arc<dyn Store>, stop: Arc<Notify>) -> (Self, JoinHandle<()>) {
        let (sender, mut receiver) = mpsc::channel(WAITING_LINES_MAX);
        let logs = Self {
            sender,
            dropped: Arc::default(),
        };
        let dropped = Arc::clone(&logs.dropped);
        let task = tokio::spawn(async move {
            loop {
                let mut lines = Vec::new();
                let count = tokio::select! {
                    biased;
                    count = receiver.recv_many(&mut lines, BATCH_LINES_MAX) => count,
                    () = stop.notified() => 0,
                };
                if count == 0 {
                    return;
                }
                if let Err(error) = store.write_logs(lines).await {
                    tracing::warn!(%error, "log lines of runs were not kept");
                }
                let count = dropped.swap(0, Ordering::Relaxed);
                if count > 0 {
                    tracing::warn!(
                        count,
                        "log lines of runs were dropped: they came faster than the store keeps them"
                    );
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
