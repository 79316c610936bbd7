//! Measures the host on the machine it is on: eight workloads on the real sandbox, the real SQLite
//! store and the real HTTP server, and beside them the bare limits of the same file system.
//!
//! ```text
//! cli ──► run ──► one file per workload ──► in_process ──► engine, store, sandbox
//!                        │                └► host ──► this binary again, as `serve`
//!                        └► figures ──► report ──► text or JSON
//! ```
//!
//! Workloads whose figure is the host's own time (`sequential`, `many`, `depth`) drive an engine in
//! this process, where the store's count of commits can be read and no HTTP is in between. Those
//! about memory, latency, crashes and timers are asked over HTTP of a child process, so that the
//! memory is the host's alone and SIGKILL is real.
//!
//! Nothing here decides whether a figure is good: a bound is part of the figure, and the report
//! says whether it is kept.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")
)]

mod bare;
mod bench;
mod client;
mod connections;
mod depth;
mod error;
mod figure;
mod guest;
mod hardware;
mod host;
mod in_process;
mod killed;
mod latency;
mod many;
mod report;
mod sample;
mod sequential;
mod sleepers;
mod timers;
mod wake;
mod wall;
mod workload;

pub use error::Error;
pub use hardware::Hardware;
pub use report::{Limit, Measured, Report, Settings, WorkloadReport};
pub use workload::{UnknownWorkload, Workload};

use std::path::PathBuf;

use bench::Bench;
use figure::{Figure, combine};

/// What to measure, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to put temporary folders; the system's temporary folder if absent.
    pub data: Option<PathBuf>,
    /// Which workloads; empty for all.
    pub only: Vec<Workload>,
    /// How often everything is measured; the report has the medians. From 1.
    pub runs: u32,
    /// About a hundredth of the load: shows that it works, and measures nothing.
    pub is_quick: bool,
}

/// Measures, and tells what is being measured by calling `tell` with a line each time. Takes a few
/// minutes. Leaves nothing behind.
///
/// # Errors
/// If a workload does not do what it should: then there is nothing to report.
pub fn run(options: &Options, tell: &mut dyn FnMut(&str)) -> Result<Report, Error> {
    let bench = Bench::new(options)?;
    let hardware = Hardware::look(bench.folder());
    let workloads: Vec<Workload> = Workload::ALL
        .into_iter()
        .filter(|workload| options.only.is_empty() || options.only.contains(workload))
        .collect();
    let mut bare: Vec<Vec<Figure>> = Vec::new();
    let mut measured: Vec<Vec<Vec<Figure>>> = vec![Vec::new(); workloads.len()];
    let runs = options.runs.max(1);
    for run in 1..=runs {
        let which = if runs == 1 {
            String::new()
        } else {
            format!("{run}/{runs}  ")
        };
        tell(&format!("{which}bare limits"));
        bare.push(bench.bare().measure(&bench)?);
        for (workload, measured) in workloads.iter().zip(&mut measured) {
            tell(&format!("{which}{workload}  {}", workload.title()));
            measured.push(workload.measure(&bench)?);
        }
    }
    Ok(Report::new(
        Settings::new(runs, options.is_quick),
        hardware.looked_again(),
        combine(&bare),
        workloads
            .into_iter()
            .zip(measured.iter().map(|runs| combine(runs)))
            .collect(),
    ))
}
