//! Numbers, texts and options as bytes, and back, with every read checked against the end.

use std::time::Duration;

use stepwell_core::time::{Timestamp, whole_ms};

use super::Error;

/// Appends values to bytes.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn number(&mut self, mut number: u64) {
        loop {
            let [low, ..] = number.to_le_bytes();
            number >>= 7;
            if number == 0 {
                return self.byte(low & 0x7f);
            }
            self.byte(low | 0x80);
        }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Bytes whose length is known to both sides.
    pub(super) fn fixed(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(super) fn timestamp(&mut self, at: Timestamp) {
        self.number(at.as_ms());
    }

    pub(super) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        match value {
            None => self.byte(0),
            Some(value) => {
                self.byte(1);
                write(self, value);
            }
        }
    }

    pub(super) fn span(&mut self, span: Duration) {
        self.number(whole_ms(span));
    }
}

/// Takes values from bytes.
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How far it has read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.left() == 0
    }

    fn take(&mut self, count: u64) -> Result<&'b [u8], Error> {
        let taken = usize::try_from(count)
            .ok()
            .and_then(|count| self.at.checked_add(count))
            .and_then(|end| self.bytes.get(self.at..end));
        match taken {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => {
                let missing = usize::try_from(count)
                    .unwrap_or(usize::MAX)
                    .saturating_sub(self.left());
                Err(Error::Short {
                    at: self.at,
                    missing,
                })
            }
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn number(&mut self) -> Result<u64, Error> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Error::Number { at: self.at })
    }

    pub(super) fn number_u32(&mut self) -> Result<u32, Error> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| Error::Number { at: self.at })
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, Error> {
        let length = self.number()?;
        self.take(length).map(<[u8]>::to_vec)
    }

    pub(super) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N as u64)?);
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<String, Error> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes).map_err(|_| Error::Text { at: self.at })
    }

    pub(super) fn timestamp(&mut self) -> Result<Timestamp, Error> {
        self.number().map(Timestamp::from_ms)
    }

    pub(super) fn span(&mut self) -> Result<Duration, Error> {
        self.number().map(Duration::from_millis)
    }

    pub(super) fn bool(&mut self) -> Result<bool, Error> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            tag => Err(Error::Tag {
                what: "a yes or no",
                tag,
                at: self.at,
            }),
        }
    }

    pub(super) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        Ok(if self.bool()? {
            Some(read(self)?)
        } else {
            None
        })
    }
}
