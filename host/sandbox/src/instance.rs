//! What belongs to one running guest: the data of its wasmtime store. The functions it imports are
//! implemented on it, one file per WIT interface, in `host/`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use stepwell_core::id::Operation;
use stepwell_core::limits::Limits;
use stepwell_core::time::Timestamp;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::filesystem::WasiFilesystemCtx;
use wasmtime_wasi_http::WasiHttpCtx;

use crate::console::{Console, Sink, Stream};
use crate::guest::{Activation, Durable, LogSink, Moment, RunInfo, StepAttempt, TaskCall};
use crate::host::http::Outbound;
use crate::host::random::Random;
use crate::limits::Limiter;
use crate::meter::Meter;

/// Resources (streams, requests, pollables) that a guest may hold at once. With the headers' own
/// bound, this keeps what they cost the host below the default limit of a guest's memory.
pub(crate) const RESOURCES_MAX: usize = 1_000;

/// Headers of one request, in bytes as the host holds them.
const HEADERS_BYTES_MAX: usize = 64 * 1024;

/// The data of one guest's store.
pub(crate) struct Instance {
    pub(crate) host: Host,
    pub(crate) world: World,
    pub(crate) limiter: Limiter,
    pub(crate) meter: Arc<Meter>,
    pub(crate) console: Console,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) random: Random,
    pub(crate) table: ResourceTable,
    /// Which resources behave the same whenever they are used: see [`Constant`].
    pub(crate) constant: BTreeMap<u32, Constant>,
    /// Empty: there is no file system.
    pub(crate) filesystem: WasiFilesystemCtx,
    pub(crate) http: WasiHttpCtx,
    pub(crate) outbound: Outbound,
    pub(crate) limits: Limits,
}

/// On whose behalf the guest runs.
pub(crate) enum Host {
    /// A run.
    Workflow {
        durable: Box<dyn Durable>,
        info: RunInfo,
        /// As of the newest call.
        moment: Moment,
    },
    /// One attempt of a task.
    Task(Box<dyn LogSink>),
    /// `describe`, with nothing open.
    Nobody,
}

/// Which of the two worlds the guest is in.
#[derive(Debug)]
pub(crate) enum World {
    /// Everything is the same on replay.
    Workflow,
    /// Real clocks and randomness, blocking and outbound HTTP.
    Step {
        /// The step whose body runs; `None` for a task.
        step: Option<Operation>,
        since: Instant,
        /// What the monotonic clock showed then, so that it goes on from workflow time.
        monotonic_ns: u64,
    },
}

/// A resource that has no part in the real world, so it may be used in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Constant {
    /// Stdout or stderr: always ready to take more.
    Output(Stream),
    /// Stdin: at its end.
    Input,
    /// A pollable that is always ready: of one of the above, or of a time that has passed.
    Ready,
}

impl Instance {
    /// For a run.
    pub(crate) fn for_workflow(
        activation: Activation,
        durable: Box<dyn Durable>,
        meter: Arc<Meter>,
    ) -> Self {
        let moment = durable.moment();
        let host = Host::Workflow {
            durable,
            info: activation.info,
            moment,
        };
        Self::new(
            host,
            World::Workflow,
            activation.seed,
            activation.environment,
            activation.limits,
            meter,
        )
    }

    /// For an attempt of a task.
    pub(crate) fn for_task(call: TaskCall, log: Box<dyn LogSink>, meter: Arc<Meter>) -> Self {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let world = World::Step {
            step: None,
            since: Instant::now(),
            monotonic_ns: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
        };
        meter.attempt_begins();
        let mut instance = Self::new(
            Host::Task(log),
            world,
            call.seed,
            call.environment,
            call.limits,
            meter,
        );
        instance.outbound.open(call.key);
        instance
    }

    /// For `describe`.
    pub(crate) fn for_nobody(limits: Limits, meter: Arc<Meter>) -> Self {
        Self::new(Host::Nobody, World::Workflow, 0, Vec::new(), limits, meter)
    }

    fn new(
        host: Host,
        world: World,
        seed: u128,
        environment: Vec<(String, String)>,
        limits: Limits,
        meter: Arc<Meter>,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES_MAX);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(HEADERS_BYTES_MAX);
        Self {
            host,
            world,
            limiter: Limiter::new(limits.memory_bytes_max, limits.table_elements_max),
            meter,
            console: Console::new(limits.log_bytes_max),
            environment,
            random: Random::new(seed),
            table,
            constant: BTreeMap::new(),
            filesystem: WasiFilesystemCtx::default(),
            http,
            outbound: Outbound::default(),
            limits,
        }
    }

    /// Workflow time; the beginning of time for `describe`.
    pub(crate) fn workflow_now(&self) -> Timestamp {
        match &self.host {
            Host::Workflow { moment, .. } => moment.now,
            Host::Task(_) | Host::Nobody => Timestamp::EPOCH,
        }
    }

    /// Into the step world, where the body of this attempt runs.
    pub(crate) fn enter_step(&mut self, attempt: &StepAttempt) {
        self.world = World::Step {
            step: Some(attempt.step),
            since: Instant::now(),
            monotonic_ns: monotonic_ns(self.workflow_now()),
        };
        self.outbound.open(attempt.key.clone());
        self.meter.attempt_begins();
    }

    /// Back into the workflow world. Requests that are still under way are cut off.
    pub(crate) fn leave_step(&mut self) {
        self.world = World::Workflow;
        self.outbound.close();
        self.meter.attempt_ends();
    }

    /// Whether this is the step world.
    pub(crate) fn in_step(&self) -> bool {
        matches!(self.world, World::Step { .. })
    }

    /// Output of the guest.
    pub(crate) fn write(&mut self, stream: Stream, bytes: &[u8]) {
        self.console.write(stream, bytes, self.host.sink());
    }

    /// Lines without an end become lines.
    pub(crate) fn flush(&mut self) {
        self.console.flush(self.host.sink());
    }
}

impl Host {
    /// Where log lines go, if anywhere: a replay has written its lines before.
    pub(crate) fn sink(&mut self) -> Sink<'_> {
        match self {
            Self::Workflow { moment, .. } if moment.replaying => None,
            Self::Workflow { durable, .. } => {
                let log: &mut dyn LogSink = &mut **durable;
                Some(log)
            }
            Self::Task(log) => Some(&mut **log),
            Self::Nobody => None,
        }
    }
}

/// Workflow time as the monotonic clock shows it.
pub(crate) fn monotonic_ns(time: Timestamp) -> u64 {
    time.as_ms().saturating_mul(1_000_000)
}
