//! The head of a run: everything about it that changes, save its journal and its inbox, and how
//! each call of the store changes it. Pure, so that every body of the store answers alike; the
//! bodies load heads, write them back, and keep the rows beside them.
//!
//! Two facts decide who may claim a run. *Ready*: it has something to do, as far as the store
//! knows, whoever holds it. *Claimable*: nobody holds it and no operator does. So what reaches a
//! suspended run while a host holds it is not lost with that host.

use stepwell_core::id::{Epoch, EventId, HostId, RunId, Sequence};
use stepwell_core::journal::{Ending, Entry, Record};
use stepwell_core::run::{Facts, Status, Verdict};
use stepwell_core::time::Timestamp;

use crate::append::{Append, Suspension, Then};
use crate::change::Change;
use crate::claim::Room;
use crate::effect::{Effect, effects};
use crate::error::Error;
use crate::inbox::{Delivered, Message};

/// What is true of a run now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The status underneath a pause or a cancel. While it is `Running`, the run is neither ready
    /// nor due and waits for nothing.
    pub(crate) status: Status,
    /// Grows with every claim, and with a terminate.
    pub(crate) epoch: Epoch,
    /// Who holds it.
    pub(crate) host: Option<HostId>,
    /// Which journal is the newest.
    pub(crate) generation: u32,
    /// The length of the newest journal.
    pub(crate) next: Sequence,
    /// The size of the newest journal.
    pub(crate) journal_bytes: u64,
    /// When it is ready by the clock.
    pub(crate) due: Option<Timestamp>,
    /// Since when it is ready, if it is.
    pub(crate) ready_since: Option<Timestamp>,
    /// Held by an operator.
    pub(crate) paused: bool,
    /// Asked to stop.
    pub(crate) cancel_requested: bool,
    /// Whether a host that held it was lost while the guest ran, and the guest has neither got an
    /// entry written nor waited since: whoever drives it next must know, also after one that set it
    /// aside or released it before its guest asked for anything.
    pub(crate) host_lost: bool,
    /// Claims in a row without an entry that is progress.
    pub(crate) claims_without_progress: u32,
    /// The names of events that it waits for while suspended.
    pub(crate) waits: Vec<String>,
    /// Whether a sleep is among what it waits for while suspended.
    pub(crate) sleeps: bool,
    /// The newest id that its inbox has given out.
    pub(crate) inbox_last: EventId,
    /// Events in the mailbox.
    pub(crate) mailbox_events: u64,
    /// The wake that no append has covered, if there is one.
    pub(crate) wake: Option<EventId>,
    /// Why an operator is needed, while `Stuck`.
    pub(crate) stuck_reason: Option<String>,
    /// Grows with every change.
    pub(crate) revision: u64,
    /// When it last changed. Never goes back.
    pub(crate) updated_at: Timestamp,
}

/// What is known of a lease when a run is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) host_lost: bool,
    /// This claim not included.
    pub(crate) claims_without_progress: u32,
}

impl Head {
    /// The head of a run that was just started.
    pub(crate) fn started(start_at: Option<Timestamp>, at: Timestamp) -> Self {
        let due = start_at.filter(|due| *due > at);
        Self {
            status: if due.is_some() {
                Status::Scheduled
            } else {
                Status::Queued
            },
            epoch: Epoch(0),
            host: None,
            generation: 0,
            next: Sequence(0),
            journal_bytes: 0,
            due,
            ready_since: if due.is_some() { None } else { Some(at) },
            paused: false,
            cancel_requested: false,
            host_lost: false,
            claims_without_progress: 0,
            waits: Vec::new(),
            sleeps: false,
            inbox_last: EventId(0),
            mailbox_events: 0,
            wake: None,
            stuck_reason: None,
            revision: 1,
            updated_at: at,
        }
    }

