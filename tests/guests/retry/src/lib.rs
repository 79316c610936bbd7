//! A step whose first attempts go wrong, in every way there is; handed on by `retry`, caught by
//! `catch`.

use std::hint::black_box;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stepwell_sdk::{Attempt, Ctx, Error, Failure, Retry, component, http, workflow};

/// What goes wrong, and how it is retried. All but `failures` may be left out.
#[derive(Deserialize, JsonSchema)]
struct Plan {
    /// How many attempts go wrong before one succeeds.
    failures: u32,
    /// How they go wrong.
    #[serde(default)]
    mode: Mode,
    /// Attempts in all.
    max_attempts: Option<u32>,
    /// The delay before every further attempt, without jitter; 10 ms if left out.
    delay_ms: Option<u64>,
    /// `constant` (if left out), `linear` or `exponential`.
    #[serde(default)]
    backoff: Backoff,
    /// For one attempt.
    timeout_ms: Option<u64>,
    /// For all attempts.
    deadline_ms: Option<u64>,
    /// What a failure asks for.
    retry_after_ms: Option<u64>,
    /// Where every attempt reports to first, as in the guest `steps`.
    effect_url: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    /// Returns a failure of kind `told-to-fail`.
    #[default]
    Fail,
    /// Returns one that is not retryable.
    Permanent,
    /// Panics.
    Panic,
    /// Takes memory until there is none.
    Memory,
    /// Computes forever.
    Loop,
    /// Sleeps for an hour.
    Sleep,
    /// Returns 2 MiB, which is over the payload limit.
    Large,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Backoff {
    #[default]
    Constant,
    Linear,
    Exponential,
}

/// Runs one step, `flaky`, whose first attempts go wrong; returns the number of the attempt that
/// succeeded.
#[workflow]
async fn retry(ctx: Ctx, plan: Plan) -> Result<u32, Error> {
    flaky(&ctx, &plan).await
}

/// What became of the step, as the workflow saw it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum Caught {
    /// It succeeded with this attempt.
    Succeeded { attempt: u32 },
    /// It was given up.
    GivenUp {
        step: String,
        attempts: u32,
        end: String,
        retryable: bool,
        kind: String,
        message: String,
    },
}

/// As `retry`, but catches the step's error, runs another step, and returns what it caught.
#[workflow]
async fn catch(ctx: Ctx, plan: Plan) -> Result<Caught, Error> {
    match flaky(&ctx, &plan).await {
        Ok(attempt) => Ok(Caught::Succeeded { attempt }),
        Err(Error::Step(error)) => {
            ctx.step("after", || Ok(())).await?;
            Ok(Caught::GivenUp {
                step: error.step,
                attempts: error.attempts,
                end: error.end.to_string(),
                retryable: error.retryable,
                kind: error.cause.kind,
                message: error.cause.message,
            })
        }
        Err(other) => Err(other),
    }
}

async fn flaky(ctx: &Ctx, plan: &Plan) -> Result<u32, Error> {
    let retry = match plan.backoff {
        Backoff::Constant => Retry::constant(),
        Backoff::Linear => Retry::linear(),
        Backoff::Exponential => Retry::exponential(),
    };
    let retry = retry
        .jitter(0.0)
        .delay(Duration::from_millis(plan.delay_ms.unwrap_or(10)));
    let retry = plan
        .max_attempts
        .into_iter()
        .fold(retry, Retry::max_attempts);
    let mut step = ctx
        .step_with("flaky", |attempt| attempt_once(plan, attempt))
        .retry(retry);
    if let Some(ms) = plan.timeout_ms {
        step = step.timeout(Duration::from_millis(ms));
    }
    if let Some(ms) = plan.deadline_ms {
        step = step.deadline(Duration::from_millis(ms));
    }
    Ok(step.await?.0)
}

fn attempt_once(plan: &Plan, attempt: &Attempt) -> Result<(u32, String), Failure> {
    if let Some(url) = &plan.effect_url {
        let effect = json!({ "step": "flaky", "attempt": attempt.number, "key": attempt.key });
        http::post(format!("{url}/flaky"))
            .json(&effect)
            .send()?
            .error_for_status()?;
    }
    if attempt.number > plan.failures {
        return Ok((attempt.number, String::new()));
    }
    let failure = Failure::new(
        "told-to-fail",
        format!("attempt {} was told to fail", attempt.number),
    );
    match plan.mode {
        Mode::Fail => Err(match plan.retry_after_ms {
            Some(ms) => failure.retry_after(Duration::from_millis(ms)),
            None => failure,
        }),
        Mode::Permanent => Err(failure.permanent()),
        Mode::Panic => panic!("attempt {} was told to panic", attempt.number),
        Mode::Memory => {
            let mut held = Vec::new();
            loop {
                held.push(black_box(vec![1_u8; 1024 * 1024]));
            }
        }
        Mode::Loop => loop {
            black_box(());
        },
        Mode::Sleep => {
            std::thread::sleep(Duration::from_secs(60 * 60));
            Err(failure)
        }
        Mode::Large => Ok((attempt.number, "x".repeat(2 * 1024 * 1024))),
    }
}

component! { workflows: [retry, catch] }
