//! W1: one run of 1,000 steps, one after another. What a step costs when nothing is shared, beside
//! what a commit costs that does nothing else.

use std::time::{Duration, Instant};

use crate::bench::Bench;
use crate::error::Error;
use crate::figure::{Figure, combine};
use crate::guest::STEPS;
use crate::in_process::World;
use crate::sample::micros;

const STEPS_FULL: u32 = 1_000;
/// Until the store's log has been filled once and is written over, as the bare database's is: a
/// step writes two pages, and the log has 4,096.
const WARM_UP_FULL: u32 = 2_500;
/// A disk changes its mind from one tenth of a second to the next. So the run is repeated, with
/// bare commits before and after each, and the median of the ratios counts.
const ROUNDS: u32 = 10;
const COMMITS_FULL: u32 = 500;
/// A step costs one commit. The host renews its lease now and then, which costs one, too.
const COMMITS_A_STEP_MAX: f64 = 1.002;

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Figure>, Error> {
    let world = bench.world()?;
    let warm_up = world.start(STEPS, bench.load(WARM_UP_FULL))?;
    world.until_completed(&[warm_up])?;
    let mut rounds = Vec::new();
    let mut bare_before = bench.bare().commits(bench.load(COMMITS_FULL))?;
    for _ in 0..ROUNDS {
        let run = one_run(&world, bench.load(STEPS_FULL))?;
        let bare_after = bench.bare().commits(bench.load(COMMITS_FULL))?;
        let bare = bare_before.with(bare_after.clone()).mean();
        rounds.push(run.figures(bare));
        bare_before = bare_after;
    }
    Ok(combine(&rounds))
}

struct Run {
    steps: u32,
    took: Duration,
    commits: u64,
}

/// From the start of a run until its end is durable.
fn one_run(world: &World, steps: u32) -> Result<Run, Error> {
    let commits_before = world.counts().commits;
    let began = Instant::now();
    let run = world.start(STEPS, steps)?;
    let took = world.until_completed(&[run])? - began;
    Ok(Run {
        steps,
        took,
        commits: world.counts().commits - commits_before,
    })
}

impl Run {
    fn figures(&self, bare: Duration) -> Vec<Figure> {
        let per_step = self.took / self.steps;
        let ratio = per_step.as_secs_f64() / bare.as_secs_f64();
        // The start costs one, which is no step's.
        let commits_a_step = (self.commits as f64 - 1.0) / f64::from(self.steps);
        vec![
            Figure::new("per step", micros(per_step), "µs"),
            Figure::new("bare commit before and after, mean", micros(bare), "µs"),
            Figure::new("per step, in bare commits", ratio, "×").at_most(1.3),
            Figure::new("commits a step", commits_a_step, "").at_most(COMMITS_A_STEP_MAX),
        ]
    }
}
