//! A compiled component, and how one call of it is run: in an instance of its own, under a meter,
//! gone when the call ends or its future is dropped.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::id::ComponentDigest;
use stepwell_core::limits::Limits;
use stepwell_core::payload::{Failure, Payload};
use tokio::sync::Semaphore;
use wasmtime::{Engine, Store, UpdateDeadline};

use crate::backtrace::{self, Frame};
use crate::bindings::exports::stepwell::workflow::guest as exports;
use crate::bindings::{Workflow, WorkflowPre};
use crate::cache::Cache;
use crate::guest::{Activation, Completion, Component, Durable, Exit, LogSink, TaskCall, Trap};
use crate::host::types::{failure, payload, payload_out, step_error};
use crate::instance::{Instance, RESOURCES_MAX};
use crate::meter::{Meter, Metered, Verdict};
use crate::symbols::Symbols;
use crate::ticker::Ticker;
use crate::trap::{self, End, Phase};

/// What a guest may hand to the host in one call, in bytes, if its memory may hold as much: a list
/// can name the same megabyte a thousand times, and the host would have to hold them all. A value
/// over the payload limit, but below this, ends in an error that the guest can read.
const CALL_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// What every instance needs of the sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Runtime {
    pub(crate) engine: Engine,
    pub(crate) ticker: Arc<Ticker>,
    pub(crate) tick: Duration,
    /// Backtraces that are being drawn up at once.
    pub(crate) backtraces: Arc<Semaphore>,
}

/// A component, compiled and linked.
pub(crate) struct Compiled {
    digest: ComponentDigest,
    pre: WorkflowPre<Instance>,
    source: Source,
    runtime: Runtime,
}

/// Where the component's own bytes are, for the lines of a backtrace.
#[derive(Clone)]
pub(crate) enum Source {
    /// In the cache, under the component's digest.
    Cache(Arc<Cache>),
    /// There is no cache.
    Memory(Arc<[u8]>),
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiled")
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

impl Compiled {
    pub(crate) fn new(
        digest: ComponentDigest,
        pre: WorkflowPre<Instance>,
        source: Source,
        runtime: Runtime,
    ) -> Self {
        Self {
            digest,
            pre,
            source,
            runtime,
        }
    }

    /// Asks the component what it offers, with nothing open.
    pub(crate) async fn describe(&self, limits: Limits) -> Exit<exports::Manifest> {
        let meter = self.meter(&limits);
        let instance = Instance::for_nobody(limits, Arc::clone(&meter));
        let work = async move {
            let (guest, mut store) = match self.enter(instance).await {
                Ok(entered) => entered,
                Err(exit) => return exit,
            };
            match guest
                .stepwell_workflow_guest()
                .call_describe(&mut store)
                .await
            {
                Ok(manifest) => Exit::Returned(manifest),
                Err(error) => self.ended(store, &error, Phase::Call).await,
            }
        };
        Metered::new(Box::pin(work), meter, &self.runtime.ticker).await
    }

    fn meter(&self, limits: &Limits) -> Arc<Meter> {
        Arc::new(Meter::new(limits.cpu_max, self.runtime.tick))
    }

