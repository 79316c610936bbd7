//! What an operator may set about the engine, with the defaults.

use std::time::Duration;

use stepwell_core::limits::Limits;

/// Settings of one engine.
#[derive(Debug, Clone)]
pub struct Config {
    /// The limits of every run.
    pub limits: Limits,
    /// Runs that this host drives at once, resident ones included. The sandbox's pool must hold as
    /// many instances, and `tasks_max` more.
    pub driven_max: usize,
    /// Suspended runs whose instance is kept in memory; the longest suspended is evicted beyond it.
    pub resident_max: usize,
    /// Memory of the instances of suspended runs, in bytes; likewise.
    pub resident_bytes_max: u64,
    /// A run that waits for longer than this is evicted; one whose timer is further off is evicted
    /// at once. Zero evicts at every wait, which tests use to show that it makes no difference.
    pub resident_for_max: Duration,
    /// Tasks of all runs that run at once.
    pub tasks_max: usize,
    /// How long attempts in flight may go on after a shutdown was asked for.
    pub shutdown_grace: Duration,
    /// How long a claim of this host holds without renewal.
    pub lease: Duration,
    /// How often to look for work that no notification told of: a safety net.
    pub sweep: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            driven_max: 2_000,
            resident_max: 1_000,
            resident_bytes_max: 64 * 1024 * 1024,
            resident_for_max: Duration::from_secs(5),
            tasks_max: 64,
            shutdown_grace: Duration::from_secs(5),
            lease: Duration::from_secs(60),
            sweep: Duration::from_secs(30),
        }
    }
}

/// Claims in a row without progress after which a run is set aside as stuck.
pub(crate) const CLAIMS_WITHOUT_PROGRESS_MAX: u32 = 5;
