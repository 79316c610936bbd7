//! What all requests share.

use std::sync::Arc;

use axum::Router;
use stepwell_engine::Engine;
use stepwell_engine::clock::Clock;
use tokio::sync::{Semaphore, watch};

use crate::routes;

/// Requests that wait for news at once. Each holds a connection and a few kilobytes.
const WAITING_MAX: usize = 2_048;

/// Components that are being uploaded and checked at once; each may hold 32 MiB and a core.
const UPLOADS_MAX: usize = 2;

/// JSON bodies of more than 64 KiB that are being read at once; each may hold 2 MiB.
const BODIES_MAX: usize = 32;

/// What all requests share: the engine, and the bounds on what they may hold at once. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Server {
    engine: Engine,
    clock: Arc<dyn Clock>,
    waiting: Arc<Semaphore>,
    uploads: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    stopping: Arc<watch::Sender<bool>>,
}

impl Server {
    /// A server in front of this engine. The clock only turns `delay` into a start time.
    pub fn new(engine: Engine, clock: Arc<dyn Clock>) -> Self {
        Self {
            engine,
            clock,
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            uploads: Arc::new(Semaphore::new(UPLOADS_MAX)),
            bodies: Arc::new(Semaphore::new(BODIES_MAX)),
            stopping: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Every route; the module doc of `routes` lists them.
    pub fn router(&self) -> Router {
        routes::router(self.clone())
    }

    /// Answers the requests that wait, with what there is to tell now. No request waits from here on.
    pub fn stop_waiting(&self) {
        self.stopping.send_replace(true);
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    pub(crate) fn waiting_places(&self) -> &Arc<Semaphore> {
        &self.waiting
    }

    pub(crate) fn upload_places(&self) -> &Semaphore {
        &self.uploads
    }

    pub(crate) fn body_places(&self) -> &Semaphore {
        &self.bodies
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }
}
