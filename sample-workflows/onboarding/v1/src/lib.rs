//! Lesson 2, version 1: a workflow of long sleeps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stepwell_sdk::{Ctx, Error, component, http, info, workflow};

/// Who has just signed up.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Customer {
    name: String,
    email: String,
}

/// Sends three mails, a day apart.
#[workflow]
async fn onboarding(ctx: Ctx, customer: Customer) -> Result<Vec<String>, Error> {
    let mut sent = Vec::new();
    for (day, mail) in ["welcome", "first steps", "how is it going"]
        .into_iter()
        .enumerate()
    {
        if day > 0 {
            ctx.sleep("until tomorrow", "1 day").await?;
        }
        send(&ctx, &customer, mail).await?;
        sent.push(mail.to_owned());
        ctx.publish("sent", &sent)?;
    }
    Ok(sent)
}

/// Hands a mail to the mail service, if `MAIL_URL` names one.
async fn send(ctx: &Ctx, customer: &Customer, mail: &str) -> Result<(), Error> {
    ctx.step(&format!("mail {mail}"), || {
        if let Ok(url) = std::env::var("MAIL_URL") {
            let letter = json!({ "to": customer.email, "template": mail });
            http::post(format!("{url}/mails"))
                .json(&letter)
                .send()?
                .error_for_status()?;
        }
        info!("mailed `{mail}` to {}", customer.name);
        Ok(())
    })
    .await
}

component! { workflows: [onboarding] }

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use stepwell_sdk::testing::TestRun;

    use super::*;

    #[test]
    fn three_mails_take_two_days() {
        let customer = Customer {
            name: "Ada".to_owned(),
            email: "ada@example.org".to_owned(),
        };
        let outcome = TestRun::new().check_replay().run::<onboarding>(customer);
        assert_eq!(outcome.result.map(|sent| sent.len()), Ok(3));
        assert_eq!(
            outcome.attempts,
            ["mail welcome", "mail first steps", "mail how is it going"]
        );
        assert_eq!(outcome.elapsed, Duration::from_secs(2 * 24 * 60 * 60));
    }
}
