//! W6: from an event to the end of a run with 10,000 entries that was evicted: the claim, its
//! journal read and replayed, and what it does then.

use std::time::{Duration, Instant};

use stepwell_server::wire;

use crate::bench::Bench;
use crate::client::Client;
use crate::error::Error;
use crate::figure::Figure;
use crate::guest::{GO, WAITER};
use crate::sample::{Sample, millis};

const ENTRIES_FULL: u32 = 10_000;
const RUNS: usize = 5;
/// For all of them to reach their wait, and to be evicted, which a host does after 5 s.
const EVICTED_WITHIN: Duration = Duration::from_secs(600);

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Figure>, Error> {
    let host = bench.host()?;
    let client = host.client();
    let entries = bench.load(ENTRIES_FULL);
    let runs = (0..RUNS)
        // The wait is an entry, too.
        .map(|_| client.start(WAITER, u64::from(entries - 1)))
        .collect::<Result<Vec<_>, _>>()?;
    for run in &runs {
        until_evicted(client, run, u64::from(entries))?;
    }
    let mut took = Vec::new();
    for run in &runs {
        let began = Instant::now();
        let _: wire::Sent = client.post(&format!("runs/{run}/events/{GO}"), "{}")?;
        client.until_completed(run)?;
        took.push(began.elapsed());
    }
    let took = Sample::new(took);
    Ok(vec![
        Figure::new("event to end", millis(took.median()), "ms").at_most(30.0),
        Figure::new("the longest of five", millis(took.largest()), "ms"),
    ])
}

fn until_evicted(client: &Client, run: &str, entries: u64) -> Result<(), Error> {
    let began = Instant::now();
    loop {
        let found: wire::Run = client.get(&format!("runs/{run}"))?;
        if found.status == "waiting" && found.host.is_none() {
            if found.entries == entries {
                return Ok(());
            }
            return Err(Error::unexpected(format!(
                "{run} has {} entries, not {entries}",
                found.entries
            )));
        }
        if began.elapsed() > EVICTED_WITHIN {
            return Err(Error::unexpected(format!(
                "{run} was not evicted: it is {} on {:?}",
                found.status, found.host
            )));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
