//! How long the writer waits for commands that are about to come.
//!
//! Many runs in lockstep with the writer would share only every second commit: while one half is
//! being synced, the other half queues. So after a commit the writer gives those whom it has just
//! answered a moment to come back, as long as that pays: a small part of what a commit takes, only
//! if somebody is expected, and not for a while once nobody came.

use std::time::{Duration, Instant};

/// The wait is at most this part of the time that a commit takes.
const PART: u32 = 6;
/// However slow the disk.
const WAIT_MAX: Duration = Duration::from_millis(1);
/// A shorter sleep is none: the kernel rounds it up.
const PAUSE: Duration = Duration::from_micros(30);
/// Commits without a wait after one that was in vain.
const SKIPPED: u32 = 31;

#[derive(Debug, Default)]
pub(super) struct Gather {
    /// Commands that the next transaction would have if everybody came back.
    expected: usize,
    /// How long that is worth waiting for.
    wait: Duration,
    /// Commits until a wait is tried again.
    skip: u32,
}

/// The pauses of one wait.
#[derive(Debug)]
pub(super) struct Pauses {
    had: usize,
    expected: usize,
    until: Option<Instant>,
}

impl Gather {
    /// After a commit that took this long: how many commands there would be if everybody who was
    /// in it or waited behind it came again.
    pub(super) fn committed(&mut self, expected: usize, took: Duration) {
        self.expected = expected;
        self.wait = (took / PART).min(WAIT_MAX);
    }

    /// Begins to wait, with so many commands there already.
    pub(super) fn begin(&mut self, had: usize) -> Pauses {
        // One alone has nobody to wait for, and a wait that the kernel would round up costs too much.
        let worthwhile = had < self.expected && self.wait >= PAUSE;
        let until = if worthwhile && self.skip == 0 {
            Some(Instant::now() + self.wait)
        } else {
            None
        };
        if worthwhile {
            self.skip = self.skip.saturating_sub(1);
        }
        Pauses {
            had,
            expected: self.expected,
            until,
        }
    }

    /// Learns from a wait that has ended with so many commands.
    pub(super) fn end(&mut self, pauses: Pauses, has: usize) {
        // In vain, unless an eighth of those who were expected came.
        let came = has - pauses.had;
        if pauses.until.is_some() && came * 8 < pauses.expected - pauses.had {
            self.skip = SKIPPED;
        }
    }
}

impl Pauses {
    /// The next pause, if the wait goes on with so many commands.
    pub(super) fn next(&mut self, has: usize) -> Option<Duration> {
        let until = self.until?;
        (has < self.expected && Instant::now() < until).then_some(PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(gather: &mut Gather, had: usize, came: usize) -> bool {
        let mut pauses = gather.begin(had);
        let waits = pauses.next(had).is_some();
        gather.end(pauses, had + came);
        waits
    }

    #[test]
    fn one_alone_never_waits() {
        let mut gather = Gather::default();
        for _ in 0..3 {
            assert!(!waits(&mut gather, 1, 0));
            gather.committed(1, Duration::from_millis(5));
        }
    }

    #[test]
    fn the_other_half_is_waited_for_until_it_has_come() {
        let mut gather = Gather::default();
        gather.committed(200, Duration::from_millis(5));
        assert!(waits(&mut gather, 100, 100));
        gather.committed(200, Duration::from_millis(5));
        assert!(!waits(&mut gather, 200, 0));
    }

    #[test]
    fn a_wait_in_vain_is_not_tried_again_for_a_while() {
        let mut gather = Gather::default();
        let mut waited = 0;
        for _ in 0..320 {
            gather.committed(200, Duration::from_millis(5));
            waited += u32::from(waits(&mut gather, 10, 3));
        }
        assert_eq!(waited, 10);
    }

    #[test]
    fn a_fast_disk_is_not_waited_with() {
        let mut gather = Gather::default();
        gather.committed(200, Duration::from_micros(100));
        assert!(!waits(&mut gather, 100, 100));
    }
}
