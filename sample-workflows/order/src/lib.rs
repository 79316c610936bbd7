//! Lesson 3: steps that talk to a shop, and what undoes them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stepwell_sdk::{Ctx, Error, Event, Failure, Retry, component, http, info, workflow};

#[cfg(test)]
mod tests;

/// Above this, a person has to approve: 1,000.00.
const APPROVAL_CENTS_MIN: u64 = 100_000;

/// What is ordered.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Order {
    /// The customer's own number for it.
    id: String,
    item: String,
    quantity: u32,
    cents: u64,
}

/// What the customer gets.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Receipt {
    charge: String,
    shipment: String,
}

/// What a person says to a large order.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Approval {
    by: String,
    approved: bool,
}

const APPROVAL: Event<Approval> = Event::new("approval");

/// What has been begun, and is undone if the order does not go through.
#[derive(Default)]
struct Begun {
    reservation: bool,
    charge: bool,
}

/// Reserves, charges and ships; undoes what was begun if it cannot go through.
#[workflow(events(APPROVAL))]
async fn order(ctx: Ctx, order: Order) -> Result<Receipt, Error> {
    let mut begun = Begun::default();
    match fulfil(&ctx, &order, &mut begun).await {
        Ok(receipt) => {
            ctx.publish("status", &"shipped")?;
            Ok(receipt)
        }
        // A failed step, a person's no, or a cancel: all leave here. What follows a cancel is
        // clean-up and runs as usual, within the grace period.
        Err(error) => {
            ctx.publish("status", &"undoing")?;
            undo(&ctx, &order, &begun).await?;
            ctx.publish("status", &"undone")?;
            Err(error)
        }
    }
}

async fn fulfil(ctx: &Ctx, order: &Order, begun: &mut Begun) -> Result<Receipt, Error> {
    // Noted before the step, not after it: when a step is given up, nobody knows whether its last
    // attempt reached the shop. So undoing has to be fit for what was never done, too.
    begun.reservation = true;
    ctx.publish("status", &"reserving")?;
    call_shop(ctx, "reserve", order, Retry::default()).await?;

    if order.cents > APPROVAL_CENTS_MIN {
        ctx.publish("status", &"waiting for approval")?;
        let approval = ctx.wait_for_event(&APPROVAL).timeout("3 days").await?;
        let Some(approval) = approval else {
            return Err(
                Failure::new("not-approved", "nobody approved within 3 days")
                    .permanent()
                    .into(),
            );
        };
        approval.reply(&"thank you")?;
        let Approval { by, approved } = approval.payload;
        if !approved {
            return Err(Failure::new("not-approved", format!("{by} said no"))
                .permanent()
                .into());
        }
        info!("approved"; by = by, order = order.id);
    }

    begun.charge = true;
    ctx.publish("status", &"charging")?;
    let charge = call_shop(ctx, "charge", order, Retry::exponential().max_attempts(4)).await?;
    ctx.publish("status", &"shipping")?;
    let shipment = call_shop(ctx, "ship", order, Retry::default()).await?;
    Ok(Receipt { charge, shipment })
}

async fn undo(ctx: &Ctx, order: &Order, begun: &Begun) -> Result<(), Error> {
    // Undoing is the last thing to give up on.
    let patient = || Retry::exponential().max_attempts(20).max_delay("5 minutes");
    if begun.charge {
        call_shop(ctx, "refund", order, patient()).await?;
    }
    if begun.reservation {
        call_shop(ctx, "release", order, patient()).await?;
    }
    Ok(())
}

/// One step: one request to the shop, which answers with the id of what it did.
///
/// The host adds an `Idempotency-Key` that is the same for every attempt, so a shop that honours it
/// charges once even if the answer to the first attempt was lost.
async fn call_shop(ctx: &Ctx, action: &str, order: &Order, retry: Retry) -> Result<String, Error> {
    ctx.step(action, || {
        let shop = std::env::var("SHOP_URL").unwrap_or_else(|_| "http://127.0.0.1:9100".to_owned());
        let body = json!({ "order": order.id, "item": order.item, "quantity": order.quantity, "cents": order.cents });
        let answer: Value = http::post(format!("{shop}/{action}")).json(&body).send()?.error_for_status()?.json()?;
        let id = answer["id"].as_str().ok_or_else(|| Failure::new("no-id", format!("the shop answered {answer}")))?;
        Ok(id.to_owned())
    })
    .retry(retry)
    .timeout("10 seconds")
    .await
}

component! { workflows: [order] }
