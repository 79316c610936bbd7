//! Lesson 2, version 2: the same workflow, changed while runs of version 1 sleep.
//!
//! It asks for other operations than version 1 does: it waits for the first login instead of
//! sleeping. A run of version 1 could not go on with it, and need not: it stays on its version.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stepwell_sdk::{Ctx, Error, Event, component, http, info, workflow};

/// Who has just signed up.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Customer {
    name: String,
    email: String,
}

/// The customer has logged in.
const LOGIN: Event<Value> = Event::new("login");

/// Sends a mail at once, and after the first login (or a day without one) the mail that fits.
#[workflow(events(LOGIN))]
async fn onboarding(ctx: Ctx, customer: Customer) -> Result<Vec<String>, Error> {
    let mut sent = vec!["welcome".to_owned()];
    send(&ctx, &customer, "welcome").await?;
    ctx.publish("sent", &sent)?;
    let mail = match ctx.wait_for_event(&LOGIN).timeout("1 day").await? {
        Some(_) => "tips for the first day",
        None => "shall we help you",
    };
    send(&ctx, &customer, mail).await?;
    sent.push(mail.to_owned());
    ctx.publish("sent", &sent)?;
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
    use stepwell_sdk::testing::TestRun;

    use super::*;

    fn ada() -> Customer {
        Customer {
            name: "Ada".to_owned(),
            email: "ada@example.org".to_owned(),
        }
    }

    #[test]
    fn a_login_decides_which_mail_comes_second() {
        let logged_in = TestRun::new()
            .check_replay()
            .event_after("1 hour", &LOGIN, &Value::Null);
        assert_eq!(
            logged_in.run::<onboarding>(ada()).attempts,
            ["mail welcome", "mail tips for the first day"]
        );
        let absent = TestRun::new().check_replay();
        assert_eq!(
            absent.run::<onboarding>(ada()).attempts,
            ["mail welcome", "mail shall we help you"]
        );
    }
}
