//! What a workflow does to its host, and what it hears: on the scripted host, live and replayed.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::cell::{Cell, RefCell};
use std::time::Duration;

use serde_json::json;
use stepwell_sdk::futures::{FuturesUnordered, StreamExt, join_all};
use stepwell_sdk::testing::TestRun;
use stepwell_sdk::{
    AttemptEnd, Binary, Ctx, Error, Event, Failure, Retry, TaskContext, Timestamp, Wake, http,
    join, select, task, try_join, workflow,
};

const GO: Event<u32> = Event::new("go");

fn run() -> TestRun {
    TestRun::new().check_replay()
}

/// Doubles a number.
#[task]
fn double(number: u32) -> Result<u32, Failure> {
    Ok(2 * number)
}

/// Succeeds in its third attempt.
#[task]
fn third_time_lucky(context: TaskContext) -> Result<u32, Failure> {
    if context.attempt < 3 {
        Err(Failure::new("not-yet", "try again"))
    } else {
        Ok(context.attempt)
    }
}

mod steps {
    use super::*;

    /// Two steps, one after the other.
    #[workflow]
    async fn two(ctx: Ctx, start: u32) -> Result<u32, Error> {
        let first = ctx.step("first", || Ok(start + 1)).await?;
        ctx.step("second", || Ok(first * 10)).await
    }

    #[test]
    fn results_flow_from_one_step_to_the_next() {
        let outcome = run().run::<two>(4);
        assert_eq!(outcome.result, Ok(50));
        assert_eq!(outcome.attempts, ["first", "second"]);
        assert_eq!(outcome.elapsed, Duration::ZERO);
    }

    /// Fails twice.
    #[workflow]
    async fn flaky(ctx: Ctx) -> Result<u32, Error> {
        ctx.step_with("flaky", |attempt| match attempt.number {
            1 => Err(Failure::new("busy", "try again")),
            2 => Err(Failure::new("busy", "try much later").retry_after("1 hour")),
            number => Ok(number),
        })
        .retry(Retry::constant().delay("10 seconds"))
        .await
    }

    #[test]
    fn a_failed_attempt_is_followed_by_another_after_its_backoff() {
        let outcome = run().run::<flaky>(());
        assert_eq!(outcome.result, Ok(3));
        assert_eq!(outcome.attempts, ["flaky", "flaky", "flaky"]);
        assert_eq!(outcome.elapsed, Duration::from_secs(3_610));
    }

    /// Retries while something else goes on.
    #[workflow]
    async fn beside(ctx: Ctx) -> Result<(u32, Timestamp), Error> {
        let flaky = ctx
            .step_with("flaky", |attempt| {
                if attempt.number == 1 {
                    Err(Failure::new("busy", ""))
                } else {
                    Ok(attempt.number)
                }
            })
            .retry(Retry::constant().delay("1 minute"));
        let other = async {
            ctx.sleep("short", "10 seconds").await?;
            ctx.step("meanwhile", || Ok(())).await?;
            Ok(ctx.now())
        };
        try_join!(flaky, other)
    }

    #[test]
    fn other_work_goes_on_during_a_backoff() {
        let outcome = run().run::<beside>(());
        let (number, other_done_at) = outcome.result.unwrap();
        assert_eq!(number, 2);
        assert_eq!(outcome.attempts, ["flaky", "meanwhile", "flaky"]);
        assert_eq!(outcome.elapsed, Duration::from_secs(60));
        assert_eq!(other_done_at.to_string(), "2026-01-01T00:00:10.000Z");
    }

    /// Gives up, and hands the error on.
    #[workflow]
    async fn hopeless(ctx: Ctx) -> Result<(), Error> {
        ctx.step("hopeless", || Err(Failure::new("no", "never")))
            .retry(Retry::linear().max_attempts(3))
            .await
    }

    #[test]
    fn an_exhausted_step_says_what_the_last_attempt_said() {
        let outcome = run().run::<hopeless>(());
        let Err(Error::Step(error)) = outcome.result else {
            panic!("expected a step error")
        };
        assert_eq!(
            (error.step.as_str(), error.attempts, error.end),
            ("hopeless", 3, AttemptEnd::Failed)
        );
        assert_eq!(error.cause, Failure::new("no", "never"));
        assert_eq!(outcome.elapsed, Duration::from_secs(1 + 2));
    }

