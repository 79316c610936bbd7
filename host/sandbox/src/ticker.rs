//! The clock that preempts guests: one thread that raises the engine's epoch at every tick while
//! any guest runs, and sleeps otherwise. It knows no guest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Duration;

use wasmtime::EngineWeak;

/// Ticks without any guest before the thread sleeps: waking it costs a system call, which a busy
/// host should not pay each time it has nothing to do for a moment.
const IDLE_TICKS_MAX: u32 = 100;

/// The ticking thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Thread,
}

#[derive(Debug, Default)]
struct Shared {
    /// Guests that are being polled right now.
    running: AtomicUsize,
    /// How often a guest was polled.
    polls: AtomicU64,
    /// The thread is parked, or about to park.
    asleep: AtomicBool,
    ended: AtomicBool,
}

/// A guest runs as long as this lives.
#[derive(Debug)]
pub(crate) struct Running<'a>(&'a Shared);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Ticker {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub(crate) fn start(engine: EngineWeak, tick: Duration) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        let handle = std::thread::Builder::new()
            .name("stepwell-ticker".to_owned())
            .spawn(move || run(&for_thread, &engine, tick))?;
        Ok(Self {
            shared,
            thread: handle.thread().clone(),
        })
    }

    /// Keeps the ticks coming while a guest is polled.
    pub(crate) fn guest_runs(&self) -> Running<'_> {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        self.shared.polls.fetch_add(1, Ordering::SeqCst);
        // The thread says that it falls asleep before it looks at `running` for the last time; so
        // either it sees this guest, or this guest sees it asleep.
        if self.shared.asleep.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Running(&self.shared)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

fn run(shared: &Shared, engine: &EngineWeak, tick: Duration) {
    let mut idle_ticks = 0;
    let mut polls_seen = 0;
    while !shared.ended.load(Ordering::SeqCst) {
        if idle_ticks >= IDLE_TICKS_MAX {
            shared.asleep.store(true, Ordering::SeqCst);
            if shared.running.load(Ordering::SeqCst) == 0 && !shared.ended.load(Ordering::SeqCst) {
                std::thread::park();
            }
            shared.asleep.store(false, Ordering::SeqCst);
            idle_ticks = 0;
        }
        std::thread::sleep(tick);
        if shared.running.load(Ordering::SeqCst) > 0 {
            match engine.upgrade() {
                Some(engine) => engine.increment_epoch(),
                None => return,
            }
        }
        let polls = shared.polls.load(Ordering::SeqCst);
        idle_ticks = if polls == polls_seen {
            idle_ticks + 1
        } else {
            0
        };
        polls_seen = polls;
    }
}
