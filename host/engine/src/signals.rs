//! How the rest of the engine gets the attention of the task that drives a run.
//!
//! Flags and a bell: raising a flag rings; the driver looks at the flags whenever it is about to do
//! something new, and sleeps on the bell while the guest waits. A flag says that there is something
//! to look at, never what it is: that is in the store.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// The flags of one driven run.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    inbox: AtomicBool,
    evict: AtomicBool,
    shutdown: AtomicBool,
    lost: AtomicBool,
    /// For the driver while its guest waits.
    bell: Notify,
    /// For the watch over a running guest.
    watch_bell: Notify,
}

impl Signals {
    /// Something was put into the inbox, or the run was paused or resumed.
    pub(crate) fn raise_inbox(&self) {
        self.raise(&self.inbox);
    }

    /// The instance is to be given up at the next wait.
    pub(crate) fn raise_evict(&self) {
        self.raise(&self.evict);
    }

    /// The host shuts down.
    pub(crate) fn raise_shutdown(&self) {
        self.raise(&self.shutdown);
    }

    /// The run is no longer ours: drop it at once.
    pub(crate) fn raise_lost(&self) {
        self.raise(&self.lost);
    }

    fn raise(&self, flag: &AtomicBool) {
        flag.store(true, Ordering::Release);
        self.bell.notify_one();
        self.watch_bell.notify_one();
    }

    /// Whether to look into the inbox; lowers the flag, so look after asking.
    pub(crate) fn take_inbox(&self) -> bool {
        // The load spares the hot path a write to a shared line.
        self.inbox.load(Ordering::Acquire) && self.inbox.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn is_inbox(&self) -> bool {
        self.inbox.load(Ordering::Acquire)
    }

    pub(crate) fn is_evict(&self) -> bool {
        self.evict.load(Ordering::Acquire)
    }

    pub(crate) fn is_shutdown(&self) -> bool {
        self.shutdown.load(Ordering::Acquire)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Returns after the next ring, or at once if it rang since the last return.
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }

    /// Like [`Signals::rung`], for the watch.
    pub(crate) async fn watch_rung(&self) {
        self.watch_bell.notified().await;
    }

    /// Rings for the watch alone: its deadline moved forward.
    pub(crate) fn ring_watch(&self) {
        self.watch_bell.notify_one();
    }
}
