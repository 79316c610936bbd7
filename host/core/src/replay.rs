//! Matching what a guest asks to what its journal has: answer from it, perform it, or diverge.
//!
//! [`Replay`] is the fold of one run's journal and the guest's place in it. The engine asks it
//! first about every call of the guest:
//!
//! - *recorded*: the journal has the answer, and the guest gets just that;
//! - *new*: the journal ends here. The engine performs the operation and hands every record it
//!   makes to [`Replay::record`], which folds it as loading does. So what a guest is told live and
//!   what it is told on a replay come out of the same code;
//! - *diverged*: the journal has something else at this place. Nothing may be performed.
//!
//! An answer is chosen by its place in the journal, never by what is known now: answers are only
//! ever appended, so the choice of a `select` needs no entry of its own.
//!
//! Replay is a cursor: linear in the journal, never a search from its start.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use crate::id::{EventId, Operation, Sequence};
use crate::journal::{Entry, EventMessage, Opening, OperationKind, Record, Wake};
use crate::payload::{Failure, Payload};
use crate::retry::{AttemptEnd, Ended, Next, Options, StepError};
use crate::time::Timestamp;

/// What the journal says about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask<T> {
    /// The answer.
    Recorded(T),
    /// Nothing: the guest is at the end of its journal.
    New,
}

/// Why a call cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The journal was written by other code.
    #[error(transparent)]
    Diverged(#[from] Diverged),
    /// The guest broke the contract.
    #[error("{0}")]
    Misuse(String),
}

/// The first place where a guest does something else than its journal has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("operation {operation}: this code asks for {asked}, but the journal has {recorded}")]
pub struct Diverged {
    /// The place, in program order.
    pub operation: Operation,
    /// What the guest did.
    pub asked: Found,
    /// What the journal has there.
    pub recorded: Found,
}

/// Something found at a place in program order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// An operation.
    Operation {
        /// Its kind.
        kind: OperationKind,
        /// Its name.
        name: String,
    },
    /// A task of the same name with another input, shown by the start of its digest.
    TaskInput {
        /// The task.
        name: String,
        /// Hexadecimal.
        digest_start: String,
    },
    /// A wait for operations that the journal has no answer to.
    Select,
    /// The workflow's end.
    End,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation { kind, name } => write!(f, "{kind} `{name}`"),
            Self::TaskInput { name, digest_start } => {
                write!(f, "task `{name}` with input sha256:{digest_start}…")
            }
            Self::Select => f.write_str("a wait for earlier operations"),
            Self::End => f.write_str("the end of the workflow"),
        }
    }
}

/// What the journal says about a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepAsk {
    /// The answer.
    Recorded(StepAnswer),
    /// Nothing, not even its first attempt: [`Replay::open_step`] opens it.
    New,
    /// It is open, and its next attempt is to begin, or was lost: [`Replay::begin_attempt`] tells.
    Attempt(Operation),
}

/// What the guest is told about a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepAnswer {
    /// Wait for this operation, then ask again.
    Backoff(Operation),
    /// Its result.
    Completed(Payload),
    /// Given up.
    Failed(StepError),
    /// The run is to stop, for this reason.
    Cancelled(String),
}

/// What the guest is told about an attempt that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptAnswer {
    /// The step has its result.
    Completed,
    /// Wait for this operation, then ask again.
    Backoff(Operation),
    /// Given up.
    Failed(StepError),
}

/// What `select` answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectAnswer {
    /// A sleep or a backoff ended.
    Slept(Operation, Wake),
    /// A wait took an event.
    Event(Operation, EventMessage),
    /// A wait's timeout passed.
    TimedOut(Operation),
    /// A task ended.
    Task(Operation, Result<Payload, StepError>),
    /// The run is to stop, for this reason.
    Cancelled(String),
}

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

/// An attempt of a step whose body is running.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunningAttempt {
    /// The step.
    pub operation: Operation,
    /// From 1.
    pub number: u32,
    /// The rules it runs under.
    pub options: Options,
    /// When all attempts must be over.
    pub deadline_at: Option<Timestamp>,
}

/// Whether an attempt may begin.
#[derive(Debug, Clone, PartialEq)]
pub enum Begin {
    /// Yes.
    Attempt {
        /// The attempt.
        attempt: RunningAttempt,
        /// To be durable before the body runs, if there is one.
        started: Option<Entry>,
    },
    /// No: the one before was lost with its host. It counts; this ends it.
    Lost {
        /// To append.
        entry: Entry,
        /// What the guest is told.
        answer: AttemptAnswer,
    },
}

