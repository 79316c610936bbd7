//! Runs steps one after the other, each with an effect outside that a test can count.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use stepwell_sdk::{Ctx, Error, Failure, Retry, component, http, workflow};

/// What to do. All but `count` may be left out.
#[derive(Deserialize, JsonSchema)]
struct Plan {
    /// How many steps: `step-0`, `step-1`, …
    count: u64,
    /// Where every attempt reports to before it does anything else: by `POST <effect_url>/<step>`
    /// of `{"step": …, "attempt": …, "key": …}`.
    effect_url: Option<String>,
    /// Which steps fail for good, by number, and how.
    #[serde(default)]
    fail: BTreeMap<String, String>,
    /// How long every attempt sleeps in its body, after the effect.
    #[serde(default)]
    sleep_ms_in_step: u64,
    /// How many bytes every step returns besides its number.
    #[serde(default)]
    result_bytes: usize,
    /// How many attempts a step has; the host's default if left out.
    max_attempts: Option<u32>,
    /// The delay before every further attempt; the policy's own if left out.
    retry_delay_ms: Option<u64>,
}

/// Runs steps one after the other and returns the sum of their numbers.
#[workflow]
async fn steps(ctx: Ctx, plan: Plan) -> Result<u64, Error> {
    let mut sum = 0;
    for number in 0..plan.count {
        let name = format!("step-{number}");
        let mut step = ctx.step_with(&name, |attempt| {
            if let Some(url) = &plan.effect_url {
                let effect = json!({ "step": name, "attempt": attempt.number, "key": attempt.key });
                http::post(format!("{url}/{name}"))
                    .json(&effect)
                    .send()?
                    .error_for_status()?;
            }
            if plan.sleep_ms_in_step > 0 {
                std::thread::sleep(Duration::from_millis(plan.sleep_ms_in_step));
            }
            match plan.fail.get(&number.to_string()) {
                Some(message) => Err(Failure::new("told-to-fail", message.clone()).permanent()),
                None => Ok((number, "x".repeat(plan.result_bytes))),
            }
        });
        if plan.max_attempts.is_some() || plan.retry_delay_ms.is_some() {
            let mut retry = Retry::constant()
                .jitter(0.0)
                .max_attempts(plan.max_attempts.unwrap_or(5));
            if let Some(delay) = plan.retry_delay_ms {
                retry = retry.delay(Duration::from_millis(delay));
            }
            step = step.retry(retry);
        }
        sum += step.await?.0;
    }
    Ok(sum)
}

component! { workflows: [steps] }
