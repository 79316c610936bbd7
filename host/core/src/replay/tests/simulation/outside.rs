//! The world outside: the clock, the mailbox, a cancel, and how bodies end.

use crate::id::EventId;
use crate::payload::{Failure, Payload};
use crate::replay::tests::ms;
use crate::retry::AttemptEnd;
use crate::time::Timestamp;

#[derive(Debug, Clone, Copy)]
pub(super) struct Outside {
    pub(super) seed: u64,
}

impl Outside {
    /// A draw that is always the same at the same length of the journal.
    pub(super) fn draw(self, length: usize, what: u64) -> u64 {
        let mut mixed =
            self.seed ^ (length as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (what << 32);
        for _ in 0..3 {
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed ^= mixed >> 27;
        }
        mixed
    }

    /// A clock that goes on while a guest waits, and now and then jumps.
    pub(super) fn now(self, length: usize, tick: u64) -> Timestamp {
        let jump = self.draw(length, 1_000 + tick) % 5_000;
        let time = 10_000 + length as u64 * 100 + tick * tick * 10;
        ms(match jump % 7 {
            0 => time - jump,
            1 => time + jump,
            _ => time,
        })
    }

    pub(super) fn is_cancelled(self, length: usize) -> bool {
        let at = self.draw(0, 1) % 60;
        length as u64 >= at && at < 30
    }

    /// Events as `(id, name, at)`, the oldest first; the last ones come only to whoever waits.
    pub(super) fn mailbox(self, length: usize, tick: u64) -> Vec<(EventId, String, Timestamp)> {
        let come = (length / 3) as u64 + tick / 10;
        let event = |id: u64| {
            let name = format!("n{}", self.draw(0, 100 + id) % 3);
            (EventId(id), name, ms(10_000 + id * 300))
        };
        (1..=come.min(6)).map(event).collect()
    }

    pub(super) fn body(self, length: usize) -> Result<Payload, (AttemptEnd, Failure)> {
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
    pub(super) fn fraction(self, length: usize) -> f64 {
        f64::from(u32::try_from(self.draw(length, 3) >> 32).unwrap()) / 4_294_967_296.0
    }
}
