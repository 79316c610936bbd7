//! W3: start to finish of a run of one step over HTTP, one after another: what somebody waits who
//! asks for one thing to be done.

use std::time::Instant;

use crate::bench::Bench;
use crate::error::Error;
use crate::figure::Figure;
use crate::guest::STEPS;
use crate::sample::{Sample, micros, millis};

const RUNS_FULL: u32 = 200;
const WARM_UP_FULL: u32 = 100;
/// Bare commits before and again after the runs.
const COMMITS_FULL: u32 = 500;
/// A start, a step that ends the run, and one to spare.
const COMMITS_ALLOWED: f64 = 3.0;

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Figure>, Error> {
    let host = bench.host()?;
    let client = host.client();
    let one = || {
        let began = Instant::now();
        let run = client.start(STEPS, 1)?;
        client.until_completed(&run)?;
        Ok(began.elapsed())
    };
    let many = |count| {
        let took = (0..count).map(|_| one()).collect::<Result<_, Error>>()?;
        Ok::<_, Error>(Sample::new(took))
    };
    many(bench.load(WARM_UP_FULL))?;
    let bare_before = bench.bare().commits(bench.load(COMMITS_FULL))?;
    let runs = many(bench.load(RUNS_FULL))?;
    let bare_after = bench.bare().commits(bench.load(COMMITS_FULL))?;

    let bare = bare_before.with(bare_after).median();
    let (p50, p99) = (runs.median(), runs.percentile(99));
    let beyond = millis(p50) - COMMITS_ALLOWED * millis(bare);
    Ok(vec![
        Figure::new("p50", millis(p50), "ms"),
        Figure::new("p99", millis(p99), "ms"),
        Figure::new("bare commit at the same time, p50", micros(bare), "µs"),
        Figure::new("p50 beyond three bare commits", beyond, "ms").at_most(0.6),
        Figure::new("p99, in p50", millis(p99) / millis(p50), "×").at_most(4.0),
    ])
}
