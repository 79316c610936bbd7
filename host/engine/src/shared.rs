//! What every part of the engine shares.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stepwell_core::id::{Epoch, HostId, RunId};
use stepwell_core::time::Timestamp;
use stepwell_store::Store;
use tokio::sync::{Notify, Semaphore};

use crate::clock::Clock;
use crate::components::Components;
use crate::config::Config;
use crate::lease::Lease;
use crate::logs::Logs;
use crate::residency::Residency;
use crate::signals::Signals;
use crate::suspects::Suspects;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) host: HostId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) components: Arc<dyn Components>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) config: Config,
    pub(crate) lease: Lease,
    pub(crate) logs: Logs,
    pub(crate) residency: Arc<Residency>,
    pub(crate) task_slots: Arc<Semaphore>,
    pub(crate) suspects: Arc<Suspects>,
    /// The runs that this host drives. Held for a look-up or a change only, never across an await.
    driven: Mutex<HashMap<RunId, (Epoch, Arc<Signals>)>>,
    /// Rings when a driven run is given up, so that another may be claimed.
    pub(crate) freed: Notify,
    shutting_down: AtomicBool,
}

/// The parts that an engine is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) host: HostId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) components: Arc<dyn Components>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) config: Config,
    pub(crate) lease: Lease,
    pub(crate) logs: Logs,
}

impl Shared {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            host,
            store,
            components,
            clock,
            config,
            lease,
            logs,
        } = parts;
        Self {
            residency: Arc::new(Residency::new(
                config.resident_max,
                config.resident_bytes_max,
            )),
            task_slots: Arc::new(Semaphore::new(config.tasks_max)),
            suspects: Arc::default(),
            driven: Mutex::default(),
            freed: Notify::new(),
            shutting_down: AtomicBool::new(false),
            host,
            store,
            components,
            clock,
            config,
            lease,
            logs,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn driven(&self) -> MutexGuard<'_, HashMap<RunId, (Epoch, Arc<Signals>)>> {
        // Nothing in here can panic half-way.
        self.driven.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many more runs this host may drive.
    pub(crate) fn room(&self) -> usize {
        if self.is_shutting_down() {
            return 0;
        }
        self.config.driven_max.saturating_sub(self.driven().len())
    }

    pub(crate) fn driven_count(&self) -> usize {
        self.driven().len()
    }

    /// Enters a claimed run.
    pub(crate) fn enter(&self, run: RunId, epoch: Epoch) -> Arc<Signals> {
        let signals = Arc::<Signals>::default();
        if self.is_shutting_down() {
            signals.raise_shutdown();
        }
        self.driven().insert(run, (epoch, Arc::clone(&signals)));
        signals
    }

    /// Strikes a run that was given up; not the same run if it has been claimed anew since.
    pub(crate) fn leave(&self, run: RunId, epoch: Epoch) {
        let mut driven = self.driven();
        if driven.get(&run).is_some_and(|(known, _)| *known == epoch) {
            driven.remove(&run);
        }
        drop(driven);
        self.freed.notify_one();
    }

    /// Whether this host drives a run under this epoch.
    pub(crate) fn drives(&self, run: RunId, epoch: Epoch) -> bool {
        let driven = self.driven();
        driven.get(&run).is_some_and(|(known, _)| *known == epoch)
    }

    /// The signals of a driven run.
    pub(crate) fn signals(&self, run: RunId) -> Option<Arc<Signals>> {
        self.driven()
            .get(&run)
            .map(|(_, signals)| Arc::clone(signals))
    }

    /// Does something with the signals of every driven run.
    pub(crate) fn for_each_driven(&self, act: impl Fn(&Signals)) {
        self.driven().values().for_each(|(_, signals)| act(signals));
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::Acquire)
    }

    pub(crate) fn shut_down(&self) {
        self.shutting_down.store(true, Ordering::Release);
        self.for_each_driven(Signals::raise_shutdown);
    }
}
