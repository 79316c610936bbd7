//! Simulation: the real engine over a memory store with faults, a clock that is set forward and
//! back, and guests played from a list. One thread, and tokio's time paused, so hours pass in
//! milliseconds and one seed gives one course of events.
//!
//! `STEPWELL_SIMULATION_SEED=7 cargo test --release --test stepwell simulation` plays one seed.

mod client;
mod draws;
mod guests;
mod plan;
mod verdict;

use std::time::Duration;

use stepwell_store::Fault;

use client::World;
use plan::Plan;

/// Seeds played by the test; the first so many.
const SEEDS: u64 = 2_000;

fn seeds() -> Vec<u64> {
    match std::env::var("STEPWELL_SIMULATION_SEED") {
        Ok(seed) => vec![seed.parse().expect("a seed is a whole number")],
        Err(_) => (0..SEEDS).collect(),
    }
}

#[test]
fn whatever_fails_every_run_ends_as_it_would_have_and_nothing_is_done_twice() {
    for seed in seeds() {
        World::of(Plan::drawn(seed)).play();
    }
}

#[test]
fn a_fault_at_any_one_call_of_the_store_changes_no_outcome() {
    let calls = World::of(Plan::fixed()).play();
    assert!(calls > 40, "only {calls} calls: the plan does too little");
    let faults = [
        Fault::FailBefore,
        Fault::FailAfter,
        Fault::Slow(Duration::from_secs(5)),
        Fault::Yield(20),
        Fault::LoseLease,
        Fault::DiskFull,
    ];
    for fault in faults {
        for call in 0..calls {
            let mut plan = Plan::fixed();
            plan.name = format!("{fault:?} at call {call}");
            plan.faults = plan::Faults::At(call, fault);
            World::of(plan).play();
        }
    }
}

#[test]
fn a_host_lost_at_any_moment_changes_no_outcome() {
    for ms in 0..400 {
        let mut plan = Plan::fixed();
        plan.name = format!("killed after {ms} ms");
        plan.kills = vec![Duration::from_millis(ms)];
        World::of(plan).play();
    }
}

#[test]
fn hosts_that_die_before_anybody_got_further_set_no_run_aside() {
    let mut plan = Plan::crowd(12);
    // So slow that the first twelve hosts are gone before one entry is written.
    plan.faults = plan::Faults::SlowAppends(Duration::from_millis(50));
    plan.kills = vec![Duration::from_millis(40); 12];
    World::of(plan).play();
}

#[test]
fn a_store_that_is_away_for_an_hour_costs_no_run_its_outcome() {
    for from in (0..60).step_by(3) {
        let mut plan = Plan::fixed();
        plan.name = format!("away from call {from}");
        plan.faults = plan::Faults::Away(from, Duration::from_secs(3_600));
        World::of(plan).play();
    }
}

#[test]
fn a_clock_set_forward_or_back_by_hours_fires_nothing_twice_and_nothing_early() {
    const HOURS: u64 = 3 * 3_600_000;
    for ms in (0..400).step_by(7) {
        for span_ms in [HOURS, 20_000] {
            for is_forward in [true, false] {
                let mut plan = Plan::fixed();
                plan.name = format!("clock set at {ms} ms, forward {is_forward}, {span_ms} ms");
                plan.clock = vec![plan::Set {
                    at: Duration::from_millis(ms),
                    span: Duration::from_millis(span_ms),
                    is_forward,
                }];
                World::of(plan).play();
            }
        }
    }
}