    /// Returns what JSON cannot carry back.
    #[workflow]
    async fn lossy(ctx: Ctx) -> Result<f64, Error> {
        ctx.step("lossy", || Ok(f64::NAN)).await
    }

    #[test]
    fn a_result_that_would_not_survive_the_journal_fails_the_attempt() {
        let outcome = run().run::<lossy>(());
        let Err(Error::Step(error)) = outcome.result else {
            panic!("expected a step error")
        };
        assert_eq!((error.attempts, error.cause.kind.as_str()), (1, "decode"));
    }

    /// Waits badly.
    #[workflow]
    async fn misspelt(ctx: Ctx) -> Result<(), Error> {
        ctx.step("late", || Ok(())).timeout("soonish").await
    }

    #[test]
    fn a_bad_span_is_an_error_and_no_operation() {
        let outcome = run().run::<misspelt>(());
        let Err(Error::Failed(failure)) = outcome.result else {
            panic!("expected a failure")
        };
        assert_eq!(failure.kind, "bad-span");
        assert!(
            failure
                .message
                .starts_with("the timeout of step `late`: `soonish` is not a span"),
            "{failure}"
        );
        assert!(outcome.attempts.is_empty());
    }

    /// Shrinks bytes.
    #[workflow]
    async fn bytes(ctx: Ctx, bytes: Binary) -> Result<Binary, Error> {
        ctx.step("shrink", || Ok(Binary(bytes.0[..1].to_vec())))
            .await
    }

    #[test]
    fn bytes_pass_through_a_step() {
        assert_eq!(
            run().run::<bytes>(Binary(vec![7, 8])).result,
            Ok(Binary(vec![7]))
        );
    }

    /// Asks a server.
    #[workflow]
    async fn ask(ctx: Ctx) -> Result<u32, Error> {
        let body = || {
            http::post("http://shop/items?token=s3cret")
                .json(&7)
                .send()?
                .error_for_status()?
                .json()
        };
        ctx.step("ask", body)
            .retry(Retry::constant().delay("1 second").max_attempts(3))
            .await
    }

    #[test]
    fn a_body_speaks_http_to_the_scripted_server() {
        let calls = Cell::new(0);
        let server = move |request: stepwell_sdk::testing::SentRequest<'_>| {
            calls.set(calls.get() + 1);
            assert_eq!((request.method, request.json::<u32>()), ("POST", 7));
            if calls.get() == 1 {
                http::Response::new(503, "busy")
            } else {
                http::Response::new(200, "42")
            }
        };
        let outcome = run().http(server).run::<ask>(());
        assert_eq!(outcome.result, Ok(42));
        assert_eq!(outcome.attempts.len(), 2);
    }

    #[test]
    fn a_status_names_the_request_without_its_query() {
        let outcome = run()
            .http(|_| http::Response::new(404, "no such shop"))
            .run::<ask>(());
        let Err(Error::Step(error)) = outcome.result else {
            panic!("expected a step error")
        };
        assert_eq!(error.attempts, 1);
        assert_eq!(
            error.cause.message,
            "POST http://shop/items: answered 404: \"no such shop\""
        );
    }

    #[test]
    #[should_panic(expected = "natively there is no HTTP; let the test answer")]
    fn http_without_a_server_says_what_to_do() {
        let _ = TestRun::new().run::<ask>(());
    }
}

mod waiting {
    use super::*;

    /// Waits for a time, and for an event.
    #[workflow(events(GO))]
    async fn wait(ctx: Ctx, seconds: u64) -> Result<(bool, u32), Error> {
        let woken = ctx.sleep("nap", Duration::from_secs(seconds)).await? == Wake::Woken;
        let message = ctx.wait_for_event(&GO).await?;
        message.reply(&json!({ "got": message.payload }))?;
        Ok((woken, message.payload))
    }

    #[test]
    fn an_event_sent_before_its_wait_is_kept() {
        let outcome = run().event(&GO, &5).run::<wait>(60);
        assert_eq!(outcome.result, Ok((false, 5)));
        assert_eq!(outcome.replies, [Ok(json!({ "got": 5 }))]);
        assert_eq!(outcome.elapsed, Duration::from_secs(60));
    }

    #[test]
    fn a_woken_sleep_says_so() {
        let outcome = run().event(&GO, &5).wake_after("7 seconds").run::<wait>(60);
        assert_eq!(outcome.result, Ok((true, 5)));
        assert_eq!(outcome.elapsed, Duration::from_secs(7));
    }

