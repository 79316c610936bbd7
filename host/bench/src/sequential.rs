//! W1: one run of 1,000 steps, one after another. What a step costs when nothing is shared, beside
//! what a commit costs that does nothing else.

use std::time::{Duration, Instant};

use crate::bench::Bench;
use crate::error::Error;
use crate::figure::Figure;
use crate::guest::STEPS;
use crate::sample::micros;

const STEPS_FULL: u32 = 1_000;
/// Until the store's log has been filled once and is written over, as the bare database's is: a
/// step writes two pages, and the log has 4,096.
const WARM_UP_FULL: u32 = 2_500;
/// Bare commits before and again after the run: disks are moody.
const COMMITS_FULL: u32 = 1_000;
/// A step costs one commit. The host renews its lease now and then, which costs one, too.
const COMMITS_A_STEP_MAX: f64 = 1.002;

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Figure>, Error> {
    let world = bench.world()?;
    let warm_up = world.start(STEPS, bench.load(WARM_UP_FULL))?;
    world.until_completed(&[warm_up])?;

    let steps = bench.load(STEPS_FULL);
    let bare_before = bench.bare().commits(bench.load(COMMITS_FULL))?;
    let commits_before = world.counts().commits;
    let began = Instant::now();
    let run = world.start(STEPS, steps)?;
    let took = world.until_completed(&[run])? - began;
    let commits = world.counts().commits - commits_before;
    let bare_after = bench.bare().commits(bench.load(COMMITS_FULL))?;

    let bare = bare_before.with(bare_after);
    let per_step = took / steps;
    // The start costs one, which is no step's.
    let commits_a_step = (commits as f64 - 1.0) / f64::from(steps);
    Ok(vec![
        Figure::new("per step", micros(per_step), "µs"),
        Figure::new(
            "bare commit at the same time, mean",
            micros(bare.mean()),
            "µs",
        ),
        Figure::new(
            "per step, in bare commits",
            ratio(per_step, bare.mean()),
            "×",
        )
        .at_most(1.3),
        Figure::new("commits a step", commits_a_step, "").at_most(COMMITS_A_STEP_MAX),
    ])
}

fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}
