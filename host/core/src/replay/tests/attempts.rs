//! Attempts: how many begin, what counts, and what the journal knows of those that were lost.

use std::time::Duration;

use super::{ask, load, ms, read_record};
use crate::id::Operation;
use crate::journal::{Entry, Record};
use crate::payload::{Failure, Payload};
use crate::replay::{
    Allowance, AttemptAnswer, Begin, Replay, RunningAttempt, StepAsk, TaskProgress,
};
use crate::retry::{AttemptEnd, Backoff, Options, Policy};
use crate::time::Timestamp;

const STEP: Operation = Operation(0);

fn options(attempts_max: u32) -> Options {
    let policy = Policy {
        attempts_max,
        delay: Duration::from_millis(100),
        backoff: Backoff::Constant,
        jitter: 0.0,
        ..Policy::default()
    };
    Options {
        policy,
        ..Options::default()
    }
}

fn flaky() -> Failure {
    Failure::retryable("flaky", "try again")
}

/// One run's step, lived through from text: what happens next, and what that led to.
///
/// - `begin`: the guest asks and its body begins, or not;
/// - `done`, `fail`, `fail-for-good`, `trap`: how the running body ends;
/// - `wait`: the guest waits until its backoff is over;
/// - `die`: the host is lost, and the next one loads what was written.
struct Life {
    options: Options,
    replay: Replay,
    journal: Vec<Entry>,
    now: Timestamp,
    host_lost: bool,
    is_asked: bool,
}

impl Life {
    fn new(options: Options) -> Self {
        Self {
            options,
            replay: load(""),
            journal: Vec::new(),
            now: ms(1_000),
            host_lost: false,
            is_asked: false,
        }
    }

    /// Plays `happening => outcome` in turn.
    fn check(mut self, cases: &[&str]) {
        for case in cases {
            let (happening, expected) = case.split_once("=>").unwrap();
            assert_eq!(
                self.happen(happening.trim()),
                expected.trim(),
                "{case} of {cases:?}"
            );
        }
    }

    fn happen(&mut self, happening: &str) -> String {
        match happening {
            "begin" => self.begin(),
            "done" => {
                let entry = self.replay.complete_attempt(Payload::null(), self.now);
                self.journal.push(entry);
                "done".to_owned()
            }
            "fail" => self.end(AttemptEnd::Failed, flaky()),
            "fail-for-good" => self.end(AttemptEnd::Failed, Failure::permanent("no", "")),
            "trap" => self.end(AttemptEnd::Trapped, Failure::retryable("trap", "")),
            "wait" => {
                self.now = self.replay.due(&[STEP]).unwrap().max(self.now);
                self.journal.push(
                    self.replay
                        .record(read_record("0:a backoff-over"), self.now),
                );
                ask(&mut self.replay, "select 0")
            }
            "die" => {
                self.replay = Replay::load(self.journal.clone(), ms(1));
                self.host_lost = true;
                self.is_asked = false;
                format!("{} entries", self.journal.len())
            }
            later => {
                let later = later.strip_suffix(" ms later").unwrap().parse().unwrap();
                self.now = self.now.after(Duration::from_millis(later));
                "yes".to_owned()
            }
        }
    }

    fn end(&mut self, end: AttemptEnd, cause: Failure) -> String {
        let (entry, answer) = self.replay.end_attempt(end, cause, self.now, 0.0);
        self.journal.push(entry);
        answer_text(&answer)
    }

    fn begin(&mut self) -> String {
        let mut asked = if self.is_asked {
            self.replay.retry_step(STEP).unwrap()
        } else {
            self.replay.step("a").unwrap()
        };
        self.is_asked = true;
        // A guest that repeats itself waits for its backoffs again.
        while let StepAsk::Recorded(super::StepAnswer::Backoff(_)) = asked {
            if ask(&mut self.replay, "select 0") == "new" {
                self.host_lost = false;
                return "waits".to_owned();
            }
            asked = self.replay.retry_step(STEP).unwrap();
        }
        let step = match asked {
            StepAsk::New => self.replay.open_step("a"),
            StepAsk::Attempt(step) => step,
            StepAsk::Recorded(_) => return super::step_text(&asked),
        };
        let host_lost = std::mem::take(&mut self.host_lost);
        match self
            .replay
            .begin_attempt(step, self.options, self.now, host_lost)
        {
            Begin::Attempt { attempt, started } => {
                let is_written = if started.is_some() { ", written" } else { "" };
                self.journal.extend(started);
                format!("attempt {}{is_written}", attempt.number)
            }
            Begin::Lost { entry, answer } => {
                self.journal.push(entry);
                format!("lost, {}", answer_text(&answer))
            }
        }
    }
}

