//! An event, a timer and a task, and whichever comes first.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell_sdk::{Ctx, Error, Event, Failure, component, select, task, workflow};

/// How long the two take that end by themselves.
#[derive(Deserialize, JsonSchema)]
struct Plan {
    sleep_ms: u64,
    task_ms: u64,
    /// After the race, waits once more for the event, for this long: a losing event is still
    /// there.
    then_wait_ms: Option<u64>,
}

/// Who won.
#[derive(Serialize, JsonSchema)]
struct Finish {
    /// `event`, `sleep` or `task`.
    winner: String,
    /// The event's payload, if it won.
    payload: Value,
    /// The payload of an event that was there after the race.
    later: Option<Value>,
}

const FLAG: Event<Value> = Event::new("flag");

/// Races an event `flag` against a sleep and a task.
#[workflow(events(FLAG))]
async fn race(ctx: Ctx, plan: Plan) -> Result<Finish, Error> {
    let (winner, payload) = select! {
        message = ctx.wait_for_event(&FLAG) => ("event", message?.payload),
        slept = ctx.sleep("patience", Duration::from_millis(plan.sleep_ms)) => {
            slept?;
            ("sleep", Value::Null)
        }
        ran = ctx.call_task(run, plan.task_ms) => {
            ran?;
            ("task", Value::Null)
        }
    };
    let later = match plan.then_wait_ms {
        Some(ms) => {
            ctx.wait_for_event(&FLAG)
                .timeout(Duration::from_millis(ms))
                .await?
        }
        None => None,
    };
    Ok(Finish {
        winner: winner.to_owned(),
        payload,
        later: later.map(|message| message.payload),
    })
}

/// Takes as long as it is told.
#[task]
fn run(ms: u64) -> Result<(), Failure> {
    std::thread::sleep(Duration::from_millis(ms));
    Ok(())
}

component! { workflows: [race], tasks: [run] }
