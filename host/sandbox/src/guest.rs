//! What the engine and a guest say to each other, with wasmtime on neither side: the traits that
//! the real sandbox and the scripted guest of the simulation both stand behind.
//!
//! ```text
//! engine ── Component::run(activation, durable) ──► guest
//!    ▲                                                │
//!    └────────────── Durable::step, select, … ◄───────┘      and in the end an Exit
//! ```

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::id::Operation;
use stepwell_core::journal::{EventMessage, Wake};
use stepwell_core::limits::Limits;
use stepwell_core::payload::{Failure, Payload};
use stepwell_core::retry::{Options, StepError};
use stepwell_core::time::Timestamp;

/// A component that is compiled and ready to be instantiated.
#[async_trait]
pub trait Component: fmt::Debug + Send + Sync + 'static {
    /// Runs a workflow in an instance of its own, from its beginning, until it ends or is stopped.
    ///
    /// Dropping the future drops the instance at once, wherever the guest is; `durable` is dropped
    /// with it.
    async fn run(&self, activation: Activation, durable: Box<dyn Durable>) -> Exit<Completion>;

    /// Runs one attempt of a task in an instance of its own, in the step world.
    async fn run_task(
        &self,
        call: TaskCall,
        log: Box<dyn LogSink>,
    ) -> Exit<Result<Payload, Failure>>;
}

/// What a workflow's instance is given.
#[derive(Debug, Clone)]
pub struct Activation {
    /// Who is running.
    pub info: RunInfo,
    /// What the workflow is given.
    pub input: Payload,
    /// Seeds the workflow world's random stream and hash seeds: the same in every activation.
    pub seed: u128,
    /// Environment variables that the guest sees.
    pub environment: Vec<(String, String)>,
    /// What it may use.
    pub limits: Limits,
}

/// One attempt of a task.
#[derive(Debug, Clone)]
pub struct TaskCall {
    /// The exported task.
    pub task: String,
    /// What it is given.
    pub input: Payload,
    /// From 1.
    pub attempt: u32,
    /// The same for every attempt.
    pub key: String,
    /// Seeds the hash seeds: the same for every attempt.
    pub seed: u128,
    /// Environment variables that the guest sees.
    pub environment: Vec<(String, String)>,
    /// What it may use.
    pub limits: Limits,
}

/// Who is running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInfo {
    /// As displayed.
    pub run_id: String,
    /// Owner.
    pub tenant: String,
    /// The version's workflow.
    pub workflow: String,
    /// The version's label.
    pub version: String,
    /// When the journal began.
    pub started_at: Timestamp,
}

/// What a workflow asks of its host: one method for each function of `stepwell:workflow/durable`.
///
/// The sandbox switches to the step world when `step` or `retry_step` answers
/// [`StepState::Execute`], and back when `finish_step` is called; it refuses every other call
/// between the two.
#[allow(
    clippy::missing_errors_doc,
    reason = "every method fails in the two ways of `Stop`, which has their docs"
)]
#[async_trait]
pub trait Durable: LogSink {
    /// Workflow time, and whether the guest still repeats what the journal has. Asked after every
    /// call.
    fn moment(&self) -> Moment;

    /// A named step.
    async fn step(&mut self, name: String, options: Options) -> Result<StepState, Stop>;

    /// Asks again about a step whose backoff is over.
    async fn retry_step(&mut self, step: Operation, options: Options) -> Result<StepState, Stop>;

    /// Ends the attempt that is running.
    fn finish_step(&mut self, outcome: Result<Payload, Failure>) -> Result<AttemptState, Stop>;

    /// A timer.
    fn sleep(&mut self, name: String, duration: Duration) -> Result<Asked, Stop>;

    /// A timer that ends at a point in time.
    fn sleep_until(&mut self, name: String, at: Timestamp) -> Result<Asked, Stop>;

    /// Takes an event, now or later.
    fn wait_for_event(&mut self, event: String, timeout: Option<Duration>) -> Result<Asked, Stop>;

    /// Runs a task.
    fn call_task(&mut self, task: String, input: Payload, options: Options) -> Result<Asked, Stop>;

    /// Withdraws an operation that has not been answered.
    fn withdraw(&mut self, operation: Operation) -> Result<(), Stop>;

    /// The operation that was answered first. `resident_bytes` is about what the instance costs in
    /// memory while it waits.
    async fn select(
        &mut self,
        among: Vec<Operation>,
        resident_bytes: u64,
    ) -> Result<Selected, Stop>;

    /// Answers the sender of an event. The id is the guest's text, unchecked.
    fn reply(
        &mut self,
        event: String,
        answer: Result<Payload, Failure>,
    ) -> Result<Result<(), Failure>, Stop>;

    /// Shows a value to the outside.
    fn publish(&mut self, key: String, value: Payload) -> Result<Result<(), Failure>, Stop>;
}

/// Takes a guest's log lines. The sandbox bounds their bytes and holds them back on replay.
pub trait LogSink: Send {
    /// One line.
    fn log(&mut self, level: LogLevel, message: String, fields: Vec<(String, String)>);
}

