//! `wasi:random`: a stream that depends on the run alone outside steps, the real thing inside.
//!
//! The stream is SHA-256 in counter mode. It has to be the same for as long as a run lives, across
//! hosts and releases, so it is defined here and not left to a library's idea of a generator.

use rand::Rng as _;
use sha2::{Digest, Sha256};
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};

use crate::guest::TrapKind;
use crate::instance::Instance;
use crate::trap::Halt;

/// What a guest may ask for in one call, in bytes: the host has to hold it before the guest does.
const BYTES_MAX: u64 = 1024 * 1024;

/// What the workflow world draws from.
#[derive(Debug)]
pub(crate) struct Random {
    seed: u128,
    secure: Stream,
    insecure: Stream,
}

impl Random {
    /// The same seed gives the same streams.
    pub(crate) fn new(seed: u128) -> Self {
        Self {
            seed,
            secure: Stream::new("secure"),
            insecure: Stream::new("insecure"),
        }
    }

    /// For hash tables; one value for the whole run, in both worlds.
    fn hash_seed(&self) -> (u64, u64) {
        let block = block(self.seed, "hash", 0);
        let half =
            |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().expect("8 of 32 bytes"));
        (half(0), half(8))
    }
}

/// Bytes that follow from a seed, a purpose and a position.
#[derive(Debug)]
struct Stream {
    purpose: &'static str,
    blocks: u64,
    block: [u8; 32],
    /// How much of the block has been handed out.
    used: usize,
}

impl Stream {
    fn new(purpose: &'static str) -> Self {
        Self {
            purpose,
            blocks: 0,
            block: [0; 32],
            used: 32,
        }
    }

    fn fill(&mut self, seed: u128, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            if self.used == self.block.len() {
                self.block = block(seed, self.purpose, self.blocks);
                self.blocks += 1;
                self.used = 0;
            }
            let count = bytes.len().min(self.block.len() - self.used);
            let (now, later) = bytes.split_at_mut(count);
            now.copy_from_slice(&self.block[self.used..self.used + count]);
            self.used += count;
            bytes = later;
        }
    }
}

fn block(seed: u128, purpose: &str, number: u64) -> [u8; 32] {
    Sha256::new()
        .chain_update(b"stepwell random ")
        .chain_update(purpose)
        .chain_update([0])
        .chain_update(seed.to_le_bytes())
        .chain_update(number.to_le_bytes())
        .finalize()
        .into()
}

impl Instance {
    fn draw(&mut self, stream: fn(&mut Random) -> &mut Stream, bytes: &mut [u8]) {
        if self.in_step() {
            // A step's draws must not move the workflow's stream: on replay the body does not run.
            rand::rng().fill_bytes(bytes);
        } else {
            let seed = self.random.seed;
            stream(&mut self.random).fill(seed, bytes);
        }
    }

    fn draw_bytes(
        &mut self,
        stream: fn(&mut Random) -> &mut Stream,
        length: u64,
    ) -> wasmtime::Result<Vec<u8>> {
        let length = usize::try_from(length.min(BYTES_MAX + 1)).unwrap_or(usize::MAX);
        if length as u64 > BYTES_MAX {
            return Err(Halt::trapped(
                TrapKind::Other,
                format!("the guest asked for more than {BYTES_MAX} random bytes in one call"),
            ));
        }
        let mut bytes = vec![0; length];
        self.draw(stream, &mut bytes);
        Ok(bytes)
    }

    fn draw_u64(&mut self, stream: fn(&mut Random) -> &mut Stream) -> u64 {
        let mut bytes = [0; 8];
        self.draw(stream, &mut bytes);
        u64::from_le_bytes(bytes)
    }
}

impl random::Host for Instance {
    fn get_random_bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        self.draw_bytes(|random| &mut random.secure, length)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.draw_u64(|random| &mut random.secure))
    }
}

impl insecure::Host for Instance {
    fn get_insecure_random_bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        self.draw_bytes(|random| &mut random.insecure, length)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.draw_u64(|random| &mut random.insecure))
    }
}

impl insecure_seed::Host for Instance {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        Ok(self.random.hash_seed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_does_not_depend_on_how_it_is_cut() {
        let mut whole = [0; 100];
        Stream::new("secure").fill(7, &mut whole);
        let mut parts = [0; 100];
        let mut stream = Stream::new("secure");
        let (first, rest) = parts.split_at_mut(3);
        let (second, third) = rest.split_at_mut(64);
        for part in [first, second, third] {
            stream.fill(7, part);
        }
        assert_eq!(whole, parts);
    }

    #[test]
    fn the_stream_is_the_same_in_every_release() {
        // Taken from another implementation of what the module doc says.
        let mut bytes = [0; 8];
        Stream::new("secure").fill(1, &mut bytes);
        assert_eq!(u64::from_le_bytes(bytes), 0x3645_bfd1_cae3_8fbb);
        assert_eq!(
            Random::new(1).hash_seed(),
            (0xba9d_9e74_ea29_df06, 0x49a4_74bc_a270_55b3)
        );
    }

    #[test]
    fn seeds_and_purposes_give_other_streams() {
        assert_ne!(block(1, "secure", 0), block(2, "secure", 0));
        assert_ne!(block(1, "secure", 0), block(1, "insecure", 0));
        assert_ne!(block(1, "secure", 0), block(1, "secure", 1));
    }
}
