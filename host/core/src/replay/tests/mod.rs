//! Cases are text: a journal, then calls with the answer that each must get.
//!
//! ```text
//! 0:nap sleep 100 | 0:nap slept | 1:charge done | cancel       an entry is  operation:name what …
//! ```
//!
//! Entry number `n` was made at `(n + 1) * 10` ms.
#![allow(
    clippy::unwrap_used,
    reason = "a case that cannot be read fails its test"
)]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it looks for; the rules name everything"
)]

mod attempts;
mod histories;
mod matching;
mod outside;
mod simulation;

use super::{Ask, Error, Replay, SelectAnswer, StepAnswer, StepAsk};
use crate::id::{EventId, Operation};
use crate::journal::{Ending, Entry, EventMessage, Opening, OperationKind, Record, Wake};
use crate::payload::{Failure, Payload};
use crate::retry::{AttemptEnd, StepError};
use crate::time::Timestamp;

fn ms(ms: u64) -> Timestamp {
    Timestamp::from_ms(ms)
}

fn load(journal: &str) -> Replay {
    Replay::load(read_journal(journal), ms(1))
}

fn read_journal(journal: &str) -> Vec<Entry> {
    let texts = journal.split('|').map(str::trim);
    let entries = texts.filter(|text| !text.is_empty()).enumerate();
    let entry = |(index, text)| Entry {
        at: ms((index as u64 + 1) * 10),
        record: read_record(text),
    };
    entries.map(entry).collect()
}

fn read_record(text: &str) -> Record {
    let words: Vec<_> = text.split_whitespace().collect();
    match words[..] {
        ["cancel"] => Record::CancelDelivered {
            reason: "enough".to_owned(),
            grace_until: ms(30_000),
        },
        ["ended"] => Record::Ended(Ending::Completed(Payload::null())),
        [subject, what, ref rest @ ..] => {
            let (operation, name) = subject.split_once(':').unwrap();
            let operation = Operation(operation.parse().unwrap());
            read_operation(operation, name.to_owned(), what, rest)
        }
        _ => panic!("not an entry: {text}"),
    }
}

fn read_operation(operation: Operation, name: String, what: &str, rest: &[&str]) -> Record {
    let number = |index: usize| rest.get(index).map(|word| word.parse::<u32>().unwrap());
    let time = |index: usize| number(index).map(|number| ms(u64::from(number)));
    let opened = |name, opening| Record::Opened {
        operation,
        name,
        opening,
    };
    let error = |name| StepError {
        step: name,
        attempts: 1,
        end: AttemptEnd::Failed,
        cause: Failure::permanent("no", "not today"),
    };
    let output = Payload::null();
    match what {
        "sleep" => opened(
            name,
            Opening::Sleep {
                due: time(0).unwrap(),
            },
        ),
        "slept" => Record::Slept {
            operation,
            wake: Wake::Elapsed,
        },
        "woken" => Record::Slept {
            operation,
            wake: Wake::Woken,
        },
        "wait" => opened(
            name,
            Opening::Wait {
                timeout_at: time(0),
            },
        ),
        "event" => {
            let id = EventId(u64::from(number(0).unwrap()));
            let event = EventMessage {
                id,
                payload: output,
                sent_at: ms(0),
            };
            Record::EventTaken { operation, event }
        }
        "timed-out" => Record::TimedOut { operation },
        "task" => {
            let input_digest = [u8::try_from(number(0).unwrap()).unwrap(); 32];
            opened(name, Opening::Task { input_digest })
        }
        "task-done" => Record::TaskCompleted {
            operation,
            attempts: 1,
            output,
        },
        "task-failed" => Record::TaskFailed {
            operation,
            error: error(name),
        },
        "started" => Record::AttemptStarted {
            operation,
            name,
            number: number(0).unwrap(),
            deadline_at: time(1),
        },
        "failed-attempt" => Record::AttemptEnded {
            operation,
            name,
            number: number(0).unwrap(),
            end: AttemptEnd::Failed,
            cause: Failure::retryable("flaky", "try again"),
            retry_at: time(1).unwrap(),
            deadline_at: time(2),
        },
        "backoff-over" => Record::BackoffOver { operation },
        "done" => Record::StepCompleted {
            operation,
            name,
            attempts: 1,
            output,
        },
        "failed" => Record::StepFailed {
            operation,
            error: error(name),
        },
        "published" => Record::Published {
            operation,
            key: name,
            value: output,
        },
        "replied" => Record::Replied {
            operation,
            event: name.parse().unwrap(),
            answer: Ok(output),
        },
        "refused" => Record::Refused {
            operation,
            kind: read_kind(rest[0]),
            name,
            failure: Failure::permanent("no", "not like this"),
        },
        _ => panic!("nothing is called {what}"),
    }
}