    /// Sleeps too long.
    #[workflow]
    async fn hibernate(ctx: Ctx) -> Result<bool, Error> {
        Ok(
            matches!(ctx.sleep("long", "600 weeks").await, Err(Error::Failed(failure)) if failure.kind == "sleep-too-long"),
        )
    }

    #[test]
    fn a_refused_sleep_can_be_caught() {
        assert_eq!(run().run::<hibernate>(()).result, Ok(true));
    }

    #[test]
    #[should_panic(
        expected = "the run waits for [\"go\"], which nothing in the test's script will ever answer"
    )]
    fn a_wait_that_never_ends_is_named() {
        let _ = run().run::<wait>(1);
    }

    #[test]
    fn an_event_of_another_type_is_an_error_that_names_it() {
        let text: Event<&'static str> = Event::new("go");
        let outcome = run().event(&text, &"five").run::<wait>(1);
        let Err(Error::Failed(failure)) = outcome.result else {
            panic!("expected a failure")
        };
        assert_eq!(failure.kind, "decode");
        assert!(
            failure
                .message
                .starts_with("the payload of event `go`: cannot read it as a u32"),
            "{failure}"
        );
    }

    /// Answers twice.
    #[workflow]
    async fn chatty(ctx: Ctx) -> Result<String, Error> {
        let message = ctx.wait_for_event(&GO).await?;
        message.reply_failure(Failure::new("no", "not today"))?;
        match message.reply(&1) {
            Err(Error::Failed(failure)) => Ok(failure.kind),
            other => panic!("expected a failure, found {other:?}"),
        }
    }

    #[test]
    fn a_second_answer_is_refused() {
        let outcome = run().event(&GO, &1).run::<chatty>(());
        assert_eq!(outcome.result, Ok("already-answered".to_owned()));
        assert_eq!(outcome.replies, [Err("no".to_owned())]);
    }
}

mod choosing {
    use super::*;

    /// Races an event against a sleep, then waits for the event again.
    #[workflow]
    async fn race(ctx: Ctx) -> Result<(String, Option<u32>), Error> {
        let winner = select! {
            message = ctx.wait_for_event(&GO) => format!("event {}", message?.payload),
            slept = ctx.sleep("patience", "1 minute") => {
                slept?;
                "sleep".to_owned()
            }
        };
        let later = ctx.wait_for_event(&GO).timeout("1 hour").await?;
        Ok((winner, later.map(|message| message.payload)))
    }

    #[test]
    fn the_loser_of_a_select_is_withdrawn() {
        let outcome = run().event_after("30 seconds", &GO, &1).run::<race>(());
        assert_eq!(outcome.result, Ok(("event 1".to_owned(), None)));
        assert_eq!(outcome.withdrawn, ["patience"]);
    }

    #[test]
    fn a_losing_event_is_there_for_the_next_wait() {
        let outcome = run().event_after("2 minutes", &GO, &1).run::<race>(());
        assert_eq!(outcome.result, Ok(("sleep".to_owned(), Some(1))));
        assert_eq!(outcome.withdrawn, ["go"]);
        assert_eq!(outcome.elapsed, Duration::from_secs(120));
    }

    #[test]
    fn at_one_time_the_arm_written_first_wins() {
        let outcome = run().event_after("1 minute", &GO, &1).run::<race>(());
        assert_eq!(outcome.result.unwrap().0, "event 1");
    }

    /// Keeps a sleep over several rounds of a loop.
    #[workflow]
    async fn collect(ctx: Ctx) -> Result<Vec<u32>, Error> {
        let mut end = ctx.sleep("end", "1 minute");
        let mut collected = Vec::new();
        loop {
            select! {
                message = ctx.wait_for_event(&GO) => collected.push(message?.payload),
                slept = end => {
                    slept?;
                    return Ok(collected);
                }
            }
        }
    }

    #[test]
    fn a_future_that_is_kept_goes_on_in_the_next_round() {
        let script = run()
            .event(&GO, &1)
            .event_after("20 seconds", &GO, &2)
            .event_after("40 seconds", &GO, &3);
        let outcome = script.run::<collect>(());
        assert_eq!(outcome.result, Ok(vec![1, 2, 3]));
        assert_eq!(outcome.elapsed, Duration::from_secs(60));
    }

