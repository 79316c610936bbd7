//! Long polls: a request that waits until there is something to tell.
//!
//! Nothing here polls. A waiting request is woken by the store when its run has changed, by its own
//! deadline, or by the shutdown of the server; it looks again each time.

use std::sync::Arc;
use std::time::Duration;

use stepwell_core::id::RunId;
use stepwell_core::run::Status;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use crate::error::{Kind, Problem};
use crate::server::Server;

/// The longest that a request waits; a longer wish counts as this one.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);

/// Whether a run needs nobody's patience: it has ended, or is stuck until an operator acts.
pub(crate) fn is_settled(status: Status) -> bool {
    status.is_final() || status == Status::Stuck
}

/// How long one request is still willing to wait for news of its run.
#[derive(Debug)]
pub(crate) struct Patience {
    changes: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    deadline: Instant,
    is_over: bool,
    /// One of the places for requests that wait.
    _place: Option<OwnedSemaphorePermit>,
}

impl Patience {
    /// Begins to listen for news of a run that exists. To be called before the first look at it,
    /// or a change between the two would be slept through.
    ///
    /// # Errors
    /// [`Kind::Busy`] if all places for waiting requests are taken.
    pub(crate) fn new(server: &Server, run: RunId, wait_ms: Option<u64>) -> Result<Self, Problem> {
        let wait = Duration::from_millis(wait_ms.unwrap_or(0)).min(WAIT_MAX);
        let place = if wait.is_zero() {
            None
        } else {
            let place = Arc::clone(server.waiting_places()).try_acquire_owned().map_err(|_| {
                Problem::new(Kind::Busy, "too many requests wait for news of runs; ask without `wait_ms`, or again soon")
            })?;
            Some(place)
        };
        Ok(Self {
            changes: server.engine().store().watch(run),
            stopping: server.stopping(),
            deadline: Instant::now() + wait,
            is_over: wait.is_zero(),
            _place: place,
        })
    }

    /// Waits until it makes sense to look again; false once it does no more. After the deadline
    /// there is one last look, which makes good whatever notification was missed.
    pub(crate) async fn next_look(&mut self) -> bool {
        if self.is_over {
            return false;
        }
        let changed = async {
            // A closed channel has no more news; without this the loop around us would spin.
            if self.changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let stopped = async {
            if self.stopping.wait_for(|stopping| *stopping).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = changed => {}
            () = stopped => self.is_over = true,
            () = tokio::time::sleep_until(self.deadline) => self.is_over = true,
        }
        true
    }
}
