//! What the sandbox itself costs: starting a guest, a step live and on replay, and keeping a guest
//! that waits.
//!
//! ```sh
//! cargo build --release --target wasm32-wasip2 -p raw-guest
//! cargo run --release -p stepwell-sandbox --example overhead -- target/wasm32-wasip2/release/raw_guest.wasm
//! ```
//!
//! Another guest's waiting can be measured too: give its file, the workflow and its input.
//!
//! The engine is one that does nothing, so that nothing else is measured. Every figure is the best
//! of several rounds: what the machine does beside this only ever adds.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for the terminal"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use stepwell_core::id::Operation;
use stepwell_core::limits::Limits;
use stepwell_core::payload::{Failure, Payload};
use stepwell_core::retry::Options;
use stepwell_core::time::Timestamp;
use stepwell_sandbox::guest::{
    Activation, Asked, AttemptState, Completion, Component, Durable, Exit, LogLevel, LogSink,
    Moment, RunInfo, Selected, StepAttempt, StepState, Stop,
};
use stepwell_sandbox::{Config, Sandbox};

const ROUNDS: usize = 5;
const STEPS: u32 = 100_000;
const STARTS: u32 = 2_000;
const RESIDENT: u32 = 2_000;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("the file of the raw guest");
    let waits = arguments.next().zip(arguments.next());
    let bytes: Arc<[u8]> = std::fs::read(file).unwrap().into();
    let sandbox = Sandbox::new(Config::default()).unwrap();
    let begun = Instant::now();
    let guest = sandbox
        .check(bytes.clone(), &Limits::default())
        .await
        .unwrap()
        .component;
    println!(
        "check and compile {:.1} MB      {:>8.0} ms",
        bytes.len() as f64 / 1e6,
        begun.elapsed().as_secs_f64() * 1e3
    );

    let (workflow, input) = match waits {
        Some(waits) => waits,
        None => {
            calls(&*guest).await;
            ("nap".to_owned(), String::new())
        }
    };
    resident(&guest, &workflow, &input).await;
}

/// Starts a guest, and runs steps in it.
async fn calls(guest: &dyn Component) {
    let start = best(async || {
        for _ in 0..STARTS {
            run(guest, "nothing", "", Engine::default()).await;
        }
    });
    println!(
        "start, run nothing, end         {:>8.2} us",
        per(start.await, STARTS)
    );

    let live =
        best(async || run(guest, "steps", &STEPS.to_string(), Engine::default()).await).await;
    println!(
        "live step (step + finish-step)  {:>8.2} us",
        per(live, STEPS)
    );
    let replaying = Engine {
        replaying: true,
        ..Engine::default()
    };
    let replayed =
        best(async || run(guest, "steps", &STEPS.to_string(), replaying.clone()).await).await;
    println!(
        "replayed step                   {:>8.2} us",
        per(replayed, STEPS)
    );
}

/// The shortest of several rounds.
async fn best(mut round: impl AsyncFnMut()) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        round().await;
        best = best.min(begun.elapsed());
    }
    best
}

fn per(span: Duration, count: u32) -> f64 {
    span.as_secs_f64() * 1e6 / f64::from(count)
}

/// Keeps many guests waiting, and then drops them.
async fn resident(guest: &Arc<dyn Component>, workflow: &str, input: &str) {
    let waiting = Arc::new(AtomicUsize::new(0));
    let (all_before, own_before) = (memory_bytes("VmRSS:"), memory_bytes("RssAnon:"));
    let mappings_before = mappings();
    let tasks: Vec<_> = (0..RESIDENT)
        .map(|_| {
            let (guest, engine) = (
                guest.clone(),
                Engine {
                    waiting: Some(waiting.clone()),
                    ..Engine::default()
                },
            );
            let activation = activation(workflow, input);
            tokio::spawn(async move { guest.run(activation, Box::new(engine)).await })
        })
        .collect();
    while waiting.load(Ordering::SeqCst) < RESIDENT as usize {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let each = |bytes: u64| bytes as f64 / 1024.0 / f64::from(RESIDENT);
    println!(
        "resident guest, memory          {:>8.1} KiB",
        each(memory_bytes("VmRSS:") - all_before)
    );
    println!(
        "                of it its own   {:>8.1} KiB",
        each(memory_bytes("RssAnon:") - own_before)
    );
    println!(
        "resident guest, kernel mappings {:>8.1}",
        (mappings() - mappings_before) as f64 / f64::from(RESIDENT)
    );

    let begun = Instant::now();
    for task in &tasks {
        task.abort();
    }
    for task in tasks {
        let _ = task.await;
    }
    println!(
        "drop of a waiting guest         {:>8.2} us",
        per(begun.elapsed(), RESIDENT)
    );
}

/// Memory of this process that is in RAM: all of it, or what is not shared with a file.
fn memory_bytes(which: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(which))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps")
        .unwrap()
        .lines()
        .count()
}

