//! W2: 200 runs of 10 steps at once. How much of what a disk can do is left to each run when many
//! share its commits.

use std::time::{Duration, Instant};

use stepwell_core::time::Timestamp;

use crate::bench::Bench;
use crate::error::Error;
use crate::figure::{Figure, combine};
use crate::guest::STEPS;
use crate::in_process::World;
use crate::wall;

pub(crate) const RUNS_FULL: u32 = 200;
pub(crate) const STEPS_EACH: u32 = 10;
/// Each takes a twentieth of a second; the median is less moody than one.
const ROUNDS: u32 = 5;
/// From the moment the runs are started until they begin: enough for all starts.
const AHEAD_MS: u64 = 500;

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Figure>, Error> {
    let world = bench.world()?;
    let runs = bench.load(RUNS_FULL);
    // Once as a warm-up.
    at_once(&world, runs)?;
    let rounds: Vec<Vec<Figure>> = (0..ROUNDS)
        .map(|_| round(&world, runs))
        .collect::<Result<_, _>>()?;
    Ok(combine(&rounds))
}

fn round(world: &World, runs: u32) -> Result<Vec<Figure>, Error> {
    let steps = f64::from(runs * STEPS_EACH);
    let (took, commits) = scheduled(world, runs)?;
    let with_starts = at_once(world, runs)?;
    Ok(vec![
        Figure::new("steps", steps / took.as_secs_f64(), "/s").at_least(35_000.0),
        Figure::new("steps a commit", steps / commits, ""),
        Figure::new(
            "steps, the starts included",
            steps / with_starts.as_secs_f64(),
            "/s",
        ),
    ])
}

/// From the time that the runs are to begin until all are done: they exist before, and are claimed,
/// loaded and run within it. Also how many commits that took.
fn scheduled(world: &World, runs: u32) -> Result<(Duration, f64), Error> {
    let at_ms = wall::now_ms() + AHEAD_MS;
    let at = Timestamp::from_ms(at_ms);
    let started = world.start_many(runs, (STEPS, STEPS_EACH), Some(at))?;
    let due = wall::instant_of(at_ms);
    if wall::now_ms() >= at_ms {
        return Err(Error::unexpected(format!(
            "{runs} starts took longer than {AHEAD_MS} ms, so the runs did not begin together"
        )));
    }
    let commits_before = world.counts().commits;
    wall::sleep_until(at_ms);
    let took = world.completed_at(&started)? - due;
    Ok((took, (world.counts().commits - commits_before) as f64))
}

/// From the first start until all are done.
fn at_once(world: &World, runs: u32) -> Result<Duration, Error> {
    let began = Instant::now();
    let started = world.start_many(runs, (STEPS, STEPS_EACH), None)?;
    Ok(world.completed_at(&started)? - began)
}
