//! Every record of a journal as bytes, and back. The numbers here are for ever.

use stepwell_core::id::{EventId, Operation};
use stepwell_core::journal::{
    Ending, EventMessage, Opening, OperationKind, Record, RunFailure, StepOrigin, Wake,
};
use stepwell_core::payload::{Failure, Payload};
use stepwell_core::retry::{AttemptEnd, StepError};

use super::Error;
use super::bytes::{Reader, Writer};

const OPENED: u8 = 1;
const REFUSED: u8 = 2;
const ATTEMPT_STARTED: u8 = 3;
const ATTEMPT_ENDED: u8 = 4;
const BACKOFF_OVER: u8 = 5;
const STEP_COMPLETED: u8 = 6;
const STEP_FAILED: u8 = 7;
const SLEPT: u8 = 8;
const EVENT_TAKEN: u8 = 9;
const TIMED_OUT: u8 = 10;
const TASK_COMPLETED: u8 = 11;
const TASK_FAILED: u8 = 12;
const PUBLISHED: u8 = 13;
const REPLIED: u8 = 14;
const CANCEL_DELIVERED: u8 = 15;
const ENDED: u8 = 16;

pub(super) fn write(out: &mut Writer, record: &Record) {
    match record {
        Record::Opened {
            operation,
            name,
            opening,
        } => {
            begin(out, OPENED, *operation);
            out.text(name);
            write_opening(out, opening);
        }
        Record::Refused {
            operation,
            kind,
            name,
            failure,
        } => {
            begin(out, REFUSED, *operation);
            out.byte(kind_tag(*kind));
            out.text(name);
            write_failure(out, failure);
        }
        Record::AttemptStarted {
            operation,
            name,
            number,
            deadline_at,
        } => {
            begin(out, ATTEMPT_STARTED, *operation);
            out.text(name);
            out.number(u64::from(*number));
            out.option(*deadline_at, Writer::timestamp);
        }
        Record::AttemptEnded {
            operation,
            name,
            number,
            end,
            cause,
            retry_at,
            deadline_at,
        } => {
            begin(out, ATTEMPT_ENDED, *operation);
            out.text(name);
            out.number(u64::from(*number));
            out.byte(end_tag(*end));
            write_failure(out, cause);
            out.timestamp(*retry_at);
            out.option(*deadline_at, Writer::timestamp);
        }
        Record::BackoffOver { operation } => begin(out, BACKOFF_OVER, *operation),
        Record::StepCompleted {
            operation,
            name,
            attempts,
            output,
        } => {
            begin(out, STEP_COMPLETED, *operation);
            out.text(name);
            out.number(u64::from(*attempts));
            write_payload(out, output);
        }
        Record::StepFailed { operation, error } => {
            begin(out, STEP_FAILED, *operation);
            write_step_error(out, error);
        }
        Record::Slept { operation, wake } => {
            begin(out, SLEPT, *operation);
            out.byte(match wake {
                Wake::Elapsed => 0,
                Wake::Woken => 1,
            });
        }
        Record::EventTaken { operation, event } => {
            begin(out, EVENT_TAKEN, *operation);
            out.number(event.id.0);
            write_payload(out, &event.payload);
            out.timestamp(event.sent_at);
        }
        Record::TimedOut { operation } => begin(out, TIMED_OUT, *operation),
        Record::TaskCompleted {
            operation,
            attempts,
            output,
        } => {
            begin(out, TASK_COMPLETED, *operation);
            out.number(u64::from(*attempts));
            write_payload(out, output);
        }
        Record::TaskFailed { operation, error } => {
            begin(out, TASK_FAILED, *operation);
            write_step_error(out, error);
        }
        Record::Published {
            operation,
            key,
            value,
        } => {
            begin(out, PUBLISHED, *operation);
            out.text(key);
            write_payload(out, value);
        }
        Record::Replied {
            operation,
            event,
            answer,
        } => {
            begin(out, REPLIED, *operation);
            out.number(event.0);
            write_answer(out, answer);
        }
        Record::CancelDelivered {
            reason,
            grace_until,
        } => {
            out.byte(CANCEL_DELIVERED);
            out.text(reason);
            out.timestamp(*grace_until);
        }
        Record::Ended(ending) => {
            out.byte(ENDED);
            write_ending(out, ending);
        }
    }
}

