//! The operations that a run has asked for and not yet got its answer to.
//!
//! ```text
//! future ── ask ──► host            number n is open
//!   ▲                 │
//!   │             select(all open)  when no future can go on: the executor asks, once
//!   └── answer ◄──────┘             n is closed, and the future that waits for it is woken
//! ```
//!
//! An operation whose future is dropped before its answer came is withdrawn. Nothing here polls a
//! future, and nothing depends on anything but the host's answers: a replay takes the same path.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::bindings::stepwell::workflow::durable::{Operation, Outcome, Selected};
use crate::error::Error;
use crate::failure::Failure;
use crate::host::{Asked, Host};

/// One run's host, and its open operations.
pub(crate) struct Operations {
    pub(crate) host: Rc<dyn Host>,
    open: RefCell<Open>,
}

#[derive(Default)]
struct Open {
    /// What `select` is asked about, in program order. Kept as the list that the call takes, so
    /// that a wait among thousands builds none.
    waiting: Vec<Operation>,
    /// The futures that wait, and the answers that no future has picked up yet.
    states: BTreeMap<Operation, State>,
}

enum State {
    Waiting(Waker),
    Answered(Outcome),
    Cancelled(String),
}

impl Operations {
    pub(crate) fn new(host: Rc<dyn Host>) -> Rc<Self> {
        Rc::new(Self {
            host,
            open: RefCell::default(),
        })
    }

    /// Suspends the run until one open operation is answered, or the run is asked to stop, and
    /// wakes whoever waits for that.
    ///
    /// # Panics
    /// If nothing is open: then nothing could ever wake the workflow.
    pub(crate) fn answer_one(&self) {
        let selected = {
            let open = self.open.borrow();
            assert!(
                !open.waiting.is_empty(),
                "the workflow waits for something that is not a Stepwell operation, and would wait forever; \
                 await only what `Ctx` gives, and do other waiting inside a step"
            );
            self.host.select(&open.waiting)
        };
        match selected {
            Selected::Answered(answer) => {
                let mut open = self.open.borrow_mut();
                let Ok(place) = open.waiting.binary_search(&answer.operation) else {
                    panic!(
                        "the host answered operation {}, which is not open",
                        answer.operation
                    )
                };
                open.waiting.remove(place);
                let state = open
                    .states
                    .insert(answer.operation, State::Answered(answer.outcome));
                drop(open);
                if let Some(State::Waiting(waker)) = state {
                    waker.wake();
                }
            }
            Selected::Cancelled(reason) => self.cancel(&reason),
        }
    }

    /// Ends every operation that is open now, since the run has been asked to stop: whatever it
    /// waits in hears of it. Operations asked for later are clean-up.
    pub(crate) fn cancel(&self, reason: &str) {
        let waiting = std::mem::take(&mut self.open.borrow_mut().waiting);
        for operation in waiting {
            self.host.withdraw(operation);
            let state = self
                .open
                .borrow_mut()
                .states
                .insert(operation, State::Cancelled(reason.to_owned()));
            if let Some(State::Waiting(waker)) = state {
                waker.wake();
            }
        }
    }
}

/// An operation that was asked for, until its answer has been picked up. Dropped before, it is
/// withdrawn.
pub(crate) struct Pending {
    operations: Rc<Operations>,
    number: Operation,
    picked_up: bool,
}

impl Pending {
    pub(crate) fn new(operations: &Rc<Operations>, number: Operation, waker: &Waker) -> Self {
        let mut open = operations.open.borrow_mut();
        // The host numbers upwards, but a step in its backoff is an older operation.
        let place = open.waiting.partition_point(|&other| other < number);
        open.waiting.insert(place, number);
        open.states.insert(number, State::Waiting(waker.clone()));
        Self {
            operations: Rc::clone(operations),
            number,
            picked_up: false,
        }
    }

    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<Outcome, Error>> {
        let mut open = self.operations.open.borrow_mut();
        let answer = match open.states.remove(&self.number) {
            Some(State::Answered(outcome)) => Ok(outcome),
            Some(State::Cancelled(reason)) => Err(Error::Cancelled(reason)),
            Some(State::Waiting(mut waker)) => {
                waker.clone_from(cx.waker());
                open.states.insert(self.number, State::Waiting(waker));
                return Poll::Pending;
            }
            None => panic!("polled operation {} after its answer", self.number),
        };
        self.picked_up = true;
        Poll::Ready(answer)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.picked_up {
            return;
        }
        let mut open = self.operations.open.borrow_mut();
        let state = open.states.remove(&self.number);
        if let Ok(place) = open.waiting.binary_search(&self.number) {
            open.waiting.remove(place);
        }
        drop(open);
        // An answer that came and was not picked up has been given: it cannot be withdrawn.
        if let Some(State::Waiting(_)) = state {
            self.operations.host.withdraw(self.number);
        }
    }
}

/// Where the future of an operation stands.
pub(crate) enum Phase {
    /// Not polled yet: nothing has been asked for.
    Unasked,
    Waiting(Pending),
    Done,
}

impl Phase {
    /// Asks on the first poll, and then waits for the answer.
    pub(crate) fn poll(
        &mut self,
        operations: &Rc<Operations>,
        cx: &Context<'_>,
        ask: impl FnOnce(&dyn Host) -> Result<Asked, Error>,
    ) -> Poll<Result<Outcome, Error>> {
        if let Self::Unasked = self {
            let asked = ask(&*operations.host).and_then(|asked| {
                asked.map_err(|refused| Error::Failed(Failure::from_wire(refused)))
            });
            match asked {
                Ok(number) => *self = Self::Waiting(Pending::new(operations, number, cx.waker())),
                Err(error) => {
                    *self = Self::Done;
                    return Poll::Ready(Err(error));
                }
            }
        }
        let Self::Waiting(pending) = self else {
            panic!("polled an operation after its answer")
        };
        let polled = pending.poll(cx);
        if polled.is_ready() {
            *self = Self::Done;
        }
        polled
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }
}

impl std::fmt::Debug for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unasked => f.write_str("Unasked"),
            Self::Waiting(pending) => write!(f, "Waiting({})", pending.number),
            Self::Done => f.write_str("Done"),
        }
    }
}

/// A contract that only a broken host can break.
pub(crate) fn unexpected(what: &str, outcome: &Outcome) -> ! {
    panic!("the host answered {what} with {outcome:?}")
}
