//! What a driven run consists of while this host drives it: the fold of its journal, the entries
//! that are not durable yet, its mailbox and its tasks.
//!
//! The guest's side of the run (`durable.rs`) holds this while the guest runs, and the driver takes
//! it back when the guest is gone, wherever it was.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use futures::future::BoxFuture;
use stepwell_core::id::{EventId, Operation, Sequence};
use stepwell_core::journal::{Ending, Entry, EventMessage, Record, Wake};
use stepwell_core::payload::Failure;
use stepwell_core::replay::{Choice, Diverged, Mail, Replay};
use stepwell_core::retry::AttemptEnd;
use stepwell_core::run::Status;
use stepwell_core::time::Timestamp;
use stepwell_sandbox::guest::{Activation, Component, LogLevel, LogSink, RunInfo, Stop, TaskCall};
use stepwell_store::{Append, Claim, Error, InboxItem, InboxMessage, LogLine, Suspension, Then};

use super::reach::{Patience, reach};
use super::tasks::{TaskStart, Tasks};
use super::watch::Watch;
use crate::shared::Shared;
use crate::signals::Signals;
use crate::suspects::Trial;

/// Why the guest was stopped from inside a call.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The run was given up, durably: evicted, held, or for the shutdown.
    Released,
    /// The store does not go on with it, for good: another host has the run, it was terminated, its
    /// rows are damaged, or the host shuts down while the store cannot be reached.
    GivenUp(Error),
    /// Its journal was written by other code.
    Diverged(Diverged),
    /// It met a limit outside a step, so it fails.
    LimitExceeded(Failure),
}

/// A driven run.
pub(crate) struct RunState {
    pub(crate) shared: Arc<Shared>,
    pub(crate) signals: Arc<Signals>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) component: Arc<dyn Component>,
    pub(crate) claim: Claim,
    pub(crate) replay: Replay,
    pub(crate) tasks: Tasks,
    /// Why the guest was stopped, once a call has answered [`Stop::Now`].
    pub(crate) halt: Option<Halt>,
    /// Whether an attempt may have been lost with the host that drove the run before; true until
    /// the guest asks for its first new operation.
    pub(crate) host_lost: bool,
    /// Open while the run may be what took its last hosts down.
    pub(crate) trial: Option<Trial>,
    /// Events that a wait has taken and nobody has answered.
    pub(crate) answerable: BTreeSet<EventId>,
    /// Why the run is to stop, once the guest has been told.
    pub(crate) cancel_reason: Option<String>,
    /// An accepted cancel that the guest has not been told of.
    cancel: Option<String>,
    mailbox: VecDeque<InboxItem>,
    inbox_seen: EventId,
    woken_at: Option<Timestamp>,
    paused: bool,
    /// Entries that the store has not taken yet.
    pending: Vec<Entry>,
    /// The length of the journal in the store.
    stored: Sequence,
    journal_bytes: u64,
    /// Whether the store shows the run as running: if not, no body may run.
    shown_running: bool,
    /// What the store shows the run to wait for.
    suspended_as: Option<Suspension>,
    /// An append under way. Kept here so that ending the guest in the middle of it loses nothing.
    in_flight: Option<InFlight>,
    warned_half: bool,
    /// Whether this generation has had no step, task or wait.
    pub(crate) is_idle: bool,
    /// Generations in a row, as far as this host knows, that ended idle.
    pub(crate) idle_generations: u32,
}

struct InFlight {
    entries: usize,
    append: BoxFuture<'static, Result<(), Error>>,
}

impl std::fmt::Debug for RunState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunState")
            .field("run", &self.claim.run)
            .field("replay", &self.replay)
            .finish_non_exhaustive()
    }
}

