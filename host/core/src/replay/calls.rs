//! The guest's calls, one method for each, matched to the journal in program order.

use super::answer::{Ask, Diverged, Error, Found, SelectAnswer, StepAnswer, StepAsk};
use super::known::{Answer, Known, Recorded, StepEnd, Waits};
use super::{Cancel, Replay};
use crate::id::{Operation, Sequence};
use crate::journal::{OperationKind, Wake};
use crate::payload::Failure;

impl Replay {
    /// Asks about a step by name. [`StepAsk::New`] takes no number yet, so that a cancel may still
    /// come first.
    ///
    /// # Errors
    /// [`Error::Diverged`]; [`Error::Misuse`], as every call of an operation while a body runs.
    pub fn step(&mut self, name: &str) -> Result<StepAsk, Error> {
        self.check_no_body("step")?;
        let next = self.ahead.front().map(|recorded| recorded.position);
        if let Some(reason) = self.cancelled_before(next) {
            return Ok(StepAsk::Recorded(StepAnswer::Cancelled(reason)));
        }
        let label = self.step_label(name);
        let Some(recorded) = self.take_recorded(OperationKind::Step, &label, None)? else {
            return Ok(StepAsk::New);
        };
        self.count_step(name);
        let operation = self.number(recorded.known);
        self.continue_step(operation)
    }

    /// Opens the step that [`Replay::step`] found to be new.
    pub fn open_step(&mut self, name: &str) -> Operation {
        let label = self.step_label(name);
        self.count_step(name);
        self.number(Known::step(label))
    }

    /// Asks again about a step whose backoff is over. Never answers [`StepAsk::New`].
    ///
    /// # Errors
    /// [`Error::Diverged`]; [`Error::Misuse`] if it is not such a step.
    pub fn retry_step(&mut self, operation: Operation) -> Result<StepAsk, Error> {
        self.check_no_body("retry-step")?;
        let step = self
            .open
            .get(&operation)
            .filter(|known| known.kind == OperationKind::Step && known.waits == Waits::Nothing);
        let Some(step) = step else {
            return Err(Error::Misuse(format!(
                "retry-step was called with {operation}, which is not a step whose backoff is over"
            )));
        };
        let next = step.ends.front().map(|fact| fact.position);
        if let Some(reason) = self.cancelled_before(next) {
            return Ok(StepAsk::Recorded(StepAnswer::Cancelled(reason)));
        }
        self.continue_step(operation)
    }

    fn continue_step(&mut self, operation: Operation) -> Result<StepAsk, Error> {
        Ok(match self.tell_end(operation) {
            Some(StepEnd::RetryAt(_)) => StepAsk::Recorded(StepAnswer::Backoff(operation)),
            Some(StepEnd::Completed(output)) => StepAsk::Recorded(StepAnswer::Completed(output)),
            Some(StepEnd::Failed(error)) => StepAsk::Recorded(StepAnswer::Failed(error)),
            // Where the journal knows of a start and no more, the attempt is for the engine to end.
            None => {
                let name = self.open.get(&operation).map(|known| known.name.clone());
                self.reach_end(|| Found::Attempt {
                    name: name.unwrap_or_default(),
                })?;
                StepAsk::Attempt(operation)
            }
        })
    }

    /// Tells the guest how an attempt of a step ended, if the journal knows.
    pub(super) fn tell_end(&mut self, operation: Operation) -> Option<StepEnd> {
        let known = self.open.get_mut(&operation)?;
        let fact = known.ends.pop_front()?;
        self.now = self.now.max(fact.at);
        match fact.says {
            StepEnd::RetryAt(at) => known.waits = Waits::Backoff(at),
            StepEnd::Completed(_) | StepEnd::Failed(_) => {
                self.open.remove(&operation);
            }
        }
        Some(fact.says)
    }

