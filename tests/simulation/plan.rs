//! What is to happen: the workflows, what is sent to them, and everything that goes wrong.

use std::time::Duration;

use stepwell_core::payload::{Failure, Payload};
use stepwell_core::retry::{Backoff, Options, Policy};
use stepwell_sandbox::scripted::{Action, Attempt, Script, Wait};
use stepwell_store::Fault;

use super::draws::Draws;

pub(super) struct Plan {
    /// For the message of a failure.
    pub(super) name: String,
    pub(super) workflows: Vec<Workflow>,
    pub(super) faults: Faults,
    /// When hosts are lost, each counted from its own start.
    pub(super) kills: Vec<Duration>,
    /// When the first host's clock is set.
    pub(super) clock: Vec<Set>,
    /// Whether instances are evicted at every wait.
    pub(super) evicts: bool,
}

pub(super) struct Workflow {
    pub(super) script: Script,
    /// Names of the events that are sent to it.
    pub(super) events: Vec<String>,
    /// Whether it is asked to stop.
    pub(super) is_cancelled: bool,
}

/// What goes wrong with the store.
pub(super) enum Faults {
    None,
    /// This fault at this call.
    At(u64, Fault),
    /// From this call on, for so long, nothing answers.
    Away(u64, Duration),
    /// Every append takes so long.
    SlowAppends(Duration),
    /// One call in `one_in` of the first `calls` goes wrong, as drawn from the seed.
    Drawn {
        seed: u64,
        one_in: u64,
        calls: u64,
    },
}

pub(super) struct Set {
    pub(super) at: Duration,
    pub(super) span: Duration,
    pub(super) is_forward: bool,
}

/// Enough that what is lost to faults exhausts no step that may be tried again.
const ATTEMPTS_MAX: u32 = 60;

fn options(attempts_max: u32) -> Options {
    let policy = Policy {
        attempts_max,
        delay: Duration::from_millis(20),
        backoff: Backoff::Constant,
        // A draw would not come from the seed.
        jitter: 0.0,
        ..Policy::default()
    };
    Options {
        policy,
        ..Options::default()
    }
}

fn fails() -> Attempt {
    Attempt::Returns(Err(Failure::retryable("flaky", "as written in the script")))
}

fn returns(text: &str) -> Attempt {
    Attempt::Returns(Ok(Payload::Json(format!("\"{text}\""))))
}

fn step(name: &str, attempts: Vec<Attempt>) -> Action {
    Action::Step {
        name: name.to_owned(),
        options: options(ATTEMPTS_MAX),
        attempts,
    }
}

/// Never a second time, whatever happens.
fn at_most_once(name: &str) -> Action {
    Action::Step {
        name: name.to_owned(),
        options: options(1),
        attempts: vec![returns("once")],
    }
}

fn sleep(ms: u64) -> Wait {
    Wait::Sleep("nap".to_owned(), Duration::from_millis(ms))
}

fn task(name: &str) -> Wait {
    let input = Payload::Json("1".to_owned());
    Wait::Task(name.to_owned(), input, options(ATTEMPTS_MAX))
}

fn publish(number: u64) -> Action {
    Action::Publish("progress".to_owned(), Payload::Json(number.to_string()))
}

