//! This host's lease: how everybody else knows that it lives.
//!
//! It is renewed long before it runs out. It also runs out when the wall clock is set forward, or
//! when the whole machine stood still; so whoever is about to make a call that notices leases looks
//! at the clock first, and no run is lost for a clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stepwell_core::id::HostId;
use stepwell_store::{Error, Store};

use crate::clock::Clock;
use crate::shared::Shared;

/// Until when this host is known to live.
#[derive(Debug)]
pub(crate) struct Lease {
    span: Duration,
    until_ms: AtomicU64,
}

impl Lease {
    /// Takes the lease for the first time.
    pub(crate) async fn take(
        host: HostId,
        store: &dyn Store,
        clock: &dyn Clock,
        span: Duration,
    ) -> Result<Self, Error> {
        let lease = Self {
            span,
            until_ms: AtomicU64::new(0),
        };
        lease.renew(host, store, clock).await?;
        Ok(lease)
    }

    async fn renew(&self, host: HostId, store: &dyn Store, clock: &dyn Clock) -> Result<(), Error> {
        let until = clock.now().after(self.span);
        store.renew_lease(host, until).await?;
        self.until_ms.store(until.as_ms(), Ordering::Release);
        Ok(())
    }
}

/// Renews the lease for as long as this host lives.
pub(crate) async fn keep_renewing(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(shared.lease.span / 4).await;
        renew(&shared).await;
    }
}

/// Renews the lease if by the wall clock it has less than half of its span left.
pub(crate) async fn keep(shared: &Shared) {
    let until_ms = shared.lease.until_ms.load(Ordering::Acquire);
    if shared.now().after(shared.lease.span / 2).as_ms() >= until_ms {
        renew(shared).await;
    }
}

async fn renew(shared: &Shared) {
    let renewed = shared
        .lease
        .renew(shared.host, &*shared.store, &*shared.clock)
        .await;
    if let Err(error) = renewed {
        tracing::error!(%error, "the lease was not renewed; it is tried again");
    }
}