/// The fold of a journal and the guest's place in it.
#[derive(Debug)]
pub struct Replay {
    /// Operations that the journal has and the guest has not asked for yet, in order; the first has
    /// the number `next`.
    ahead: VecDeque<Recorded>,
    /// Operations asked for and not yet answered.
    open: BTreeMap<Operation, Open>,
    /// The number of the operation asked for next.
    next: u32,
    /// How often each step name has occurred.
    step_names: BTreeMap<String, u32>,
    /// Workflow time.
    now: Timestamp,
    /// The time of the newest entry, which no later one precedes.
    newest_at: Timestamp,
    length: Sequence,
    cancel: Cancel,
    attempt: Option<RunningAttempt>,
    /// Whether the guest has got past the end of what was loaded.
    live: bool,
}

#[derive(Debug)]
struct Recorded {
    position: Sequence,
    at: Timestamp,
    open: Open,
    refused: Option<Failure>,
}

/// An operation that has been asked for and not yet answered.
#[derive(Debug)]
struct Open {
    kind: OperationKind,
    name: String,
    waits: Waits,
    attempts: Attempts,
    /// Recorded, and not yet told to the guest, in order.
    facts: VecDeque<Fact>,
}

#[derive(Debug)]
struct Fact {
    position: Sequence,
    at: Timestamp,
    record: Record,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Waits {
    /// A step whose body is to run, or an operation that is answered at once.
    Nothing,
    Sleep(Timestamp),
    Event(Option<Timestamp>),
    Task([u8; 32]),
    /// A step between two attempts.
    Backoff(Timestamp),
}

/// The attempts of a step or task, as far as the journal tells.
#[derive(Debug, Clone, Copy, Default)]
struct Attempts {
    ended: u32,
    /// The attempt after those that ended is recorded as started.
    started: bool,
    retry_at: Option<Timestamp>,
    deadline_at: Option<Timestamp>,
}

#[derive(Debug)]
enum Cancel {
    None,
    Recorded {
        position: Sequence,
        at: Timestamp,
        reason: String,
        grace_until: Timestamp,
    },
    Delivered {
        grace_until: Timestamp,
    },
}

/// What is known of an open task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskProgress {
    /// Whether the journal has an attempt that started and did not end.
    pub started: bool,
    /// When the next attempt may begin, if it must wait.
    pub retry_at: Option<Timestamp>,
}

impl Replay {
    /// Folds a journal. `started_at` is workflow time before its first entry.
    pub fn load(entries: Vec<Entry>, started_at: Timestamp) -> Self {
        let mut replay = Self {
            ahead: VecDeque::new(),
            open: BTreeMap::new(),
            next: 0,
            step_names: BTreeMap::new(),
            now: started_at,
            newest_at: started_at,
            length: Sequence(0),
            cancel: Cancel::None,
            attempt: None,
            live: entries.is_empty(),
        };
        for entry in entries {
            replay.fold(entry);
        }
        replay
    }

    /// Workflow time: the time of the newest entry that the guest has seen.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Whether the guest still repeats what was loaded.
    pub fn is_replaying(&self) -> bool {
        !self.live
    }

    /// Entries in the journal, those recorded since loading included.
    pub fn length(&self) -> Sequence {
        self.length
    }

    /// Operations asked for and not yet answered.
    pub fn open_operations(&self) -> usize {
        self.open.len()
    }

    /// The number of the next operation.
    pub fn next_operation(&self) -> Operation {
        Operation(self.next)
    }

    /// The attempt whose body is running, if one is.
    pub fn running_attempt(&self) -> Option<RunningAttempt> {
        self.attempt
    }

    /// When the clean-up after a cancel is stopped, if the guest has been told of one.
    pub fn grace_until(&self) -> Option<Timestamp> {
        match self.cancel {
            Cancel::Delivered { grace_until } | Cancel::Recorded { grace_until, .. } => {
                Some(grace_until)
            }
            Cancel::None => None,
        }
    }

    /// Whether the journal says that the run is to stop.
    pub fn is_cancelled(&self) -> bool {
        self.grace_until().is_some()
    }

    // ---- Recording.

    /// Folds a new record, made at `now`, and returns the entry to append. Times never go back,
    /// whatever the clock does.
    pub fn record(&mut self, record: Record, now: Timestamp) -> Entry {
        debug_assert!(
            self.ahead.is_empty(),
            "nothing is recorded while the journal has more to tell"
        );
        self.live = true;
        let entry = Entry {
            at: now.max(self.newest_at),
            record,
        };
        self.fold(entry.clone());
        entry
    }

