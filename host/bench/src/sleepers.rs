//! W4: resident memory of a host with 2,000, and then with 100,000 runs that sleep for a day.

use std::time::{Duration, Instant};

use stepwell_server::wire;

use crate::bench::Bench;
use crate::client::Client;
use crate::error::Error;
use crate::figure::Figure;
use crate::guest::SLEEPER;
use crate::host::{Host, Memory};
use crate::wall;

const FEW_FULL: u32 = 2_000;
const MANY_FULL: u32 = 100_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// Starts are sent from so many threads: this is about memory, not about starts.
const SENDERS: u32 = 4;
/// What was freed is given back in this time, if it ever is.
const SETTLE: Duration = Duration::from_secs(2);
/// For the newest runs to fall asleep.
const ASLEEP_WITHIN: Duration = Duration::from_secs(60);

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Figure>, Error> {
    let host = bench.host()?;
    std::thread::sleep(SETTLE);
    let idle = host.memory()?;
    let (few, many) = (bench.load(FEW_FULL), bench.load(MANY_FULL));
    let with_few = with_sleepers(&host, few)?;
    let with_many = with_sleepers(&host, many - few)?;
    // Once everything is measured: a look at all rows takes memory itself.
    if host
        .client()
        .has_any("queued,running,waiting,retrying,failed,stuck")?
    {
        return Err(Error::unexpected("not all runs sleep"));
    }
    Ok(vec![
        Figure::new("idle host", idle.resident, "MiB"),
        Figure::new(
            "2,000 sleepers above that",
            with_few.resident - idle.resident,
            "MiB",
        )
        .at_most(40.0),
        Figure::new("100,000 sleepers, in all", with_many.resident, "MiB").at_most(300.0),
        Figure::new("of that without pages of files", with_many.anonymous, "MiB"),
        Figure::new("the most on the way", with_many.most, "MiB"),
    ])
}

/// Starts so many, and measures when they sleep and everything is at rest.
fn with_sleepers(host: &Host, count: u32) -> Result<Memory, Error> {
    let until = wall::now_ms() + DAY_MS;
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let client = host.client().clone();
                let share = (count + SENDERS - 1 - sender) / SENDERS;
                scope.spawn(move || {
                    (0..share).try_for_each(|_| client.start(SLEEPER, until).map(drop))
                })
            })
            .collect();
        for sender in senders {
            sender
                .join()
                .map_err(|_| Error::unexpected("a sender panicked"))??;
        }
        Ok::<_, Error>(())
    })?;
    let began = Instant::now();
    while !are_newest_asleep(host.client())? {
        if began.elapsed() > ASLEEP_WITHIN {
            return Err(Error::unexpected("the newest runs do not fall asleep"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(SETTLE);
    host.memory()
}

/// The newest page of runs, but for the warm-up.
fn are_newest_asleep(client: &Client) -> Result<bool, Error> {
    let page: wire::Runs = client.get(&format!("runs?workflow={SLEEPER}&limit=100"))?;
    Ok(page.runs.iter().all(|run| run.status == "sleeping"))
}
