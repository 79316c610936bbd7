//! W5: as W2, and the host is killed with SIGKILL in the middle. How soon the next one has all runs
//! done, and that nothing was lost and nothing was done twice, by the journals.
//!
//! - *Lost*: a step that a journal does not have in the end; and an entry that a client had read
//!   before the kill and that is gone or another one after it. Nothing that was ever shown may be
//!   taken back.
//! - *Doubled*: a step that a journal has twice.
//! - *Repeated*: attempts beyond the first, by what the journal counts. A body that was cut off runs
//!   again: that is the contract. The journal counts an attempt as lost that may have been under
//!   way, so it can be one more than truly were for each run.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use stepwell_server::wire::{Entry, EntryType};

use crate::bench::Bench;
use crate::client::Client;
use crate::error::Error;
use crate::figure::Figure;
use crate::guest::STEPS;
use crate::sample::millis;
use crate::wall;

/// Tries until a kill falls in the middle: a matter of a few milliseconds.
const TRIES: u32 = 10;
/// Runs whose journals are read, again and again, until the kill.
const WITNESSED: usize = 4;
/// From the first start until the runs begin, beside what the starts take.
const AHEAD_MS: u64 = 1_000;

/// How much there is to do.
#[derive(Debug, Clone, Copy)]
struct Load {
    runs: u32,
    steps: u32,
}

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Figure>, Error> {
    // Two runs of ten steps would be over before anybody could kill their host.
    let load = if bench.is_quick() {
        Load {
            runs: 4,
            steps: 200,
        }
    } else {
        Load {
            runs: crate::many::RUNS_FULL,
            steps: crate::many::STEPS_EACH,
        }
    };
    for _ in 0..TRIES {
        let killed = Killed::measure(bench, load)?;
        if killed.recorded_before > 0 && killed.recorded_before < load.runs * load.steps {
            return Ok(killed.figures(load));
        }
    }
    Err(Error::unexpected(format!(
        "in {TRIES} tries no kill fell in the middle of the runs"
    )))
}

/// What one kill came to.
#[derive(Debug)]
struct Killed {
    /// From the restart until all were done.
    done_after: Duration,
    /// Steps that stood in a journal when the host was killed.
    recorded_before: u32,
    check: Check,
}

impl Killed {
    fn measure(bench: &Bench, load: Load) -> Result<Self, Error> {
        let mut host = bench.host()?;
        let runs = start_together(host.client(), load)?;
        let witnessed = witness(host.client(), &runs, load)?;
        host.kill()?;
        let killed_ms = wall::now_ms();
        let restarted = Instant::now();
        host.start_again()?;
        for run in &runs {
            host.client().until_completed(run)?;
        }
        let done_after = restarted.elapsed();

        let (mut check, mut recorded_before) = (Check::default(), 0);
        for run in &runs {
            let history = host.client().history(run)?;
            let before = history
                .iter()
                .filter(|entry| is_step(entry) && entry.at.0.as_ms() <= killed_ms)
                .count();
            recorded_before += u32::try_from(before).unwrap_or(u32::MAX);
            check.add(&history, load.steps, witnessed.get(run));
        }
        Ok(Self {
            done_after,
            recorded_before,
            check,
        })
    }

    fn figures(self, load: Load) -> Vec<Figure> {
        let Check {
            lost,
            doubled,
            repeated,
        } = self.check;
        let share = f64::from(self.recorded_before) / f64::from(load.runs * load.steps);
        vec![
            Figure::new("restart to all done", millis(self.done_after), "ms").at_most(1_500.0),
            Figure::new("steps lost", f64::from(lost), "").never(),
            Figure::new("steps doubled", f64::from(doubled), "").never(),
            Figure::new("attempts repeated", f64::from(repeated), ""),
            Figure::new("steps recorded before the kill", 100.0 * share, "%"),
        ]
    }
}

/// Starts all runs, to begin at one time, and returns when that time has come.
fn start_together(client: &Client, load: Load) -> Result<Vec<String>, Error> {
    // Room for starts of 10 ms each.
    let at_ms = wall::now_ms() + AHEAD_MS + 10 * u64::from(load.runs);
    let runs = (0..load.runs)
        .map(|_| client.start_at(STEPS, u64::from(load.steps), at_ms))
        .collect::<Result<_, _>>()?;
    if wall::now_ms() >= at_ms {
        return Err(Error::unexpected("the starts took longer than 10 ms each"));
    }
    wall::sleep_until(at_ms);
    Ok(runs)
}