    fn fold(&mut self, entry: Entry) {
        let Entry { at, record } = entry;
        let position = self.length;
        self.length = position.plus(1);
        self.newest_at = self.newest_at.max(at);
        let Some(operation) = record.operation() else {
            match record {
                Record::CancelDelivered {
                    reason,
                    grace_until,
                } => {
                    self.cancel = Cancel::Recorded {
                        position,
                        at,
                        reason,
                        grace_until,
                    };
                }
                // The last entry of a journal; nobody replays past it.
                _ => debug_assert!(matches!(record, Record::Ended(_))),
            }
            return;
        };
        let fact = Fact {
            position,
            at,
            record,
        };
        if let Some(open) = self.open.get_mut(&operation) {
            open.learn(fact);
            return;
        }
        let Some(index) = operation.0.checked_sub(self.next) else {
            // Answered or withdrawn before, such as a task that ended after its withdrawal.
            return;
        };
        if let Some(recorded) = self.ahead.get_mut(index as usize) {
            recorded.open.learn(fact);
            return;
        }
        self.ahead.push_back(Recorded::first(fact));
    }

    // ---- Operations.

    /// Asks about a step by name. [`StepAsk::New`] takes no number yet, so that a cancel may still
    /// come first.
    ///
    /// # Errors
    /// [`Error::Diverged`].
    pub fn step(&mut self, name: &str) -> Result<StepAsk, Error> {
        if let Some(reason) =
            self.cancelled_before(self.ahead.front().map(|recorded| recorded.position))
        {
            return Ok(StepAsk::Recorded(StepAnswer::Cancelled(reason)));
        }
        let label = self.step_label(name);
        let Some(recorded) = self.take_recorded(OperationKind::Step, &label, None)? else {
            return Ok(StepAsk::New);
        };
        self.count_step(name);
        let operation = self.open_recorded(recorded.open);
        Ok(self.continue_step(operation))
    }

    /// Opens the step that [`Replay::step`] found to be new.
    pub fn open_step(&mut self, name: &str) -> Operation {
        let label = self.step_label(name);
        self.count_step(name);
        self.live = true;
        self.open_recorded(Open::new(OperationKind::Step, label, Waits::Nothing))
    }

    /// Asks again about a step whose backoff is over.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it is not such a step.
    pub fn retry_step(&mut self, operation: Operation) -> Result<StepAsk, Error> {
        let open = self
            .open
            .get(&operation)
            .filter(|open| open.kind == OperationKind::Step);
        let Some(open) = open.filter(|open| open.waits == Waits::Nothing) else {
            return Err(Error::Misuse(format!(
                "retry-step was called with {operation}, which is not a step whose backoff is over"
            )));
        };
        let next = open.facts.front().map(|fact| fact.position);
        if let Some(reason) = self.cancelled_before(next) {
            return Ok(StepAsk::Recorded(StepAnswer::Cancelled(reason)));
        }
        Ok(self.continue_step(operation))
    }

    /// Gives up a step before its first attempt, since what was asked for makes no sense.
    pub fn refuse_step(
        &mut self,
        name: &str,
        cause: Failure,
        now: Timestamp,
    ) -> (Entry, StepError) {
        let operation = self.open_step(name);
        let open = self.open.remove(&operation).expect("it was just opened");
        let error = StepError {
            step: open.name,
            attempts: 0,
            end: AttemptEnd::Failed,
            cause,
        };
        (
            self.tell(
                Record::StepFailed {
                    operation,
                    error: error.clone(),
                },
                now,
            ),
            error,
        )
    }

    /// Whether the next attempt of an open step (`None` for a new one) must first be ended as lost.
    pub fn is_attempt_lost(
        &self,
        operation: Option<Operation>,
        options: Options,
        host_lost: bool,
    ) -> bool {
        let attempts = operation
            .and_then(|operation| self.open.get(&operation))
            .map(|open| open.attempts);
        let attempts = attempts.unwrap_or_default();
        attempts.started || (host_lost && attempts.ended + 1 < options.policy.attempts_max)
    }

