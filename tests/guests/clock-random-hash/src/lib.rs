//! Reads clocks, random numbers and hash orders outside steps, and checks that a replay sees the
//! same: every round records in a step what it saw, and compares what the journal gives back with
//! what it sees in this activation.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell_sdk::{Ctx, Error, Event, component, workflow};

/// What to do between looks.
#[derive(Deserialize, JsonSchema)]
struct Plan {
    /// How often it looks.
    rounds: u32,
    /// A sleep in every round; none at 0.
    #[serde(default)]
    sleep_ms: u64,
    /// A wait in every round for an event `tick`, with this timeout; none if left out.
    wait_ms: Option<u64>,
}

/// What is not a function of the input alone, and yet is the same in every activation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct Seen {
    wall_clock_ms: u64,
    monotonic_clock_ns: u64,
    run_clock_ms: u64,
    random: Vec<u8>,
    random_state: u64,
    map_order: String,
    set_order: Vec<u32>,
}

/// What it saw.
#[derive(Serialize, JsonSchema)]
struct Report {
    /// Rounds that saw something else than the activation that recorded them.
    mismatches: Vec<String>,
    /// Over all that was seen; the same for every activation of one run.
    digest: String,
    seen: Vec<Seen>,
}

/// Looks at clocks, random numbers and hash orders, and reports every difference to the journal.
#[workflow(name = "clock-random-hash")]
async fn look(ctx: Ctx, plan: Plan) -> Result<Report, Error> {
    let tick: Event<Value> = Event::new("tick");
    let mut report = Report {
        mismatches: Vec::new(),
        digest: String::new(),
        seen: Vec::new(),
    };
    for round in 0..plan.rounds {
        let now = seen(&ctx);
        let recorded = ctx.step("record", || Ok(now.clone())).await?;
        if recorded != now {
            report
                .mismatches
                .push(format!("round {round}: recorded {recorded:?}, now {now:?}"));
        }
        // A second look behind the step: what its body drew must not have moved the stream here.
        let after = seen(&ctx);
        let digest = digest(&format!("{} {now:?} {after:?}", report.digest));
        ctx.publish("digest", &digest)?;
        report.digest = digest;
        report.seen.push(now);
        report.seen.push(after);
        // Real randomness, and real time, that must not be seen outside.
        ctx.step("noise", || Ok(seen_in_step())).await?;
        if plan.sleep_ms > 0 {
            ctx.sleep("pause", Duration::from_millis(plan.sleep_ms))
                .await?;
        }
        if let Some(ms) = plan.wait_ms {
            ctx.wait_for_event(&tick)
                .timeout(Duration::from_millis(ms))
                .await?;
        }
    }
    Ok(report)
}

fn seen(ctx: &Ctx) -> Seen {
    let names = [
        "fig", "kiwi", "lime", "pear", "plum", "quince", "sloe", "date", "apple", "cherry", "grape",
    ];
    let map: HashMap<&str, usize> = names.into_iter().zip(0..).collect();
    let set: HashSet<u32> = (0..16).collect();
    Seen {
        wall_clock_ms: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .ok()
            .and_then(|since| u64::try_from(since.as_millis()).ok())
            .unwrap_or_default(),
        monotonic_clock_ns: wasip2::clocks::monotonic_clock::now(),
        run_clock_ms: ctx.now().as_ms(),
        random: random(),
        random_state: RandomState::new().hash_one("seed"),
        map_order: map.into_keys().collect::<Vec<_>>().join(" "),
        set_order: set.into_iter().collect(),
    }
}

fn seen_in_step() -> Vec<u8> {
    let before = wasip2::clocks::monotonic_clock::now();
    while wasip2::clocks::monotonic_clock::now() == before {
        std::thread::sleep(Duration::from_millis(1));
    }
    random()
}

fn random() -> Vec<u8> {
    let mut bytes = vec![0; 16];
    match getrandom::fill(&mut bytes) {
        Ok(()) => bytes,
        Err(error) => panic!("no random numbers: {error}"),
    }
}

/// FNV-1a, which needs no library and no keys.
fn digest(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

component! { workflows: [look] }
