//! W8: how many runs can be started one after another, and how late 10,000 timers are that fall due
//! within one second. Each timer belongs to a run that is evicted: being late includes its claim,
//! its replay, and its going on.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use stepwell_server::wire;

use crate::bench::Bench;
use crate::client::Client;
use crate::error::Error;
use crate::figure::Figure;
use crate::guest::{SLEEPER, STEPS};
use crate::sample::{Sample, millis};
use crate::wall;

const TIMERS_FULL: u32 = 10_000;
/// All of them fall due within so long, evenly.
const WITHIN_MS: u64 = 1_000;
/// Runs that are started before, to see how long a start takes.
const WARM_UP_FULL: u32 = 500;
/// A run whose timer is further off than this is evicted at once; a host keeps others for 5 s.
const EVICTED_MS: u64 = 6_000;
/// For the last one to be done after it was due.
const DONE_WITHIN: Duration = Duration::from_secs(120);

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Figure>, Error> {
    let host = bench.host()?;
    let client = host.client();
    let warm_up = bench.load(WARM_UP_FULL);
    let began = Instant::now();
    for _ in 0..warm_up {
        client.start(STEPS, 1)?;
    }
    let per_start = began.elapsed() / warm_up;

    let timers = bench.load(TIMERS_FULL);
    // Half as long again as foreseen: all are asleep, and evicted, before the first is due.
    let foreseen = per_start * timers * 3 / 2;
    let first_ms = wall::now_ms() + stepwell_core::time::whole_ms(foreseen) + EVICTED_MS;
    let began = Instant::now();
    let mut due = HashMap::new();
    for number in 0..timers {
        let due_ms = first_ms + u64::from(number) * WITHIN_MS / u64::from(timers);
        due.insert(client.start(SLEEPER, due_ms)?, due_ms);
    }
    let starts_a_second = f64::from(timers) / began.elapsed().as_secs_f64();
    if wall::now_ms() >= first_ms {
        return Err(Error::unexpected(
            "the starts took much longer than those before, so timers fell due among them",
        ));
    }

    let last_ms = first_ms + WITHIN_MS;
    wall::sleep_until(last_ms);
    let done_after = until_none_sleeps(client, wall::instant_of(last_ms))?;
    let lateness = Sample::new(lateness(client, &due)?);
    Ok(vec![
        Figure::new("starts one by one", starts_a_second, "/s").at_least(2_000.0),
        Figure::new("lateness, p50", millis(lateness.median()), "ms"),
        Figure::new("lateness, p99", millis(lateness.percentile(99)), "ms").at_most(50.0),
        Figure::new("lateness, at most", millis(lateness.largest()), "ms"),
        Figure::new("all done after the last was due", millis(done_after), "ms"),
    ])
}

/// How long after the last timer was due no run was open any more.
fn until_none_sleeps(client: &Client, last: Instant) -> Result<Duration, Error> {
    while client.has_any("sleeping,queued,running")? {
        if last.elapsed() > DONE_WITHIN {
            return Err(Error::unexpected("not all timers have fired"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(last.elapsed())
}

/// By the host's clock, which is ours: from when each run's timer was due until its last entry was
/// made, which is its end.
fn lateness(client: &Client, due: &HashMap<String, u64>) -> Result<Vec<Duration>, Error> {
    let mut found = Vec::new();
    let mut before = String::new();
    loop {
        let page: wire::Runs = client.get(&format!("runs?workflow={SLEEPER}&limit=200{before}"))?;
        for run in &page.runs {
            let Some(due_ms) = due.get(&run.run) else {
                return Err(Error::unexpected(format!("nobody started {}", run.run)));
            };
            let ended_ms = run.updated_at.0.as_ms();
            if run.status != "completed" || ended_ms < *due_ms {
                return Err(Error::unexpected(format!(
                    "{} is {} at {ended_ms}, due at {due_ms}",
                    run.run, run.status
                )));
            }
            found.push(Duration::from_millis(ended_ms - due_ms));
        }
        match page.before {
            Some(run) => before = format!("&before={run}"),
            None => break,
        }
    }
    if found.len() != due.len() {
        return Err(Error::unexpected(format!(
            "{} runs were started and {} are there",
            due.len(),
            found.len()
        )));
    }
    Ok(found)
}