impl RunState {
    pub(crate) fn new(
        shared: Arc<Shared>,
        signals: Arc<Signals>,
        component: Arc<dyn Component>,
        mut claim: Claim,
    ) -> Self {
        let inbox = std::mem::take(&mut claim.inbox);
        let mut state = Self {
            watch: Arc::new(Watch::new(Arc::clone(&signals))),
            replay: Replay::load(Vec::new(), claim.started_at),
            tasks: Tasks::default(),
            halt: None,
            host_lost: claim.host_lost,
            trial: None,
            answerable: BTreeSet::new(),
            cancel_reason: None,
            cancel: None,
            mailbox: VecDeque::new(),
            inbox_seen: EventId(0),
            woken_at: None,
            paused: claim.paused,
            pending: Vec::new(),
            stored: claim.next,
            journal_bytes: claim.journal_bytes,
            shown_running: true,
            suspended_as: None,
            in_flight: None,
            warned_half: false,
            is_idle: true,
            idle_generations: 0,
            shared,
            signals,
            component,
            claim,
        };
        state.take_in(inbox);
        state
    }

    // ---- The journal.

    /// Folds the journal anew, for a guest that starts from its beginning. Everything recorded so
    /// far must be in `entries`.
    pub(crate) fn load(&mut self, entries: Vec<Entry>) {
        assert!(
            self.pending.is_empty(),
            "a guest is replayed from what is durable"
        );
        self.answerable.clear();
        for entry in &entries {
            self.note(&entry.record);
            self.is_idle &= !entry.record.is_work();
        }
        self.replay = Replay::load(entries, self.claim.started_at);
        self.watch.grace_until(self.replay.grace_until());
        self.halt = None;
    }

    /// Folds a record and queues it for the store.
    pub(crate) fn record(&mut self, record: Record) {
        self.note(&record);
        let now = self.shared.now();
        let entry = self.replay.record(record, now);
        self.queue(entry);
    }

    /// Queues an entry that the replay has folded.
    pub(crate) fn queue(&mut self, entry: Entry) {
        self.is_idle &= !entry.record.is_work();
        self.journal_bytes += entry.size_bytes();
        self.pending.push(entry);
    }

    /// Ends the attempt whose body was running. `draw` is a random draw for its backoff.
    pub(crate) fn end_attempt(&mut self, end: AttemptEnd, cause: Failure, draw: f64) {
        let now = self.shared.now();
        let (entry, _) = self.replay.end_attempt(end, cause, now, draw);
        self.queue(entry);
    }

    fn note(&mut self, record: &Record) {
        match record {
            Record::EventTaken { event, .. } => {
                self.answerable.insert(event.id);
            }
            Record::Replied { event, .. } => {
                self.answerable.remove(event);
            }
            Record::CancelDelivered { reason, .. } => {
                self.cancel_reason = Some(reason.clone());
                self.cancel = None;
            }
            _ => {}
        }
    }

    /// Checks the journal's limits before a new operation.
    pub(crate) fn check_journal(&mut self) -> Result<(), Stop> {
        let limits = &self.shared.config.limits;
        let (entries, bytes) = (self.replay.length().0, self.journal_bytes);
        let met = |limit: &str, value: u64| {
            let message = format!(
                "the journal has reached its limit of {value} {limit}; end with continue-as-new well before it"
            );
            Halt::LimitExceeded(Failure::permanent("journal-limit", message))
        };
        let halt = if entries >= limits.journal_entries_max {
            met("entries", limits.journal_entries_max)
        } else if bytes >= limits.journal_bytes_max {
            met("bytes", limits.journal_bytes_max)
        } else {
            let at_half =
                entries >= limits.journal_entries_max / 2 || bytes >= limits.journal_bytes_max / 2;
            if at_half && !self.warned_half {
                self.warned_half = true;
                let message = format!(
                    "the journal has {entries} entries and {bytes} bytes, half of what is allowed; \
                     use continue-as-new before it is full"
                );
                self.log(LogLevel::Warn, message, Vec::new());
            }
            return Ok(());
        };
        Err(self.stop(halt))
    }

