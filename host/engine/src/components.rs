//! Where the engine gets components from: the sandbox, or a table of scripted guests.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use stepwell_core::id::ComponentDigest;
use stepwell_core::limits::Limits;
use stepwell_sandbox::guest::Component;
use stepwell_sandbox::{CheckError, Checked, Sandbox};

/// Checks and loads components.
#[async_trait]
pub trait Components: fmt::Debug + Send + Sync + 'static {
    /// Checks what somebody wants to register.
    ///
    /// # Errors
    /// Why it is refused, or why the host cannot tell.
    async fn check(&self, bytes: Arc<[u8]>, limits: &Limits) -> Result<Checked, CheckError>;

    /// A component that is in memory.
    fn cached(&self, digest: ComponentDigest) -> Option<Arc<dyn Component>>;

    /// A component that passed the check before.
    ///
    /// # Errors
    /// A fault of the host, for people.
    async fn load(
        &self,
        digest: ComponentDigest,
        bytes: Arc<[u8]>,
    ) -> Result<Arc<dyn Component>, String>;
}

#[async_trait]
impl Components for Sandbox {
    async fn check(&self, bytes: Arc<[u8]>, limits: &Limits) -> Result<Checked, CheckError> {
        Sandbox::check(self, bytes, limits).await
    }

    fn cached(&self, digest: ComponentDigest) -> Option<Arc<dyn Component>> {
        Sandbox::cached(self, digest)
    }

    async fn load(
        &self,
        digest: ComponentDigest,
        bytes: Arc<[u8]>,
    ) -> Result<Arc<dyn Component>, String> {
        Sandbox::load(self, digest, bytes)
            .await
            .map_err(|error| error.to_string())
    }
}
