//! The loop: claim, load, decide, perform, append.
//!
//! ```text
//!            start, deliver            changes, due times
//! server ──────────────► Engine ◄──────────────────────── store
//!                          │ claims                          ▲
//!                          ▼                                 │ append, one commit a step
//!                  one task per driven run ──────────────────┘
//!                          │ Component::run(activation, durable)
//!                          ▼
//!                        guest
//! ```
//!
//! Policy comes from `stepwell_core`, durability from `stepwell_store`, guests from
//! `stepwell_sandbox`; this crate carries facts between them.

pub mod clock;
pub mod register;
pub mod start;

use std::sync::Arc;

use stepwell_core::id::{RunId, TenantName};
use stepwell_store::{Delivered, Message, Store};

/// Drives runs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
}

impl Engine {
    /// Where runs are kept; for reads. Writes go through the engine.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Checks and registers a component. Once this returns, no crash loses it.
    ///
    /// # Errors
    /// See [`register::Error`]; nothing was stored.
    pub async fn register(&self, registration: register::Registration) -> Result<register::Registered, register::Error> {
        unimplemented!("{registration:?}")
    }

    /// Starts a run. Once this returns, no crash loses it.
    ///
    /// # Errors
    /// See [`start::Error`]; nothing was stored.
    pub async fn start(&self, start: start::Start) -> Result<start::Started, start::Error> {
        unimplemented!("{start:?}")
    }

    /// Puts a message into a run's inbox, or says why not. Once this returns, no crash loses it.
    ///
    /// # Errors
    /// Only if the store fails.
    pub async fn deliver(
        &self,
        tenant: &TenantName,
        run: RunId,
        message: Message,
    ) -> Result<Delivered, stepwell_store::Error> {
        unimplemented!("{tenant} {run} {message:?}")
    }

    /// Stops: attempts in flight get a short while to finish, sleeping runs none; every run is
    /// given up and goes on where its journal stands, here or on another host.
    pub async fn shutdown(&self) {}
}
