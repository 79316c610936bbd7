//! The world outside, asked where the journal ends: which fact answers a `select` next, and when
//! the clock alone will.

use super::Replay;
use super::known::{Known, Waits};
use crate::id::{EventId, Operation};
use crate::time::Timestamp;

/// What may answer a `select` next, from outside the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// This sleep's time has come.
    Elapsed(Operation),
    /// This sleep is ended early.
    Woken(Operation),
    /// This wait takes this event.
    Event(Operation, EventId),
    /// This wait's timeout has passed.
    TimedOut(Operation),
    /// This step's backoff is over.
    BackoffOver(Operation),
}

/// An event in the mailbox, as far as the choice needs it.
#[derive(Debug, Clone, Copy)]
pub struct Mail<'a> {
    /// Its id; smaller is older.
    pub id: EventId,
    /// Its name.
    pub name: &'a str,
    /// When it was accepted.
    pub at: Timestamp,
}

/// What a suspended guest waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitSummary {
    /// How many sleeps.
    pub sleeps: usize,
    /// How many steps in their backoff.
    pub backoffs: usize,
    /// The names of the events, one per wait.
    pub events: Vec<String>,
    /// How many tasks.
    pub tasks: usize,
}

impl Replay {
    /// Which fact from outside answers a `select` over these operations first: the one that came
    /// about first, whenever we got to look; of two at one time, that of the older operation, and
    /// an event rather than a timeout. The mailbox is in order, the oldest event first.
    ///
    /// One event satisfies one wait, the oldest of those asked about. A wake ends one sleep, the
    /// one due soonest.
    pub fn choose<'a>(
        &self,
        among: &[Operation],
        now: Timestamp,
        mailbox: impl Iterator<Item = Mail<'a>> + Clone,
        woken_at: Option<Timestamp>,
    ) -> Option<Choice> {
        let mut first: Option<(Timestamp, Operation, Choice)> = None;
        let mut offer = |at: Timestamp, operation: Operation, choice: Choice| {
            if first.is_none_or(|(first_at, number, _)| (at, operation) < (first_at, number)) {
                first = Some((at, operation, choice));
            }
        };
        let mut soonest_sleep: Option<(Timestamp, Operation)> = None;
        for (operation, known) in self.unanswered(among) {
            match known.waits {
                Waits::Sleep(due) => {
                    if due <= now {
                        offer(due, operation, Choice::Elapsed(operation));
                    }
                    if soonest_sleep.is_none_or(|soonest| (due, operation) < soonest) {
                        soonest_sleep = Some((due, operation));
                    }
                }
                Waits::Backoff(retry_at) if retry_at <= now => {
                    offer(retry_at, operation, Choice::BackoffOver(operation));
                }
                Waits::Event(timeout_at) => {
                    if let Some(mail) = mailbox.clone().find(|mail| mail.name == known.name) {
                        offer(mail.at, operation, Choice::Event(operation, mail.id));
                    }
                    if let Some(timeout_at) = timeout_at.filter(|at| *at <= now) {
                        offer(timeout_at, operation, Choice::TimedOut(operation));
                    }
                }
                Waits::Backoff(_) | Waits::Task(_) | Waits::Nothing => {}
            }
        }
        if let (Some(at), Some((_, operation))) = (woken_at, soonest_sleep) {
            offer(at, operation, Choice::Woken(operation));
        }
        first.map(|(_, _, choice)| choice)
    }

    /// When the clock alone next answers one of these operations, or has a task tried again.
    pub fn due(&self, among: &[Operation]) -> Option<Timestamp> {
        self.unanswered(among)
            .filter_map(|(_, known)| match known.waits {
                Waits::Sleep(at) | Waits::Backoff(at) => Some(at),
                Waits::Event(timeout_at) => timeout_at,
                // When a task goes on is for its host to say: it may have to wait for its turn.
                Waits::Task(_) | Waits::Nothing => None,
            })
            .min()
    }

    /// What these operations wait for.
    pub fn waits(&self, among: &[Operation]) -> WaitSummary {
        let mut summary = WaitSummary::default();
        for (_, known) in self.unanswered(among) {
            match known.waits {
                Waits::Sleep(_) => summary.sleeps += 1,
                Waits::Backoff(_) => summary.backoffs += 1,
                Waits::Event(_) => summary.events.push(known.name.clone()),
                Waits::Task(_) => summary.tasks += 1,
                Waits::Nothing => {}
            }
        }
        summary
    }

    /// Those that are open and that the journal has no answer to.
    fn unanswered(&self, among: &[Operation]) -> impl Iterator<Item = (Operation, &Known)> {
        among
            .iter()
            .filter_map(|operation| Some((*operation, self.open.get(operation)?)))
            .filter(|(_, known)| known.answers.is_empty())
    }
}
