//! Every record of a journal as bytes, and back. The numbers here are for ever.

use stepwell_core::id::{EventId, Operation};
use stepwell_core::journal::{EventMessage, Record, Wake};

use super::Error;
use super::bytes::{Reader, Writer};
use super::part::{
    end_tag, kind_tag, read_answer, read_end, read_ending, read_failure, read_kind, read_opening,
    read_payload, read_step_error, read_wake, write_answer, write_ending, write_failure,
    write_opening, write_payload, write_step_error,
};

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
