//! Every record survives a round trip, and no bytes make the decoder panic.

use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use stepwell_core::id::{EventId, Operation, RunId, Sequence};
use stepwell_core::journal::{
    Ending, Entry, EventMessage, Opening, OperationKind, Record, RunFailure, StepOrigin, Wake,
};
use stepwell_core::payload::{Failure, Payload};
use stepwell_core::retry::{AttemptEnd, StepError};
use stepwell_core::time::Timestamp;

use super::*;

fn times() -> impl Strategy<Value = Timestamp> {
    any::<u64>().prop_map(Timestamp::from_ms)
}

fn operations() -> impl Strategy<Value = Operation> {
    any::<u32>().prop_map(Operation)
}

fn texts() -> impl Strategy<Value = String> {
    any::<String>()
}

fn payloads() -> impl Strategy<Value = Payload> {
    prop_oneof![
        texts().prop_map(Payload::Json),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Payload::Binary),
    ]
}

fn failures() -> impl Strategy<Value = Failure> {
    let retry_after = prop::option::of(any::<u64>().prop_map(Duration::from_millis));
    (
        texts(),
        texts(),
        any::<bool>(),
        retry_after,
        prop::option::of(payloads()),
    )
        .prop_map(|(kind, message, retryable, retry_after, details)| Failure {
            kind,
            message,
            retryable,
            retry_after,
            details,
        })
}

fn attempt_ends() -> impl Strategy<Value = AttemptEnd> {
    prop::sample::select(vec![
        AttemptEnd::Failed,
        AttemptEnd::TimedOut,
        AttemptEnd::Trapped,
        AttemptEnd::HostLost,
        AttemptEnd::LimitExceeded,
        AttemptEnd::Cancelled,
    ])
}

fn kinds() -> impl Strategy<Value = OperationKind> {
    prop::sample::select(vec![
        OperationKind::Step,
        OperationKind::Sleep,
        OperationKind::Wait,
        OperationKind::Task,
        OperationKind::Publish,
        OperationKind::Reply,
    ])
}

fn step_errors() -> impl Strategy<Value = StepError> {
    (texts(), any::<u32>(), attempt_ends(), failures()).prop_map(|(step, attempts, end, cause)| {
        StepError {
            step,
            attempts,
            end,
            cause,
        }
    })
}

fn openings() -> impl Strategy<Value = Opening> {
    prop_oneof![
        times().prop_map(|due| Opening::Sleep { due }),
        prop::option::of(times()).prop_map(|timeout_at| Opening::Wait { timeout_at }),
        any::<[u8; 32]>().prop_map(|input_digest| Opening::Task { input_digest }),
    ]
}

fn endings() -> impl Strategy<Value = Ending> {
    let origin =
        (texts(), any::<u32>(), attempt_ends()).prop_map(|(step, attempts, end)| StepOrigin {
            step,
            attempts,
            end,
        });
    let failure = (
        prop::option::of(origin),
        failures(),
        prop::option::of(texts()),
    )
        .prop_map(|(step, cause, backtrace)| RunFailure {
            step,
            cause,
            backtrace,
        });
    prop_oneof![
        payloads().prop_map(Ending::Completed),
        failure.prop_map(Ending::Failed),
        texts().prop_map(|reason| Ending::Cancelled { reason }),
        texts().prop_map(|reason| Ending::Terminated { reason }),
        payloads().prop_map(Ending::ContinuedAsNew),
    ]
}

fn answers() -> impl Strategy<Value = Result<Payload, Failure>> {
    prop_oneof![payloads().prop_map(Ok), failures().prop_map(Err)]
}

/// Every record there is: `every_record_has_a_strategy` holds it to that.
fn records() -> impl Strategy<Value = Record> {
    let opened =
        (operations(), texts(), openings()).prop_map(|(operation, name, opening)| Record::Opened {
            operation,
            name,
            opening,
        });
    let refused = (operations(), kinds(), texts(), failures()).prop_map(
        |(operation, kind, name, failure)| Record::Refused {
            operation,
            kind,
            name,
            failure,
        },
    );
    let attempt_started = (
        operations(),
        texts(),
        any::<u32>(),
        prop::option::of(times()),
    )
        .prop_map(
            |(operation, name, number, deadline_at)| Record::AttemptStarted {
                operation,
                name,
                number,
                deadline_at,
            },
        );
    let attempt_ended = (
        (operations(), texts(), any::<u32>()),
        (
            attempt_ends(),
            failures(),
            times(),
            prop::option::of(times()),
        ),
    )
        .prop_map(
            |((operation, name, number), (end, cause, retry_at, deadline_at))| {
                Record::AttemptEnded {
                    operation,
                    name,
                    number,
                    end,
                    cause,
                    retry_at,
                    deadline_at,
                }
            },
        );
    let step_completed = (operations(), texts(), any::<u32>(), payloads()).prop_map(
        |(operation, name, attempts, output)| Record::StepCompleted {
            operation,
            name,
            attempts,
            output,
        },
    );
    let event_taken = (operations(), any::<u64>(), payloads(), times()).prop_map(
        |(operation, id, payload, sent_at)| Record::EventTaken {
            operation,
            event: EventMessage {
                id: EventId(id),
                payload,
                sent_at,
            },
        },
    );
    let waking = (
        operations(),
        prop::sample::select(vec![Wake::Elapsed, Wake::Woken]),
    );
    prop_oneof![
        opened,
        refused,
        attempt_started,
        attempt_ended,
        operations().prop_map(|operation| Record::BackoffOver { operation }),
        step_completed,
        (operations(), step_errors())
            .prop_map(|(operation, error)| Record::StepFailed { operation, error }),
        waking.prop_map(|(operation, wake)| Record::Slept { operation, wake }),
        event_taken,
        operations().prop_map(|operation| Record::TimedOut { operation }),
        (operations(), any::<u32>(), payloads()).prop_map(|(operation, attempts, output)| {
            Record::TaskCompleted {
                operation,
                attempts,
                output,
            }
        }),
        (operations(), step_errors())
            .prop_map(|(operation, error)| Record::TaskFailed { operation, error }),
        (operations(), texts(), payloads()).prop_map(|(operation, key, value)| Record::Published {
            operation,
            key,
            value
        }),
        (operations(), any::<u64>(), answers()).prop_map(|(operation, event, answer)| {
            Record::Replied {
                operation,
                event: EventId(event),
                answer,
            }
        }),
        (texts(), times()).prop_map(|(reason, grace_until)| Record::CancelDelivered {
            reason,
            grace_until
        }),
        endings().prop_map(Record::Ended),
    ]
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let entry = (times(), records()).prop_map(|(at, record)| Entry { at, record });
    prop::collection::vec(entry, 1..6)
}

