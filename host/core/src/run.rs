//! What state a run is in, and what may be asked of it there.

use std::fmt;
use std::str::FromStr;

/// The state of a run, as people and programs see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Its start time is ahead.
    Scheduled,
    /// Ready, and no host drives it yet.
    Queued,
    /// A host drives it.
    Running,
    /// Waiting for a timer.
    Sleeping,
    /// Waiting for an event or a task.
    Waiting,
    /// In the backoff between two attempts.
    Retrying,
    /// Held by an operator.
    Paused,
    /// Asked to stop; cleaning up.
    Cancelling,
    /// An operator is needed: it diverged, its component is missing, or it made no progress.
    Stuck,
    /// Returned a value.
    Completed,
    /// Failed.
    Failed,
    /// Asked to stop, and did.
    Cancelled,
    /// Stopped at once.
    Terminated,
    /// Went on with a fresh journal; a status of that journal, never of the newest.
    Continued,
}

impl Status {
    /// Every status, in the order of a run's life.
    pub const ALL: [Self; 14] = [
        Self::Scheduled,
        Self::Queued,
        Self::Running,
        Self::Sleeping,
        Self::Waiting,
        Self::Retrying,
        Self::Paused,
        Self::Cancelling,
        Self::Stuck,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Terminated,
        Self::Continued,
    ];

    /// Whether nothing more will happen to the run.
    pub fn is_final(self) -> bool {
        match self {
            Self::Scheduled
            | Self::Queued
            | Self::Running
            | Self::Sleeping
            | Self::Waiting
            | Self::Retrying
            | Self::Paused
            | Self::Cancelling
            | Self::Stuck => false,
            Self::Completed
            | Self::Failed
            | Self::Cancelled
            | Self::Terminated
            | Self::Continued => true,
        }
    }

    /// Lower-case, as in HTTP, SQL and the CLI.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Sleeping => "sleeping",
            Self::Waiting => "waiting",
            Self::Retrying => "retrying",
            Self::Paused => "paused",
            Self::Cancelling => "cancelling",
            Self::Stuck => "stuck",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Terminated => "terminated",
            Self::Continued => "continued",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a run status: expected one of scheduled, queued, running, sleeping, waiting, retrying, paused, cancelling, stuck, completed, failed, cancelled, terminated, continued"
)]
pub struct UnknownStatus(String);

impl FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| UnknownStatus(text.chars().take(80).collect()))
    }
}

/// Something asked of a run from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Deliver an event.
    Send,
    /// Stop, with time to clean up.
    Cancel,
    /// Hold before the next operation.
    Pause,
    /// Go on: after a pause, or from `stuck`.
    Resume,
    /// End the sleep in progress.
    Wake,
    /// Stop at once.
    Terminate,
}

impl Verb {
    /// Lower-case, as in HTTP and the CLI.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Cancel => "cancel",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Wake => "wake",
            Self::Terminate => "terminate",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a verb does to a run in its present state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is carried out.
    Accepted,
    /// It has been carried out before; nothing changes.
    Already,
    /// It makes no sense in this state.
    Refused,
}

/// The facts that decide about a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The status underneath a pause or a cancel.
    pub status: Status,
    /// Whether the run is held.
    pub paused: bool,
    /// Whether it has been asked to stop.
    pub cancel_requested: bool,
    /// Whether it is suspended and a sleep is among what it waits for.
    pub sleeps: bool,
}

impl Facts {
    /// The status that people see: a pause covers a cancel, and both cover what is underneath.
    pub fn visible(self) -> Status {
        if self.status.is_final() || self.status == Status::Stuck {
            self.status
        } else if self.paused {
            Status::Paused
        } else if self.cancel_requested {
            Status::Cancelling
        } else {
            self.status
        }
    }

    /// Decides about a verb. Stores call this inside the transaction that carries it out.
    pub fn judge(self, verb: Verb) -> Verdict {
        if self.status.is_final() {
            return match (verb, self.status) {
                (Verb::Cancel, Status::Cancelled) | (Verb::Terminate, Status::Terminated) => {
                    Verdict::Already
                }
                _ => Verdict::Refused,
            };
        }
        match verb {
            Verb::Send | Verb::Terminate => Verdict::Accepted,
            Verb::Cancel if self.cancel_requested => Verdict::Already,
            Verb::Cancel => Verdict::Accepted,
            Verb::Pause if self.paused => Verdict::Already,
            Verb::Pause => Verdict::Accepted,
            Verb::Resume if self.paused || self.status == Status::Stuck => Verdict::Accepted,
            Verb::Resume => Verdict::Refused,
            Verb::Wake if self.status == Status::Sleeping || self.sleeps => Verdict::Accepted,
            Verb::Wake => Verdict::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_round_trip_as_text() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        assert!("done".parse::<Status>().is_err());
    }

    /// `status [paused] [cancel] [sleeps] | verb => verdict`
    fn check(case: &str) {
        let (given, expected) = case.split_once("=>").expect("a case has =>");
        let (state, verb) = given.split_once('|').expect("a case has |");
        let mut words = state.split_whitespace();
        let status = words
            .next()
            .expect("a status")
            .parse()
            .expect("a known status");
        let flags: Vec<_> = words.collect();
        let facts = Facts {
            status,
            paused: flags.contains(&"paused"),
            cancel_requested: flags.contains(&"cancel"),
            sleeps: flags.contains(&"sleeps"),
        };
        let verb = [
            Verb::Send,
            Verb::Cancel,
            Verb::Pause,
            Verb::Resume,
            Verb::Wake,
            Verb::Terminate,
        ]
        .into_iter()
        .find(|known| known.as_str() == verb.trim())
        .expect("a known verb");
        let verdict = format!("{:?}", facts.judge(verb)).to_lowercase();
        assert_eq!(verdict, expected.trim(), "{case}");
    }

    #[test]
    fn verbs_are_judged_by_status() {
        check("running               | send      => accepted");
        check("sleeping paused       | send      => accepted");
        check("completed             | send      => refused");
        check("running               | cancel    => accepted");
        check("running cancel        | cancel    => already");
        check("sleeping paused       | cancel    => accepted");
        check("cancelled             | cancel    => already");
        check("completed             | cancel    => refused");
        check("running               | pause     => accepted");
        check("running paused        | pause     => already");
        check("failed                | pause     => refused");
        check("running               | resume    => refused");
        check("running paused        | resume    => accepted");
        check("stuck                 | resume    => accepted");
        check("sleeping              | wake      => accepted");
        check("sleeping paused       | wake      => accepted");
        check("waiting               | wake      => refused");
        check("waiting sleeps        | wake      => accepted");
        check("running               | wake      => refused");
        check("stuck                 | terminate => accepted");
        check("terminated            | terminate => already");
        check("completed             | terminate => refused");
    }

    #[test]
    fn a_pause_covers_a_cancel_and_neither_covers_an_end() {
        let visible = |status, paused, cancel_requested| {
            Facts {
                status,
                paused,
                cancel_requested,
                sleeps: false,
            }
            .visible()
        };
        assert_eq!(visible(Status::Sleeping, false, false), Status::Sleeping);
        assert_eq!(visible(Status::Sleeping, true, true), Status::Paused);
        assert_eq!(visible(Status::Sleeping, false, true), Status::Cancelling);
        assert_eq!(visible(Status::Completed, true, true), Status::Completed);
        assert_eq!(visible(Status::Stuck, false, true), Status::Stuck);
    }
}