    /// Hands everything that is pending to the store, and returns once it is durable. While the
    /// store cannot be reached, it is tried again.
    pub(crate) async fn flush(&mut self, then: Then) -> Result<(), Error> {
        let mut patience = Patience::new(self.claim.run);
        loop {
            let append = Append {
                run: self.claim.run,
                epoch: self.claim.epoch,
                next: self.stored,
                entries: self.pending.clone(),
                inbox_seen: self.inbox_seen,
                cancel_seen: self.cancel.is_some() || self.cancel_reason.is_some(),
                then: then.clone(),
                at: self.shared.now(),
            };
            let store = Arc::clone(&self.shared.store);
            self.in_flight = Some(InFlight {
                entries: append.entries.len(),
                append: Box::pin(async move { store.append(append).await }),
            });
            match self.settle().await {
                Ok(()) => break,
                Err(error) => patience.wait(error, &self.signals).await?,
            }
        }
        self.shown_running = then == Then::Run;
        self.suspended_as = match then {
            Then::Suspend(suspension) => Some(suspension),
            Then::Run | Then::End | Then::Stick { .. } | Then::Release => None,
        };
        Ok(())
    }

    /// Waits for an append that is under way, also one whose guest has been ended meanwhile.
    ///
    /// If its acknowledgement was lost, the journal tells whether it was written. Where it cannot
    /// tell (nothing was appended, or the run has ended), the append may be made again: it changes
    /// nothing, or is refused as if the lease were lost, and then there is nothing left to do.
    pub(crate) async fn settle(&mut self) -> Result<(), Error> {
        let Some(in_flight) = &mut self.in_flight else {
            return Ok(());
        };
        let mut result = (&mut in_flight.append).await;
        let entries = in_flight.entries;
        self.in_flight = None;
        if let Err(Error::Unknown { .. }) = result
            && entries > 0
            && self.stored_journal().await?.len() as u64 == self.stored.plus(entries).0
        {
            result = Ok(());
        }
        if result.is_ok() {
            let mut written = self.pending.drain(..entries);
            if self.trial.is_some() && written.any(|entry| entry.record.is_progress()) {
                self.trial = None;
            }
            drop(written);
            self.stored = self.stored.plus(entries);
        }
        result
    }

    /// The journal as the store has it.
    pub(crate) async fn stored_journal(&mut self) -> Result<Vec<Entry>, Error> {
        let run = self.claim.run;
        reach(run, &self.signals, || self.shared.store.journal(run)).await
    }

    /// Makes everything durable before something leaves: a body that runs, a task that starts.
    pub(crate) async fn barrier(&mut self) -> Result<(), Stop> {
        if self.pending.is_empty() && self.shown_running {
            return Ok(());
        }
        self.flush_or_stop(Then::Run).await
    }

    pub(crate) async fn flush_or_stop(&mut self, then: Then) -> Result<(), Stop> {
        let flushed = self.flush(then).await;
        flushed.map_err(|error| self.stop(Halt::GivenUp(error)))
    }

    /// Takes back the last entry, which the store refused, and which nobody was told of.
    pub(crate) fn take_back(&mut self) {
        self.pending.pop();
    }

    /// A fresh journal of the next generation, after the old one has ended.
    pub(crate) fn begin_generation(&mut self, input: stepwell_core::payload::Payload) {
        self.idle_generations = if self.is_idle {
            self.idle_generations + 1
        } else {
            0
        };
        self.is_idle = true;
        self.claim.generation += 1;
        self.claim.next = Sequence(0);
        self.claim.input = input;
        self.claim.started_at = self.shared.now();
        self.stored = Sequence(0);
        self.journal_bytes = 0;
        self.warned_half = false;
        self.shown_running = true;
        self.tasks.clear();
        self.load(Vec::new());
    }

    /// The length of the journal in the store.
    pub(crate) fn stored(&self) -> Sequence {
        self.stored
    }

    /// The guest is to be told nothing more: the run is another host's, or was terminated.
    pub(crate) fn lease_lost(&self) -> Error {
        Error::LeaseLost {
            run: self.claim.run,
            epoch: self.claim.epoch,
        }
    }

