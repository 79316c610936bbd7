//! The loop: claim, load, decide, perform, append.
//!
//! ```text
//!            start, deliver            changes, due times
//! server ──────────────► Engine ◄──────────────────────── store
//!                          │ claims (dispatch)               ▲
//!                          ▼                                 │ append, one commit a step
//!                  one driver per driven run ────────────────┘
//!                          │ Component::run(activation, durable)
//!                          ▼
//!                        guest
//! ```
//!
//! Policy comes from `stepwell_core`, durability from `stepwell_store`, guests from
//! `stepwell_sandbox`; this crate carries facts between them.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")
)]

pub mod clock;
mod components;
mod config;
mod dispatch;
mod driver;
mod key;
mod lease;
mod logs;
pub mod register;
mod residency;
mod schema;
pub mod send;
mod shared;
mod signals;
pub mod start;
mod suspects;
mod versions;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stepwell_core::id::{HostId, RunId, TenantName};
use stepwell_store::{Delivered, Message, Store};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use uuid::Uuid;

pub use components::Components;
pub use config::Config;

use clock::Clock;
use lease::Lease;
use shared::{Parts, Shared};
use versions::Versions;

/// Drives runs. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
    versions: Arc<Versions>,
    background: Arc<Mutex<Background>>,
}

/// What goes on beside the drivers.
#[derive(Default)]
struct Background {
    stop: Arc<Notify>,
    tasks: Vec<JoinHandle<()>>,
    stop_logs: Arc<Notify>,
    log_task: Option<JoinHandle<()>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("host", &self.shared.host)
            .finish_non_exhaustive()
    }
}

/// How often a shutdown looks whether all drivers are done.
const SHUTDOWN_LOOK: Duration = Duration::from_millis(5);

impl Engine {
    /// Starts driving runs, those first that a host which no longer lives has left behind.
    ///
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn launch(
        store: Arc<dyn Store>,
        components: Arc<dyn Components>,
        clock: Arc<dyn Clock>,
        config: Config,
    ) -> Result<Self, stepwell_store::Error> {
        let host = HostId::from_raw(Uuid::now_v7().as_u128());
        let stop_logs = Arc::new(Notify::new());
        let (logs, log_task) = logs::Logs::start(Arc::clone(&store), Arc::clone(&stop_logs));
        let changes = store.changes();
        let lease = Lease::take(host, &*store, &*clock, config.lease).await?;
        let shared = Arc::new(Shared::new(Parts {
            host,
            store,
            components,
            clock,
            config,
            lease,
            logs,
        }));
        let stop = Arc::new(Notify::new());
        let tasks = vec![
            tokio::spawn(dispatch::dispatch(
                Arc::clone(&shared),
                changes,
                Arc::clone(&stop),
            )),
            tokio::spawn(lease::keep_renewing(Arc::clone(&shared))),
        ];
        let background = Background {
            stop,
            tasks,
            stop_logs,
            log_task: Some(log_task),
        };
        Ok(Self {
            shared,
            versions: Arc::default(),
            background: Arc::new(Mutex::new(background)),
        })
    }

    /// Where runs are kept; for reads. Writes go through the engine.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// This start of a host.
    pub fn host(&self) -> HostId {
        self.shared.host
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// How many runs this host drives now, resident ones included.
    pub fn driven(&self) -> usize {
        self.shared.driven_count()
    }

    /// Checks and registers a component. Once this returns, no crash loses it.
    ///
    /// # Errors
    /// See [`register::Error`]; nothing was stored.
    pub async fn register(
        &self,
        registration: register::Registration,
    ) -> Result<register::Registered, register::Error> {
        let registered = register::register(&self.shared, registration).await;
        self.versions.forget();
        registered
    }

    /// Starts a run. Once this returns, no crash loses it.
    ///
    /// # Errors
    /// See [`start::Error`]; nothing was stored.
    pub async fn start(&self, start: start::Start) -> Result<start::Started, start::Error> {
        start::start(&self.shared, &self.versions, start).await
    }

    /// Sends an event to a run, or says why not. Once this returns, no crash loses it.
    ///
    /// # Errors
    /// See [`send::Error`]; nothing was stored.
    pub async fn send(
        &self,
        tenant: &TenantName,
        run: RunId,
        event: send::Send,
    ) -> Result<Delivered, send::Error> {
        match send::check(&self.shared, &self.versions, (tenant, run), event).await? {
            Some(message) => Ok(self.deliver(tenant, run, message).await?),
            None => Ok(Delivered::NoSuchRun),
        }
    }

    /// Puts a message into a run's inbox, or says why not. An event is taken as it is; what comes
    /// from outside goes through [`Engine::send`]. Once this returns, no crash loses it.
    ///
    /// # Errors
    /// Only if the store fails.
    pub async fn deliver(
        &self,
        tenant: &TenantName,
        run: RunId,
        message: Message,
    ) -> Result<Delivered, stepwell_store::Error> {
        lease::keep(&self.shared).await;
        let is_terminate = matches!(message, Message::Terminate { .. });
        let delivered = self
            .shared
            .store
            .deliver(tenant, run, message, self.shared.now())
            .await?;
        // Before whoever asked is answered: no operation that begins after the answer misses it.
        if let (Delivered::Accepted { .. }, Some(signals)) = (delivered, self.shared.signals(run)) {
            if is_terminate {
                signals.raise_lost();
            } else {
                signals.raise_inbox();
            }
        }
        Ok(delivered)
    }

    /// Stops: attempts in flight get a short while to finish, waiting runs none; every run is given
    /// up and goes on where its journal stands, here or on another host.
    pub async fn shutdown(&self) {
        let background = std::mem::take(
            &mut *self
                .background
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        self.shared.shut_down();
        // Twice the grace period: what has not ended by then is left to the next claim.
        let give_up = tokio::time::Instant::now()
            + self.shared.config.shutdown_grace * 2
            + Duration::from_secs(1);
        while self.shared.driven_count() > 0 && tokio::time::Instant::now() < give_up {
            tokio::time::sleep(SHUTDOWN_LOOK).await;
        }
        background.stop.notify_one();
        for task in background.tasks {
            task.abort();
            // It was stopped, which is what is wanted.
            let _ = task.await;
        }
        background.stop_logs.notify_one();
        if let Some(task) = background.log_task {
            let _ = task.await;
        }
        // Lets another host have what is left at once.
        if let Err(error) = self
            .shared
            .store
            .renew_lease(self.shared.host, self.shared.now())
            .await
        {
            tracing::warn!(%error, "the lease was not given up; it runs out by itself");
        }
    }
}
