//! A call on its way through the writer: the work, what came of it, and who waits.

use std::panic::AssertUnwindSafe;

use tokio::sync::oneshot;

use super::batch::Tx;
use crate::error::Error;
use crate::sqlite::fault::{Fault, Result};

/// How far the execution of a command got.
#[derive(Debug)]
pub(super) enum Executed {
    /// It is done, or refused with nothing written.
    Settled,
    /// It failed: nothing of it may stay. Known to the caller already.
    Failed,
    /// The database cannot write. That is no fault of this command, and the others will meet it too.
    Broken(rusqlite::Error),
}

/// A call, whatever it returns.
pub(super) trait Command: Send {
    /// Does the work and keeps what came of it.
    fn execute(&mut self, tx: &mut Tx<'_>) -> Executed;

    /// Tells the caller what came of it, or why the transaction that it was part of was not written.
    fn answer(self: Box<Self>, committed: std::result::Result<(), &Error>);
}

pub(super) struct Call<T, F> {
    action: &'static str,
    work: F,
    done: Option<std::result::Result<T, Error>>,
    reply: oneshot::Sender<std::result::Result<T, Error>>,
}

impl<T, F> Call<T, F> {
    pub(super) fn new(
        action: &'static str,
        work: F,
        reply: oneshot::Sender<std::result::Result<T, Error>>,
    ) -> Self {
        Self {
            action,
            work,
            done: None,
            reply,
        }
    }
}

impl<T, F> Command for Call<T, F>
where
    T: Send,
    F: FnMut(&mut Tx<'_>) -> Result<T> + Send,
{
    fn execute(&mut self, tx: &mut Tx<'_>) -> Executed {
        let written_before = tx.rows().total_changes();
        let worked = std::panic::catch_unwind(AssertUnwindSafe(|| (self.work)(tx)));
        let (done, executed) = match worked {
            Ok(Ok(value)) => (Ok(value), Executed::Settled),
            Ok(Err(Fault::Answer(error))) => {
                let clean = tx.rows().total_changes() == written_before;
                (
                    Err(error),
                    if clean {
                        Executed::Settled
                    } else {
                        Executed::Failed
                    },
                )
            }
            Ok(Err(fault @ Fault::Sqlite(_))) => return self.broken(fault),
            Err(_) => {
                tracing::error!(
                    action = self.action,
                    "a command panicked; the others go on without it"
                );
                let detail =
                    "the command panicked, which is a bug; its message is in the host's log"
                        .to_owned();
                (
                    Err(Error::Unavailable {
                        action: self.action,
                        detail,
                    }),
                    Executed::Failed,
                )
            }
        };
        self.done = Some(done);
        executed
    }

    fn answer(self: Box<Self>, committed: std::result::Result<(), &Error>) {
        let answer = match (self.done, committed) {
            // A refusal is true whether or not anything else was written.
            (Some(Err(error)), _) => Err(error),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (_, Err(error)) => Err(named(self.action, error)),
            (None, Ok(())) => unreachable!("a transaction was committed with a command left out"),
        };
        // The caller may have gone; what was written stays.
        let _ = self.reply.send(answer);
    }
}

impl<T, F> Call<T, F> {
    fn broken(&mut self, fault: Fault) -> Executed {
        match fault {
            Fault::Sqlite(error) if is_broken(&error) => Executed::Broken(error),
            fault => {
                self.done = Some(Err(fault.into_error(self.action)));
                Executed::Failed
            }
        }
    }
}

/// Whether a failure is the database's and not one command's.
fn is_broken(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode as Code;
    matches!(
        error.sqlite_error_code(),
        Some(
            Code::DiskFull
                | Code::SystemIoFailure
                | Code::CannotOpen
                | Code::ReadOnly
                | Code::OutOfMemory
                | Code::DatabaseBusy
                | Code::DatabaseLocked
                | Code::FileLockingProtocolFailed
        )
    )
}

/// The same failure, in the words of one caller.
fn named(action: &'static str, error: &Error) -> Error {
    match error {
        Error::Unavailable { detail, .. } => Error::Unavailable {
            action,
            detail: detail.clone(),
        },
        Error::Unknown { detail, .. } => Error::Unknown {
            action,
            detail: detail.clone(),
        },
        error => error.clone(),
    }
}