fn answer_text(answer: &AttemptAnswer) -> String {
    match answer {
        AttemptAnswer::Completed => "done".to_owned(),
        AttemptAnswer::Backoff(_) => "backoff".to_owned(),
        AttemptAnswer::Failed(error) => {
            format!(
                "failed after {}, {:?}: {}",
                error.attempts, error.end, error.cause.kind
            )
        }
    }
}

#[test]
fn a_step_is_tried_until_it_succeeds_or_may_not_be() {
    Life::new(options(3)).check(&["begin => attempt 1", "done => done"]);
    Life::new(options(3)).check(&[
        "begin => attempt 1",
        "fail => backoff",
        "wait => slept 0",
        "begin => attempt 2",
        "trap => backoff",
        "wait => slept 0",
        "begin => attempt 3, written",
        "fail => failed after 3, Failed: flaky",
    ]);
    Life::new(options(3)).check(&[
        "begin => attempt 1",
        "fail-for-good => failed after 1, Failed: no",
    ]);
    Life::new(options(1)).check(&["begin => attempt 1, written", "done => done"]);
}

#[test]
fn an_attempt_under_way_when_the_host_died_counts_and_is_repeated_at_once() {
    Life::new(options(3)).check(&[
        "begin => attempt 1",
        "die => 0 entries",
        "begin => lost, backoff",
        "0 ms later => yes",
        "wait => slept 0",
        "begin => attempt 2",
        "die => 2 entries",
        "begin => lost, backoff",
        "wait => slept 0",
        "begin => attempt 3, written",
        "die => 5 entries",
        "begin => lost, failed after 3, HostLost: host-lost",
    ]);
}

#[test]
fn a_lost_attempt_is_followed_without_delay() {
    let mut life = Life::new(options(3));
    life.happen("begin");
    life.happen("die");
    life.happen("begin");
    assert_eq!(life.replay.due(&[STEP]), Some(life.now));
}

#[test]
fn at_most_once_holds_across_a_crash() {
    // The journal knows of the only attempt before it begins.
    Life::new(options(1)).check(&[
        "begin => attempt 1, written",
        "die => 1 entries",
        "begin => lost, failed after 1, HostLost: host-lost",
    ]);
}

#[test]
fn a_last_attempt_that_never_began_is_not_lost() {
    // The host died before the start was written, so the body did not run.
    let mut life = Life::new(options(1));
    life.begin();
    life.journal.clear();
    life.check(&[
        "die => 0 entries",
        "begin => attempt 1, written",
        "done => done",
    ]);
    Life::new(options(2)).check(&[
        "begin => attempt 1",
        "fail => backoff",
        "wait => slept 0",
        "die => 2 entries",
        "begin => attempt 2, written",
        "done => done",
    ]);
}

#[test]
fn a_host_that_died_while_the_guest_waited_lost_no_attempt() {
    Life::new(options(3)).check(&[
        "begin => attempt 1",
        "fail => backoff",
        "die => 1 entries",
        "begin => waits",
        "wait => slept 0",
        "begin => attempt 2",
    ]);
}

#[test]
fn a_deadline_spans_all_attempts_and_the_delays_between_them() {
    let deadline = |span_ms| Options {
        deadline: Some(Duration::from_millis(span_ms)),
        ..options(9)
    };
    // No further attempt is promised that could not begin in time.
    Life::new(deadline(100)).check(&[
        "begin => attempt 1",
        "fail => failed after 1, Failed: flaky",
    ]);
    Life::new(deadline(101)).check(&["begin => attempt 1", "fail => backoff"]);
    Life::new(deadline(300)).check(&[
        "begin => attempt 1",
        "60 ms later => yes",
        "fail => backoff",
        "wait => slept 0",
        "begin => attempt 2",
        "50 ms later => yes",
        "trap => failed after 2, Trapped: trap",
    ]);
    for (later, expected) in [
        ("199 ms later => yes", "begin => attempt 2"),
        (
            "200 ms later => yes",
            "begin => lost, failed after 1, TimedOut: deadline-passed",
        ),
    ] {
        let until = ["begin => attempt 1", "fail => backoff", "wait => slept 0"];
        Life::new(deadline(300)).check(&[&until[..], &[later, expected]].concat());
    }
    // A restart does not move it, and what begins too late does not begin at all.
    Life::new(deadline(300)).check(&[
        "begin => attempt 1",
        "fail => backoff",
        "die => 1 entries",
        "500 ms later => yes",
        "begin => waits",
        "wait => slept 0",
        "begin => lost, failed after 1, TimedOut: deadline-passed",
        "die => 3 entries",
        "begin => failed a after 1",
    ]);
}