const RUN: RunId = RunId::from_raw(0x0192_0000_0000_7000_8000_0000_0000_0001);

proptest! {
    #[test]
    fn every_row_survives_a_round_trip(entries in entries(), first: u64) {
        let row = encode_row(RUN, Sequence(first), &entries);
        prop_assert_eq!(decode_row(RUN, Sequence(first), &row), Ok(entries.clone()));
        prop_assert_eq!(seal_row(RUN, Sequence(first), entries_of_row(&row)), row.clone());
        let ending = ending_of_row(RUN, Sequence(first), &row).unwrap();
        prop_assert_eq!(ending.is_some(), matches!(entries.last().unwrap().record, Record::Ended(_)));
    }

    #[test]
    fn a_changed_row_is_never_taken_for_another(
        entries in entries(), at: prop::sample::Index, mask in 1_u8.., cut: prop::sample::Index,
    ) {
        let row = encode_row(RUN, Sequence(3), &entries);
        let mut changed = row.clone();
        changed[at.index(row.len())] ^= mask;
        prop_assert!(decode_row(RUN, Sequence(3), &changed).is_err());
        prop_assert!(decode_row(RUN, Sequence(3), &row[..cut.index(row.len())]).is_err());
        prop_assert!(decode_row(RUN, Sequence(4), &row).is_err());
        prop_assert!(decode_row(RunId::from_raw(1), Sequence(3), &row).is_err());
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        // With a right checksum, so that the bytes themselves are looked at.
        let mut body = vec![ROW_VERSION];
        body.extend_from_slice(&bytes);
        let _ = decode_row(RUN, Sequence(0), &sealed(RUN, Sequence(0), body));
        let _ = decode_row(RUN, Sequence(0), &bytes);
        let _ = (decode_payload(&bytes), decode_answer(&bytes), decode_names(&bytes), decode_pairs(&bytes));
    }

    #[test]
    fn damaged_entries_never_make_the_decoder_panic(entries in entries(), at: prop::sample::Index, byte: u8) {
        let mut body = encode_row(RUN, Sequence(0), &entries);
        body.truncate(body.len() - CHECKSUM_BYTES);
        let at = 1 + at.index(body.len() - 1);
        body[at] = byte;
        let _ = decode_row(RUN, Sequence(0), &sealed(RUN, Sequence(0), body));
    }

    #[test]
    fn other_values_survive_a_round_trip(
        payload in payloads(), answer in answers(), names in prop::collection::vec(texts(), 0..4),
        pairs in prop::collection::vec((texts(), texts()), 0..4),
    ) {
        prop_assert_eq!(decode_payload(&encode_payload(&payload)), Ok(payload));
        prop_assert_eq!(decode_answer(&encode_answer(&answer)), Ok(answer));
        prop_assert_eq!(decode_names(&encode_names(&names)), Ok(names));
        prop_assert_eq!(decode_pairs(&encode_pairs(&pairs)), Ok(pairs));
    }
}

/// Whoever adds a record must add it to `records` as well, and then here.
#[test]
fn every_record_has_a_strategy() {
    fn number(record: &Record) -> usize {
        match record {
            Record::Opened { .. } => 0,
            Record::Refused { .. } => 1,
            Record::AttemptStarted { .. } => 2,
            Record::AttemptEnded { .. } => 3,
            Record::BackoffOver { .. } => 4,
            Record::StepCompleted { .. } => 5,
            Record::StepFailed { .. } => 6,
            Record::Slept { .. } => 7,
            Record::EventTaken { .. } => 8,
            Record::TimedOut { .. } => 9,
            Record::TaskCompleted { .. } => 10,
            Record::TaskFailed { .. } => 11,
            Record::Published { .. } => 12,
            Record::Replied { .. } => 13,
            Record::CancelDelivered { .. } => 14,
            Record::Ended(_) => 15,
        }
    }
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = [false; 16];
    for _ in 0..2_000 {
        seen[number(&records().new_tree(&mut runner).unwrap().current())] = true;
    }
    assert_eq!(seen, [true; 16]);
}

/// The bytes of a release: if this fails, journals that exist would be misread.
#[test]
fn the_bytes_of_a_row_stay_as_they_were_released() {
    let record = Record::StepCompleted {
        operation: Operation(300),
        name: "charge".to_owned(),
        attempts: 2,
        output: Payload::Json("true".to_owned()),
    };
    let entry = Entry {
        at: Timestamp::from_ms(1_700_000_000_000),
        record,
    };
    let row = encode_row(RUN, Sequence(7), &[entry]);
    let hex: String = row.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "0180d095ffbc3106ac020663686172676502000474727565f4cf4407"
    );
}
