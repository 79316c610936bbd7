//! Claims runs that are ready, and passes on what others must react to. Driven by notifications
//! and due times; the sweep is a safety net.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use stepwell_core::id::{Epoch, RunId};
use stepwell_core::time::Timestamp;
use stepwell_store::{Change, Claim, Error, Room};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::MissedTickBehavior;

use crate::driver;
use crate::lease;
use crate::shared::Shared;
use crate::signals::Signals;

/// Runs claimed in one call.
const CLAIM_BATCH: usize = 256;

/// How long to wait after a claim that failed.
const CLAIM_AGAIN: Duration = Duration::from_secs(1);

/// Starts driving a claimed run.
pub(crate) fn drive(shared: &Arc<Shared>, claim: Claim) {
    let signals = shared.enter(claim.run, claim.epoch);
    let trial = claim.is_suspect().then(|| shared.suspects.begin());
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let (run, epoch) = (claim.run, claim.epoch);
        let _leave = Leave {
            shared: Arc::clone(&shared),
            run,
            epoch,
        };
        driver::drive(shared, claim, signals, trial).await;
    });
}

struct Leave {
    shared: Arc<Shared>,
    run: RunId,
    epoch: Epoch,
}

impl Drop for Leave {
    fn drop(&mut self) {
        self.shared.leave(self.run, self.epoch);
    }
}

/// Runs until the shutdown.
pub(crate) async fn dispatch(
    shared: Arc<Shared>,
    mut changes: Receiver<Change>,
    stop: Arc<tokio::sync::Notify>,
) {
    let mut work = Work {
        look: true,
        due: None,
    };
    let mut sweep = tokio::time::interval(shared.config.sweep);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut strays = HashMap::new();
    loop {
        if work.look && shared.room() > 0 {
            lease::keep(&shared).await;
            let now = shared.now();
            match claim(&shared, now).await {
                Ok(may_have_more) => {
                    work.look = may_have_more;
                    if !may_have_more {
                        // Whatever comes to fall due from now on is told of by `Change::Due`, which is
                        // still queued.
                        work.due = next_due(&shared, now).await;
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "no runs were claimed; trying again in {CLAIM_AGAIN:?}");
                    work.look = false;
                    work.due = Some(shared.now().after(CLAIM_AGAIN));
                }
            }
        }
        let due = work.due;
        let clock = Arc::clone(&shared.clock);
        let until_due = async {
            match due {
                Some(due) => clock.sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.notified() => return,
            change = changes.recv() => work.take_in(&shared, change),
            () = until_due => { work.due = None; work.look = true; }
            () = shared.freed.notified(), if work.look => {}
            () = shared.suspects.over.notified() => work.look = true,
            _ = sweep.tick() => {
                work.look = true;
                strays = give_up_strays(&shared, &strays).await;
            }
        }
        // Whatever else has come meanwhile costs no further round.
        loop {
            match changes.try_recv() {
                Ok(change) => work.take_in(&shared, Ok(change)),
                Err(TryRecvError::Lagged(count)) => {
                    work.take_in(&shared, Err(RecvError::Lagged(count)));
                }
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
    }
}

#[derive(Debug)]
struct Work {
    /// Whether a run may be ready to be claimed.
    look: bool,
    /// When the next run falls due.
    due: Option<Timestamp>,
}

impl Work {
    fn take_in(&mut self, shared: &Shared, change: Result<Change, RecvError>) {
        match change {
            Ok(Change::Ready { .. }) => self.look = true,
            Ok(Change::Due { at, .. }) => self.due = Some(self.due.map_or(at, |due| due.min(at))),
            Ok(Change::Inbox { run }) => {
                if let Some(signals) = shared.signals(run) {
                    signals.raise_inbox();
                }
            }
            Ok(Change::Terminated { run }) => {
                if let Some(signals) = shared.signals(run) {
                    signals.raise_lost();
                }
            }
            // Too much at once: everybody looks for themselves.
            Err(RecvError::Lagged(_)) => {
                self.look = true;
                shared.for_each_driven(Signals::raise_inbox);
            }
            Err(RecvError::Closed) => {}
        }
    }
}

/// Claims what is ready by `now` and there is room for. True if there may be more.
async fn claim(shared: &Arc<Shared>, now: Timestamp) -> Result<bool, Error> {
    let limit = shared.room().min(CLAIM_BATCH);
    let room = Room {
        runs: limit,
        suspects: shared.suspects.room(),
    };
    let claims = shared.store.claim(shared.host, now, room).await?;
    let count = claims.len();
    for claim in claims {
        drive(shared, claim);
    }
    if count == limit && shared.room() == 0 {
        // Those who wait in memory make room for those who are ready to go on.
        shared
            .residency
            .evict(CLAIM_BATCH.min(shared.driven_count()));
    }
    Ok(count == limit)
}

/// Gives up runs that this host holds and doesn't drive, as a claim leaves behind whose
/// acknowledgement was lost: those that were found by the last sweep too, for a run that has just
/// been claimed is entered a moment later. Returns what this sweep found.
async fn give_up_strays(shared: &Shared, before: &HashMap<RunId, Epoch>) -> HashMap<RunId, Epoch> {
    let held = match shared.store.held(shared.host).await {
        Ok(held) => held,
        Err(error) => {
            tracing::error!(%error, "the runs that this host holds were not read; the next sweep looks again");
            return HashMap::new();
        }
    };
    let mut strays = HashMap::new();
    for (run, epoch) in held {
        if shared.drives(run, epoch) {
            continue;
        }
        strays.insert(run, epoch);
        if before.get(&run) != Some(&epoch) {
            continue;
        }
        tracing::warn!(%run, "held and not driven; it is given up, to be claimed anew");
        if let Err(error) = shared.store.abandon(run, epoch, shared.now()).await {
            tracing::error!(%run, %error, "not given up; the next sweep tries again");
        }
    }
    strays
}

/// When the next run falls due after the time by which runs were claimed. One that was due by then
/// and was not claimed is a suspect, whose turn is told of, or the lease had run out, and the sweep
/// looks again.
async fn next_due(shared: &Shared, claimed_at: Timestamp) -> Option<Timestamp> {
    let from = claimed_at.after(Duration::from_millis(1));
    let until = Timestamp::from_ms(u64::MAX);
    match shared.store.due(from, until, 1).await {
        Ok(due) => due.first().map(|(at, _)| *at),
        Err(error) => {
            tracing::error!(%error, "the next due time was not read; the sweep looks again");
            None
        }
    }
}