impl Plan {
    /// A little of everything, the same every time.
    pub(super) fn fixed() -> Self {
        let busy = Script {
            actions: vec![
                step("reserve", vec![fails(), returns("reserved")]),
                publish(1),
                Action::Together(vec![
                    sleep(60),
                    Wait::Event("go".to_owned(), None),
                    task("count"),
                ]),
                step("trap", vec![Attempt::Traps, returns("went on")]),
                publish(2),
                Action::Together(vec![Wait::Event(
                    "late".to_owned(),
                    Some(Duration::from_millis(50)),
                )]),
                step("last", vec![returns("done")]),
            ],
            clean_up: Vec::new(),
            tasks: [("count".to_owned(), vec![fails(), returns("counted")])].into(),
        };
        let once = Script {
            actions: vec![
                step("before", vec![returns("")]),
                at_most_once("charge"),
                Action::Together(vec![sleep(30)]),
            ],
            ..Script::default()
        };
        let cancelled = Script {
            actions: vec![
                step("begin", vec![returns("")]),
                Action::Together(vec![sleep(3_000_000)]),
            ],
            clean_up: vec![step("release", vec![fails(), returns("released")])],
            tasks: Default::default(),
        };
        let workflow = |script, events: &[&str], is_cancelled| Workflow {
            script,
            events: events.iter().map(|name| (*name).to_owned()).collect(),
            is_cancelled,
        };
        Self {
            name: "fixed".to_owned(),
            workflows: vec![
                workflow(busy, &["go"], false),
                workflow(once, &[], false),
                workflow(cancelled, &[], true),
            ],
            faults: Faults::None,
            kills: Vec::new(),
            clock: Vec::new(),
            evicts: false,
        }
    }

    /// So many that do the same little thing.
    pub(super) fn crowd(count: usize) -> Self {
        let workflow = || Workflow {
            script: Script {
                actions: vec![step("work", vec![returns("done")])],
                ..Script::default()
            },
            events: Vec::new(),
            is_cancelled: false,
        };
        Self {
            name: format!("a crowd of {count}"),
            workflows: (0..count).map(|_| workflow()).collect(),
            ..Self::fixed()
        }
    }

    /// As a seed has it.
    pub(super) fn drawn(seed: u64) -> Self {
        let mut draws = Draws::from_seed(seed);
        let workflows = (0..=draws.below(3))
            .map(|_| Workflow::drawn(&mut draws))
            .collect();
        let faults = if draws.one_in(4) {
            Faults::None
        } else {
            Faults::Drawn {
                seed: draws.below(u64::MAX),
                one_in: 2 + draws.below(20),
                calls: 20 + draws.below(200),
            }
        };
        Self {
            name: format!("seed {seed}"),
            workflows,
            faults,
            kills: (0..draws.below(4))
                .map(|_| Duration::from_millis(draws.below(300)))
                .collect(),
            clock: (0..draws.below(3))
                .map(|_| Set {
                    at: Duration::from_millis(draws.below(200)),
                    span: Duration::from_millis(draws.below(10_000_000)),
                    is_forward: draws.one_in(2),
                })
                .collect(),
            evicts: draws.one_in(2),
        }
    }
}

impl Workflow {
    fn drawn(draws: &mut Draws) -> Self {
        let mut events = Vec::new();
        let mut tasks = std::collections::BTreeMap::new();
        let actions = (0..1 + draws.below(6))
            .map(|number| match draws.below(6) {
                0 | 1 => step(&format!("step-{}", draws.below(3)), attempts(draws)),
                2 => at_most_once(&format!("once-{number}")),
                3 => publish(number),
                _ => {
                    let waits = (0..1 + draws.below(3)).map(|_| match draws.below(4) {
                        0 => sleep(draws.below(500)),
                        1 => {
                            let name = format!("event-{}", draws.below(2));
                            events.push(name.clone());
                            Wait::Event(name, None)
                        }
                        2 => Wait::Event(
                            "never".to_owned(),
                            Some(Duration::from_millis(draws.below(200))),
                        ),
                        _ => {
                            let name = format!("task-{}", draws.below(2));
                            tasks.entry(name.clone()).or_insert_with(|| attempts(draws));
                            task(&name)
                        }
                    });
                    Action::Together(waits.collect())
                }
            })
            .collect();
        let script = Script {
            actions,
            clean_up: vec![step("clean-up", attempts(draws))],
            tasks,
        };
        Self {
            script,
            events,
            is_cancelled: draws.one_in(5),
        }
    }
}

/// Some that fail or trap, then one that returns.
fn attempts(draws: &mut Draws) -> Vec<Attempt> {
    let mut attempts: Vec<_> = (0..draws.below(3))
        .map(|_| {
            if draws.one_in(2) {
                fails()
            } else {
                Attempt::Traps
            }
        })
        .collect();
    attempts.push(returns("done"));
    attempts
}