#[test]
fn a_deadline_is_set_by_the_first_attempt_and_kept_by_the_journal() {
    let with_deadline = Options {
        deadline: Some(Duration::from_millis(500)),
        ..options(2)
    };
    let mut life = Life::new(with_deadline);
    for happening in ["begin", "40 ms later", "fail", "wait", "begin"] {
        life.happen(happening);
    }
    let deadlines = life.journal.iter().filter_map(|entry| {
        if let Record::AttemptStarted { deadline_at, .. }
        | Record::AttemptEnded { deadline_at, .. } = &entry.record
        {
            Some(*deadline_at)
        } else {
            None
        }
    });
    assert_eq!(deadlines.collect::<Vec<_>>(), [Some(ms(1_500)); 2]);
}

#[test]
fn nothing_is_tried_again_once_the_grace_of_a_cancel_is_over() {
    let mut life = Life::new(options(9));
    life.happen("begin");
    let ended = life.end(AttemptEnd::Cancelled, flaky());
    assert_eq!(ended, "failed after 1, Cancelled: flaky");
}

#[test]
fn a_loss_is_known_before_the_attempt_begins() {
    let mut replay = load("0:a started 1");
    assert!(!replay.is_attempt_lost(None, options(1), false));
    assert!(!replay.is_attempt_lost(None, options(1), true));
    assert!(replay.is_attempt_lost(None, options(2), true));
    assert_eq!(ask(&mut replay, "step a"), "attempt 0");
    assert!(replay.is_attempt_lost(Some(STEP), options(1), false));
}

#[test]
fn a_running_attempt_is_known_until_it_ends() {
    let mut replay = load("");
    ask(&mut replay, "step a");
    let step = replay.open_step("a");
    replay.begin_attempt(step, options(2), ms(5), false);
    assert_eq!(
        replay.running_attempt().map(|attempt| attempt.number),
        Some(1)
    );
    replay.end_attempt(AttemptEnd::TimedOut, flaky(), ms(5), 0.0);
    assert_eq!(replay.running_attempt(), None);
}

// ---- Tasks.

/// Ends the attempt of a task that the journal has as started.
fn end_task(replay: &mut Replay, options: Options, failure: Option<Failure>) -> Option<Entry> {
    let attempt = replay.lost_task_attempt(STEP, options)?;
    let outcome = failure.map_or(Ok(Payload::null()), |cause| {
        Err((AttemptEnd::Failed, cause))
    });
    replay.end_task_attempt(attempt, outcome, ms(2_000), 0.0)
}

#[test]
fn every_attempt_of_a_task_is_written_before_it_begins() {
    let mut replay = load("0:t task 1");
    assert_eq!(replay.task(STEP), None);
    ask(&mut replay, "task t 1");
    let idle = TaskProgress {
        started: false,
        retry_at: None,
    };
    assert_eq!(replay.task(STEP), Some(idle));
    let (started, attempt) = replay.begin_task_attempt(STEP, options(2), ms(1_000));
    let attempt = attempt.expect("it may begin");
    assert!(matches!(
        started.record,
        Record::AttemptStarted { number: 1, .. }
    ));
    assert_eq!(
        replay.task(STEP),
        Some(TaskProgress {
            started: true,
            ..idle
        })
    );
    assert_eq!(replay.lost_task_attempt(STEP, options(2)), Some(attempt));

    let ended = end_task(&mut replay, options(2), Some(flaky())).unwrap();
    assert!(matches!(
        ended.record,
        Record::AttemptEnded { number: 1, .. }
    ));
    let waits = TaskProgress {
        started: false,
        retry_at: Some(ms(2_100)),
    };
    assert_eq!(replay.task(STEP), Some(waits));
    assert_eq!(ask(&mut replay, "select 0"), "new");

    let (started, _) = replay.begin_task_attempt(STEP, options(2), ms(2_100));
    assert!(matches!(
        started.record,
        Record::AttemptStarted { number: 2, .. }
    ));
    assert_eq!(replay.due(&[STEP]), None);
    let failed = end_task(&mut replay, options(2), Some(flaky())).unwrap();
    assert!(matches!(failed.record, Record::TaskFailed { ref error, .. } if error.attempts == 2));
    assert_eq!(replay.task(STEP), None);
    assert_eq!(ask(&mut replay, "select 0"), "task-failed 0");
}