    /// Drops what it never polled, and what it polled.
    #[workflow]
    async fn drops(ctx: Ctx) -> Result<(), Error> {
        let unpolled = ctx.sleep("unpolled", "1 day");
        let polled = ctx.sleep("polled", "1 day");
        let short = ctx.sleep("short", "1 second");
        select! {
            _ = { polled } => unreachable!(),
            slept = { short } => slept?,
        };
        drop(unpolled);
        Ok(())
    }

    #[test]
    fn what_was_never_polled_is_not_asked_for() {
        assert_eq!(run().run::<drops>(()).withdrawn, ["polled"]);
    }
}

mod many {
    use super::*;

    /// Three sleeps at once.
    #[workflow]
    async fn joined(ctx: Ctx) -> Result<Vec<Wake>, Error> {
        let (long, short) = join!(ctx.sleep("long", "1 hour"), ctx.sleep("short", "1 minute"));
        Ok(vec![long?, short?])
    }

    #[test]
    fn joined_sleeps_take_as_long_as_the_longest() {
        let outcome = run().run::<joined>(());
        assert_eq!(outcome.result, Ok(vec![Wake::Elapsed, Wake::Elapsed]));
        assert_eq!(outcome.elapsed, Duration::from_secs(3_600));
    }

    /// Sleeps of falling length, as they end.
    #[workflow]
    async fn unordered(ctx: Ctx) -> Result<Vec<u32>, Error> {
        let sleep = async |number: u32| {
            ctx.sleep("nap", Duration::from_secs(u64::from(10 - number)))
                .await?;
            Ok::<_, Error>(number)
        };
        let mut sleeps: FuturesUnordered<_> = (0..4).map(sleep).collect();
        let mut ended = Vec::new();
        while let Some(number) = sleeps.next().await {
            ended.push(number?);
        }
        Ok(ended)
    }

    #[test]
    fn unordered_futures_come_in_as_they_were_answered() {
        assert_eq!(run().run::<unordered>(()).result, Ok(vec![3, 2, 1, 0]));
    }

    /// One task for each number.
    #[workflow]
    async fn fan_out(ctx: Ctx, count: u32) -> Result<u32, Error> {
        let mut calls: FuturesUnordered<_> = (0..count)
            .map(|number| ctx.call_task(double, number))
            .collect();
        let mut sum = 0;
        while let Some(doubled) = calls.next().await {
            sum += doubled?;
        }
        Ok(sum)
    }

    #[test]
    fn three_thousand_open_tasks_are_cheap() {
        let began = std::time::Instant::now();
        let outcome = run().task(double).run::<fan_out>(3_000);
        assert_eq!(outcome.result, Ok(2_999 * 3_000));
        assert_eq!(outcome.attempts.len(), 3_000);
        // The transcript of this test keeps 9 million numbers; the SDK itself a few milliseconds.
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "took {:?}",
            began.elapsed()
        );
    }

    /// Joins a list.
    #[workflow]
    async fn listed(ctx: Ctx) -> Result<Vec<u32>, Error> {
        join_all((0..40).map(|number| ctx.call_task(double, number)))
            .await
            .into_iter()
            .collect()
    }

    #[test]
    fn a_joined_list_keeps_its_order() {
        assert_eq!(
            run().task(double).run::<listed>(()).result,
            Ok((0..40).map(|number| 2 * number).collect())
        );
    }

    /// Calls a flaky task.
    #[workflow]
    async fn lucky(ctx: Ctx) -> Result<u32, Error> {
        ctx.call_task(third_time_lucky, ())
            .retry(Retry::constant().delay("1 minute"))
            .await
    }

    #[test]
    fn a_task_is_retried_by_its_rules() {
        let outcome = run().task(third_time_lucky).run::<lucky>(());
        assert_eq!(
            (outcome.result, outcome.elapsed),
            (Ok(3), Duration::from_secs(120))
        );
    }

    #[test]
    fn a_task_can_still_be_called_as_a_function() {
        assert_eq!(double(4), Ok(8));
    }

    /// Hands in what does not fit.
    #[workflow]
    async fn misfit(ctx: Ctx) -> Result<u32, Error> {
        ctx.call_task_by_name("double", &"four").await
    }

    #[test]
    fn a_task_refuses_an_input_that_does_not_fit() {
        let Err(Error::Step(error)) = run().task(double).run::<misfit>(()).result else {
            panic!("expected an error")
        };
        assert_eq!((error.cause.kind.as_str(), error.attempts), ("decode", 1));
    }
}

