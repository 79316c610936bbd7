//! What records are made of, as bytes, and back. The numbers here are for ever.

use stepwell_core::journal::{Ending, Opening, OperationKind, RunFailure, StepOrigin, Wake};
use stepwell_core::payload::{Failure, Payload};
use stepwell_core::retry::{AttemptEnd, StepError};

use super::Error;
use super::bytes::{Reader, Writer};

pub(super) fn write_opening(out: &mut Writer, opening: &Opening) {
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

pub(super) fn read_opening(read: &mut Reader<'_>) -> Result<Opening, Error> {
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

pub(super) fn kind_tag(kind: OperationKind) -> u8 {
    match kind {
        OperationKind::Step => 0,
        OperationKind::Sleep => 1,
        OperationKind::Wait => 2,
        OperationKind::Task => 3,
        OperationKind::Publish => 4,
        OperationKind::Reply => 5,
    }
}

pub(super) fn read_kind(read: &mut Reader<'_>) -> Result<OperationKind, Error> {
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

pub(super) fn end_tag(end: AttemptEnd) -> u8 {
    match end {
        AttemptEnd::Failed => 0,
        AttemptEnd::TimedOut => 1,
        AttemptEnd::Trapped => 2,
        AttemptEnd::HostLost => 3,
        AttemptEnd::LimitExceeded => 4,
        AttemptEnd::Cancelled => 5,
    }
}

pub(super) fn read_end(read: &mut Reader<'_>) -> Result<AttemptEnd, Error> {
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

pub(super) fn read_wake(read: &mut Reader<'_>) -> Result<Wake, Error> {
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

pub(super) fn write_payload(out: &mut Writer, payload: &Payload) {
    out.byte(payload_tag(payload));
    out.bytes(payload.as_bytes());
}

pub(super) fn read_payload(read: &mut Reader<'_>) -> Result<Payload, Error> {
    let at = read.at();
    let tag = read.byte()?;
    payload_of(tag, read.bytes()?, at)
}

pub(super) fn write_failure(out: &mut Writer, failure: &Failure) {
    out.text(&failure.kind);
    out.text(&failure.message);
    out.byte(u8::from(failure.retryable));
    out.option(failure.retry_after, Writer::span);
    out.option(failure.details.as_ref(), write_payload);
}

pub(super) fn read_failure(read: &mut Reader<'_>) -> Result<Failure, Error> {
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

pub(super) fn write_step_error(out: &mut Writer, error: &StepError) {
    out.text(&error.step);
    out.number(u64::from(error.attempts));
    out.byte(end_tag(error.end));
    write_failure(out, &error.cause);
}

pub(super) fn read_step_error(read: &mut Reader<'_>) -> Result<StepError, Error> {
    Ok(StepError {
        step: read.text()?,
        attempts: read.number_u32()?,
        end: read_end(read)?,
        cause: read_failure(read)?,
    })
}

pub(super) fn write_ending(out: &mut Writer, ending: &Ending) {
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

pub(super) fn read_ending(read: &mut Reader<'_>) -> Result<Ending, Error> {
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
