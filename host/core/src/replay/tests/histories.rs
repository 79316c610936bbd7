//! Properties of whole histories: of random guests in random worlds, of journals cut short, hosts
//! that die, and journals and guests that make no sense at all.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::ms;
use super::simulation::{Act, Exit, History, live};
use crate::id::{EventId, Operation};
use crate::journal::{Ending, Entry, EventMessage, Opening, OperationKind, Record, Wake};
use crate::payload::{Failure, Payload};
use crate::replay::{Ask, Begin, Replay, StepAnswer, StepAsk};
use crate::retry::{AttemptEnd, Options, Policy, StepError};

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (any::<u8>(), any::<u8>(), prop::bool::weighted(0.1))
            .prop_map(|(name, rules, is_nonsense)| Act::Step { name, rules, is_nonsense }),
        2 => (any::<u8>(), 0..6_000_u16).prop_map(|(name, duration_ms)| Act::Sleep { name, duration_ms }),
        2 => (any::<u8>(), option::of(0..4_000_u16)).prop_map(|(name, timeout_ms)| Act::Wait { name, timeout_ms }),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(name, rules)| Act::Task { name, rules }),
        1 => (any::<u8>(), prop::bool::weighted(0.2)).prop_map(|(key, is_too_large)| Act::Publish { key, is_too_large }),
        1 => any::<u8>().prop_map(|event| Act::Reply { event }),
        1 => any::<u8>().prop_map(|which| Act::Withdraw { which }),
        4 => any::<u8>().prop_map(|mask| Act::Select { mask }),
    ];
    vec(act, 0..24)
}

fn is_task(journal: &[Entry], operation: Operation) -> bool {
    let mut records = journal.iter().map(|entry| &entry.record);
    records.any(|record| {
        matches!(record, Record::Opened { operation: opened, opening: Opening::Task { .. }, .. } if *opened == operation)
    })
}

/// Attempts that the journal counts, by step or task.
fn counted(journal: &[Entry], step: Operation) -> u32 {
    let numbers = journal.iter().filter_map(|entry| match &entry.record {
        Record::AttemptStarted {
            operation, number, ..
        }
        | Record::AttemptEnded {
            operation, number, ..
        } => Some((*operation, *number)),
        Record::StepCompleted {
            operation,
            attempts,
            ..
        }
        | Record::TaskCompleted {
            operation,
            attempts,
            ..
        } => Some((*operation, *attempts)),
        Record::StepFailed { operation, error } | Record::TaskFailed { operation, error } => {
            Some((*operation, error.attempts))
        }
        _ => None,
    });
    numbers
        .filter(|(operation, _)| *operation == step)
        .map(|(_, number)| number)
        .max()
        .unwrap_or(0)
}

fn texts(history: &History) -> Vec<&str> {
    history.told.iter().map(|(text, _)| text.as_str()).collect()
}

#[test]
fn the_random_worlds_hold_everything_that_can_happen() {
    let acts = [
        Act::Task { name: 0, rules: 0 },
        Act::Step {
            name: 0,
            rules: 3,
            is_nonsense: false,
        },
        Act::Sleep {
            name: 0,
            duration_ms: 800,
        },
        Act::Sleep {
            name: 1,
            duration_ms: 5_001,
        },
        Act::Wait {
            name: 0,
            timeout_ms: Some(900),
        },
        Act::Select { mask: 0b1010_1010 },
        Act::Publish {
            key: 0,
            is_too_large: false,
        },
        Act::Step {
            name: 1,
            rules: 1,
            is_nonsense: false,
        },
        Act::Reply { event: 1 },
        Act::Wait {
            name: 1,
            timeout_ms: Some(60_000),
        },
        Act::Withdraw { which: 0 },
    ];
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let history = live(&acts, seed, Vec::new(), 3);
        seen.extend(history.journal.iter().map(|entry| entry.record.as_str()));
        seen.extend(history.journal.iter().filter_map(|entry| {
            matches!(
                entry.record,
                Record::Slept {
                    wake: Wake::Woken,
                    ..
                }
            )
            .then_some("woken")
        }));
    }
    // All kinds of record save the end of a run, which the replay does not write; and a wake.
    assert_eq!(seen.len(), 16, "{seen:?}");
}