mod stopping {
    use super::*;

    /// Waits in three places at once, and cleans up.
    #[workflow]
    async fn everywhere(ctx: Ctx) -> Result<u32, Error> {
        let failing = ctx.step("failing", || Err::<(), _>(Failure::new("busy", "")));
        let failing = failing.retry(Retry::constant().delay("1 day").max_delay("1 day"));
        let (waited, slept, failed) =
            join!(ctx.wait_for_event(&GO), ctx.sleep("day", "1 day"), failing);
        let heard = [waited.map(drop), slept.map(drop), failed];
        assert!(
            heard
                .iter()
                .all(|end| *end == Err(Error::Cancelled("enough".to_owned()))),
            "{heard:?}"
        );
        ctx.step("clean-up", || Ok(())).await?;
        ctx.sleep("linger", "1 second").await?;
        Ok(3)
    }

    #[test]
    fn everything_that_waits_hears_of_a_cancel_once_and_clean_up_runs() {
        let outcome = run().cancel_after("1 hour", "enough").run::<everywhere>(());
        assert_eq!(outcome.result, Ok(3));
        assert_eq!(outcome.attempts, ["failing", "clean-up"]);
        assert_eq!(outcome.withdrawn, ["go", "day", "failing"]);
        assert_eq!(outcome.elapsed, Duration::from_secs(3_601));
    }

    /// Begins with a step.
    #[workflow]
    async fn first_a_step(ctx: Ctx) -> Result<(), Error> {
        let (slept, stepped) = join!(ctx.sleep("day", "1 day"), ctx.step("charge", || Ok(())));
        assert_eq!(slept, Err(Error::Cancelled("at once".to_owned())));
        ctx.step("refund", || Ok(())).await?;
        stepped
    }

    #[test]
    fn a_step_that_is_told_of_a_cancel_does_not_run_and_what_waits_beside_it_hears_too() {
        let outcome = run().cancel_after("0s", "at once").run::<first_a_step>(());
        assert_eq!(outcome.result, Err(Error::Cancelled("at once".to_owned())));
        assert_eq!(outcome.attempts, ["refund"]);
        assert_eq!(outcome.withdrawn, ["day"]);
    }
}

mod rules {
    use super::*;

    /// Awaits what can never come.
    #[workflow]
    async fn foreign(_ctx: Ctx) -> Result<(), Error> {
        std::future::pending().await
    }

    #[test]
    #[should_panic(expected = "waits for something that is not a Stepwell operation")]
    fn a_foreign_future_is_a_clear_panic_and_no_endless_wait() {
        let _ = run().run::<foreign>(());
    }

    /// Asks for an operation inside a step.
    #[workflow]
    async fn nested(ctx: Ctx) -> Result<(), Error> {
        ctx.step("outer", || Ok(ctx.publish("inner", &1).is_ok()))
            .await
            .map(drop)
    }

    #[test]
    #[should_panic(expected = "an operation was asked for while a step's body runs")]
    fn an_operation_inside_a_step_is_a_panic() {
        let _ = run().run::<nested>(());
    }

    /// Does something else every time.
    #[workflow]
    async fn moody(ctx: Ctx) -> Result<(), Error> {
        thread_local! { static TIMES: RefCell<u32> = const { RefCell::new(0) }; }
        let times = TIMES.with_borrow_mut(|times| {
            *times += 1;
            *times
        });
        ctx.step(&format!("mood-{times}"), || Ok(())).await
    }

    #[test]
    #[should_panic(
        expected = "it asked for Step(\"mood-2\") where it had asked for Some(Step(\"mood-1\"))"
    )]
    fn a_workflow_that_does_not_repeat_itself_is_found() {
        let _ = run().run::<moody>(());
    }

    /// Goes on.
    #[workflow]
    async fn rounds(ctx: Ctx, round: u32) -> Result<(), Error> {
        ctx.publish("round", &round)?;
        Err(ctx.continue_as_new(&(round + 1)))
    }

    #[test]
    fn going_on_hands_the_next_input_over() {
        let outcome = run().run::<rounds>(4);
        let Err(Error::ContinueAsNew(next)) = outcome.result else {
            panic!("expected to go on")
        };
        assert_eq!(next.read(), Ok(5_u32));
        assert_eq!(outcome.published["round"], json!(4));
    }
}
