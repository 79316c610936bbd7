//! A host that does about each call what the engine does.

use std::collections::BTreeMap;
use std::time::Duration;

use super::outside::Outside;
use super::{History, Stop};
use crate::id::{EventId, Operation};
use crate::journal::{Entry, EventMessage, Opening, OperationKind, Record, Wake};
use crate::payload::{Failure, Payload};
use crate::replay::{
    Ask, AttemptAnswer, Begin, Choice, Mail, Replay, SelectAnswer, StepAnswer, StepAsk,
};
use crate::retry::{AttemptEnd, Backoff, Options, Policy};
use crate::time::Timestamp;

pub(super) struct Host {
    pub(super) replay: Replay,
    pub(super) history: History,
    pub(super) outside: Outside,
    pub(super) host_lost: bool,
    pub(super) deaths_left: u32,
    /// How much of the journal would survive the host.
    pub(super) durable: usize,
    /// The tasks that the guest has asked for.
    pub(super) tasks: BTreeMap<Operation, Options>,
}

impl Host {
    pub(super) fn length(&self) -> usize {
        self.history.journal.len()
    }

    fn now(&self) -> Timestamp {
        self.outside.now(self.length(), 0)
    }

    fn push(&mut self, entry: Entry) {
        assert!(
            !self.replay.is_replaying(),
            "nothing is performed on a replay"
        );
        let last = self.history.journal.last();
        assert!(last.is_none_or(|last| last.at <= entry.at));
        self.history.journal.push(entry);
    }

    fn record(&mut self, record: Record, now: Timestamp) {
        let entry = self.replay.record(record, now);
        self.push(entry);
    }

    /// A guest's call may be the last thing that a host lives to see.
    fn call(&mut self) -> Result<(), Stop> {
        if self.length() > 300 || self.history.told.len() > 300 {
            return Err(Stop::Waits);
        }
        self.die(4)
    }

    fn die(&self, what: u64) -> Result<(), Stop> {
        let draw = self
            .outside
            .draw(self.length(), what + u64::from(self.deaths_left) * 10);
        if self.deaths_left > 0 && draw.is_multiple_of(6) {
            return Err(Stop::Died);
        }
        Ok(())
    }

    pub(super) fn step(
        &mut self,
        name: &str,
        rules: u8,
        is_nonsense: bool,
    ) -> Result<StepAnswer, Stop> {
        self.call()?;
        let options = rules_of(rules);
        let mut asked = self.replay.step(name)?;
        while asked == StepAsk::New
            && !self.replay.is_attempt_lost(None, options, self.host_lost)
            && self.look()
        {
            asked = self.replay.step(name)?;
        }
        let step = match asked {
            StepAsk::Recorded(answer) => return Ok(answer),
            StepAsk::Attempt(step) => step,
            StepAsk::New if is_nonsense => {
                self.host_lost = false;
                let cause = Failure::permanent("nonsense", "");
                let now = self.now();
                let (entry, error) = self.replay.refuse_step(name, cause, now);
                self.push(entry);
                return Ok(StepAnswer::Failed(error));
            }
            StepAsk::New => self.replay.open_step(name),
        };
        self.attempt(step, options)
    }

    pub(super) fn retry_step(&mut self, step: Operation, rules: u8) -> Result<StepAnswer, Stop> {
        self.call()?;
        let options = rules_of(rules);
        let mut asked = self.replay.retry_step(step)?;
        while let StepAsk::Attempt(_) = asked
            && !self
                .replay
                .is_attempt_lost(Some(step), options, self.host_lost)
            && self.look()
        {
            asked = self.replay.retry_step(step)?;
        }
        match asked {
            StepAsk::Recorded(answer) => Ok(answer),
            StepAsk::Attempt(step) => self.attempt(step, options),
            StepAsk::New => unreachable!("a step to retry has been opened"),
        }
    }

