//! A guest played from a list, a host that drives it as the engine does, and a world outside that
//! is a function of a seed and the journal's length: so whoever goes on from a journal meets the
//! same world as whoever wrote it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ms;
use crate::id::{EventId, Operation};
use crate::journal::{Entry, EventMessage, Opening, OperationKind, Record, Wake};
use crate::payload::{Failure, Payload};
use crate::replay::{
    Ask, AttemptAnswer, Begin, Choice, Error, Mail, Replay, SelectAnswer, StepAnswer, StepAsk,
};
use crate::retry::{AttemptEnd, Backoff, Options, Policy};
use crate::time::Timestamp;

/// One thing that a guest does. Numbers are cut to what makes sense.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Step {
        name: u8,
        rules: u8,
        is_nonsense: bool,
    },
    Sleep {
        name: u8,
        duration_ms: u16,
    },
    Wait {
        name: u8,
        timeout_ms: Option<u16>,
    },
    Task {
        name: u8,
        rules: u8,
    },
    Publish {
        key: u8,
        is_too_large: bool,
    },
    Reply {
        event: u8,
    },
    Withdraw {
        which: u8,
    },
    /// Over those held operations whose bit is set.
    Select {
        mask: u8,
    },
}

/// What has come of a run so far.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    pub(super) journal: Vec<Entry>,
    /// What the guest's newest instance was told, and how long the journal was after that.
    pub(super) told: Vec<(String, usize)>,
    pub(super) exit: Option<Exit>,
    /// Bodies that began to run, by step.
    pub(super) begun: BTreeMap<Operation, u32>,
    pub(super) rules: BTreeMap<Operation, Options>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Exit {
    /// The guest came to its end.
    Ended,
    /// It waits for what never comes, or was stopped for taking too long.
    Waits,
    /// It was told that it has no place in this journal.
    Refused(Error),
}

/// Drives a guest from a journal to its end, through traps and up to `deaths` deaths of the host.
pub(super) fn live(acts: &[Act], seed: u64, journal: Vec<Entry>, deaths: u32) -> History {
    let mut history = History {
        journal,
        ..History::default()
    };
    let mut host_lost = false;
    let mut deaths_left = deaths;
    loop {
        let before = std::mem::take(&mut history.told);
        let mut host = Host {
            replay: Replay::load(history.journal.clone(), ms(1)),
            durable: history.journal.len(),
            history,
            outside: Outside { seed },
            host_lost,
            deaths_left,
            tasks: BTreeMap::new(),
        };
        let stop = Guest::new(acts).run(&mut host);
        let durable = host.durable;
        history = host.history;
        let agrees = before
            .iter()
            .zip(&history.told)
            .all(|(one, other)| one.0 == other.0);
        assert!(
            agrees,
            "told otherwise on a replay: {before:?} then {:?}",
            history.told
        );
        history.exit = Some(match stop {
            Ok(()) => Exit::Ended,
            Err(Stop::Waits) => Exit::Waits,
            Err(Stop::Refused(error)) => Exit::Refused(error),
            Err(Stop::Trapped) => {
                host_lost = false;
                continue;
            }
            Err(Stop::Died) => {
                history.journal.truncate(durable);
                history.told.retain(|(_, length)| *length <= durable);
                host_lost = true;
                deaths_left -= 1;
                continue;
            }
        });
        return history;
    }
}