    fn continue_step(&mut self, operation: Operation) -> StepAsk {
        let open = self
            .open
            .get_mut(&operation)
            .expect("the caller has just opened or found it");
        let Some(fact) = open.facts.pop_front() else {
            // Where the journal knows of a start and no more, the attempt is for the engine to end.
            self.live = true;
            return StepAsk::Attempt(operation);
        };
        self.now = self.now.max(fact.at);
        match fact.record {
            Record::AttemptEnded { retry_at, .. } => {
                open.waits = Waits::Backoff(retry_at);
                StepAsk::Recorded(StepAnswer::Backoff(operation))
            }
            Record::StepCompleted { output, .. } => {
                self.open.remove(&operation);
                StepAsk::Recorded(StepAnswer::Completed(output))
            }
            Record::StepFailed { error, .. } => {
                self.open.remove(&operation);
                StepAsk::Recorded(StepAnswer::Failed(error))
            }
            other => unreachable!("a step's facts are its attempts' ends: {other:?}"),
        }
    }

    /// Asks about a sleep, a wait or a task; the digest is that of a task's input.
    ///
    /// On [`Ask::New`] the engine records [`Record::Opened`] or [`Record::Refused`] with
    /// [`Replay::next_operation`], and asks once more.
    ///
    /// # Errors
    /// [`Error::Diverged`].
    pub fn open(
        &mut self,
        kind: OperationKind,
        name: &str,
        digest: Option<[u8; 32]>,
    ) -> Result<Ask<Result<Operation, Failure>>, Error> {
        let Some(recorded) = self.take_recorded(kind, name, digest)? else {
            return Ok(Ask::New);
        };
        self.now = self.now.max(recorded.at);
        Ok(Ask::Recorded(match recorded.refused {
            Some(failure) => {
                self.next += 1;
                Err(failure)
            }
            None => Ok(self.open_recorded(recorded.open)),
        }))
    }

    /// Asks about a publish or a reply, which are answered at once; used like [`Replay::open`].
    ///
    /// # Errors
    /// [`Error::Diverged`].
    pub fn immediate(
        &mut self,
        kind: OperationKind,
        name: &str,
    ) -> Result<Ask<Result<(), Failure>>, Error> {
        let Some(recorded) = self.take_recorded(kind, name, None)? else {
            return Ok(Ask::New);
        };
        self.now = self.now.max(recorded.at);
        self.next += 1;
        Ok(Ask::Recorded(recorded.refused.map_or(Ok(()), Err)))
    }

    /// Withdraws an operation; one that has been answered is left as it is.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a number that was never handed out.
    pub fn withdraw(&mut self, operation: Operation) -> Result<(), Error> {
        self.check_handed_out(operation)?;
        self.open.remove(&operation);
        Ok(())
    }

    /// Asks which of these operations was answered first.
    ///
    /// # Errors
    /// [`Error::Diverged`], if the journal goes on with other operations;
    /// [`Error::Misuse`], if one of these cannot be waited for.
    pub fn select(&mut self, among: &[Operation]) -> Result<Ask<SelectAnswer>, Error> {
        let mut first: Option<(Sequence, Operation)> = None;
        for &operation in among {
            let open = self.waiting(operation)?;
            if let Some(fact) = open.facts.front()
                && first.is_none_or(|(position, _)| fact.position < position)
            {
                first = Some((fact.position, operation));
            }
        }
        if let Some(reason) = self.cancelled_before(first.map(|(position, _)| position)) {
            return Ok(Ask::Recorded(SelectAnswer::Cancelled(reason)));
        }
        let Some((_, operation)) = first else {
            if let Some(recorded) = self.ahead.front() {
                return Err(self.diverged(Found::Select, recorded.open.found()).into());
            }
            self.live = true;
            return Ok(Ask::New);
        };
        Ok(Ask::Recorded(self.answer(operation)))
    }

    fn answer(&mut self, operation: Operation) -> SelectAnswer {
        let open = self
            .open
            .get_mut(&operation)
            .expect("select has just found it");
        let fact = open.facts.pop_front().expect("select has just seen it");
        self.now = self.now.max(fact.at);
        if let Record::BackoffOver { .. } = fact.record {
            // The step itself goes on.
            open.waits = Waits::Nothing;
            return SelectAnswer::Slept(operation, Wake::Elapsed);
        }
        self.open.remove(&operation);
        match fact.record {
            Record::Slept { wake, .. } => SelectAnswer::Slept(operation, wake),
            Record::EventTaken { event, .. } => SelectAnswer::Event(operation, event),
            Record::TimedOut { .. } => SelectAnswer::TimedOut(operation),
            Record::TaskCompleted { output, .. } => SelectAnswer::Task(operation, Ok(output)),
            Record::TaskFailed { error, .. } => SelectAnswer::Task(operation, Err(error)),
            other => unreachable!("not an answer to a select: {other:?}"),
        }
    }

