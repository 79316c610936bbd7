//! What can go wrong with a call of the memory store, and the script that says when it does.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use stepwell_core::id::RunId;

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails with nothing written.
    FailBefore,
    /// It is carried out, and the acknowledgement is lost: [`crate::Error::Unknown`]. A read fails.
    FailAfter,
    /// It is carried out after this much of tokio's time, which a test may have paused.
    Slow(Duration),
    /// It is carried out after this many turns of the scheduler: others overtake it, and no clock
    /// is needed.
    Yield(u32),
    /// Right before it, the run that it is about is taken from its host and is free for others.
    LoseLease,
    /// A write fails with nothing written; a read is carried out.
    DiskFull,
}

/// A call that is about to be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Counts the calls of this store, from 0.
    pub number: u64,
    /// The method of [`crate::Store`], by its name.
    pub method: &'static str,
    /// The run that it is about, if it is about one.
    pub run: Option<RunId>,
}

/// Decides which calls go wrong. Without a script, none does.
#[derive(Default)]
pub struct Faults(Mutex<Script>);

type Decide = Box<dyn FnMut(Call) -> Option<Fault> + Send>;

#[derive(Default)]
struct Script {
    calls: u64,
    decide: Option<Decide>,
}

impl Faults {
    /// From now on `decide` is asked before every call.
    pub fn script(&self, decide: impl FnMut(Call) -> Option<Fault> + Send + 'static) {
        self.lock().decide = Some(Box::new(decide));
    }

    /// From now on the calls with these numbers go wrong.
    pub fn schedule(&self, faults: impl IntoIterator<Item = (u64, Fault)>) {
        let faults: BTreeMap<_, _> = faults.into_iter().collect();
        self.script(move |call| faults.get(&call.number).copied());
    }

    /// From now on no call goes wrong.
    pub fn clear(&self) {
        self.lock().decide = None;
    }

    /// Calls so far: the number of the next one.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    pub(super) fn next(&self, method: &'static str, run: Option<RunId>) -> Option<Fault> {
        let mut script = self.lock();
        let call = Call {
            number: script.calls,
            method,
            run,
        };
        script.calls += 1;
        script.decide.as_mut().and_then(|decide| decide(call))
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let script = self.lock();
        f.debug_struct("Faults")
            .field("calls", &script.calls)
            .field("scripted", &script.decide.is_some())
            .finish()
    }
}
