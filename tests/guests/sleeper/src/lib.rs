//! Sleeps as long as it is told.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepwell_sdk::{Ctx, Error, Timestamp, Wake, component, workflow};

/// How long to sleep.
#[derive(Deserialize, JsonSchema)]
struct Plan {
    /// Sleeps for this long; with `until_ms`, this is not looked at.
    #[serde(default)]
    ms: u64,
    /// Sleeps until this time, in milliseconds since 1970.
    until_ms: Option<u64>,
    /// How often, one after the other; once if left out.
    times: Option<u32>,
}

/// How it was.
#[derive(Serialize, JsonSchema)]
struct Slept {
    /// How many sleeps were ended early.
    woken: u32,
    /// Workflow time between the first sleep's begin and the last one's end.
    slept_ms: u64,
}

/// Sleeps as long as it is told, and says how many sleeps were ended early.
#[workflow]
async fn sleeper(ctx: Ctx, plan: Plan) -> Result<Slept, Error> {
    let began = ctx.now();
    let mut woken = 0;
    for _ in 0..plan.times.unwrap_or(1) {
        let wake = match plan.until_ms {
            Some(at) => ctx.sleep_until("nap", Timestamp::from_ms(at)).await?,
            None => ctx.sleep("nap", Duration::from_millis(plan.ms)).await?,
        };
        woken += u32::from(wake == Wake::Woken);
    }
    Ok(Slept {
        woken,
        slept_ms: ctx.now().as_ms() - began.as_ms(),
    })
}

component! { workflows: [sleeper] }