    /// The workflow has ended.
    ///
    /// # Errors
    /// [`Diverged`], if the journal has operations that were not asked for.
    pub fn end(&self) -> Result<(), Diverged> {
        match self.ahead.front() {
            Some(recorded) => Err(self.diverged(Found::End, recorded.open.found())),
            None => Ok(()),
        }
    }

    // ---- Attempts.

    /// Begins the next attempt of a step that is new or whose backoff is over.
    ///
    /// `host_lost` says that a host died while this guest ran, and that this is the first thing it
    /// asks for since: an attempt may have been under way. The last permitted attempt is recorded
    /// before it begins, so for that one the journal knows; an earlier one is taken as lost. So no
    /// more attempts than permitted ever begin, and none that never began is the last.
    pub fn begin_attempt(
        &mut self,
        operation: Operation,
        options: Options,
        now: Timestamp,
        host_lost: bool,
    ) -> Begin {
        let open = self
            .open
            .get_mut(&operation)
            .expect("the caller has just opened or found it");
        let attempts = &mut open.attempts;
        let number = attempts.ended + 1;
        if number == 1 && attempts.deadline_at.is_none() {
            attempts.deadline_at = options.deadline.map(|deadline| now.after(deadline));
        }
        let attempt = RunningAttempt {
            operation,
            number,
            options,
            deadline_at: attempts.deadline_at,
        };
        let name = open.name.clone();
        if self.is_attempt_lost(Some(operation), options, host_lost) {
            self.attempt = Some(attempt);
            let cause = Failure::retryable("host-lost", "the host stopped while the attempt ran");
            let (entry, answer) = self.end_attempt(AttemptEnd::HostLost, cause, now, 0.0);
            return Begin::Lost { entry, answer };
        }
        self.attempt = Some(attempt);
        let is_last = number >= options.policy.attempts_max;
        let started = is_last.then(|| {
            let deadline_at = attempt.deadline_at;
            self.record(
                Record::AttemptStarted {
                    operation,
                    name,
                    number,
                    deadline_at,
                },
                now,
            )
        });
        Begin::Attempt { attempt, started }
    }

    /// Ends the running attempt with a result.
    ///
    /// # Panics
    /// If no attempt is running.
    pub fn complete_attempt(&mut self, output: Payload, now: Timestamp) -> Entry {
        let attempt = self.attempt.take().expect("an attempt is running");
        let operation = attempt.operation;
        let open = self
            .open
            .remove(&operation)
            .expect("a running step is open");
        let record = Record::StepCompleted {
            operation,
            name: open.name,
            attempts: attempt.number,
            output,
        };
        self.tell(record, now)
    }

    /// Ends the running attempt without a result: another follows, or the step has failed. `draw`
    /// is a random number from 0.0 up to but not including 1.0.
    ///
    /// # Panics
    /// If no attempt is running.
    pub fn end_attempt(
        &mut self,
        end: AttemptEnd,
        cause: Failure,
        now: Timestamp,
        draw: f64,
    ) -> (Entry, AttemptAnswer) {
        let attempt = self.attempt.take().expect("an attempt is running");
        let RunningAttempt {
            operation,
            number,
            options,
            deadline_at,
        } = attempt;
        let open = self
            .open
            .get_mut(&operation)
            .expect("a running step is open");
        match options.policy.next(Ended {
            attempts: number,
            end,
            cause: &cause,
            now,
            deadline_at,
            draw,
        }) {
            Next::RetryAt(retry_at) => {
                open.attempts = Attempts {
                    ended: number,
                    started: false,
                    retry_at: Some(retry_at),
                    deadline_at,
                };
                open.waits = Waits::Backoff(retry_at);
                let name = open.name.clone();
                let record = Record::AttemptEnded {
                    operation,
                    name,
                    number,
                    end,
                    cause,
                    retry_at,
                    deadline_at,
                };
                (self.tell(record, now), AttemptAnswer::Backoff(operation))
            }
            Next::Exhausted => {
                let open = self
                    .open
                    .remove(&operation)
                    .expect("a running step is open");
                let error = StepError {
                    step: open.name,
                    attempts: number,
                    end,
                    cause,
                };
                let record = Record::StepFailed {
                    operation,
                    error: error.clone(),
                };
                (self.tell(record, now), AttemptAnswer::Failed(error))
            }
        }
    }

