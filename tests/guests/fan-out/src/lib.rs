//! Many tasks at once.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stepwell_sdk::futures::{FuturesUnordered, StreamExt};
use stepwell_sdk::{Ctx, Error, Failure, Retry, TaskContext, component, http, task, workflow};

/// How many tasks, and which of them go wrong. All but `tasks` may be left out.
#[derive(Deserialize, JsonSchema)]
struct Plan {
    /// How many, numbered from 0.
    tasks: u64,
    /// Those that fail in every attempt.
    #[serde(default)]
    fail: Vec<u64>,
    /// Those that fail in their first attempt only.
    #[serde(default)]
    fail_once: Vec<u64>,
    /// Those that panic in every attempt.
    #[serde(default)]
    panic: Vec<u64>,
    /// How long every task takes.
    #[serde(default)]
    sleep_ms: u64,
    /// For one attempt.
    timeout_ms: Option<u64>,
    /// Attempts in all; 2 if left out.
    max_attempts: Option<u32>,
    /// Where every attempt reports to, as in the guest `steps`, as `square-<number>`.
    effect_url: Option<String>,
    /// Whether tasks that are given up are counted; otherwise the first fails the run.
    #[serde(default)]
    catch: bool,
}

/// What the tasks returned.
#[derive(Serialize, JsonSchema)]
struct Summed {
    /// Of the squares of the numbers of all tasks that succeeded.
    sum: u64,
    succeeded: u64,
    /// The numbers of those that were given up, as they came in.
    given_up: Vec<u64>,
}

/// One task's part.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Part {
    number: u64,
    fails: bool,
    fails_once: bool,
    panics: bool,
    sleep_ms: u64,
    effect_url: Option<String>,
}

/// Squares numbers in as many tasks at once, and sums them up.
#[workflow(name = "fan-out")]
async fn fan_out(ctx: Ctx, plan: Plan) -> Result<Summed, Error> {
    let mut calls = FuturesUnordered::new();
    for number in 0..plan.tasks {
        let part = Part {
            number,
            fails: plan.fail.contains(&number),
            fails_once: plan.fail_once.contains(&number),
            panics: plan.panic.contains(&number),
            sleep_ms: plan.sleep_ms,
            effect_url: plan.effect_url.clone(),
        };
        let retry = Retry::constant()
            .jitter(0.0)
            .delay("10ms")
            .max_attempts(plan.max_attempts.unwrap_or(2));
        let mut call = ctx.call_task(square, part).retry(retry);
        if let Some(ms) = plan.timeout_ms {
            call = call.timeout(Duration::from_millis(ms));
        }
        calls.push(async move { (number, call.await) });
    }
    let mut summed = Summed {
        sum: 0,
        succeeded: 0,
        given_up: Vec::new(),
    };
    while let Some((number, answer)) = calls.next().await {
        match answer {
            Ok(squared) => {
                summed.sum += squared;
                summed.succeeded += 1;
            }
            Err(Error::Step(_)) if plan.catch => summed.given_up.push(number),
            Err(error) => return Err(error),
        }
    }
    Ok(summed)
}

/// Squares a number.
#[task]
fn square(context: TaskContext, part: Part) -> Result<u64, Failure> {
    if let Some(url) = &part.effect_url {
        let effect = json!({ "step": format!("square-{}", part.number), "attempt": context.attempt, "key": context.key });
        http::post(format!("{url}/square-{}", part.number))
            .json(&effect)
            .send()?
            .error_for_status()?;
    }
    std::thread::sleep(Duration::from_millis(part.sleep_ms));
    assert!(!part.panics, "task {} was told to panic", part.number);
    if part.fails || part.fails_once && context.attempt == 1 {
        return Err(Failure::new(
            "told-to-fail",
            format!("task {} was told to fail", part.number),
        ));
    }
    Ok(part.number * part.number)
}

component! { workflows: [fan_out], tasks: [square] }
