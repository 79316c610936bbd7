//! The order against a scripted shop.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use stepwell_sdk::http::Response;
use stepwell_sdk::testing::{SentRequest, TestRun};

use super::*;

const SMALL: u64 = 4_200;
const LARGE: u64 = 250_000;

fn tea(cents: u64) -> Order {
    Order {
        id: "A-7".to_owned(),
        item: "tea".to_owned(),
        quantity: 2,
        cents,
    }
}

fn approval(approved: bool) -> Approval {
    Approval {
        by: "ada".to_owned(),
        approved,
    }
}

/// A shop that refuses requests of one kind, and what it was asked for.
fn shop(refused: &'static str) -> (TestRun, Rc<RefCell<Vec<String>>>) {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&asked);
    let answer = move |request: SentRequest<'_>| {
        let action = request.url.rsplit('/').next().unwrap_or_default();
        assert_eq!(request.json::<Value>()["order"], "A-7");
        seen.borrow_mut().push(action.to_owned());
        Response::new(
            if action == refused { 400 } else { 200 },
            format!(r#"{{"id":"{action}-1"}}"#),
        )
    };
    (TestRun::new().check_replay().http(answer), asked)
}

#[test]
fn a_small_order_is_reserved_charged_and_shipped() {
    let (run, asked) = shop("nothing");
    let outcome = run.run::<order>(tea(SMALL));
    let expected = Receipt {
        charge: "charge-1".to_owned(),
        shipment: "ship-1".to_owned(),
    };
    assert_eq!(outcome.result, Ok(expected));
    assert_eq!(*asked.borrow(), ["reserve", "charge", "ship"]);
    assert_eq!(outcome.published["status"], "shipped");
}

#[test]
fn a_large_order_waits_for_approval() {
    let (run, asked) = shop("nothing");
    let outcome = run
        .event_after("2 hours", &APPROVAL, &approval(true))
        .run::<order>(tea(LARGE));
    assert!(outcome.result.is_ok());
    assert_eq!(asked.borrow().len(), 3);
    assert_eq!(outcome.elapsed, Duration::from_secs(2 * 60 * 60));
}

#[test]
fn without_approval_the_reservation_is_released_and_nothing_charged() {
    for script in [true, false] {
        let (run, asked) = shop("nothing");
        let run = if script {
            run.event(&APPROVAL, &approval(false))
        } else {
            run
        };
        let outcome = run.run::<order>(tea(LARGE));
        assert!(
            matches!(outcome.result, Err(Error::Failed(failure)) if failure.kind == "not-approved")
        );
        assert_eq!(*asked.borrow(), ["reserve", "release"]);
    }
}

#[test]
fn a_failed_shipment_is_refunded_and_released_and_named() {
    let (run, asked) = shop("ship");
    let outcome = run.run::<order>(tea(SMALL));
    let Err(Error::Step(error)) = outcome.result else {
        panic!("expected the step's error")
    };
    assert_eq!((error.step.as_str(), error.attempts), ("ship", 1));
    assert_eq!(
        *asked.borrow(),
        ["reserve", "charge", "ship", "refund", "release"]
    );
    assert_eq!(outcome.published["status"], "undone");
}

#[test]
fn a_charge_that_was_given_up_is_refunded_too() {
    let (run, asked) = shop("charge");
    assert!(run.run::<order>(tea(SMALL)).result.is_err());
    assert_eq!(*asked.borrow(), ["reserve", "charge", "refund", "release"]);
}

#[test]
fn a_cancel_while_waiting_releases_the_reservation() {
    let (run, asked) = shop("nothing");
    let outcome = run
        .cancel_after("1 hour", "changed my mind")
        .run::<order>(tea(LARGE));
    assert_eq!(
        outcome.result,
        Err(Error::Cancelled("changed my mind".to_owned()))
    );
    assert_eq!(*asked.borrow(), ["reserve", "release"]);
}