    /// Records what the guest is told at once, without queueing it as a fact to be told later.
    fn tell(&mut self, record: Record, now: Timestamp) -> Entry {
        self.live = true;
        let at = now.max(self.newest_at);
        self.newest_at = at;
        self.now = self.now.max(at);
        self.length = self.length.plus(1);
        Entry { at, record }
    }

    // ---- Tasks.

    /// What the journal knows of an open task; `None` once it has ended or was withdrawn.
    pub fn task(&self, operation: Operation) -> Option<TaskProgress> {
        let open = self
            .open
            .get(&operation)
            .filter(|open| matches!(open.waits, Waits::Task(_)))?;
        let ended = open.facts.iter().any(|fact| {
            matches!(
                fact.record,
                Record::TaskCompleted { .. } | Record::TaskFailed { .. }
            )
        });
        (!ended).then_some(TaskProgress {
            started: open.attempts.started,
            retry_at: open.attempts.retry_at,
        })
    }

    /// Begins the next attempt of a task. The entry must be durable before the task runs.
    ///
    /// # Panics
    /// If [`Replay::task`] does not know the task as open, or an attempt of it has started.
    pub fn begin_task_attempt(
        &mut self,
        operation: Operation,
        options: Options,
        now: Timestamp,
    ) -> (Entry, RunningAttempt) {
        let open = self.open.get(&operation).expect("the task is open");
        assert!(!open.attempts.started, "one attempt of a task at a time");
        let number = open.attempts.ended + 1;
        let deadline_at = open
            .attempts
            .deadline_at
            .or_else(|| options.deadline.map(|span| now.after(span)));
        let name = open.name.clone();
        let entry = self.record(
            Record::AttemptStarted {
                operation,
                name,
                number,
                deadline_at,
            },
            now,
        );
        (
            entry,
            RunningAttempt {
                operation,
                number,
                options,
                deadline_at,
            },
        )
    }

    /// Ends an attempt of a task: it has its result, another attempt follows, or it has failed.
    /// `None` if the task was withdrawn meanwhile.
    pub fn end_task_attempt(
        &mut self,
        attempt: RunningAttempt,
        outcome: Result<Payload, (AttemptEnd, Failure)>,
        now: Timestamp,
        draw: f64,
    ) -> Option<Entry> {
        let RunningAttempt {
            operation,
            number,
            options,
            deadline_at,
        } = attempt;
        self.task(operation)?;
        let name = self.open.get(&operation)?.name.clone();
        let record = match outcome {
            Ok(output) => Record::TaskCompleted {
                operation,
                attempts: number,
                output,
            },
            Err((end, cause)) => {
                let next = options.policy.next(Ended {
                    attempts: number,
                    end,
                    cause: &cause,
                    now,
                    deadline_at,
                    draw,
                });
                match next {
                    Next::RetryAt(retry_at) => Record::AttemptEnded {
                        operation,
                        name,
                        number,
                        end,
                        cause,
                        retry_at,
                        deadline_at,
                    },
                    Next::Exhausted => {
                        let error = StepError {
                            step: name,
                            attempts: number,
                            end,
                            cause,
                        };
                        Record::TaskFailed { operation, error }
                    }
                }
            }
        };
        Some(self.record(record, now))
    }

    /// The attempt of a task that the journal has as started, to be ended as lost.
    pub fn lost_task_attempt(
        &self,
        operation: Operation,
        options: Options,
    ) -> Option<RunningAttempt> {
        let open = self
            .open
            .get(&operation)
            .filter(|open| open.attempts.started)?;
        let Attempts {
            ended, deadline_at, ..
        } = open.attempts;
        Some(RunningAttempt {
            operation,
            number: ended + 1,
            options,
            deadline_at,
        })
    }

    // ---- The world outside, where the journal ends.