    /// Asks about a sleep, a wait or a task; the digest is that of a task's input.
    ///
    /// On [`Ask::New`] the engine records [`crate::journal::Record::Opened`] or
    /// [`crate::journal::Record::Refused`] with [`Replay::next_operation`], and asks once more.
    ///
    /// # Errors
    /// [`Error::Diverged`].
    pub fn open(
        &mut self,
        kind: OperationKind,
        name: &str,
        digest: Option<[u8; 32]>,
    ) -> Result<Ask<Result<Operation, Failure>>, Error> {
        self.check_no_body(kind.as_str())?;
        let Some(recorded) = self.take_recorded(kind, name, digest)? else {
            return Ok(Ask::New);
        };
        self.now = self.now.max(recorded.at);
        Ok(Ask::Recorded(match recorded.refused {
            Some(failure) => {
                self.next += 1;
                Err(failure)
            }
            None => Ok(self.number(recorded.known)),
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
        self.check_no_body(kind.as_str())?;
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
        self.check_no_body("withdraw")?;
        self.check_handed_out(operation)?;
        self.open.remove(&operation);
        Ok(())
    }

    /// Asks which of these operations was answered first.
    ///
    /// # Errors
    /// [`Error::Diverged`], if the journal goes on with other operations;
    /// [`Error::Misuse`], if there is none, or one of them cannot be waited for.
    pub fn select(&mut self, among: &[Operation]) -> Result<Ask<SelectAnswer>, Error> {
        self.check_no_body("select")?;
        if among.is_empty() {
            return Err(Error::Misuse(
                "select was given no operation, and would wait for ever".to_owned(),
            ));
        }
        let mut first: Option<(Sequence, Operation)> = None;
        for &operation in among {
            let next = self.waiting(operation)?.answers.front();
            if let Some(fact) = next
                && first.is_none_or(|(position, _)| fact.position < position)
            {
                first = Some((fact.position, operation));
            }
        }
        if let Some(reason) = self.cancelled_before(first.map(|(position, _)| position)) {
            return Ok(Ask::Recorded(SelectAnswer::Cancelled(reason)));
        }
        let answer = first.and_then(|(_, operation)| self.tell_answer(operation));
        match answer {
            Some(answer) => Ok(Ask::Recorded(answer)),
            None => {
                self.reach_end(|| Found::Select)?;
                Ok(Ask::New)
            }
        }
    }

    fn tell_answer(&mut self, operation: Operation) -> Option<SelectAnswer> {
        let known = self.open.get_mut(&operation)?;
        let fact = known.answers.pop_front()?;
        self.now = self.now.max(fact.at);
        let answer = match fact.says {
            Answer::BackoffOver => {
                // The step itself goes on.
                known.waits = Waits::Nothing;
                return Some(SelectAnswer::Slept(operation, Wake::Elapsed));
            }
            Answer::Slept(wake) => SelectAnswer::Slept(operation, wake),
            Answer::Event(event) => SelectAnswer::Event(operation, event),
            Answer::TimedOut => SelectAnswer::TimedOut(operation),
            Answer::Task(result) => SelectAnswer::Task(operation, result),
        };
        self.open.remove(&operation);
        Some(answer)
    }

    /// The workflow has ended.
    ///
    /// Operations that were asked for and never waited for are no difference: what became of them
    /// does not matter to this workflow.
    ///
    /// # Errors
    /// [`Diverged`], if the journal has operations that were not asked for.
    pub fn end(&self) -> Result<(), Diverged> {
        self.check_end(|| Found::End)
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

    /// The operation that the journal has next, if it is just this one; `None` at the journal's
    /// end.
    fn take_recorded(
        &mut self,
        kind: OperationKind,
        name: &str,
        digest: Option<[u8; 32]>,
    ) -> Result<Option<Recorded>, Diverged> {
        let asked = || Found::Operation {
            kind,
            name: name.to_owned(),
        };
        let Some(recorded) = self.ahead.front() else {
            self.reach_end(asked)?;
            return Ok(None);
        };
        if recorded.known.kind != kind || recorded.known.name != name {
            return Err(self.diverged(asked(), recorded.known.found()));
        }
        if let (Some(asked), Waits::Task(recorded)) = (digest, &recorded.known.waits)
            && asked != *recorded
        {
            let found = |digest: &[u8; 32]| Found::TaskInput {
                name: name.to_owned(),
                digest_start: digest[..6]
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect(),
            };
            return Err(self.diverged(found(&asked), found(recorded)));
        }
        Ok(self.ahead.pop_front())
    }

    /// The guest has got past what was loaded, unless the journal has more.
    fn reach_end(&mut self, asked: impl FnOnce() -> Found) -> Result<(), Diverged> {
        self.check_end(asked)?;
        self.live = true;
        Ok(())
    }

    /// Nothing may be performed while the journal has operations that were not asked for.
    fn check_end(&self, asked: impl FnOnce() -> Found) -> Result<(), Diverged> {
        let recorded = match (self.ahead.front(), &self.damage) {
            (Some(recorded), _) => recorded.known.found(),
            (None, Some(damage)) => damage.clone(),
            (None, None) => return Ok(()),
        };
        Err(self.diverged(asked(), recorded))
    }

    fn diverged(&self, asked: Found, recorded: Found) -> Diverged {
        Diverged {
            operation: self.next_operation(),
            asked,
            recorded,
        }
    }

    /// Gives an operation the next number.
    fn number(&mut self, known: Known) -> Operation {
        let operation = self.next_operation();
        self.next += 1;
        self.open.insert(operation, known);
        operation
    }

    fn waiting(&self, operation: Operation) -> Result<&Known, Error> {
        self.check_handed_out(operation)?;
        let known = self.open.get(&operation).ok_or_else(|| {
            Error::Misuse(format!(
                "select was given operation {operation}, which has been answered or withdrawn"
            ))
        })?;
        if known.waits == Waits::Nothing {
            return Err(Error::Misuse(format!(
                "select was given operation {operation}, a step that waits for nothing; \
                 call retry-step"
            )));
        }
        Ok(known)
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

    fn check_no_body(&self, call: &str) -> Result<(), Error> {
        let Some(attempt) = self.attempt else {
            return Ok(());
        };
        let name = self
            .open
            .get(&attempt.operation)
            .map_or("", |known| known.name.as_str());
        Err(Error::Misuse(format!(
            "{call} was called while the body of step `{name}` runs; call finish-step first"
        )))
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
