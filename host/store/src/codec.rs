//! The binary form of journal entries and other values that need no column of their own.
//!
//! ```text
//! journal row:  version byte · entries · crc32 of (run, first sequence, version byte, entries)
//! entry:        at · tag byte · the record's fields in the order of their declaration
//! number:       varint, 7 bits a byte, least significant first, at most 10 bytes
//! text, bytes:  length as a number · the bytes untouched
//! option:       0, or 1 and the value
//! ```
//!
//! A tag is never given a second meaning and a field is never removed or reordered: what one
//! release wrote, every later one reads. New records get new tags. Damaged bytes are an error,
//! never a panic and never an allocation larger than the bytes that are there.

mod bytes;
mod part;
mod record;

use stepwell_core::id::{RunId, Sequence};
use stepwell_core::journal::{Ending, Entry, Record};
use stepwell_core::payload::{Failure, Payload};

use self::bytes::{Reader, Writer};

/// Why bytes are not what they must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// The bytes end within a value.
    #[error("the bytes end {missing} short, {at} bytes in")]
    Short { at: usize, missing: usize },
    /// The bytes go on after the last value.
    #[error("{left} bytes are left over")]
    Left { left: usize },
    /// A number of more than 64 bits.
    #[error("a number does not fit, {at} bytes in")]
    Number { at: usize },
    /// A tag that no release has written.
    #[error("{what} has no kind {tag}, {at} bytes in")]
    Tag {
        what: &'static str,
        tag: u8,
        at: usize,
    },
    /// Text that is not UTF-8.
    #[error("text is not UTF-8, {at} bytes in")]
    Text { at: usize },
    /// The checksum differs.
    #[error("the checksum is {found:08x}, the bytes give {expected:08x}")]
    Checksum { found: u32, expected: u32 },
}

/// The form of a journal row that this release writes.
const ROW_VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 4;

/// One journal row: the entries of one append.
///
/// The checksum covers the run and the place as well, so that a whole row in another's place is
/// found out too.
pub(crate) fn encode_row(run: RunId, first: Sequence, entries: &[Entry]) -> Vec<u8> {
    let mut out = Writer::with_capacity(64 * entries.len() + CHECKSUM_BYTES);
    out.byte(ROW_VERSION);
    for entry in entries {
        out.timestamp(entry.at);
        record::write(&mut out, &entry.record);
    }
    sealed(run, first, out.into_bytes())
}

/// The entries of a row, still encoded. Only of one that [`encode_row`] has just written.
pub(crate) fn entries_of_row(row: &[u8]) -> &[u8] {
    &row[1..row.len() - CHECKSUM_BYTES]
}

/// A row of entries that are encoded already.
pub(crate) fn seal_row(run: RunId, first: Sequence, entries: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + entries.len() + CHECKSUM_BYTES);
    bytes.push(ROW_VERSION);
    bytes.extend_from_slice(entries);
    sealed(run, first, bytes)
}

fn sealed(run: RunId, first: Sequence, mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = row_checksum(run, first, &bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The entries of a journal row.
pub(crate) fn decode_row(run: RunId, first: Sequence, row: &[u8]) -> Result<Vec<Entry>, Error> {
    let short = Error::Short {
        at: row.len(),
        missing: 1,
    };
    let (body, checksum) = row.split_last_chunk::<CHECKSUM_BYTES>().ok_or(short)?;
    let (found, expected) = (
        u32::from_le_bytes(*checksum),
        row_checksum(run, first, body),
    );
    if found != expected {
        return Err(Error::Checksum { found, expected });
    }
    let mut read = Reader::new(body);
    let version = read.byte()?;
    if version != ROW_VERSION {
        return Err(Error::Tag {
            what: "a journal row",
            tag: version,
            at: 0,
        });
    }
    let mut entries = Vec::with_capacity(1);
    while !read.is_at_end() {
        let at = read.timestamp()?;
        entries.push(Entry {
            at,
            record: record::read(&mut read)?,
        });
    }
    Ok(entries)
}

fn row_checksum(run: RunId, first: Sequence, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&run.raw().to_be_bytes());
    hasher.update(&first.0.to_be_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// The ending that a journal row closes with, if it does.
pub(crate) fn ending_of_row(
    run: RunId,
    first: Sequence,
    row: &[u8],
) -> Result<Option<Ending>, Error> {
    let last = decode_row(run, first, row)?.pop();
    Ok(match last {
        Some(Entry {
            record: Record::Ended(ending),
            ..
        }) => Some(ending),
        _ => None,
    })
}

/// A payload in a column of its own: a kind byte and the bytes untouched.
pub(crate) fn encode_payload(payload: &Payload) -> Vec<u8> {
    let bytes = payload.as_bytes();
    let mut out = Vec::with_capacity(1 + bytes.len());
    out.push(part::payload_tag(payload));
    out.extend_from_slice(bytes);
    out
}

/// Reads what [`encode_payload`] wrote.
pub(crate) fn decode_payload(bytes: &[u8]) -> Result<Payload, Error> {
    let (tag, value) = bytes
        .split_first()
        .ok_or(Error::Short { at: 0, missing: 1 })?;
    part::payload_of(*tag, value.to_vec(), 0)
}

/// An answer to an event's sender.
pub(crate) fn encode_answer(answer: &Result<Payload, Failure>) -> Vec<u8> {
    let mut out = Writer::with_capacity(32);
    part::write_answer(&mut out, answer);
    out.into_bytes()
}

/// Reads what [`encode_answer`] wrote.
pub(crate) fn decode_answer(bytes: &[u8]) -> Result<Result<Payload, Failure>, Error> {
    whole(bytes, part::read_answer)
}

/// A list of names.
pub(crate) fn encode_names(names: &[String]) -> Vec<u8> {
    let mut out = Writer::with_capacity(16 * names.len());
    names.iter().for_each(|name| out.text(name));
    out.into_bytes()
}

/// Reads what [`encode_names`] wrote.
pub(crate) fn decode_names(bytes: &[u8]) -> Result<Vec<String>, Error> {
    let mut read = Reader::new(bytes);
    let mut names = Vec::new();
    while !read.is_at_end() {
        names.push(read.text()?);
    }
    Ok(names)
}

/// Texts by key, in order.
pub(crate) fn encode_pairs(pairs: &[(String, String)]) -> Vec<u8> {
    let mut out = Writer::with_capacity(32 * pairs.len());
    for (key, value) in pairs {
        out.text(key);
        out.text(value);
    }
    out.into_bytes()
}

/// Reads what [`encode_pairs`] wrote.
pub(crate) fn decode_pairs(bytes: &[u8]) -> Result<Vec<(String, String)>, Error> {
    let mut read = Reader::new(bytes);
    let mut pairs = Vec::new();
    while !read.is_at_end() {
        pairs.push((read.text()?, read.text()?));
    }
    Ok(pairs)
}

fn whole<T>(
    bytes: &[u8],
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut reader = Reader::new(bytes);
    let value = read(&mut reader)?;
    match reader.left() {
        0 => Ok(value),
        left => Err(Error::Left { left }),
    }
}

#[cfg(test)]
mod tests;