proptest! {
    /// An eviction anywhere changes nothing: neither what the guest is told, nor the journal.
    #[test]
    fn whoever_goes_on_from_a_prefix_comes_to_the_same_history(acts in acts(), seed: u64) {
        let whole = live(&acts, seed, Vec::new(), 0);
        prop_assert!(!matches!(whole.exit, Some(Exit::Refused(_))), "{:?}", whole.exit);
        for cut in 0..=whole.journal.len() {
            let prefix = &whole.journal[..cut];
            // There a body runs; nobody evicts a guest whose step is under way.
            if let Some(Record::AttemptStarted { operation, .. }) = prefix.last().map(|entry| &entry.record)
                && !is_task(&whole.journal, *operation)
            {
                continue;
            }
            let again = live(&acts, seed, prefix.to_vec(), 0);
            prop_assert_eq!(texts(&again), texts(&whole), "cut at {}", cut);
            prop_assert_eq!(&again.journal, &whole.journal, "cut at {}", cut);
            prop_assert_eq!(&again.exit, &whole.exit);
        }
    }

    /// What one host told a guest for good, every later one tells it too (`live` asserts that), and
    /// no death of a host makes for a body too many or for one that does not count.
    #[test]
    fn no_more_attempts_than_permitted_begin_however_often_hosts_die(acts in acts(), seed: u64) {
        let history = live(&acts, seed, Vec::new(), 12);
        prop_assert!(!matches!(history.exit, Some(Exit::Refused(_))), "{:?}", history.exit);
        for (step, options) in &history.rules {
            let counted = counted(&history.journal, *step);
            let begun = history.begun.get(step).copied().unwrap_or(0);
            prop_assert!(counted <= options.policy.attempts_max, "step {} counts {}", step, counted);
            prop_assert!(begun <= options.policy.attempts_max, "step {} began {}", step, begun);
            let is_over = history.exit == Some(Exit::Ended);
            prop_assert!(!is_over || begun <= counted, "step {step} began {begun} and counts {counted}");
        }
        prop_assert!(history.journal.is_sorted_by_key(|entry| entry.at));
    }

    /// A guest that meets the journal of another is answered or stopped.
    #[test]
    fn no_guest_breaks_the_journal_of_another(acts_one in acts(), acts_other in acts(), seed: u64, cut: usize) {
        let mut journal = live(&acts_one, seed, Vec::new(), 0).journal;
        journal.truncate(cut % (journal.len() + 1));
        live(&acts_other, seed, journal, 2);
    }

    /// Nor that of nobody.
    #[test]
    fn no_guest_breaks_a_damaged_journal(
        acts in acts(),
        seed: u64,
        changes in vec((0..4, any::<usize>(), any::<usize>(), entry()), 1..4),
    ) {
        let mut journal = live(&acts, seed, Vec::new(), 0).journal;
        for (what, one, other, entry) in changes {
            let length = journal.len();
            if length == 0 {
                break;
            }
            match what {
                0 => drop(journal.remove(one % length)),
                1 => journal.swap(one % length, other % length),
                2 => journal.insert(one % length, journal[other % length].clone()),
                _ => journal.insert(one % length, entry),
            }
        }
        live(&acts, seed, journal, 2);
    }

    #[test]
    fn no_journal_and_no_order_of_calls_panics(journal in vec(entry(), 0..12), calls in vec(call(), 0..40)) {
        let length = journal.len() as u64;
        let mut replay = Replay::load(journal, ms(1));
        prop_assert_eq!(replay.length().0, length);
        for call in calls {
            make(&mut replay, &call);
        }
    }
}

/// An entry that may make sense.
fn entry() -> impl Strategy<Value = Entry> {
    let operation = prop_oneof![30 => 0..4_u32, 1 => Just(u32::MAX)].prop_map(Operation);
    let number = prop_oneof![9 => 0..4_u32, 1 => Just(u32::MAX)];
    (0..18, operation, number, 0..6_u32, 0..100_u64).prop_map(
        |(what, operation, number, kind, at)| {
            let name = ["n0", "n1", "n0#2"][number as usize % 3].to_owned();
            let failure = Failure::retryable("flaky", "");
            let error = StepError {
                step: name.clone(),
                attempts: number,
                end: AttemptEnd::Failed,
                cause: failure.clone(),
            };
            let output = Payload::null();
            let deadline_at = (number == 2).then_some(ms(50));
            let opened = |opening| Record::Opened {
                operation,
                name: name.clone(),
                opening,
            };
            let event = EventId(u64::from(number));
            let record = match what {
                0 => opened(Opening::Sleep { due: ms(at) }),
                1 => opened(Opening::Wait {
                    timeout_at: deadline_at,
                }),
                2 => opened(Opening::Task {
                    input_digest: [1; 32],
                }),
                3 => Record::Refused {
                    operation,
                    kind: KINDS[kind as usize],
                    name,
                    failure,
                },
                4 => Record::AttemptStarted {
                    operation,
                    name,
                    number,
                    deadline_at,
                },
                5 => Record::AttemptEnded {
                    operation,
                    name,
                    number,
                    end: AttemptEnd::Failed,
                    cause: failure,
                    retry_at: ms(at),
                    deadline_at,
                },
                6 => Record::BackoffOver { operation },
                7 => Record::StepCompleted {
                    operation,
                    name,
                    attempts: number,
                    output,
                },
                8 => Record::StepFailed { operation, error },
                9 => Record::Slept {
                    operation,
                    wake: Wake::Woken,
                },
                10 => Record::EventTaken {
                    operation,
                    event: EventMessage {
                        id: event,
                        payload: output,
                        sent_at: ms(at),
                    },
                },
                11 => Record::TimedOut { operation },
                12 => Record::TaskCompleted {
                    operation,
                    attempts: number,
                    output,
                },
                13 => Record::TaskFailed { operation, error },
                14 => Record::Published {
                    operation,
                    key: name,
                    value: output,
                },
                15 => Record::Replied {
                    operation,
                    event,
                    answer: Ok(output),
                },
                16 => Record::CancelDelivered {
                    reason: name,
                    grace_until: ms(at),
                },
                _ => Record::Ended(Ending::Completed(output)),
            };
            Entry { at: ms(at), record }
        },
    )
}

