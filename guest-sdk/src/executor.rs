//! Polls one workflow to its end: single-threaded, without a clock, without threads to be woken
//! from. When no future can go on, the run suspends in its host until an operation is answered.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::operations::Operations;

/// Whether something that the workflow awaits can go on.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Polls the future until it is done.
pub(crate) fn drive<F: Future>(operations: &Operations, future: F) -> F::Output {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        // A future that wakes itself (as `FuturesUnordered` does after a long round) is polled
        // again; a woken one inside a combinator wakes this one.
        while woken.0.swap(false, Ordering::Relaxed) {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
        }
        operations.answer_one();
    }
}
