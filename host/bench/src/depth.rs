//! W7: what a step takes at step 10, 1,000 and 10,000 of its run: whether a long journal makes the
//! next entry dearer.

use std::time::Duration;

use crate::bench::Bench;
use crate::error::Error;
use crate::figure::Figure;
use crate::guest::STEPS;
use crate::in_process::{Seen, World};
use crate::sample::{Sample, micros};

const MIDDLE_FULL: u32 = 1_000;
const DEEP_FULL: u32 = 10_000;
const SHALLOW: u32 = 10;
/// Steps before and after the one that is meant, which are measured with it.
const AROUND_MAX: u32 = 50;
/// Long runs; each comes with short ones before and after, since a disk may change its mind
/// meanwhile.
const ROUNDS: u32 = 3;
const SHORT_RUNS: u32 = 10;

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Figure>, Error> {
    let world = bench.world()?;
    let (middle, deep) = (bench.load(MIDDLE_FULL), bench.load(DEEP_FULL));
    let mut took = Took::new([SHALLOW, middle, deep]);
    // The first run is the warm-up.
    steps_of(&world, deep / 4)?;
    for _ in 0..ROUNDS {
        for _ in 0..SHORT_RUNS {
            took.add(&steps_of(&world, 2 * SHALLOW)?);
        }
        took.add(&steps_of(&world, deep + around(deep))?);
        for _ in 0..SHORT_RUNS {
            took.add(&steps_of(&world, 2 * SHALLOW)?);
        }
    }
    let [shallow, middle, deep] = took.medians()?;
    let ratio = deep.as_secs_f64() / shallow.as_secs_f64();
    Ok(vec![
        Figure::new("step 10, p50", micros(shallow), "µs"),
        Figure::new("step 1,000, p50", micros(middle), "µs"),
        Figure::new("step 10,000, p50", micros(deep), "µs"),
        Figure::new("step 10,000, in step 10", ratio, "×").at_most(1.2),
    ])
}

/// How many steps on each side of this one count with it.
fn around(step: u32) -> u32 {
    (step / 2).min(AROUND_MAX)
}

/// Runs so many steps, and tells how long each took: its number, from 1, and the span from the
/// commit before to its own.
fn steps_of(world: &World, steps: u32) -> Result<Vec<(u32, Duration)>, Error> {
    let run = world.start(STEPS, steps)?;
    let watch = world.watch(run);
    world.until_completed(&[run])?;
    Ok(spans(&world.seen(watch)?, steps))
}

/// The last change is the last step's, which ends the run as well. The first ones may have come
/// before anybody watched. Changes that were seen as one share their span.
pub(crate) fn spans(seen: &[Seen], steps: u32) -> Vec<(u32, Duration)> {
    let last = seen.last().map_or(0, |seen| seen.change);
    let mut spans = Vec::new();
    for pair in seen.windows(2) {
        let changes = pair[1].change - pair[0].change;
        for change in pair[0].change + 1..=pair[1].change {
            let Some(step) = u32::try_from(last - change)
                .ok()
                .and_then(|before_last| steps.checked_sub(before_last))
            else {
                continue;
            };
            let span = (pair[1].at - pair[0].at).as_secs_f64() / changes as f64;
            spans.push((step, Duration::from_secs_f64(span)));
        }
    }
    spans
}

/// Spans of the steps around each that is meant.
struct Took {
    meant: [u32; 3],
    spans: [Vec<Duration>; 3],
}

impl Took {
    fn new(meant: [u32; 3]) -> Self {
        Self {
            meant,
            spans: Default::default(),
        }
    }

    fn add(&mut self, steps: &[(u32, Duration)]) {
        for (meant, spans) in self.meant.into_iter().zip(&mut self.spans) {
            let window = meant - around(meant)..=meant + around(meant);
            let within = steps.iter().filter(|(step, _)| window.contains(step));
            spans.extend(within.map(|(_, span)| *span));
        }
    }

    fn medians(self) -> Result<[Duration; 3], Error> {
        if self.spans.iter().any(Vec::is_empty) {
            return Err(Error::unexpected("no change of a run was seen"));
        }
        Ok(self.spans.map(|spans| Sample::new(spans).median()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn steps_are_counted_from_the_end_and_changes_seen_as_one_share_their_span() {
        let began = Instant::now();
        let seen = |change, ms| Seen {
            change,
            at: began + Duration::from_millis(ms),
        };
        // Five steps; the first was over before anybody watched.
        let found = spans(&[seen(1, 10), seen(2, 12), seen(4, 20)], 5);
        let ms = |step, ms| (step, Duration::from_millis(ms));
        assert_eq!(found, [ms(3, 2), ms(4, 4), ms(5, 4)]);
        assert_eq!(spans(&[], 5), []);
    }
}