const KINDS: [OperationKind; 6] = [
    OperationKind::Step,
    OperationKind::Sleep,
    OperationKind::Wait,
    OperationKind::Task,
    OperationKind::Publish,
    OperationKind::Reply,
];

/// A call by a guest that keeps to nothing.
#[derive(Debug, Clone)]
enum Call {
    Step(u8),
    Retry(Operation),
    Open(u8, u8),
    Immediate(u8, u8),
    Withdraw(Operation),
    Select(Vec<Operation>),
    Finish(bool),
    End,
}

fn call() -> impl Strategy<Value = Call> {
    let operation = || prop_oneof![20 => 0..5_u32, 1 => Just(u32::MAX)].prop_map(Operation);
    prop_oneof![
        (0..2_u8).prop_map(Call::Step),
        operation().prop_map(Call::Retry),
        (0..3_u8, 0..3_u8).prop_map(|(kind, name)| Call::Open(kind, name)),
        (0..2_u8, 0..3_u8).prop_map(|(kind, name)| Call::Immediate(kind, name)),
        operation().prop_map(Call::Withdraw),
        vec(operation(), 0..3).prop_map(Call::Select),
        any::<bool>().prop_map(Call::Finish),
        Just(Call::End),
    ]
}

/// Makes a call, and does what the engine does about what is new.
fn make(replay: &mut Replay, call: &Call) {
    let now = ms(40);
    let options = Options {
        policy: Policy {
            attempts_max: 2,
            ..Policy::default()
        },
        ..Options::default()
    };
    let name = |number: u8| ["n0", "n1", "n2"][usize::from(number)];
    match call {
        Call::Step(number) => match replay.step(name(*number)) {
            Ok(StepAsk::New) => {
                let step = replay.open_step(name(*number));
                replay.begin_attempt(step, options, now, false);
            }
            Ok(StepAsk::Attempt(step)) => drop(replay.begin_attempt(step, options, now, true)),
            Ok(StepAsk::Recorded(_)) | Err(_) => {}
        },
        Call::Retry(step) => match replay.retry_step(*step) {
            Ok(StepAsk::Attempt(step)) => {
                if let Begin::Lost { answer, .. } = replay.begin_attempt(step, options, now, true) {
                    assert_ne!(answer, crate::replay::AttemptAnswer::Completed);
                }
            }
            Ok(asked) => assert!(matches!(
                asked,
                StepAsk::Recorded(
                    StepAnswer::Backoff(_)
                        | StepAnswer::Completed(_)
                        | StepAnswer::Failed(_)
                        | StepAnswer::Cancelled(_)
                )
            )),
            Err(_) => {}
        },
        Call::Open(kind, number) => {
            let kind = KINDS[1 + usize::from(*kind)];
            let digest = (kind == OperationKind::Task).then_some([1; 32]);
            if let Ok(Ask::New) = replay.open(kind, name(*number), digest) {
                let opening = match kind {
                    OperationKind::Sleep => Opening::Sleep { due: now },
                    OperationKind::Wait => Opening::Wait {
                        timeout_at: Some(now),
                    },
                    _ => Opening::Task {
                        input_digest: [1; 32],
                    },
                };
                let (operation, name) = (replay.next_operation(), name(*number).to_owned());
                replay.record(
                    Record::Opened {
                        operation,
                        name,
                        opening,
                    },
                    now,
                );
            }
        }
        Call::Immediate(kind, number) => {
            let _ = replay.immediate(KINDS[4 + usize::from(*kind)], name(*number));
        }
        Call::Withdraw(operation) => {
            let _ = replay.withdraw(*operation);
        }
        Call::Select(among) => {
            if let Ok(Ask::New) = replay.select(among) {
                let _ = (replay.due(among), replay.waits(among));
                for operation in among {
                    if replay.task(*operation).is_some_and(|task| !task.started) {
                        replay.begin_task_attempt(*operation, options, now);
                    }
                    if let Some(attempt) = replay.lost_task_attempt(*operation, options) {
                        let lost = Err((AttemptEnd::HostLost, Failure::retryable("host-lost", "")));
                        replay.end_task_attempt(attempt, lost, now, 0.0);
                    }
                }
                replay.choose(among, now, std::iter::empty(), Some(now));
            }
        }
        Call::Finish(succeeds) => {
            if replay.running_attempt().is_some() {
                if *succeeds {
                    replay.complete_attempt(Payload::null(), now);
                } else {
                    replay.end_attempt(
                        AttemptEnd::Failed,
                        Failure::retryable("flaky", ""),
                        now,
                        0.5,
                    );
                }
            }
        }
        Call::End => {
            let _ = replay.end();
        }
    }
    assert!(replay.open_operations() <= replay.next_operation().0 as usize);
}