pub(super) fn read(read: &mut Reader<'_>) -> Result<Record, Error> {
    let at = read.at();
    let tag = read.byte()?;
    Ok(match tag {
        OPENED => Record::Opened {
            operation: operation(read)?,
            name: read.text()?,
            opening: read_opening(read)?,
        },
        REFUSED => Record::Refused {
            operation: operation(read)?,
            kind: read_kind(read)?,
            name: read.text()?,
            failure: read_failure(read)?,
        },
        ATTEMPT_STARTED => Record::AttemptStarted {
            operation: operation(read)?,
            name: read.text()?,
            number: read.number_u32()?,
            deadline_at: read.option(Reader::timestamp)?,
        },
        ATTEMPT_ENDED => Record::AttemptEnded {
            operation: operation(read)?,
            name: read.text()?,
            number: read.number_u32()?,
            end: read_end(read)?,
            cause: read_failure(read)?,
            retry_at: read.timestamp()?,
            deadline_at: read.option(Reader::timestamp)?,
        },
        BACKOFF_OVER => Record::BackoffOver {
            operation: operation(read)?,
        },
        STEP_COMPLETED => Record::StepCompleted {
            operation: operation(read)?,
            name: read.text()?,
            attempts: read.number_u32()?,
            output: read_payload(read)?,
        },
        STEP_FAILED => Record::StepFailed {
            operation: operation(read)?,
            error: read_step_error(read)?,
        },
        SLEPT => Record::Slept {
            operation: operation(read)?,
            wake: read_wake(read)?,
        },
        EVENT_TAKEN => Record::EventTaken {
            operation: operation(read)?,
            event: EventMessage {
                id: EventId(read.number()?),
                payload: read_payload(read)?,
                sent_at: read.timestamp()?,
            },
        },
        TIMED_OUT => Record::TimedOut {
            operation: operation(read)?,
        },
        TASK_COMPLETED => Record::TaskCompleted {
            operation: operation(read)?,
            attempts: read.number_u32()?,
            output: read_payload(read)?,
        },
        TASK_FAILED => Record::TaskFailed {
            operation: operation(read)?,
            error: read_step_error(read)?,
        },
        PUBLISHED => Record::Published {
            operation: operation(read)?,
            key: read.text()?,
            value: read_payload(read)?,
        },
        REPLIED => Record::Replied {
            operation: operation(read)?,
            event: EventId(read.number()?),
            answer: read_answer(read)?,
        },
        CANCEL_DELIVERED => Record::CancelDelivered {
            reason: read.text()?,
            grace_until: read.timestamp()?,
        },
        ENDED => Record::Ended(read_ending(read)?),
        tag => {
            return Err(Error::Tag {
                what: "a journal entry",
                tag,
                at,
            });
        }
    })
}

fn begin(out: &mut Writer, tag: u8, operation: Operation) {
    out.byte(tag);
    out.number(u64::from(operation.0));
}

fn operation(read: &mut Reader<'_>) -> Result<Operation, Error> {
    read.number_u32().map(Operation)
}

fn write_opening(out: &mut Writer, opening: &Opening) {
    match opening {
        Opening::Sleep { due } => {
            out.byte(0);
            out.timestamp(*due);
        }
        Opening::Wait { timeout_at } => {
            out.byte(1);
            out.option(*timeout_at, Writer::timestamp);
        }
        Opening::Task { input_digest } => {
            out.byte(2);
            out.fixed(input_digest);
        }
    }
}

fn read_opening(read: &mut Reader<'_>) -> Result<Opening, Error> {
    let at = read.at();
    Ok(match read.byte()? {
        0 => Opening::Sleep {
            due: read.timestamp()?,
        },
        1 => Opening::Wait {
            timeout_at: read.option(Reader::timestamp)?,
        },
        2 => Opening::Task {
            input_digest: read.fixed()?,
        },
        tag => {
            return Err(Error::Tag {
                what: "an opening",
                tag,
                at,
            });
        }
    })
}

fn kind_tag(kind: OperationKind) -> u8 {
    match kind {
        OperationKind::Step => 0,
        OperationKind::Sleep => 1,
        OperationKind::Wait => 2,
        OperationKind::Task => 3,
        OperationKind::Publish => 4,
        OperationKind::Reply => 5,
    }
}

fn read_kind(read: &mut Reader<'_>) -> Result<OperationKind, Error> {
    let at = read.at();
    Ok(match read.byte()? {
        0 => OperationKind::Step,
        1 => OperationKind::Sleep,
        2 => OperationKind::Wait,
        3 => OperationKind::Task,
        4 => OperationKind::Publish,
        5 => OperationKind::Reply,
        tag => {
            return Err(Error::Tag {
                what: "an operation",
                tag,
                at,
            });
        }
    })
}

fn end_tag(end: AttemptEnd) -> u8 {
    match end {
        AttemptEnd::Failed => 0,
        AttemptEnd::TimedOut => 1,
        AttemptEnd::Trapped => 2,
        AttemptEnd::HostLost => 3,
        AttemptEnd::LimitExceeded => 4,
        AttemptEnd::Cancelled => 5,
    }
}

fn read_end(read: &mut Reader<'_>) -> Result<AttemptEnd, Error> {
    let at = read.at();
    Ok(match read.byte()? {
        0 => AttemptEnd::Failed,
        1 => AttemptEnd::TimedOut,
        2 => AttemptEnd::Trapped,
        3 => AttemptEnd::HostLost,
        4 => AttemptEnd::LimitExceeded,
        5 => AttemptEnd::Cancelled,
        tag => {
            return Err(Error::Tag {
                what: "the end of an attempt",
                tag,
                at,
            });
        }
    })
}