    /// What decides about verbs.
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            status: self.status,
            paused: self.paused,
            cancel_requested: self.cancel_requested,
            sleeps: self.sleeps,
        }
    }

    /// Whether a host may claim it once it is ready or due.
    pub(crate) fn is_claimable(&self) -> bool {
        self.host.is_none()
            && !self.paused
            && self.status != Status::Stuck
            && !self.status.is_final()
    }

    /// Whether it may be what took its last hosts down.
    pub(crate) fn is_suspect(&self) -> bool {
        Room::suspects(self.claims_without_progress)
    }

    fn is_ready(&self) -> bool {
        self.is_claimable() && self.ready_since.is_some()
    }

    /// Since when a host could have claimed it; `None` if none may at `now`.
    pub(crate) fn claimable_since(&self, now: Timestamp) -> Option<Timestamp> {
        if !self.is_claimable() {
            return None;
        }
        let due = self.due.filter(|due| *due <= now);
        match (self.ready_since, due) {
            (Some(ready), Some(due)) => Some(ready.min(due)),
            (ready, due) => ready.or(due),
        }
    }

    /// What hosts are told of a run that nobody holds.
    pub(crate) fn availability(&self, run: RunId) -> Option<Change> {
        if !self.is_claimable() {
            None
        } else if self.ready_since.is_some() {
            Some(Change::Ready { run })
        } else {
            self.due.map(|at| Change::Due { run, at })
        }
    }

    /// Gives the run to a host.
    pub(crate) fn claim(&mut self, host: HostId, at: Timestamp) -> Lease {
        assert!(
            self.is_claimable(),
            "a run is claimed that may not be: {self:?}"
        );
        let lease = Lease {
            host_lost: self.host_lost,
            claims_without_progress: self.claims_without_progress,
        };
        self.touch(at);
        self.epoch = Epoch(self.epoch.0 + 1);
        self.host = Some(host);
        self.claims_without_progress = self.claims_without_progress.saturating_add(1);
        self.run();
        lease
    }

    /// Whether this epoch holds it.
    pub(crate) fn is_held_under(&self, epoch: Epoch) -> bool {
        self.host.is_some() && self.epoch == epoch
    }

    /// Sets the run aside for an operator; nobody holds it.
    pub(crate) fn stick_at(&mut self, reason: String, at: Timestamp) {
        self.touch(at);
        self.stick(reason);
    }

    fn stick(&mut self, reason: String) {
        self.run();
        self.status = Status::Stuck;
        self.stuck_reason = Some(reason);
        self.host = None;
    }

    /// Takes the run from a host that is lost, or that cannot go on with it. What it waits for stays
    /// as it is; if the guest ran, the run is ready at once.
    pub(crate) fn orphan(&mut self, run: RunId, at: Timestamp) -> Option<Change> {
        self.touch(at);
        self.host = None;
        if self.status == Status::Running {
            self.host_lost = true;
            self.status = Status::Queued;
            self.ready_since = Some(at);
        }
        self.availability(run)
    }

    /// Whether an append may be written.
    pub(crate) fn check(&self, append: &Append) -> Result<(), Error> {
        if !self.is_held_under(append.epoch) || self.next != append.next {
            return Err(Error::LeaseLost {
                run: append.run,
                epoch: append.epoch,
            });
        }
        if append.then == Then::End && self.cancel_requested && !append.cancel_seen {
            return Err(Error::CancelRequested { run: append.run });
        }
        Ok(())
    }

    /// Whether the inbox can hold anything that the caller of an append has not seen and that
    /// decides what follows; only then does [`Self::advance`] need to know what it holds.
    pub(crate) fn asks_for_unseen<'a>(&self, append: &'a Append) -> Option<&'a Suspension> {
        match &append.then {
            Then::Suspend(suspension) if self.inbox_last > append.inbox_seen => Some(suspension),
            _ => None,
        }
    }

    /// Carries out an append that [`Self::check`] has passed, of `bytes` as stored. `met` says
    /// whether the inbox holds an unseen item that the suspension waits for. Answers with what
    /// hosts are told.
    pub(crate) fn advance(&mut self, append: &Append, bytes: u64, met: bool) -> Option<Change> {
        self.touch(append.at);
        self.next = self.next.plus(append.entries.len());
        self.journal_bytes += bytes;
        if append
            .entries
            .iter()
            .any(|entry| entry.record.is_progress())
        {
            self.claims_without_progress = 0;
        }
        for effect in effects(&append.entries) {
            if let Effect::TakeEvent { .. } = effect {
                self.mailbox_events = self.mailbox_events.saturating_sub(1);
            }
        }
        if !append.entries.is_empty() || matches!(append.then, Then::Suspend(_)) {
            self.host_lost = false;
        }
        self.wake = self.wake.filter(|wake| *wake > append.inbox_seen);
        match &append.then {
            Then::Run => self.run(),
            Then::Suspend(suspension) => {
                self.run();
                self.status = suspension.status;
                self.due = suspension.due;
                self.waits.clone_from(&suspension.events);
                self.sleeps = suspension.sleeps;
                let is_met = met || (self.cancel_requested && !append.cancel_seen);
                // While a host holds the run, nobody asks whether it is ready.
                if is_met || suspension.tasks_run {
                    self.ready_since = Some(append.at);
                }
                if suspension.release {
                    self.host = None;
                }
            }
            Then::End => match append.ending() {
                Some(Ending::ContinuedAsNew(_)) => {
                    self.run();
                    self.generation += 1;
                    self.next = Sequence(0);
                    self.journal_bytes = 0;
                }
                Some(ending) => self.end(ending),
                None => {}
            },
            Then::Stick { reason } => self.stick(reason.clone()),
            Then::Release => {
                self.run();
                self.status = Status::Queued;
                self.ready_since = Some(append.at);
                self.host = None;
            }
        }
        if self.host.is_none() {
            self.availability(append.run)
        } else {
            None
        }
    }

    /// The answer to a message that is not to be carried out; `None` if it is.
    pub(crate) fn refuse(&self, message: &Message) -> Option<Delivered> {
        match self.facts().judge(message.verb()) {
            Verdict::Refused => {
                return Some(Delivered::Refused {
                    status: self.facts().visible(),
                });
            }
            Verdict::Already => return Some(Delivered::Already { id: None }),
            Verdict::Accepted => {}
        }
        match message {
            Message::Event {
                name,
                mailbox_events_max,
                ..
            } if self.is_full_for(name, *mailbox_events_max) => Some(Delivered::MailboxFull),
            // It ends the same sleep, and the inbox stays bounded.
            Message::Wake if self.wake.is_some() => Some(Delivered::Already { id: None }),
            _ => None,
        }
    }

    /// Whether the mailbox takes no further event of this name. One that is waited for has room for
    /// as many again, so that events that nobody waits for keep out none that is.
    fn is_full_for(&self, name: &str, events_max: u64) -> bool {
        let is_waited_for = self.waits.iter().any(|wait| wait == name);
        let events_max = if is_waited_for {
            events_max.saturating_mul(2)
        } else {
            events_max
        };
        self.mailbox_events >= events_max
    }

    /// Carries out a message that [`Self::refuse`] has passed. Answers with its place in the inbox and
    /// what hosts are told.
    ///
    /// A terminate counts the journal's last entry too, of `bytes` as stored.
    pub(crate) fn accept(
        &mut self,
        run: RunId,
        message: &Message,
        at: Timestamp,
        bytes: u64,
    ) -> (EventId, Option<Change>) {
        let was_ready = self.is_ready();
        self.touch(at);
        let id = EventId(self.inbox_last.0 + 1);
        self.inbox_last = id;
        match message {
            Message::Event { name, .. } => {
                self.mailbox_events += 1;
                if self.waits.contains(name) {
                    self.become_ready(at);
                }
            }
            Message::Cancel { .. } => {
                self.cancel_requested = true;
                // So that it can clean up.
                self.paused = false;
                self.become_ready(at);
            }
            Message::Pause => self.paused = true,
            Message::Resume => {
                self.paused = false;
                if self.status == Status::Stuck {
                    self.status = Status::Queued;
                    self.stuck_reason = None;
                    self.claims_without_progress = 0;
                    self.become_ready(at);
                } else if self.due.is_some_and(|due| due <= at) {
                    self.become_ready(at);
                }
            }
            Message::Wake => {
                self.wake = Some(id);
                self.become_ready(at);
            }
            Message::Terminate { reason } => {
                self.epoch = Epoch(self.epoch.0 + 1);
                self.next = self.next.plus(1);
                self.journal_bytes += bytes;
                self.end(&Ending::Terminated {
                    reason: reason.clone(),
                });
                return (id, Some(Change::Terminated { run }));
            }
        }
        let change = if self.host.is_some() {
            Some(Change::Inbox { run })
        } else if self.is_ready() && !was_ready {
            Some(Change::Ready { run })
        } else if matches!(message, Message::Resume) {
            // Hosts may have dropped its timer during the pause.
            self.availability(run)
        } else {
            None
        };
        (id, change)
    }

    /// The entry that a terminate appends. Its time is not before that of the entry before it.
    pub(crate) fn termination(&self, reason: &str, at: Timestamp) -> Entry {
        let ending = Ending::Terminated {
            reason: reason.to_owned(),
        };
        Entry {
            at: at.max(self.updated_at),
            record: Record::Ended(ending),
        }
    }

    fn become_ready(&mut self, at: Timestamp) {
        // A running run is looked after by its host; should that be lost, it is ready anyway.
        if self.status != Status::Running && self.status != Status::Stuck {
            self.ready_since.get_or_insert(at);
        }
    }

    fn run(&mut self) {
        self.status = Status::Running;
        self.due = None;
        self.ready_since = None;
        self.waits.clear();
        self.sleeps = false;
    }

    fn end(&mut self, ending: &Ending) {
        self.run();
        self.status = match ending {
            Ending::Completed(_) => Status::Completed,
            Ending::Failed(_) => Status::Failed,
            Ending::Cancelled { .. } => Status::Cancelled,
            Ending::Terminated { .. } => Status::Terminated,
            Ending::ContinuedAsNew(_) => Status::Continued,
        };
        self.stuck_reason = None;
        self.host = None;
    }

    fn touch(&mut self, at: Timestamp) {
        self.revision += 1;
        self.updated_at = self.updated_at.max(at);
    }
}

#[cfg(test)]
mod tests;