/// How grave a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Finest.
    Trace,
    /// For whoever debugs the workflow.
    Debug,
    /// Ordinary; also stdout.
    Info,
    /// Something is off; also stderr.
    Warn,
    /// Something failed.
    Error,
}

/// Where a guest stands in its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Workflow time.
    pub now: Timestamp,
    /// Whether it still repeats what the journal has.
    pub replaying: bool,
}

/// The number of an operation, or the error that the guest may catch.
pub type Asked = Result<Operation, Failure>;

/// Why a call of [`Durable`] does not return to the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The engine wants the instance gone (eviction, divergence, a lost lease, a fault of the
    /// host); it knows why. Ends in [`Exit::Stopped`].
    Now,
    /// The guest broke the contract, for example by naming an operation it was never given. Ends
    /// in a trap with this message.
    Misuse(String),
}

/// What to do next about a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepState {
    /// Run the body.
    Execute(StepAttempt),
    /// Select this operation, then `retry_step`.
    Backoff(Operation),
    /// Its result.
    Completed(Payload),
    /// Given up.
    Failed(StepError),
    /// The run has been asked to stop, for this reason; the body was not run.
    Cancelled(String),
}

/// One execution of a step's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepAttempt {
    /// The step.
    pub step: Operation,
    /// From 1.
    pub number: u32,
    /// The same for every attempt; also the `Idempotency-Key` of outbound requests.
    pub key: String,
}

/// What became of an attempt whose body has returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptState {
    /// The value handed in is the step's result.
    Completed,
    /// Select this operation, then `retry_step`.
    Backoff(Operation),
    /// Given up.
    Failed(StepError),
}

/// What `select` answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selected {
    /// This operation was answered.
    Answered(Operation, Outcome),
    /// The run has been asked to stop, for this reason.
    Cancelled(String),
}

/// The answer to an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// To a sleep or a backoff.
    Slept(Wake),
    /// To a wait.
    Event(EventMessage),
    /// To a wait whose timeout passed.
    TimedOut,
    /// To a task.
    Task(Result<Payload, StepError>),
}

/// How a workflow ended, as it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completion {
    /// With a value.
    Done(Payload),
    /// With a failure of its own.
    Failed(Failure),
    /// With the error of a step or task, handed on.
    StepFailed(StepError),
    /// With the wish for a fresh journal and this input.
    ContinueAsNew(Payload),
}

/// How an instance ended.
#[derive(Debug)]
pub enum Exit<T> {
    /// The exported function returned.
    Returned(T),
    /// It trapped; also for misuse of the contract and for a limit that was met.
    Trapped(Trap),
    /// A call answered [`Stop::Now`].
    Stopped,
    /// The host could not run it (no instance free, a bug): a host fault, which says nothing about
    /// the guest.
    Fault(String),
}

/// Why a guest trapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trap {
    /// What kind of trap.
    pub kind: TrapKind,
    /// For a person to read; names what was met and what to do.
    pub message: String,
    /// Symbolised, one frame a line, innermost first. Empty if there was no guest frame.
    pub backtrace: String,
}

/// What kind of trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrapKind {
    /// `unreachable`: what a panic compiles to.
    Panic,
    /// An access outside linear memory or a table.
    OutOfBounds,
    /// The stack limit was met.
    StackOverflow,
    /// The memory or table limit was met.
    MemoryLimit,
    /// The CPU limit was met.
    CpuLimit,
    /// Something that is only allowed inside a step, or not at all.
    Forbidden,
    /// The contract was broken.
    Misuse,
    /// The guest called `exit`.
    Exit,
    /// Any other.
    Other,
}

impl TrapKind {
    /// Stable and machine-readable; becomes the kind of the failure.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Panic => "panic",
            Self::OutOfBounds => "out-of-bounds",
            Self::StackOverflow => "stack-overflow",
            Self::MemoryLimit => "memory-limit",
            Self::CpuLimit => "cpu-limit",
            Self::Forbidden => "forbidden",
            Self::Misuse => "misuse",
            Self::Exit => "exit",
            Self::Other => "trap",
        }
    }

    /// Whether it was a limit of the version that was met.
    pub fn is_limit(self) -> bool {
        matches!(
            self,
            Self::StackOverflow | Self::MemoryLimit | Self::CpuLimit
        )
    }
}

/// What a component says it offers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// The SDK that built it, and its version.
    pub sdk: String,
    /// Its workflows.
    pub workflows: Vec<WorkflowSpec>,
    /// Its tasks.
    pub tasks: Vec<TaskSpec>,
}

/// A workflow that a component offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowSpec {
    /// Its name.
    pub name: String,
    /// One line.
    pub summary: String,
    /// JSON Schema text.
    pub input_schema: Option<String>,
    /// JSON Schema text.
    pub output_schema: Option<String>,
    /// The events that it says it waits for: name and JSON Schema text.
    pub events: Vec<(String, Option<String>)>,
}

/// A task that a component offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSpec {
    /// Its name.
    pub name: String,
    /// One line.
    pub summary: String,
}