fn read_wake(read: &mut Reader<'_>) -> Result<Wake, Error> {
    let at = read.at();
    Ok(match read.byte()? {
        0 => Wake::Elapsed,
        1 => Wake::Woken,
        tag => {
            return Err(Error::Tag {
                what: "the end of a sleep",
                tag,
                at,
            });
        }
    })
}

pub(super) fn payload_tag(payload: &Payload) -> u8 {
    match payload {
        Payload::Json(_) => 0,
        Payload::Binary(_) => 1,
    }
}

pub(super) fn payload_of(tag: u8, bytes: Vec<u8>, at: usize) -> Result<Payload, Error> {
    match tag {
        0 => String::from_utf8(bytes)
            .map(Payload::Json)
            .map_err(|_| Error::Text { at }),
        1 => Ok(Payload::Binary(bytes)),
        tag => Err(Error::Tag {
            what: "a payload",
            tag,
            at,
        }),
    }
}

fn write_payload(out: &mut Writer, payload: &Payload) {
    out.byte(payload_tag(payload));
    out.bytes(payload.as_bytes());
}

fn read_payload(read: &mut Reader<'_>) -> Result<Payload, Error> {
    let at = read.at();
    let tag = read.byte()?;
    payload_of(tag, read.bytes()?, at)
}

fn write_failure(out: &mut Writer, failure: &Failure) {
    out.text(&failure.kind);
    out.text(&failure.message);
    out.byte(u8::from(failure.retryable));
    out.option(failure.retry_after, Writer::span);
    out.option(failure.details.as_ref(), write_payload);
}

fn read_failure(read: &mut Reader<'_>) -> Result<Failure, Error> {
    Ok(Failure {
        kind: read.text()?,
        message: read.text()?,
        retryable: read.bool()?,
        retry_after: read.option(Reader::span)?,
        details: read.option(read_payload)?,
    })
}

pub(super) fn write_answer(out: &mut Writer, answer: &Result<Payload, Failure>) {
    match answer {
        Ok(payload) => {
            out.byte(0);
            write_payload(out, payload);
        }
        Err(failure) => {
            out.byte(1);
            write_failure(out, failure);
        }
    }
}

pub(super) fn read_answer(read: &mut Reader<'_>) -> Result<Result<Payload, Failure>, Error> {
    let at = read.at();
    Ok(match read.byte()? {
        0 => Ok(read_payload(read)?),
        1 => Err(read_failure(read)?),
        tag => {
            return Err(Error::Tag {
                what: "an answer",
                tag,
                at,
            });
        }
    })
}

fn write_step_error(out: &mut Writer, error: &StepError) {
    out.text(&error.step);
    out.number(u64::from(error.attempts));
    out.byte(end_tag(error.end));
    write_failure(out, &error.cause);
}

fn read_step_error(read: &mut Reader<'_>) -> Result<StepError, Error> {
    Ok(StepError {
        step: read.text()?,
        attempts: read.number_u32()?,
        end: read_end(read)?,
        cause: read_failure(read)?,
    })
}

fn write_ending(out: &mut Writer, ending: &Ending) {
    match ending {
        Ending::Completed(output) => {
            out.byte(0);
            write_payload(out, output);
        }
        Ending::Failed(failure) => {
            out.byte(1);
            out.option(failure.step.as_ref(), |out, origin| {
                out.text(&origin.step);
                out.number(u64::from(origin.attempts));
                out.byte(end_tag(origin.end));
            });
            write_failure(out, &failure.cause);
            out.option(failure.backtrace.as_deref(), Writer::text);
        }
        Ending::Cancelled { reason } => {
            out.byte(2);
            out.text(reason);
        }
        Ending::Terminated { reason } => {
            out.byte(3);
            out.text(reason);
        }
        Ending::ContinuedAsNew(input) => {
            out.byte(4);
            write_payload(out, input);
        }
    }
}

fn read_ending(read: &mut Reader<'_>) -> Result<Ending, Error> {
    let at = read.at();
    Ok(match read.byte()? {
        0 => Ending::Completed(read_payload(read)?),
        1 => Ending::Failed(RunFailure {
            step: read.option(|read| {
                Ok(StepOrigin {
                    step: read.text()?,
                    attempts: read.number_u32()?,
                    end: read_end(read)?,
                })
            })?,
            cause: read_failure(read)?,
            backtrace: read.option(Reader::text)?,
        }),
        2 => Ending::Cancelled {
            reason: read.text()?,
        },
        3 => Ending::Terminated {
            reason: read.text()?,
        },
        4 => Ending::ContinuedAsNew(read_payload(read)?),
        tag => {
            return Err(Error::Tag {
                what: "an ending",
                tag,
                at,
            });
        }
    })
}
