//! Goes on with a fresh journal, again and again.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepwell_sdk::{Ctx, Error, component, workflow};

/// What is left, and what was done in earlier journals.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Plan {
    /// How often it goes on.
    left: u32,
    /// How many steps every journal has; 1 if left out.
    steps: Option<u32>,
    /// A sleep in every journal; none at 0.
    #[serde(default)]
    sleep_ms: u64,
    /// Journals so far; left out at the start.
    #[serde(default)]
    done: u32,
}

/// Runs some steps, and goes on with a fresh journal until nothing is left; returns the number of
/// journals.
#[workflow(name = "continue")]
async fn continue_(ctx: Ctx, mut plan: Plan) -> Result<u32, Error> {
    for _ in 0..plan.steps.unwrap_or(1) {
        ctx.step("work", || Ok(())).await?;
    }
    if plan.sleep_ms > 0 {
        ctx.sleep("pause", Duration::from_millis(plan.sleep_ms))
            .await?;
    }
    plan.done += 1;
    ctx.publish("journals", &plan.done)?;
    if plan.left == 0 {
        return Ok(plan.done);
    }
    plan.left -= 1;
    Err(ctx.continue_as_new(&plan))
}

component! { workflows: [continue_] }
