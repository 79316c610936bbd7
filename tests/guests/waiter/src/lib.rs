//! Waits for events and answers their senders.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stepwell_sdk::{Ctx, Error, Event, Failure, component, workflow};

/// What to wait for.
#[derive(Deserialize, JsonSchema)]
struct Plan {
    /// The event's name.
    event: String,
    /// How many, one after the other; one if left out.
    count: Option<u32>,
    /// Gives up on each after this long.
    timeout_ms: Option<u64>,
    /// Whether every sender gets an answer.
    #[serde(default)]
    reply: bool,
    /// Answers every sender with a failure of this kind instead.
    reply_failure: Option<String>,
}

/// What came.
#[derive(Serialize, JsonSchema)]
struct Taken {
    /// The payloads, in the order in which they were taken.
    payloads: Vec<Value>,
    /// How many waits gave up.
    timed_out: u32,
}

/// Waits for events and returns their payloads; answers each sender with `{"got": payload}`.
#[workflow]
async fn waiter(ctx: Ctx, plan: Plan) -> Result<Taken, Error> {
    let event: Event<Value> = Event::named(plan.event);
    let mut taken = Taken {
        payloads: Vec::new(),
        timed_out: 0,
    };
    for _ in 0..plan.count.unwrap_or(1) {
        let wait = ctx.wait_for_event(&event);
        let message = match plan.timeout_ms {
            Some(ms) => wait.timeout(Duration::from_millis(ms)).await?,
            None => Some(wait.await?),
        };
        let Some(message) = message else {
            taken.timed_out += 1;
            continue;
        };
        if let Some(kind) = &plan.reply_failure {
            message.reply_failure(Failure::new(kind.clone(), "told to refuse").permanent())?;
        } else if plan.reply {
            message.reply(&json!({ "got": message.payload }))?;
        }
        taken.payloads.push(message.payload);
    }
    Ok(taken)
}

component! { workflows: [waiter] }