fn activation(workflow: &str, input: &str) -> Activation {
    let info = RunInfo {
        run_id: "run_00000000000000000000000000000001".to_owned(),
        tenant: "acme".to_owned(),
        workflow: workflow.to_owned(),
        version: "1.0".to_owned(),
        started_at: Timestamp::EPOCH,
    };
    Activation {
        info,
        input: Payload::Json(input.to_owned()),
        seed: 1,
        environment: Vec::new(),
        limits: Limits::default(),
    }
}

async fn run(guest: &dyn Component, workflow: &str, input: &str, engine: Engine) {
    match guest
        .run(activation(workflow, input), Box::new(engine))
        .await
    {
        Exit::Returned(Completion::Done(_)) => {}
        other => panic!("{other:?}"),
    }
}

/// Executes every step, or has the result of every step already; a select never answers.
#[derive(Clone, Default)]
struct Engine {
    replaying: bool,
    operations: u32,
    waiting: Option<Arc<AtomicUsize>>,
}

impl Engine {
    fn next(&mut self) -> Operation {
        self.operations += 1;
        Operation(self.operations - 1)
    }
}

impl LogSink for Engine {
    fn log(&mut self, _: LogLevel, _: String, _: Vec<(String, String)>) {}
}

#[async_trait]
impl Durable for Engine {
    fn moment(&self) -> Moment {
        Moment {
            now: Timestamp::from_ms(u64::from(self.operations)),
            replaying: self.replaying,
        }
    }

    async fn step(&mut self, _: String, _: Options) -> Result<StepState, Stop> {
        let step = self.next();
        Ok(match self.replaying {
            true => StepState::Completed(Payload::Json("1".to_owned())),
            false => StepState::Execute(StepAttempt {
                step,
                number: 1,
                key: format!("run_00000000000000000000000000000001/{step}"),
            }),
        })
    }

    async fn retry_step(&mut self, _: Operation, _: Options) -> Result<StepState, Stop> {
        Err(Stop::Now)
    }

    fn finish_step(&mut self, _: Result<Payload, Failure>) -> Result<AttemptState, Stop> {
        Ok(AttemptState::Completed)
    }

    fn sleep(&mut self, _: String, _: Duration) -> Result<Asked, Stop> {
        Ok(Ok(self.next()))
    }

    fn sleep_until(&mut self, _: String, _: Timestamp) -> Result<Asked, Stop> {
        Ok(Ok(self.next()))
    }

    fn wait_for_event(&mut self, _: String, _: Option<Duration>) -> Result<Asked, Stop> {
        Ok(Ok(self.next()))
    }

    fn call_task(&mut self, _: String, _: Payload, _: Options) -> Result<Asked, Stop> {
        Ok(Ok(self.next()))
    }

    fn withdraw(&mut self, _: Operation) -> Result<(), Stop> {
        Ok(())
    }

    async fn select(&mut self, _: Vec<Operation>, _: u64) -> Result<Selected, Stop> {
        if let Some(waiting) = &self.waiting {
            waiting.fetch_add(1, Ordering::SeqCst);
        }
        std::future::pending().await
    }

    fn reply(
        &mut self,
        _: String,
        _: Result<Payload, Failure>,
    ) -> Result<Result<(), Failure>, Stop> {
        Ok(Ok(()))
    }

    fn publish(&mut self, _: String, _: Payload) -> Result<Result<(), Failure>, Stop> {
        Ok(Ok(()))
    }
}
