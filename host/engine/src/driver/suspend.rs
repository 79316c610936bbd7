//! How a guest waits: suspended on its own stack while there is room and little time to wait,
//! given up to its rows otherwise.
//!
//! Both must leave the same journal: nothing here records an answer, it only waits until there may
//! be one.

use stepwell_core::id::Operation;
use stepwell_sandbox::guest::Stop;
use stepwell_store::Then;
use tokio::time::Instant;

use super::state::{Halt, RunState};

/// One wait of a guest, from its `select` to the answer.
#[derive(Debug)]
pub(crate) struct Suspended {
    /// About what the instance costs in memory.
    resident_bytes: u64,
    since: Option<Instant>,
    is_idle: bool,
}

impl Suspended {
    pub(crate) fn new(resident_bytes: u64) -> Self {
        Self {
            resident_bytes,
            since: None,
            is_idle: false,
        }
    }

    /// Makes the wait durable, starts what tasks may start, and returns once there may be an
    /// answer. Gives the run up instead if it is held, the host shuts down, its instance must make
    /// room, or the wait is long.
    pub(crate) async fn wait(
        &mut self,
        state: &mut RunState,
        among: &[Operation],
    ) -> Result<(), Stop> {
        let leaving = state.is_paused() || state.signals.is_shutdown();
        let starts = if leaving {
            Vec::new()
        } else {
            state.start_tasks()
        };
        let mut suspension = state.suspension(among);
        let resident_for_max = state.shared.config.resident_for_max;
        let is_far = suspension
            .due
            .is_some_and(|due| due.since(state.shared.now()) > resident_for_max);
        let wants_to_go = leaving
            || is_far
            || self.is_idle
            || state.signals.is_evict()
            || resident_for_max.is_zero();
        // An instance of a task has no rows to go on from: while one runs, the run stays. At a
        // shutdown the watch ends them when their grace is over.
        let has_tasks = !starts.is_empty() || state.tasks.running_count() > 0;
        if wants_to_go && !has_tasks {
            suspension.release = true;
            // A task that may start now needs a host, and nothing from outside would call for one.
            let then = if state.has_task_to_start() {
                Then::Release
            } else {
                Then::Suspend(suspension)
            };
            state.flush_or_stop(then).await?;
            return Err(state.stop(Halt::Released));
        }
        suspension.tasks_run = has_tasks;
        if !state.is_suspended_as(&suspension) {
            state
                .flush_or_stop(Then::Suspend(suspension.clone()))
                .await?;
        }
        // It has come as far as a wait. Its tasks may still be what is wrong with it.
        if !has_tasks {
            state.trial = None;
        }
        state.spawn_tasks(starts);

        let since = *self.since.get_or_insert_with(Instant::now);
        let seat = state
            .shared
            .residency
            .enter(self.resident_bytes, std::sync::Arc::clone(&state.signals));
        let clock = std::sync::Arc::clone(&state.shared.clock);
        let signals = std::sync::Arc::clone(&state.signals);
        let next_due = state.due(among);
        let due = async {
            match next_due {
                Some(due) if !leaving => clock.sleep_until(due).await,
                _ => std::future::pending().await,
            }
        };
        let idle = async {
            // Once it wanted to go and could not, only its tasks and signals matter.
            if wants_to_go {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep_until(since + resident_for_max).await;
        };
        tokio::select! {
            () = signals.rung() => {}
            () = due => {}
            () = state.tasks.one_ended() => {}
            () = idle => self.is_idle = true,
        }
        drop(seat);
        Ok(())
    }
}