/// Why a guest's instance is dropped.
enum Stop {
    Waits,
    Trapped,
    Died,
    Refused(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

// ---- The world outside.

#[derive(Debug, Clone, Copy)]
struct Outside {
    seed: u64,
}

impl Outside {
    /// A draw that is always the same at the same length of the journal.
    fn draw(self, length: usize, what: u64) -> u64 {
        let mut mixed =
            self.seed ^ (length as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (what << 32);
        for _ in 0..3 {
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed ^= mixed >> 27;
        }
        mixed
    }

    /// A clock that goes on while a guest waits, and now and then jumps.
    fn now(self, length: usize, tick: u64) -> Timestamp {
        let jump = self.draw(length, 1_000 + tick) % 5_000;
        let time = 10_000 + length as u64 * 100 + tick * tick * 10;
        ms(match jump % 7 {
            0 => time - jump,
            1 => time + jump,
            _ => time,
        })
    }

    fn is_cancelled(self, length: usize) -> bool {
        let at = self.draw(0, 1) % 60;
        length as u64 >= at && at < 30
    }

    /// Events as `(id, name, at)`, the oldest first; the last ones come only to whoever waits.
    fn mailbox(self, length: usize, tick: u64) -> Vec<(EventId, String, Timestamp)> {
        let come = (length / 3) as u64 + tick / 10;
        let event = |id: u64| {
            let name = format!("n{}", self.draw(0, 100 + id) % 3);
            (EventId(id), name, ms(10_000 + id * 300))
        };
        (1..=come.min(6)).map(event).collect()
    }

    fn body(self, length: usize) -> Result<Payload, (AttemptEnd, Failure)> {
        let draw = self.draw(length, 2);
        let flaky = Failure::retryable("flaky", "");
        match draw % 8 {
            0 => Err((AttemptEnd::Trapped, flaky)),
            1 => Err((AttemptEnd::TimedOut, flaky)),
            2 | 3 => Err((AttemptEnd::Failed, flaky)),
            4 => Err((AttemptEnd::Failed, Failure::permanent("no", ""))),
            _ => Ok(Payload::Json(draw.to_string())),
        }
    }

    /// Between 0.0 and 1.0.
    fn fraction(self, length: usize) -> f64 {
        f64::from(u32::try_from(self.draw(length, 3) >> 32).unwrap()) / 4_294_967_296.0
    }
}

// ---- The host, which does what the engine does.

struct Host {
    replay: Replay,
    history: History,
    outside: Outside,
    host_lost: bool,
    deaths_left: u32,
    /// How much of the journal would survive the host.
    durable: usize,
    /// The tasks that the guest has asked for.
    tasks: BTreeMap<Operation, Options>,
}

impl Host {
    fn length(&self) -> usize {
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
        if let Some(last) = self.history.journal.last() {
            assert!(entry.at >= last.at || self.history.journal.is_sorted_by_key(|entry| entry.at));
        }
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

    fn step(&mut self, name: &str, rules: u8, is_nonsense: bool) -> Result<StepAnswer, Stop> {
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

    fn retry_step(&mut self, step: Operation, rules: u8) -> Result<StepAnswer, Stop> {
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

    fn open(
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

    fn immediate(
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

    fn select(&mut self, among: &[Operation]) -> Result<SelectAnswer, Stop> {
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

fn rules_of(rules: u8) -> Options {
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

// ---- The guest.

/// Does what its list says, and lets what it is told change what it does: whoever is told
/// something else asks for something else, and is found out.
struct Guest<'a> {
    acts: &'a [Act],
    /// Of all that it was told.
    digest: u64,
    /// What it may select, and the rules of what is a step in its backoff.
    held: Vec<(Operation, Option<u8>)>,
}

impl<'a> Guest<'a> {
    fn new(acts: &'a [Act]) -> Self {
        Self {
            acts,
            digest: 0,
            held: Vec::new(),
        }
    }

    fn run(&mut self, host: &mut Host) -> Result<(), Stop> {
        for act in self.acts {
            self.act(act, host)?;
        }
        while !self.held.is_empty() {
            self.select(u8::MAX, host)?;
        }
        host.replay.end().map_err(Error::from)?;
        Ok(())
    }

    fn hear(&mut self, call: &str, answer: &dyn std::fmt::Debug, host: &mut Host) {
        let told = format!("{call} => {answer:?} at {}", host.replay.now().as_ms());
        for byte in told.bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        host.history.told.push((told, host.length()));
    }

    fn act(&mut self, act: &Act, host: &mut Host) -> Result<(), Stop> {
        // So small a pool of names that repetitions are common.
        let shift = self.digest % 2;
        let name = |number: u8| format!("n{}", (u64::from(number) + shift) % 3);
        match *act {
            Act::Step {
                name: number,
                rules,
                is_nonsense,
            } => {
                let name = name(number);
                let answer = host.step(&name, rules, is_nonsense)?;
                self.hear_step(&name, rules, &answer, host);
            }
            Act::Sleep {
                name: number,
                duration_ms,
            } => {
                let asked = host.open(OperationKind::Sleep, &name(number), None, |now| {
                    let due = now.after(Duration::from_millis(duration_ms.into()));
                    (duration_ms <= 5_000).then_some(Opening::Sleep { due })
                })?;
                self.hold("sleep", asked, host);
            }
            Act::Wait {
                name: number,
                timeout_ms,
            } => {
                let asked = host.open(OperationKind::Wait, &name(number), None, |now| {
                    let timeout_at =
                        timeout_ms.map(|ms| now.after(Duration::from_millis(ms.into())));
                    Some(Opening::Wait { timeout_at })
                })?;
                self.hold("wait", asked, host);
            }
            Act::Task {
                name: number,
                rules,
            } => {
                let input_digest = [rules; 32];
                let (kind, digest) = (OperationKind::Task, Some(input_digest));
                let opening = |_| Some(Opening::Task { input_digest });
                let asked = host.open(kind, &name(number), digest, opening)?;
                if let Ok(operation) = asked {
                    host.tasks.insert(operation, rules_of(rules));
                }
                self.hold("task", asked, host);
            }
            Act::Publish { key, is_too_large } => {
                let key = name(key);
                let answer = host.immediate(OperationKind::Publish, &key, |operation| {
                    let value = Payload::null();
                    (!is_too_large).then_some(Record::Published {
                        operation,
                        key: key.clone(),
                        value,
                    })
                })?;
                self.hear("publish", &answer, host);
            }
            Act::Reply { event } => {
                let event = EventId(u64::from(event % 3));
                let answer =
                    host.immediate(OperationKind::Reply, &event.to_string(), |operation| {
                        let answer = Ok(Payload::null());
                        (event.0 > 0).then_some(Record::Replied {
                            operation,
                            event,
                            answer,
                        })
                    })?;
                self.hear("reply", &answer, host);
            }
            Act::Withdraw { which } => {
                if !self.held.is_empty() {
                    let (operation, _) = self.held.remove(usize::from(which) % self.held.len());
                    host.replay.withdraw(operation)?;
                    host.tasks.remove(&operation);
                    self.hear("withdraw", &operation, host);
                }
            }
            Act::Select { mask } => self.select(mask, host)?,
        }
        Ok(())
    }

    fn select(&mut self, mask: u8, host: &mut Host) -> Result<(), Stop> {
        let bits = |index: usize| mask == u8::MAX || mask & (1 << (index % 8)) != 0;
        let among = self
            .held
            .iter()
            .enumerate()
            .filter(|(index, _)| bits(*index));
        let among: Vec<_> = among.map(|(_, (operation, _))| *operation).collect();
        if among.is_empty() {
            return Ok(());
        }
        let answer = host.select(&among)?;
        self.hear("select", &answer, host);
        let operation = match answer {
            SelectAnswer::Slept(operation, _)
            | SelectAnswer::Event(operation, _)
            | SelectAnswer::TimedOut(operation)
            | SelectAnswer::Task(operation, _) => operation,
            SelectAnswer::Cancelled(_) => return Ok(()),
        };
        let index = self.held.iter().position(|(held, _)| *held == operation);
        let (_, rules) = self
            .held
            .remove(index.expect("an answer is to what was asked"));
        if let Some(rules) = rules {
            self.retry(operation, rules, host)?;
        }
        Ok(())
    }

    fn retry(&mut self, step: Operation, rules: u8, host: &mut Host) -> Result<(), Stop> {
        let answer = host.retry_step(step, rules)?;
        self.hear_step("retry", rules, &answer, host);
        // Clean-up goes on with the step that the cancel was told instead of.
        if let StepAnswer::Cancelled(_) = answer {
            self.retry(step, rules, host)?;
        }
        Ok(())
    }

    fn hear_step(&mut self, call: &str, rules: u8, answer: &StepAnswer, host: &mut Host) {
        self.hear(call, answer, host);
        if let StepAnswer::Backoff(operation) = answer {
            self.held.push((*operation, Some(rules)));
        }
    }

    fn hold(&mut self, call: &str, asked: Result<Operation, Failure>, host: &mut Host) {
        self.hear(call, &asked, host);
        if let Ok(operation) = asked {
            self.held.push((operation, None));
        }
    }
}