    /// Makes the instance.
    async fn enter<T>(&self, instance: Instance) -> Result<(Workflow, Store<Instance>), Exit<T>> {
        let meter = Arc::clone(&instance.meter);
        let call_bytes_max = instance.limits.memory_bytes_max.min(CALL_BYTES_MAX);
        let mut store = Store::new(&self.runtime.engine, instance);
        store.limiter(|instance| &mut instance.limiter);
        store.set_hostcall_fuel(usize::try_from(call_bytes_max).unwrap_or(usize::MAX));
        store.set_max_component_handles(RESOURCES_MAX);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(move |_| {
            Ok(match meter.tick()? {
                Verdict::Continue => UpdateDeadline::Continue(1),
                // Tokio's own way to yield lets timers and sockets have their turn as well.
                Verdict::Yield => {
                    UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now()))
                }
            })
        });
        match self.pre.instantiate_async(&mut store).await {
            Ok(guest) => Ok((guest, store)),
            Err(error) => Err(self.ended(store, &error, Phase::Start).await),
        }
    }

    /// What ended the guest, once its last words are in the log and its instance is free again: a
    /// backtrace takes longer than others should wait for the place.
    async fn ended<T>(
        &self,
        mut store: Store<Instance>,
        error: &wasmtime::Error,
        phase: Phase,
    ) -> Exit<T> {
        let instance = store.data_mut();
        let end = trap::end(error, phase, || {
            instance.flush();
            instance.console.panic_message()
        });
        match end {
            End::Stopped => Exit::Stopped,
            End::Fault(reason) => Exit::Fault(reason),
            End::Trapped {
                kind,
                message,
                frames,
            } => {
                instance.flush();
                drop(store);
                Exit::Trapped(Trap {
                    kind,
                    message,
                    backtrace: self.backtrace(frames).await,
                })
            }
        }
    }

    /// Draws up a backtrace, off the async threads: the guest's debug sections decide how long it
    /// takes.
    async fn backtrace(&self, frames: Vec<Frame>) -> String {
        // Never closed.
        let _permit = self.runtime.backtraces.acquire().await.ok();
        let (digest, source) = (self.digest, self.source.clone());
        let bare = frames.clone();
        let drawn = tokio::task::spawn_blocking(move || {
            let bytes: Arc<[u8]> = match source {
                Source::Memory(bytes) => bytes,
                Source::Cache(cache) => cache.source(digest).unwrap_or_default().into(),
            };
            backtrace::render(&frames, &Symbols::of(&bytes))
        });
        // Debug sections that nobody can read are no reason to show nothing.
        drawn
            .await
            .unwrap_or_else(|_| backtrace::render(&bare, &Symbols::none()))
    }
}

#[async_trait]
impl Component for Compiled {
    async fn run(&self, activation: Activation, durable: Box<dyn Durable>) -> Exit<Completion> {
        let meter = self.meter(&activation.limits);
        let workflow = activation.info.workflow.clone();
        let mut activation = activation;
        let input = payload_out(std::mem::replace(
            &mut activation.input,
            Payload::Binary(Vec::new()),
        ));
        let instance = Instance::for_workflow(activation, durable, Arc::clone(&meter));
        let work = async move {
            let (guest, mut store) = match self.enter(instance).await {
                Ok(entered) => entered,
                Err(exit) => return exit,
            };
            match guest
                .stepwell_workflow_guest()
                .call_run(&mut store, &workflow, &input)
                .await
            {
                Ok(end) => {
                    store.data_mut().flush();
                    Exit::Returned(completion(end, &store.data().limits))
                }
                Err(error) => self.ended(store, &error, Phase::Call).await,
            }
        };
        Metered::new(Box::pin(work), meter, &self.runtime.ticker).await
    }

    async fn run_task(
        &self,
        call: TaskCall,
        log: Box<dyn LogSink>,
    ) -> Exit<Result<Payload, Failure>> {
        let meter = self.meter(&call.limits);
        let (task, attempt, key) = (call.task.clone(), call.attempt, call.key.clone());
        let mut call = call;
        let input = payload_out(std::mem::replace(
            &mut call.input,
            Payload::Binary(Vec::new()),
        ));
        let instance = Instance::for_task(call, log, Arc::clone(&meter));
        let work = async move {
            let (guest, mut store) = match self.enter(instance).await {
                Ok(entered) => entered,
                Err(exit) => return exit,
            };
            match guest
                .stepwell_workflow_guest()
                .call_run_task(&mut store, &task, &input, attempt, &key)
                .await
            {
                Ok(outcome) => {
                    store.data_mut().flush();
                    let limits = &store.data().limits;
                    Exit::Returned(match outcome {
                        Ok(output) => Ok(payload(output)),
                        Err(value) => Err(failure(value, limits)),
                    })
                }
                Err(error) => self.ended(store, &error, Phase::Call).await,
            }
        };
        Metered::new(Box::pin(work), meter, &self.runtime.ticker).await
    }
}

/// What a workflow says about its end, its failures cut to what is kept.
fn completion(end: exports::Completion, limits: &Limits) -> Completion {
    match end {
        exports::Completion::Done(output) => Completion::Done(payload(output)),
        exports::Completion::Failed(value) => Completion::Failed(failure(value, limits)),
        exports::Completion::StepFailed(error) => Completion::StepFailed(step_error(error, limits)),
        exports::Completion::ContinueAsNew(input) => Completion::ContinueAsNew(payload(input)),
    }
}
