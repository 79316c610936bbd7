//! Keys by which something that is sent twice counts once: of starts, and of events.

/// Whether a key can be used: 1 to 256 bytes of text.
pub(crate) fn fits(key: &str) -> bool {
    (1..=BYTES_MAX).contains(&key.len())
}

/// Enough for any id, and little to keep for each run.
const BYTES_MAX: usize = 256;
