//! Shows its progress to the outside.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use stepwell_sdk::{Ctx, Error, component, workflow};

/// What to show.
#[derive(Deserialize, JsonSchema)]
struct Plan {
    /// How many values under `progress`: `{"done": 1, "of": count}` and so on.
    count: u32,
    /// A sleep after every value; none at 0.
    #[serde(default)]
    sleep_ms: u64,
    /// How many bytes of text every value has besides.
    #[serde(default)]
    bytes: usize,
    /// Log lines after every value, one a level.
    #[serde(default)]
    log: bool,
}

/// Publishes its progress, and at the end `finished`.
#[workflow]
async fn publisher(ctx: Ctx, plan: Plan) -> Result<u32, Error> {
    for done in 1..=plan.count {
        ctx.publish(
            "progress",
            &json!({ "done": done, "of": plan.count, "text": "x".repeat(plan.bytes) }),
        )?;
        if plan.log {
            stepwell_sdk::trace!("trace {done}");
            stepwell_sdk::debug!("debug {done}");
            stepwell_sdk::info!("published {done}"; done = done, of = plan.count);
            stepwell_sdk::warn!("warn {done}");
            stepwell_sdk::error!("error {done}");
            write_to_standard_streams(done);
        }
        if plan.sleep_ms > 0 {
            ctx.sleep("pause", Duration::from_millis(plan.sleep_ms))
                .await?;
        }
    }
    ctx.publish("finished", &true)?;
    Ok(plan.count)
}

#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the host writes both to the run's log"
)]
fn write_to_standard_streams(done: u32) {
    println!("stdout {done}");
    eprintln!("stderr {done}");
}

component! { workflows: [publisher] }
