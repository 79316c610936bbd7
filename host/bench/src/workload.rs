//! The workloads, by the names they are asked for under.

use std::fmt;
use std::str::FromStr;

use crate::bench::Bench;
use crate::error::Error;
use crate::figure::Figure;
use crate::{depth, killed, latency, many, sequential, sleepers, timers, wake};

/// One of the things that are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// W1
    Sequential,
    /// W2
    Many,
    /// W3
    Latency,
    /// W4
    Sleepers,
    /// W5
    Killed,
    /// W6
    Wake,
    /// W7
    Depth,
    /// W8
    Timers,
}

/// A name that stands for no workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no workload `{found}`; they are W1 to W8, and several are written as W1,W3")]
pub struct UnknownWorkload {
    found: String,
}

impl Workload {
    /// All, in order.
    pub const ALL: [Self; 8] = [
        Self::Sequential,
        Self::Many,
        Self::Latency,
        Self::Sleepers,
        Self::Killed,
        Self::Wake,
        Self::Depth,
        Self::Timers,
    ];

    /// Its short name, `W1` to `W8`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Sequential => "W1",
            Self::Many => "W2",
            Self::Latency => "W3",
            Self::Sleepers => "W4",
            Self::Killed => "W5",
            Self::Wake => "W6",
            Self::Depth => "W7",
            Self::Timers => "W8",
        }
    }

    /// What it measures, in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Sequential => "one run of 1,000 steps, one after another",
            Self::Many => "200 runs of 10 steps at once",
            Self::Latency => "start to finish of a run of one step, over HTTP",
            Self::Sleepers => "memory of 2,000 and of 100,000 sleeping runs",
            Self::Killed => "200 runs of 10 steps, and SIGKILL in the middle",
            Self::Wake => "wake of an evicted run with 10,000 entries",
            Self::Depth => "time of a step at step 10, 1,000 and 10,000",
            Self::Timers => "starts one by one; 10,000 timers due within a second",
        }
    }

    pub(crate) fn measure(self, bench: &Bench) -> Result<Vec<Figure>, Error> {
        match self {
            Self::Sequential => sequential::measure(bench),
            Self::Many => many::measure(bench),
            Self::Latency => latency::measure(bench),
            Self::Sleepers => sleepers::measure(bench),
            Self::Killed => killed::measure(bench),
            Self::Wake => wake::measure(bench),
            Self::Depth => depth::measure(bench),
            Self::Timers => timers::measure(bench),
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl FromStr for Workload {
    type Err = UnknownWorkload;

    fn from_str(text: &str) -> Result<Self, UnknownWorkload> {
        Self::ALL
            .into_iter()
            .find(|workload| workload.code().eq_ignore_ascii_case(text.trim()))
            .ok_or_else(|| UnknownWorkload {
                found: text.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_found_by_its_name_and_nothing_else_is() {
        for workload in Workload::ALL {
            assert_eq!(workload.code().parse(), Ok(workload));
            assert_eq!(workload.code().to_lowercase().parse(), Ok(workload));
        }
        for text in ["", "W0", "W9", "W1,W2", "1"] {
            let error = text
                .parse::<Workload>()
                .map(Workload::code)
                .map_err(|error| error.to_string());
            assert!(
                error
                    .as_ref()
                    .is_err_and(|error| error.contains("W1 to W8")),
                "{text}: {error:?}"
            );
        }
    }
}
