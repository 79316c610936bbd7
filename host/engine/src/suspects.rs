//! Runs that may be what took their last hosts down, driven one at a time.
//!
//! A host that is lost leaves many runs behind that had just been claimed and had got nowhere, and
//! at most a few of them are to blame. Were all driven together again, each would be blamed for
//! what one of them does. So this host takes in one suspect at a time, until that has got further,
//! waits, is given up, or has gone on for a while with this host still alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// What takes its host down does so sooner than this, or holds up no other suspect.
const TRIAL: Duration = Duration::from_secs(10);

/// Whether a suspect is on trial.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    on_trial: AtomicBool,
    /// Rings when a trial is over, so that the next suspect may be claimed.
    pub(crate) over: Notify,
}

impl Suspects {
    /// How many more suspects may be claimed.
    pub(crate) fn room(&self) -> usize {
        usize::from(!self.on_trial.load(Ordering::Acquire))
    }

    /// Begins the trial of a suspect that was claimed.
    pub(crate) fn begin(self: &Arc<Self>) -> Trial {
        self.on_trial.store(true, Ordering::Release);
        let open = Arc::new(Open {
            suspects: Arc::clone(self),
            is_over: AtomicBool::new(false),
        });
        let timed = Arc::clone(&open);
        tokio::spawn(async move {
            tokio::time::sleep(TRIAL).await;
            timed.close();
        });
        Trial(open)
    }
}

/// The trial of one suspect; over when it is dropped.
#[derive(Debug)]
pub(crate) struct Trial(Arc<Open>);

impl Drop for Trial {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[derive(Debug)]
struct Open {
    suspects: Arc<Suspects>,
    is_over: AtomicBool,
}

impl Open {
    fn close(&self) {
        if !self.is_over.swap(true, Ordering::AcqRel) {
            self.suspects.on_trial.store(false, Ordering::Release);
            self.suspects.over.notify_one();
        }
    }
}