    /// Which fact from outside answers a `select` over these operations first: the one that came
    /// about first, whenever we got to look. One event satisfies one wait, the oldest.
    pub fn choose<'a>(
        &self,
        among: &[Operation],
        now: Timestamp,
        mailbox: impl Iterator<Item = Mail<'a>> + Clone,
        woken_at: Option<Timestamp>,
    ) -> Option<Choice> {
        let mut first: Option<(Timestamp, Operation, Choice)> = None;
        let mut offer = |at: Timestamp, operation: Operation, choice: Choice| {
            if first.is_none_or(|(known, number, _)| (at, operation) < (known, number)) {
                first = Some((at, operation, choice));
            }
        };
        let mut soonest_sleep: Option<(Timestamp, Operation)> = None;
        for &operation in among {
            let Some(open) = self.open.get(&operation) else {
                continue;
            };
            match open.waits {
                Waits::Sleep(due) => {
                    if due <= now {
                        offer(due, operation, Choice::Elapsed(operation));
                    }
                    if soonest_sleep.is_none_or(|known| (due, operation) < known) {
                        soonest_sleep = Some((due, operation));
                    }
                }
                Waits::Backoff(retry_at) if retry_at <= now => {
                    offer(retry_at, operation, Choice::BackoffOver(operation));
                }
                Waits::Event(timeout_at) => {
                    if let Some(mail) = mailbox.clone().find(|mail| mail.name == open.name) {
                        offer(mail.at, operation, Choice::Event(operation, mail.id));
                    }
                    if let Some(timeout_at) = timeout_at.filter(|at| *at <= now) {
                        offer(timeout_at, operation, Choice::TimedOut(operation));
                    }
                }
                Waits::Backoff(_) | Waits::Task(_) | Waits::Nothing => {}
            }
        }
        // A wake ends one sleep: the one that would have ended first.
        if let (Some(at), Some((_, operation))) = (woken_at, soonest_sleep) {
            offer(at, operation, Choice::Woken(operation));
        }
        first.map(|(_, _, choice)| choice)
    }

    /// When the clock alone next answers one of these operations.
    pub fn due(&self, among: &[Operation]) -> Option<Timestamp> {
        among
            .iter()
            .filter_map(|operation| match self.open.get(operation)?.waits {
                Waits::Sleep(at) | Waits::Backoff(at) => Some(at),
                Waits::Event(timeout_at) => timeout_at,
                Waits::Task(_) => self.task(*operation)?.retry_at,
                Waits::Nothing => None,
            })
            .min()
    }

    /// What these operations wait for, by kind: `(sleeps, backoffs, waits, tasks)`, and the names
    /// of the events.
    pub fn waits(&self, among: &[Operation]) -> WaitSummary {
        let mut summary = WaitSummary::default();
        for open in among
            .iter()
            .filter_map(|operation| self.open.get(operation))
        {
            match open.waits {
                Waits::Sleep(_) => summary.sleeps += 1,
                Waits::Backoff(_) => summary.backoffs += 1,
                Waits::Event(_) => summary.events.push(open.name.clone()),
                Waits::Task(_) => summary.tasks += 1,
                Waits::Nothing => {}
            }
        }
        summary
    }

    // ---- Private.

    /// Whether a recorded cancel is to be told now: it stands before the next answer, and has not
    /// been told.
    fn cancelled_before(&mut self, next: Option<Sequence>) -> Option<String> {
        let Cancel::Recorded {
            position,
            at,
            reason,
            grace_until,
        } = &mut self.cancel
        else {
            return None;
        };
        if next.is_some_and(|next| next < *position) {
            return None;
        }
        self.now = self.now.max(*at);
        let reason = std::mem::take(reason);
        self.cancel = Cancel::Delivered {
            grace_until: *grace_until,
        };
        Some(reason)
    }

    fn take_recorded(
        &mut self,
        kind: OperationKind,
        name: &str,
        digest: Option<[u8; 32]>,
    ) -> Result<Option<Recorded>, Diverged> {
        let Some(recorded) = self.ahead.front() else {
            self.live = true;
            return Ok(None);
        };
        if recorded.open.kind != kind || recorded.open.name != name {
            let asked = Found::Operation {
                kind,
                name: name.to_owned(),
            };
            return Err(self.diverged(asked, recorded.open.found()));
        }
        if let (Some(asked), Waits::Task(recorded_digest)) = (digest, &recorded.open.waits)
            && asked != *recorded_digest
        {
            let found = |digest: &[u8; 32]| Found::TaskInput {
                name: name.to_owned(),
                digest_start: digest[..6]
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect(),
            };
            return Err(self.diverged(found(&asked), found(recorded_digest)));
        }
        Ok(self.ahead.pop_front())
    }

    fn open_recorded(&mut self, open: Open) -> Operation {
        let operation = Operation(self.next);
        self.next += 1;
        self.open.insert(operation, open);
        operation
    }

    fn waiting(&self, operation: Operation) -> Result<&Open, Error> {
        self.check_handed_out(operation)?;
        let open = self.open.get(&operation).ok_or_else(|| {
            Error::Misuse(format!(
                "select was given operation {operation}, which has been answered or withdrawn"
            ))
        })?;
        if open.waits == Waits::Nothing {
            return Err(Error::Misuse(format!(
                "select was given operation {operation}, a step that waits for nothing; call retry-step"
            )));
        }
        Ok(open)
    }

    fn check_handed_out(&self, operation: Operation) -> Result<(), Error> {
        if operation.0 < self.next {
            return Ok(());
        }
        Err(Error::Misuse(format!(
            "operation {operation} was named, but only {} were asked for so far",
            self.next
        )))
    }

    fn diverged(&self, asked: Found, recorded: Found) -> Diverged {
        Diverged {
            operation: Operation(self.next),
            asked,
            recorded,
        }
    }

    /// `charge`, then `charge#2`, `charge#3`: so a loop may reuse a name.
    fn step_label(&self, name: &str) -> String {
        match self.step_names.get(name) {
            Some(occurred) => format!("{name}#{}", occurred + 1),
            None => name.to_owned(),
        }
    }

    fn count_step(&mut self, name: &str) {
        match self.step_names.get_mut(name) {
            Some(occurred) => *occurred += 1,
            None => {
                self.step_names.insert(name.to_owned(), 1);
            }
        }
    }
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