/// Reads journals until one of them is half full, and returns all that was read.
fn witness(
    client: &Client,
    runs: &[String],
    load: Load,
) -> Result<HashMap<String, Vec<Entry>>, Error> {
    let mut witnessed = HashMap::new();
    let apart = (runs.len() / WITNESSED).max(1);
    for run in runs.iter().step_by(apart).cycle() {
        let history = client.history(run)?;
        let is_half_full = history.len() >= load.steps as usize / 2;
        witnessed.insert(run.clone(), history);
        if is_half_full {
            break;
        }
    }
    Ok(witnessed)
}

fn is_step(entry: &Entry) -> bool {
    entry.r#type == EntryType::StepCompleted
}

/// What is wrong with journals, if anything is.
#[derive(Debug, Default, PartialEq, Eq)]
struct Check {
    lost: u32,
    doubled: u32,
    repeated: u32,
}

impl Check {
    /// Looks at the journal of a run of so many steps, some of whose entries had been read before.
    fn add(&mut self, history: &[Entry], steps: u32, read_before: Option<&Vec<Entry>>) {
        let mut found = BTreeMap::<u32, u32>::new();
        for entry in history.iter().filter(|entry| is_step(entry)) {
            if let Some(operation) = entry.operation {
                *found.entry(operation).or_default() += 1;
            }
            self.repeated += entry.attempts.unwrap_or(1).saturating_sub(1);
        }
        for operation in 0..steps {
            match found.get(&operation) {
                None | Some(0) => self.lost += 1,
                Some(1) => {}
                Some(times) => self.doubled += times - 1,
            }
        }
        for (place, entry) in read_before.into_iter().flatten().enumerate() {
            let is_kept = history.get(place).is_some_and(|now| is_same(now, entry));
            self.lost += u32::from(!is_kept);
        }
    }
}

/// Whether both are the same entry, made at the same time.
fn is_same(one: &Entry, other: &Entry) -> bool {
    let key = |entry: &Entry| {
        let value = entry
            .value
            .as_ref()
            .map(|value| serde_json::to_string(value).unwrap_or_default());
        (
            entry.sequence,
            entry.at,
            entry.r#type,
            entry.operation,
            entry.attempts,
            value,
        )
    };
    key(one) == key(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(sequence: u64, operation: u32, attempts: u32) -> Entry {
        serde_json::from_value(serde_json::json!({
            "sequence": sequence, "at": "2026-01-01T00:00:00.000Z", "type": "step-completed",
            "operation": operation, "name": "s", "attempts": attempts, "value": {"charged": 4200},
        }))
        .unwrap()
    }

    fn check(history: &[Entry], read_before: &[Entry]) -> (u32, u32, u32) {
        let mut check = Check::default();
        check.add(history, 3, Some(&read_before.to_vec()));
        (check.lost, check.doubled, check.repeated)
    }

    #[test]
    fn a_missing_a_doubled_and_a_repeated_step_are_each_counted() {
        let whole = [step(0, 0, 1), step(1, 1, 1), step(2, 2, 1)];
        assert_eq!(check(&whole, &[]), (0, 0, 0));
        assert_eq!(check(&whole[..2], &[]), (1, 0, 0));
        let doubled = [step(0, 0, 1), step(1, 0, 1), step(2, 1, 1), step(3, 2, 1)];
        assert_eq!(check(&doubled, &[]), (0, 1, 0));
        let repeated = [step(0, 0, 1), step(1, 1, 3), step(2, 2, 2)];
        assert_eq!(check(&repeated, &[]), (0, 0, 3));
    }

    #[test]
    fn what_was_read_before_and_is_gone_or_changed_is_lost() {
        let whole = [step(0, 0, 1), step(1, 1, 2), step(2, 2, 1)];
        assert_eq!(check(&whole, &whole[..2]), (0, 0, 1));
        assert_eq!(check(&whole, &[step(0, 0, 1), step(1, 1, 1)]), (1, 0, 1));
        assert_eq!(check(&whole[..2], &whole), (2, 0, 1));
    }
}
