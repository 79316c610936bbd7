//! Cleans up when it is asked to stop.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use stepwell_sdk::{Ctx, Error, Event, component, http, join, workflow};

/// Where it is when it is asked to stop, and what it does then. All may be left out.
#[derive(Deserialize, JsonSchema)]
struct Plan {
    /// Where it is.
    #[serde(default)]
    place: Place,
    /// How long one of the steps takes at `steps`.
    #[serde(default)]
    step_ms: u64,
    /// How long the clean-up sleeps, as an operation.
    #[serde(default)]
    linger_ms: u64,
    /// How long the body of the clean-up's step takes.
    #[serde(default)]
    clean_up_ms: u64,
    /// Where the clean-up's step reports to, as in the guest `steps`.
    effect_url: Option<String>,
    /// Whether it returns a value instead of the cancellation.
    #[serde(default)]
    swallow: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Place {
    /// Waits for an event `never`.
    #[default]
    Wait,
    /// Sleeps for a day.
    Sleep,
    /// Runs one step after the other, without end.
    Steps,
    /// Waits in a backoff of a day.
    Backoff,
    /// Waits for an event, a sleep and a backoff at once; all three hear of it.
    All,
}

/// Waits until it is asked to stop; then publishes the reason, runs a step `clean-up` and lingers.
#[workflow]
async fn cancel(ctx: Ctx, plan: Plan) -> Result<u32, Error> {
    let never: Event<Value> = Event::new("never");
    let wait = async || ctx.wait_for_event(&never).await.map(|_| ());
    let sleep = async || ctx.sleep("day", "1 day").await.map(|_| ());
    let backoff = async || {
        let failing = ctx.step("failing", || {
            Err::<(), _>(stepwell_sdk::Failure::new("told-to-fail", "always"))
        });
        failing
            .retry(
                stepwell_sdk::Retry::constant()
                    .jitter(0.0)
                    .delay("1 day")
                    .max_delay("1 day"),
            )
            .await
    };
    let ended = match plan.place {
        Place::Wait => vec![wait().await],
        Place::Sleep => vec![sleep().await],
        Place::Backoff => vec![backoff().await],
        Place::Steps => vec![loop {
            let body = || {
                std::thread::sleep(Duration::from_millis(plan.step_ms));
                Ok(())
            };
            if let Err(error) = ctx.step("work", body).await {
                break Err(error);
            }
        }],
        Place::All => {
            let (waited, slept, backed_off) = join!(wait(), sleep(), backoff());
            vec![waited, slept, backed_off]
        }
    };
    let mut heard = 0;
    let mut last = Ok(());
    for end in ended {
        match end {
            Err(Error::Cancelled(reason)) => {
                heard += 1;
                ctx.publish("cancelled", &json!({ "reason": reason, "heard": heard }))?;
                last = Err(Error::Cancelled(reason));
            }
            other => other?,
        }
    }
    ctx.step_with("clean-up", |attempt| {
        if let Some(url) = &plan.effect_url {
            let effect =
                json!({ "step": "clean-up", "attempt": attempt.number, "key": attempt.key });
            http::post(format!("{url}/clean-up"))
                .json(&effect)
                .send()?
                .error_for_status()?;
        }
        std::thread::sleep(Duration::from_millis(plan.clean_up_ms));
        Ok(())
    })
    .await?;
    if plan.linger_ms > 0 {
        ctx.sleep("linger", Duration::from_millis(plan.linger_ms))
            .await?;
    }
    ctx.publish("cleaned-up", &true)?;
    if plan.swallow {
        Ok(heard)
    } else {
        last.map(|()| heard)
    }
}

component! { workflows: [cancel] }
