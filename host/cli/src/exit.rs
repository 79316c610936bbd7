//! Exit codes: one for each thing a script may want to tell apart.

use std::process::ExitCode;

use crate::client;

/// How the command ended. The numbers are part of the interface: never renumber them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done as asked.
    Ok = 0,
    /// The run that was waited for failed; `bench --check` found a target missed.
    RunFailed = 1,
    /// The arguments make no sense. clap ends the process with the same number.
    Usage = 2,
    /// The server refused: no such run, a conflict, a component that is not accepted.
    Refused = 3,
    /// The server could not be reached, or has a fault.
    Unreachable = 4,
    /// The run that was waited for was cancelled or terminated.
    RunStopped = 5,
    /// The run that was waited for is stuck and needs an operator.
    RunStuck = 6,
    /// Something on this machine: a file, a build, a port or a data folder in use.
    Local = 7,
}

/// For `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0  done as asked; a run that was waited for has completed
  1  the run that was waited for has failed; with bench --check, a target is missed
  2  the arguments make no sense
  3  the server refused: no such run, a conflict, a component that is not accepted
  4  the server could not be reached, or has a fault
  5  the run that was waited for was cancelled or terminated
  6  the run that was waited for is stuck and needs an operator
  7  something on this machine: a file, a build, a port or a data folder in use";

impl Exit {
    /// What an error ends the process with.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        match error.downcast_ref::<client::Error>() {
            Some(client::Error::Refused(_)) => Self::Refused,
            Some(
                client::Error::Unreachable { .. }
                | client::Error::Fault(_)
                | client::Error::Unreadable { .. },
            ) => Self::Unreachable,
            None if error.is::<Usage>() => Self::Usage,
            None => Self::Local,
        }
    }

    /// What a run that is waited for ends the process with.
    pub(crate) fn of_status(status: &str) -> Self {
        match status {
            "failed" => Self::RunFailed,
            "cancelled" | "terminated" => Self::RunStopped,
            "stuck" => Self::RunStuck,
            _ => Self::Ok,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Arguments that make no sense.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);
