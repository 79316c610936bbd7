//! The tasks of one run: each attempt in an instance of its own, several at once.
//!
//! Tasks outlive the workflow's instance within one claim: when a step's trap costs the instance,
//! the tasks go on while the workflow is replayed.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use stepwell_core::id::Operation;
use stepwell_core::payload::{Failure, Payload};
use stepwell_core::replay::{Allowance, RunningAttempt};
use stepwell_core::retry::{AttemptEnd, Options};
use stepwell_sandbox::guest::{Component, Exit, LogSink, TaskCall};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;

/// How an attempt of a task ended.
pub(crate) type TaskOutcome = Result<Payload, (AttemptEnd, Failure)>;

/// A task as the guest asked for it.
#[derive(Debug, Clone)]
pub(crate) struct AskedTask {
    pub(crate) name: String,
    pub(crate) input: Payload,
    pub(crate) options: Options,
}

/// The tasks of one run that have been asked for and have not ended.
#[derive(Debug)]
pub(crate) struct Tasks {
    asked: BTreeMap<Operation, AskedTask>,
    running: BTreeMap<Operation, Running>,
    sender: mpsc::UnboundedSender<(Operation, u32, TaskOutcome)>,
    /// Bounded by the number of running tasks, which is bounded.
    receiver: mpsc::UnboundedReceiver<(Operation, u32, TaskOutcome)>,
    /// Ended, and not yet recorded.
    ended: Vec<(RunningAttempt, TaskOutcome)>,
}

#[derive(Debug)]
struct Running {
    attempt: RunningAttempt,
    abort: AbortHandle,
}

impl Default for Tasks {
    fn default() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            asked: BTreeMap::new(),
            running: BTreeMap::new(),
            sender,
            receiver,
            ended: Vec::new(),
        }
    }
}

impl Tasks {
    /// The guest asked for a task, now or on a replay.
    pub(crate) fn ask(&mut self, operation: Operation, task: AskedTask) {
        self.asked.insert(operation, task);
    }

    /// The guest withdrew an operation, or it has ended: its attempt is stopped.
    pub(crate) fn forget(&mut self, operation: Operation) {
        self.asked.remove(&operation);
        if let Some(running) = self.running.remove(&operation) {
            running.abort.abort();
        }
    }

    /// Stops everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn running_count(&self) -> usize {
        self.running.len()
    }

    /// The tasks that have been asked for and are not running, in order.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (Operation, &AskedTask)> {
        self.asked
            .iter()
            .filter(|(operation, _)| !self.running.contains_key(operation))
            .map(|(op, task)| (*op, task))
    }

    pub(crate) fn asked(&self, operation: Operation) -> Option<&AskedTask> {
        self.asked.get(&operation)
    }

    /// Starts an attempt whose start is durable.
    pub(crate) fn spawn(&mut self, start: TaskStart) {
        let operation = start.attempt.operation;
        let attempt = start.attempt;
        let sender = self.sender.clone();
        let handle = tokio::spawn(async move {
            let number = start.attempt.number;
            let outcome = start.run().await;
            // Nobody listens once the run has ended; then the outcome is of no use.
            let _ = sender.send((operation, number, outcome));
        });
        self.running.insert(
            operation,
            Running {
                attempt,
                abort: handle.abort_handle(),
            },
        );
    }

    /// The attempts that have ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Vec<(RunningAttempt, TaskOutcome)> {
        while let Ok(ended) = self.receiver.try_recv() {
            self.note(ended);
        }
        std::mem::take(&mut self.ended)
    }

    /// Returns once an attempt has ended; never, if none is running. Cancel safe.
    pub(crate) async fn one_ended(&mut self) {
        if let Some(ended) = self.receiver.recv().await {
            self.note(ended);
        }
    }

    fn note(&mut self, (operation, number, outcome): (Operation, u32, TaskOutcome)) {
        // An outcome that was under way when its task was withdrawn is dropped here.
        if self
            .running
            .get(&operation)
            .is_some_and(|running| running.attempt.number == number)
            && let Some(running) = self.running.remove(&operation)
        {
            self.ended.push((running.attempt, outcome));
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.running
            .values()
            .for_each(|running| running.abort.abort());
    }
}

/// All that one attempt of a task needs.
pub(crate) struct TaskStart {
    pub(crate) attempt: RunningAttempt,
    pub(crate) component: Arc<dyn Component>,
    pub(crate) call: TaskCall,
    pub(crate) log: Box<dyn LogSink>,
    /// Bounds the tasks of all runs.
    pub(crate) slots: Arc<Semaphore>,
    /// For this attempt, counted from when it gets a slot.
    pub(crate) allowance: Allowance,
}

impl TaskStart {
    async fn run(self) -> TaskOutcome {
        let _slot = self.slots.acquire().await;
        let guest = self.component.run_task(self.call, self.log);
        // A fault of the host says nothing about the task; the attempt is lost with it.
        let fault = |message: String| {
            let cause = Failure::retryable("host-fault", message);
            Err((AttemptEnd::HostLost, cause))
        };
        let guest = AssertUnwindSafe(guest).catch_unwind();
        match tokio::time::timeout(self.allowance.span(), guest).await {
            Err(_) => Err((AttemptEnd::TimedOut, self.allowance.exceeded())),
            Ok(Ok(Exit::Returned(Ok(output)))) => Ok(output),
            Ok(Ok(Exit::Returned(Err(failure)))) => Err((AttemptEnd::Failed, failure)),
            Ok(Ok(Exit::Trapped(trap))) => Err(super::trapped(&trap)),
            Ok(Ok(Exit::Stopped)) => fault("the host stopped it".to_owned()),
            Ok(Ok(Exit::Fault(message))) => fault(message),
            Ok(Err(_)) => fault("the host panicked, which is a bug".to_owned()),
        }
    }
}