#[test]
fn a_task_whose_deadline_has_passed_begins_no_further_attempt() {
    let options = Options {
        deadline: Some(Duration::from_millis(500)),
        ..options(5)
    };
    for (later, begins) in [(1_499, true), (1_500, false), (9_000, false)] {
        let mut replay = load("0:t task 1");
        ask(&mut replay, "task t 1");
        replay.begin_task_attempt(STEP, options, ms(1_000));
        let attempt = replay.lost_task_attempt(STEP, options).unwrap();
        let failed = Err((AttemptEnd::Failed, flaky()));
        replay.end_task_attempt(attempt, failed, ms(1_001), 0.0);
        let (entry, attempt) = replay.begin_task_attempt(STEP, options, ms(later));
        assert_eq!(attempt.is_some(), begins, "{later}");
        let is_failed = matches!(
            &entry.record,
            Record::TaskFailed { error, .. }
                if error.attempts == 1 && error.cause.kind == "deadline-passed"
        );
        assert_eq!(is_failed, !begins, "{later}: {entry:?}");
        assert_eq!(replay.task(STEP).is_some(), begins, "{later}");
    }
}

#[test]
fn an_attempt_may_run_for_its_timeout_or_for_what_is_left_of_the_deadline() {
    let attempt = |deadline_at| RunningAttempt {
        operation: STEP,
        number: 2,
        options: Options {
            timeout: Duration::from_millis(300),
            ..options(5)
        },
        deadline_at,
    };
    let timeout = Allowance::OfTimeout(Duration::from_millis(300));
    assert_eq!(attempt(None).allowance(ms(1_000)), timeout);
    assert_eq!(attempt(Some(ms(1_300))).allowance(ms(1_000)), timeout);
    let cut = attempt(Some(ms(1_299))).allowance(ms(1_000));
    assert_eq!(cut, Allowance::OfDeadline(Duration::from_millis(299)));
    assert!(cut.exceeded().message.contains("299 ms"));
    let passed = attempt(Some(ms(900))).allowance(ms(1_000));
    assert_eq!(passed.span(), Duration::ZERO);
}

#[test]
fn a_task_that_was_withdrawn_or_has_ended_has_no_further_end() {
    let mut replay = load("0:t task 1 | 0:t started 1");
    ask(&mut replay, "task t 1");
    let attempt = replay.lost_task_attempt(STEP, options(5)).unwrap();
    assert!(end_task(&mut replay, options(5), Some(flaky())).is_some());
    // The same attempt again.
    assert_eq!(
        replay.end_task_attempt(attempt, Ok(Payload::null()), ms(9), 0.0),
        None
    );
    replay.begin_task_attempt(STEP, options(5), ms(2_100));
    assert_eq!(
        replay.end_task_attempt(attempt, Ok(Payload::null()), ms(9), 0.0),
        None
    );
    assert!(end_task(&mut replay, options(5), None).is_some());
    assert_eq!(replay.lost_task_attempt(STEP, options(5)), None);

    let mut replay = load("0:t task 1 | 0:t started 1");
    ask(&mut replay, "task t 1");
    let attempt = replay.lost_task_attempt(STEP, options(5)).unwrap();
    ask(&mut replay, "withdraw 0");
    assert_eq!(
        replay.end_task_attempt(attempt, Ok(Payload::null()), ms(9), 0.0),
        None
    );
    assert_eq!(replay.task(STEP), None);
}

#[test]
fn a_task_may_end_before_anybody_asks_and_keeps_its_place() {
    let mut replay = load("0:t task 1 | 0:t started 1 | 1:nap sleep 50");
    for call in ["task t 1", "sleep nap"] {
        ask(&mut replay, call);
    }
    end_task(&mut replay, options(5), None);
    replay.record(read_record("1:nap slept"), ms(2_000));
    assert_eq!(ask(&mut replay, "select 1"), "slept 1");
    assert_eq!(ask(&mut replay, "select 0"), "task-done 0");
}