    fn attempt(&mut self, step: Operation, options: Options) -> Result<StepAnswer, Stop> {
        let host_lost = std::mem::take(&mut self.host_lost);
        let now = self.now();
        self.history.rules.insert(step, options);
        match self.replay.begin_attempt(step, options, now, host_lost) {
            Begin::Attempt { started, .. } => {
                started.into_iter().for_each(|entry| self.push(entry));
            }
            Begin::Lost { entry, answer } => {
                self.push(entry);
                return Ok(step_answer(answer));
            }
        }
        self.durable = self.length();
        *self.history.begun.entry(step).or_default() += 1;
        self.die(5)?;
        let now = self.now();
        match self.outside.body(self.length()) {
            Ok(output) => {
                let entry = self.replay.complete_attempt(output.clone(), now);
                self.push(entry);
                Ok(StepAnswer::Completed(output))
            }
            Err((end, cause)) => {
                let draw = self.outside.fraction(self.length());
                let (entry, answer) = self.replay.end_attempt(end, cause, now, draw);
                self.push(entry);
                match end {
                    AttemptEnd::Trapped | AttemptEnd::TimedOut => Err(Stop::Trapped),
                    AttemptEnd::Failed
                    | AttemptEnd::HostLost
                    | AttemptEnd::LimitExceeded
                    | AttemptEnd::Cancelled => Ok(step_answer(answer)),
                }
            }
        }
    }

    pub(super) fn open(
        &mut self,
        kind: OperationKind,
        name: &str,
        digest: Option<[u8; 32]>,
        opening: impl FnOnce(Timestamp) -> Option<Opening>,
    ) -> Result<Result<Operation, Failure>, Stop> {
        self.call()?;
        if let Ask::Recorded(answer) = self.replay.open(kind, name, digest)? {
            return Ok(answer);
        }
        self.host_lost = false;
        let now = self.now();
        let operation = self.replay.next_operation();
        let name = name.to_owned();
        let record = match opening(now) {
            Some(opening) => Record::Opened {
                operation,
                name: name.clone(),
                opening,
            },
            None => refused(operation, kind, &name),
        };
        self.record(record, now);
        match self.replay.open(kind, &name, digest)? {
            Ask::Recorded(answer) => Ok(answer),
            Ask::New => unreachable!("it has just been recorded"),
        }
    }

    pub(super) fn immediate(
        &mut self,
        kind: OperationKind,
        name: &str,
        record: impl FnOnce(Operation) -> Option<Record>,
    ) -> Result<Result<(), Failure>, Stop> {
        self.call()?;
        if let Ask::Recorded(answer) = self.replay.immediate(kind, name)? {
            return Ok(answer);
        }
        self.host_lost = false;
        let operation = self.replay.next_operation();
        let record = record(operation).unwrap_or_else(|| refused(operation, kind, name));
        let now = self.now();
        self.record(record, now);
        match self.replay.immediate(kind, name)? {
            Ask::Recorded(answer) => Ok(answer),
            Ask::New => unreachable!("it has just been recorded"),
        }
    }

    pub(super) fn select(&mut self, among: &[Operation]) -> Result<SelectAnswer, Stop> {
        self.call()?;
        let mut tick = 0;
        loop {
            if let Ask::Recorded(answer) = self.replay.select(among)? {
                return Ok(answer);
            }
            self.host_lost = false;
            let length = self.length();
            if self.look() || self.move_a_task(tick) || self.choose(among, tick) {
                tick = 0;
                continue;
            }
            assert_eq!(self.length(), length);
            self.durable = length;
            self.die(6)?;
            tick += 1;
            if tick > 200 {
                return Err(Stop::Waits);
            }
        }
    }

    /// Takes in one thing that has come from outside, if there is one: the guest is asked about
    /// after each, since whoever goes on from a journal that ends here asks then as well.
    fn look(&mut self) -> bool {
        let length = self.length();
        if self.outside.is_cancelled(length) && !self.replay.is_cancelled() {
            let now = self.now();
            let reason = "enough".to_owned();
            let grace_until = now.after(Duration::from_secs(30));
            self.record(
                Record::CancelDelivered {
                    reason,
                    grace_until,
                },
                now,
            );
            return true;
        }
        self.outside.draw(length, 7).is_multiple_of(4) && self.end_a_task(0)
    }

