//! Lesson 1: wait for an event, but not forever.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepwell_sdk::{Ctx, Error, Event, component, select, workflow};

/// What somebody wants to do.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct Request {
    /// For a person to read: `a new laptop`.
    what: String,
    /// How long to wait for a decision, for example `3 days`.
    #[serde(default = "three_days")]
    patience: String,
}

fn three_days() -> String {
    "3 days".to_owned()
}

/// What somebody else says to it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Decision {
    by: String,
    approved: bool,
}

/// How it ended.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
enum Verdict {
    Approved {
        by: String,
    },
    Declined {
        by: String,
    },
    /// Nobody decided in time.
    Expired,
}

/// The name and the type of the event, said once. The host checks what is sent against it.
const DECISION: Event<Decision> = Event::new("decision");

/// Asks for a decision and waits for it, for three days unless told otherwise.
#[workflow(events(DECISION))]
async fn approval(ctx: Ctx, request: Request) -> Result<Verdict, Error> {
    ctx.publish(
        "status",
        &format!("waiting for a decision on {}", request.what),
    )?;
    // Whichever is answered first wins, and the other is withdrawn: a decision that comes too late
    // stays in the mailbox, a timer that is not needed any more is disarmed.
    let verdict = select! {
        decision = ctx.wait_for_event(&DECISION) => {
            let decision = decision?;
            // Whoever sent the event can wait for this answer.
            decision.reply(&"noted")?;
            let Decision { by, approved } = decision.payload;
            if approved { Verdict::Approved { by } } else { Verdict::Declined { by } }
        }
        waited = ctx.sleep("patience", request.patience) => {
            waited?;
            Verdict::Expired
        }
    };
    ctx.publish("status", &verdict_text(&verdict))?;
    Ok(verdict)
}

fn verdict_text(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Approved { by } => format!("approved by {by}"),
        Verdict::Declined { by } => format!("declined by {by}"),
        Verdict::Expired => "nobody decided in time".to_owned(),
    }
}

component! { workflows: [approval] }

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde::Serialize;
    use stepwell_sdk::testing::TestRun;

    use super::*;

    fn laptop() -> Request {
        Request {
            what: "a new laptop".to_owned(),
            patience: three_days(),
        }
    }

    #[test]
    fn a_decision_in_time_counts() {
        let decision = Decision {
            by: "ada".to_owned(),
            approved: true,
        };
        let outcome = TestRun::new()
            .check_replay()
            .event_after("2 days", &DECISION, &decision)
            .run::<approval>(laptop());
        assert_eq!(
            outcome.result,
            Ok(Verdict::Approved {
                by: "ada".to_owned()
            })
        );
        assert_eq!(outcome.published["status"], "approved by ada");
        assert_eq!(outcome.replies, [Ok("noted".into())]);
    }

    #[test]
    fn without_a_decision_it_expires_in_three_days() {
        let outcome = TestRun::new().check_replay().run::<approval>(laptop());
        assert_eq!(outcome.result, Ok(Verdict::Expired));
        assert_eq!(outcome.elapsed, Duration::from_secs(3 * 24 * 60 * 60));
    }

    #[test]
    fn an_event_that_is_no_decision_fails_the_run() {
        #[derive(Serialize)]
        struct Nonsense;
        let nonsense: Event<Nonsense> = Event::new("decision");
        let outcome = TestRun::new()
            .event(&nonsense, &Nonsense)
            .run::<approval>(laptop());
        assert!(matches!(outcome.result, Err(Error::Failed(failure)) if failure.kind == "decode"));
    }
}