    pub(crate) fn stop(&mut self, halt: Halt) -> Stop {
        self.halt = Some(halt);
        Stop::Now
    }

    // ---- The world outside.

    /// Looks into the inbox, if there is something new.
    pub(crate) async fn look(&mut self) -> Result<(), Stop> {
        if self.signals.is_lost() {
            let lost = self.lease_lost();
            return Err(self.stop(Halt::GivenUp(lost)));
        }
        if self.signals.take_inbox() {
            let looked = self.look_again().await;
            return looked.map_err(|error| self.stop(Halt::GivenUp(error)));
        }
        Ok(())
    }

    /// Looks into the inbox.
    pub(crate) async fn look_again(&mut self) -> Result<(), Error> {
        let (run, seen) = (self.claim.run, self.inbox_seen);
        let read = || self.shared.store.inbox(run, seen);
        let inbox = reach(run, &self.signals, read).await?;
        self.paused = inbox.paused;
        self.take_in(inbox.items);
        Ok(())
    }

    fn take_in(&mut self, items: Vec<InboxItem>) {
        for item in items {
            self.inbox_seen = self.inbox_seen.max(item.id);
            match &item.what {
                InboxMessage::Event { .. } => self.mailbox.push_back(item),
                InboxMessage::Cancel { reason } => {
                    if self.cancel_reason.is_none() {
                        self.cancel = Some(reason.clone());
                    }
                }
                InboxMessage::Wake => self.woken_at = Some(item.at),
            }
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Why the run is to stop, whether or not the guest has been told.
    pub(crate) fn cancelled(&self) -> Option<&String> {
        self.cancel_reason.as_ref().or(self.cancel.as_ref())
    }

    /// Records that the guest is told of a cancel, if there is one that it has not been told of.
    pub(crate) fn deliver_cancel(&mut self) -> bool {
        let Some(reason) = self.cancel.take() else {
            return false;
        };
        let grace_until = self
            .shared
            .now()
            .after(self.shared.config.limits.cancel_grace);
        self.record(Record::CancelDelivered {
            reason,
            grace_until,
        });
        self.watch.grace_until(Some(grace_until));
        true
    }

    /// Records what from outside answers one of these operations first, if anything does.
    pub(crate) fn record_choice(&mut self, among: &[Operation]) -> bool {
        let mails = self.mailbox.iter().filter_map(|item| match &item.what {
            InboxMessage::Event { name, .. } => Some(Mail {
                id: item.id,
                name,
                at: item.at,
            }),
            InboxMessage::Cancel { .. } | InboxMessage::Wake => None,
        });
        let Some(choice) = self
            .replay
            .choose(among, self.shared.now(), mails, self.woken_at)
        else {
            return false;
        };
        let record = match choice {
            Choice::Elapsed(operation) => Record::Slept {
                operation,
                wake: Wake::Elapsed,
            },
            Choice::Woken(operation) => {
                self.woken_at = None;
                Record::Slept {
                    operation,
                    wake: Wake::Woken,
                }
            }
            Choice::TimedOut(operation) => Record::TimedOut { operation },
            Choice::BackoffOver(operation) => Record::BackoffOver { operation },
            Choice::Event(operation, id) => {
                let index = self
                    .mailbox
                    .iter()
                    .position(|item| item.id == id)
                    .expect("it was just chosen");
                let item = self.mailbox.remove(index).expect("it was just found");
                let InboxMessage::Event { payload, .. } = item.what else {
                    unreachable!("only events are in the mailbox");
                };
                Record::EventTaken {
                    operation,
                    event: EventMessage {
                        id,
                        payload,
                        sent_at: item.at,
                    },
                }
            }
        };
        self.record(record);
        true
    }

    /// When the clock alone next gives the guest, or one of its tasks, something to do.
    pub(crate) fn due(&self, among: &[Operation]) -> Option<Timestamp> {
        let has_room = self.tasks.running_count() < self.shared.config.limits.running_tasks_max;
        // Without room, it is the end of another task that gives one its turn.
        let tasks = has_room.then(|| self.tasks.waiting()).into_iter().flatten();
        let task_due = tasks.filter_map(|(operation, _)| self.replay.task(operation)?.retry_at);
        task_due.chain(self.replay.due(among)).min()
    }

    /// What the run waits for, as the store is to show it.
    pub(crate) fn suspension(&self, among: &[Operation]) -> Suspension {
        let waits = self.replay.waits(among);
        let status = if !waits.events.is_empty() || waits.tasks > 0 {
            Status::Waiting
        } else if waits.sleeps > 0 {
            Status::Sleeping
        } else {
            Status::Retrying
        };
        Suspension {
            status,
            // Whoever claims an evicted run when its grace period has passed ends it.
            due: self
                .due(among)
                .into_iter()
                .chain(self.replay.grace_until())
                .min(),
            events: waits.events,
            sleeps: waits.sleeps > 0,
            tasks_run: false,
            release: false,
        }
    }

    /// Whether the store shows just this, with nothing left to write.
    pub(crate) fn is_suspended_as(&self, suspension: &Suspension) -> bool {
        self.pending.is_empty() && self.suspended_as.as_ref() == Some(suspension)
    }

    /// A wake that finds no sleep has no effect.
    pub(crate) fn drop_wake(&mut self) {
        self.woken_at = None;
    }

    // ---- Tasks.

    /// Records the attempts of tasks that have ended.
    pub(crate) fn collect_tasks(&mut self) {
        for (attempt, outcome) in self.tasks.take_ended() {
            let outcome =
                outcome.and_then(|output| super::bounded(output, &self.shared.config.limits));
            let now = self.shared.now();
            if let Some(entry) = self.replay.end_task_attempt(attempt, outcome, now, draw()) {
                self.queue(entry);
            }
            if self.replay.task(attempt.operation).is_none() {
                self.tasks.forget(attempt.operation);
            }
        }
    }

    /// Records the start of those attempts of tasks that may start now. They are spawned by
    /// [`RunState::spawn_tasks`], once that is durable.
    pub(crate) fn start_tasks(&mut self) -> Vec<TaskStart> {
        let now = self.shared.now();
        let mut room = self
            .shared
            .config
            .limits
            .running_tasks_max
            .saturating_sub(self.tasks.running_count());
        let waiting: Vec<_> = self
            .tasks
            .waiting()
            .map(|(operation, task)| (operation, task.options))
            .collect();
        let mut starts = Vec::new();
        for (operation, options) in waiting {
            if room == 0 {
                break;
            }
            // Started by a host that was lost before it ended.
            if let Some(lost) = self.replay.lost_task_attempt(operation, options) {
                let cause =
                    Failure::retryable("host-lost", "the host stopped while the attempt ran");
                let ended = Err((AttemptEnd::HostLost, cause));
                if let Some(entry) = self.replay.end_task_attempt(lost, ended, now, 0.0) {
                    self.queue(entry);
                }
            }
            let Some(progress) = self.replay.task(operation) else {
                self.tasks.forget(operation);
                continue;
            };
            if progress.retry_at.is_some_and(|at| at > now) {
                continue;
            }
            let (entry, attempt) = self.replay.begin_task_attempt(operation, options, now);
            self.queue(entry);
            let Some(attempt) = attempt else {
                self.tasks.forget(operation);
                continue;
            };
            starts.extend(self.task_start(attempt, now));
            room -= 1;
        }
        starts
    }

    /// Whether a task waits for nothing but a host.
    pub(crate) fn has_task_to_start(&self) -> bool {
        let now = self.shared.now();
        let mut waiting = self
            .tasks
            .waiting()
            .filter_map(|(operation, _)| self.replay.task(operation));
        waiting.any(|task| task.retry_at.is_none_or(|at| at <= now))
    }

    fn task_start(
        &self,
        attempt: stepwell_core::replay::RunningAttempt,
        now: Timestamp,
    ) -> Option<TaskStart> {
        let task = self.tasks.asked(attempt.operation)?;
        let log = RunLog::of(self);
        Some(TaskStart {
            attempt,
            component: Arc::clone(&self.component),
            call: TaskCall {
                task: task.name.clone(),
                input: task.input.clone(),
                attempt: attempt.number,
                key: self.attempt_key(attempt.operation),
                seed: self.seed(),
                environment: self.claim.environment.clone(),
                limits: self.shared.config.limits.clone(),
            },
            log: Box::new(log),
            slots: Arc::clone(&self.shared.task_slots),
            allowance: attempt.allowance(now),
        })
    }

    pub(crate) fn spawn_tasks(&mut self, starts: Vec<TaskStart>) {
        for start in starts {
            self.tasks.spawn(start);
        }
    }

    // ---- What the guest is given.

    /// Stable over all attempts: `<run>/<operation>`.
    pub(crate) fn attempt_key(&self, operation: Operation) -> String {
        format!("{}/{operation}", self.claim.run)
    }

    fn seed(&self) -> u128 {
        // Another journal of the same run draws other numbers.
        self.claim.run.raw() ^ u128::from(self.claim.generation).rotate_right(32)
    }

    pub(crate) fn activation(&self) -> Activation {
        let claim = &self.claim;
        Activation {
            info: RunInfo {
                run_id: claim.run.to_string(),
                tenant: claim.tenant.to_string(),
                workflow: claim.workflow.to_string(),
                version: claim.label.to_string(),
                started_at: claim.started_at,
            },
            input: claim.input.clone(),
            seed: self.seed(),
            environment: claim.environment.clone(),
            limits: self.shared.config.limits.clone(),
        }
    }

    /// A line for the run's log.
    pub(crate) fn log(&self, level: LogLevel, message: String, fields: Vec<(String, String)>) {
        RunLog::of(self).log(level, message, fields);
    }

    /// How the run ends, given how the guest did: a cancel that was accepted earlier wins.
    pub(crate) fn ending(&self, ending: Ending) -> Ending {
        match self.cancelled() {
            Some(reason) => Ending::Cancelled {
                reason: reason.clone(),
            },
            None => ending,
        }
    }
}

/// Writes to a run's log.
pub(crate) struct RunLog {
    shared: Arc<Shared>,
    tenant: stepwell_core::id::TenantName,
    run: stepwell_core::id::RunId,
}

impl RunLog {
    fn of(state: &RunState) -> Self {
        Self {
            shared: Arc::clone(&state.shared),
            tenant: state.claim.tenant.clone(),
            run: state.claim.run,
        }
    }
}

impl LogSink for RunLog {
    fn log(&mut self, level: LogLevel, message: String, fields: Vec<(String, String)>) {
        let level = match level {
            LogLevel::Trace => stepwell_store::LogLevel::Trace,
            LogLevel::Debug => stepwell_store::LogLevel::Debug,
            LogLevel::Info => stepwell_store::LogLevel::Info,
            LogLevel::Warn => stepwell_store::LogLevel::Warn,
            LogLevel::Error => stepwell_store::LogLevel::Error,
        };
        let at = self.shared.now();
        let (tenant, run) = (self.tenant.clone(), self.run);
        self.shared.logs.write(LogLine {
            tenant,
            run,
            at,
            level,
            message,
            fields,
        });
    }
}

/// The start of a text, at most so many bytes, cut between characters.
pub(crate) fn clip(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        let end = (0..=bytes_max)
            .rev()
            .find(|index| text.is_char_boundary(*index))
            .unwrap_or(0);
        text.truncate(end);
    }
    text
}

/// A random draw for a backoff: 0.0 up to but not including 1.0.
pub(crate) fn draw() -> f64 {
    rand::random()
}