    /// Ends a running task, or starts one that may start.
    fn move_a_task(&mut self, tick: u64) -> bool {
        let now = self.outside.now(self.length(), tick);
        let is_end_due = (self.outside.draw(self.length(), 8) + tick).is_multiple_of(4);
        if is_end_due && self.end_a_task(tick) {
            return true;
        }
        let may_start = |operation: &Operation| {
            let task = self.replay.task(*operation);
            task.is_some_and(|task| !task.started && task.retry_at.is_none_or(|at| at <= now))
        };
        let Some(operation) = self.tasks.keys().copied().find(may_start) else {
            return false;
        };
        let options = self.tasks[&operation];
        let (entry, _) = self.replay.begin_task_attempt(operation, options, now);
        self.push(entry);
        self.durable = self.length();
        self.history.rules.insert(operation, options);
        true
    }

    fn end_a_task(&mut self, tick: u64) -> bool {
        let lost = |(operation, options): (&Operation, &Options)| {
            self.replay.lost_task_attempt(*operation, *options)
        };
        let Some(attempt) = self.tasks.iter().find_map(lost) else {
            return false;
        };
        let length = self.length();
        let (now, draw) = (
            self.outside.now(length, tick),
            self.outside.fraction(length),
        );
        let outcome = self.outside.body(length);
        let entry = self.replay.end_task_attempt(attempt, outcome, now, draw);
        self.push(entry.expect("an attempt that has started can end"));
        true
    }

    fn choose(&mut self, among: &[Operation], tick: u64) -> bool {
        let length = self.length();
        let now = self.outside.now(length, tick);
        let is_woken = self.outside.draw(length, 500 + tick).is_multiple_of(29);
        let mut mailbox = self.outside.mailbox(length, tick);
        let taken = |id: EventId| {
            let journal = self.history.journal.iter();
            let mut events = journal.filter_map(|entry| match &entry.record {
                Record::EventTaken { event, .. } => Some(event.id),
                _ => None,
            });
            events.any(|taken| taken == id)
        };
        mailbox.retain(|(id, _, _)| !taken(*id));
        let mails = mailbox.iter().map(|(id, name, at)| Mail {
            id: *id,
            name,
            at: *at,
        });
        let Some(choice) = self
            .replay
            .choose(among, now, mails, is_woken.then_some(now))
        else {
            return false;
        };
        let record = match choice {
            Choice::Elapsed(operation) => Record::Slept {
                operation,
                wake: Wake::Elapsed,
            },
            Choice::Woken(operation) => Record::Slept {
                operation,
                wake: Wake::Woken,
            },
            Choice::TimedOut(operation) => Record::TimedOut { operation },
            Choice::BackoffOver(operation) => Record::BackoffOver { operation },
            Choice::Event(operation, id) => {
                let event = EventMessage {
                    id,
                    payload: Payload::null(),
                    sent_at: now,
                };
                Record::EventTaken { operation, event }
            }
        };
        self.record(record, now);
        true
    }
}

fn refused(operation: Operation, kind: OperationKind, name: &str) -> Record {
    Record::Refused {
        operation,
        kind,
        name: name.to_owned(),
        failure: Failure::permanent("no", "not like this"),
    }
}

fn step_answer(answer: AttemptAnswer) -> StepAnswer {
    match answer {
        AttemptAnswer::Completed => StepAnswer::Completed(Payload::null()),
        AttemptAnswer::Backoff(operation) => StepAnswer::Backoff(operation),
        AttemptAnswer::Failed(error) => StepAnswer::Failed(error),
    }
}

pub(super) fn rules_of(rules: u8) -> Options {
    let (attempts_max, delay_ms, backoff, deadline_ms) = [
        (3, 50, Backoff::Exponential, None),
        (1, 50, Backoff::Constant, None),
        (2, 70, Backoff::Linear, Some(400)),
        (5, 0, Backoff::Constant, None),
    ][usize::from(rules % 4)];
    Options {
        policy: Policy {
            attempts_max,
            delay: Duration::from_millis(delay_ms),
            backoff,
            ..Policy::default()
        },
        deadline: deadline_ms.map(Duration::from_millis),
        ..Options::default()
    }
}