impl Open {
    fn new(kind: OperationKind, name: String, waits: Waits) -> Self {
        Self {
            kind,
            name,
            waits,
            attempts: Attempts::default(),
            facts: VecDeque::new(),
        }
    }

    fn found(&self) -> Found {
        Found::Operation {
            kind: self.kind,
            name: self.name.clone(),
        }
    }

    /// Takes in a record about this operation: counts attempts at once, and queues what the guest
    /// is to be told.
    fn learn(&mut self, fact: Fact) {
        match &fact.record {
            Record::AttemptStarted { deadline_at, .. } => {
                self.attempts.started = true;
                self.attempts.retry_at = None;
                self.attempts.deadline_at = *deadline_at;
                return;
            }
            Record::AttemptEnded {
                number,
                retry_at,
                deadline_at,
                ..
            } => {
                self.attempts = Attempts {
                    ended: *number,
                    started: false,
                    retry_at: Some(*retry_at),
                    deadline_at: *deadline_at,
                };
                if self.kind == OperationKind::Task {
                    return;
                }
            }
            _ => {}
        }
        self.facts.push_back(fact);
    }
}

impl Recorded {
    /// The first record about an operation tells what it is.
    fn first(fact: Fact) -> Self {
        let (position, at) = (fact.position, fact.at);
        let step = |name: &str| Open::new(OperationKind::Step, name.to_owned(), Waits::Nothing);
        let mut refused = None;
        let (open, is_fact) = match &fact.record {
            Record::Opened { name, opening, .. } => {
                let (kind, waits) = match opening {
                    Opening::Sleep { due } => (OperationKind::Sleep, Waits::Sleep(*due)),
                    Opening::Wait { timeout_at } => {
                        (OperationKind::Wait, Waits::Event(*timeout_at))
                    }
                    Opening::Task { input_digest } => {
                        (OperationKind::Task, Waits::Task(*input_digest))
                    }
                };
                (Open::new(kind, name.clone(), waits), false)
            }
            Record::Refused {
                kind,
                name,
                failure,
                ..
            } => {
                refused = Some(failure.clone());
                (Open::new(*kind, name.clone(), Waits::Nothing), false)
            }
            Record::Published { key, .. } => (
                Open::new(OperationKind::Publish, key.clone(), Waits::Nothing),
                false,
            ),
            Record::Replied { event, .. } => (
                Open::new(OperationKind::Reply, event.to_string(), Waits::Nothing),
                false,
            ),
            Record::AttemptStarted { name, .. }
            | Record::AttemptEnded { name, .. }
            | Record::StepCompleted { name, .. } => (step(name), true),
            Record::StepFailed { error, .. } => (step(&error.step), true),
            // A store that answers entries in order never shows these first; an unnamed step then
            // diverges with whatever is asked.
            Record::BackoffOver { .. }
            | Record::Slept { .. }
            | Record::EventTaken { .. }
            | Record::TimedOut { .. }
            | Record::TaskCompleted { .. }
            | Record::TaskFailed { .. }
            | Record::CancelDelivered { .. }
            | Record::Ended(_) => (step(""), false),
        };
        let mut recorded = Self {
            position,
            at,
            open,
            refused,
        };
        if is_fact {
            recorded.open.learn(fact);
        }
        recorded
    }
}
