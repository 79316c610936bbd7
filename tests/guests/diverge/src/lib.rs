//! Does other operations when the environment variable `VARIANT` says so. Since a version's
//! environment is pinned, two versions of one component disagree about one journal.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use stepwell_sdk::{Ctx, Error, Event, Failure, component, task, workflow};

const GO: Event<Value> = Event::new("go");

/// What it did.
#[derive(Serialize, JsonSchema)]
struct Report {
    variant: String,
    results: Vec<String>,
}

/// Runs `one`, task `double`, sleep `nap`, publishes `state`, waits for `go`, runs `two`; other
/// variants do something else at one place.
#[workflow(events(GO))]
async fn diverge(ctx: Ctx) -> Result<Report, Error> {
    let variant = std::env::var("VARIANT").unwrap_or_else(|_| "base".to_owned());
    let is = |name: &str| variant == name;
    let mut results = Vec::new();
    let mut step = async |name: &str| {
        ctx.step(name, || Ok(name.to_owned()))
            .await
            .map(|name| results.push(name))
    };

    if is("extra-step") {
        step("zero").await?;
    }
    step(if is("renamed-step") { "uno" } else { "one" }).await?;
    let nap = async || {
        if is("kind-changed") {
            ctx.step("nap", || Ok(())).await
        } else {
            ctx.sleep(if is("renamed-sleep") { "doze" } else { "nap" }, "1ms")
                .await
                .map(|_| ())
        }
    };
    if is("reordered") {
        nap().await?;
    }
    ctx.call_task(double, if is("other-input") { 8 } else { 7 })
        .await?;
    if !is("reordered") {
        nap().await?;
    }
    if !is("missing-publish") {
        ctx.publish("state", &if is("other-value") { "here" } else { "waiting" })?;
    }
    if is("ends-early") {
        return Ok(Report { variant, results });
    }
    ctx.wait_for_event(&GO).await?;
    // What comes after the wait is new to a run that waits there: these variants fit its journal.
    step(if is("later-step") { "drei" } else { "two" }).await?;
    Ok(Report { variant, results })
}

/// Doubles a number.
#[task]
fn double(number: u32) -> Result<u32, Failure> {
    Ok(number * 2)
}

component! { workflows: [diverge], tasks: [double] }