fn read_kind(text: &str) -> OperationKind {
    use OperationKind::{Publish, Reply, Sleep, Step, Task, Wait};
    let kinds = [Step, Sleep, Wait, Task, Publish, Reply];
    kinds
        .into_iter()
        .find(|kind| kind.as_str() == text)
        .unwrap()
}

/// Plays calls against a journal, each as `call => answer`.
fn check(journal: &str, calls: &[&str]) {
    let mut replay = load(journal);
    for case in calls {
        let (call, expected) = case.split_once("=>").unwrap();
        assert_eq!(
            ask(&mut replay, call.trim()),
            expected.trim(),
            "{case}\n  after: {journal}"
        );
    }
}

/// Makes one call and says in a word or two what it was answered with.
fn ask(replay: &mut Replay, call: &str) -> String {
    let words: Vec<_> = call.split_whitespace().collect();
    let number = |word: &str| Operation(word.parse().unwrap());
    let answer = match words[..] {
        ["step", name] => replay.step(name).map(|ask| step_text(&ask)),
        ["retry", step] => replay.retry_step(number(step)).map(|ask| step_text(&ask)),
        [kind @ ("sleep" | "wait"), name] => replay
            .open(read_kind(kind), name, None)
            .map(|ask| open_text(&ask)),
        ["task", name, digest] => {
            let digest = [digest.parse().unwrap(); 32];
            let asked = replay.open(OperationKind::Task, name, Some(digest));
            asked.map(|ask| open_text(&ask))
        }
        [kind @ ("publish" | "reply"), name] => {
            let asked = replay.immediate(read_kind(kind), name);
            asked.map(|ask| match ask {
                Ask::Recorded(Ok(())) => "ok".to_owned(),
                Ask::Recorded(Err(_)) => "refused".to_owned(),
                Ask::New => "new".to_owned(),
            })
        }
        ["withdraw", operation] => replay.withdraw(number(operation)).map(|()| "ok".to_owned()),
        ["select", ref among @ ..] => {
            let among: Vec<_> = among.iter().map(|word| number(word)).collect();
            replay.select(&among).map(|ask| select_text(&ask))
        }
        ["end"] => replay.end().map(|()| "ok".to_owned()).map_err(Error::from),
        _ => panic!("nothing is called {call}"),
    };
    match answer {
        Ok(text) => text,
        Err(Error::Diverged(diverged)) => format!("diverged: {diverged}"),
        Err(Error::Misuse(message)) => format!("misuse: {message}"),
    }
}

fn step_text(ask: &StepAsk) -> String {
    match ask {
        StepAsk::New => "new".to_owned(),
        StepAsk::Attempt(operation) => format!("attempt {operation}"),
        StepAsk::Recorded(StepAnswer::Backoff(operation)) => format!("backoff {operation}"),
        StepAsk::Recorded(StepAnswer::Completed(_)) => "done".to_owned(),
        StepAsk::Recorded(StepAnswer::Failed(error)) => {
            format!("failed {} after {}", error.step, error.attempts)
        }
        StepAsk::Recorded(StepAnswer::Cancelled(reason)) => format!("cancelled: {reason}"),
    }
}

fn open_text(ask: &Ask<Result<Operation, Failure>>) -> String {
    match ask {
        Ask::Recorded(Ok(operation)) => operation.to_string(),
        Ask::Recorded(Err(_)) => "refused".to_owned(),
        Ask::New => "new".to_owned(),
    }
}

fn select_text(ask: &Ask<SelectAnswer>) -> String {
    match ask {
        Ask::New => "new".to_owned(),
        Ask::Recorded(SelectAnswer::Slept(operation, Wake::Elapsed)) => {
            format!("slept {operation}")
        }
        Ask::Recorded(SelectAnswer::Slept(operation, Wake::Woken)) => format!("woken {operation}"),
        Ask::Recorded(SelectAnswer::Event(operation, event)) => {
            format!("event {operation} {}", event.id)
        }
        Ask::Recorded(SelectAnswer::TimedOut(operation)) => format!("timed-out {operation}"),
        Ask::Recorded(SelectAnswer::Task(operation, Ok(_))) => format!("task-done {operation}"),
        Ask::Recorded(SelectAnswer::Task(operation, Err(_))) => format!("task-failed {operation}"),
        Ask::Recorded(SelectAnswer::Cancelled(reason)) => format!("cancelled: {reason}"),
    }
}
