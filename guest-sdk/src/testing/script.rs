//! What happens to a run in a test, and when.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use super::Serve;
use crate::bindings::stepwell::workflow::types::{Failure, Payload};

/// One attempt of a task: its input, the attempt's number and key.
pub(super) type RunTask = fn(&Payload, u32, String) -> Result<Payload, Failure>;

#[derive(Default)]
pub(super) struct Script {
    /// In order of time, counted from the run's start.
    pub(super) stimuli: VecDeque<(u64, Stimulus)>,
    pub(super) tasks: BTreeMap<&'static str, RunTask>,
    pub(super) http: Option<Serve>,
}

/// Something from outside.
#[derive(Debug, Clone)]
pub(super) enum Stimulus {
    Event { name: String, payload: Payload },
    Cancel { reason: String },
    Wake,
}

impl Script {
    /// Adds what happens after so many milliseconds; at one time, in the order added.
    pub(super) fn add(&mut self, after_ms: u64, stimulus: Stimulus) {
        let place = self
            .stimuli
            .partition_point(|(other_ms, _)| *other_ms <= after_ms);
        self.stimuli.insert(place, (after_ms, stimulus));
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("stimuli", &self.stimuli)
            .field("tasks", &self.tasks.keys())
            .finish_non_exhaustive()
    }
}
