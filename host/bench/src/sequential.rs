//! W1: one run of 1,000 steps, one after another. What a step costs when nothing is shared, beside
//! what a commit costs that does nothing else.

use std::time::{Duration, Instant};

use crate::bench::Bench;
use crate::depth::spans;
use crate::error::Error;
use crate::figure::{Figure, combine};
use crate::guest::STEPS;
use crate::in_process::World;
use crate::sample::{Sample, micros};

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
        rounds.push(run.figures(&bare_before.with(bare_after.clone())));
        bare_before = bare_after;
    }
    Ok(combine(&rounds))
}

#[derive(Debug)]
struct Run {
    steps: u32,
    took: Duration,
    each: Sample,
    commits: u64,
}

/// From the start of a run until its end is durable.
fn one_run(world: &World, steps: u32) -> Result<Run, Error> {
    let commits_before = world.counts().commits;
    let began = Instant::now();
    let run = world.start(STEPS, steps)?;
    let watch = world.watch(run);
    world.until_completed(&[run])?;
    let seen = world.seen(watch)?;
    let spans = spans(&seen, steps);
    let (Some(end), false) = (seen.last(), spans.is_empty()) else {
        return Err(Error::unexpected("no change of the run was seen"));
    };
    Ok(Run {
        steps,
        took: end.at - began,
        each: Sample::new(spans.into_iter().map(|(_, span)| span).collect()),
        commits: world.counts().commits - commits_before,
    })
}

impl Run {
    fn figures(&self, bare: &Sample) -> Vec<Figure> {
        let per_step = self.took / self.steps;
        // The start costs one, which is no step's.
        let commits_a_step = (self.commits as f64 - 1.0) / f64::from(self.steps);
        vec![
            Figure::new("per step", micros(per_step), "µs"),
            Figure::new(
                "bare commit before and after, mean",
                micros(bare.mean()),
                "µs",
            ),
            Figure::new(
                "per step, in bare commits",
                ratio(per_step, bare.mean()),
                "×",
            )
            .at_most(1.3),
            Figure::new(
                "the same by the medians",
                ratio(self.each.median(), bare.median()),
                "×",
            ),
            Figure::new("commits a step", commits_a_step, "").at_most(COMMITS_A_STEP_MAX),
        ]
    }
}

fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}
