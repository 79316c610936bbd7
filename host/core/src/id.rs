//! Every id and name of the system, each a type of its own. No other type lives here.
//!
//! An id prints with a prefix that says its kind (`run_…`, `host_…`), and parsing checks it, so a
//! host id can never be taken for a run id. Raw values come out only where rows are written.

use std::fmt;
use std::str::FromStr;

/// A text that is not an id or a name of the kind expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not an id of this kind.
    #[error("`{found}` is not {kind}: expected `{prefix}` followed by 32 hexadecimal digits")]
    Id {
        /// What was expected, with its article.
        kind: &'static str,
        /// How such an id begins.
        prefix: &'static str,
        /// What was found, cut to 80 characters.
        found: String,
    },
    /// Not a digest.
    #[error(
        "`{found}` is not a component digest: expected `sha256:` followed by 64 hexadecimal digits"
    )]
    Digest {
        /// What was found, cut to 80 characters.
        found: String,
    },
    /// Not an event id.
    #[error("`{found}` is not an event id: expected `evt_` followed by a number")]
    Event {
        /// What was found, cut to 80 characters.
        found: String,
    },
    /// Not a name of this kind.
    #[error(
        "`{found}` is not {kind}: expected 1 to {length_max} characters from a-z, A-Z, 0-9, `-`, `_`, `.`, \
         the first a letter or a digit"
    )]
    Name {
        /// What was expected, with its article.
        kind: &'static str,
        /// The longest such name, in characters.
        length_max: usize,
        /// What was found, cut to 80 characters.
        found: String,
    },
}

fn cut(text: &str) -> String {
    text.chars().take(80).collect()
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// Wraps a raw value; only for the edge that makes or reads ids.
            pub const fn from_raw(raw: u128) -> Self {
                Self(raw)
            }

            /// The raw value; only for the edge that writes rows.
            pub const fn raw(self) -> u128 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{:032x}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                text.strip_prefix($prefix)
                    .filter(|hex| hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
                    .and_then(|hex| u128::from_str_radix(hex, 16).ok())
                    .map(Self)
                    .ok_or_else(|| Error::Id { kind: $kind, prefix: $prefix, found: cut(text) })
            }
        }
    };
}

id!(
    /// One execution of one version. Ids made later sort later (UUID version 7).
    RunId,
    "run_",
    "a run id"
);
id!(
    /// One start of a host process; a restarted host has another id.
    HostId,
    "host_",
    "a host id"
);

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $length_max:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// The longest such name, in characters.
            pub const LENGTH_MAX: usize = $length_max;

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                let fits = text.len() <= $length_max
                    && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
                    && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
                if fits {
                    Ok(Self(text.into()))
                } else {
                    Err(Error::Name { kind: $kind, length_max: $length_max, found: cut(text) })
                }
            }
        }
    };
}

name!(
    /// Owner of everything; no row, key, query, metric or log line exists without one.
    TenantName,
    "a tenant name",
    64
);
name!(
    /// A function that a component exports as a workflow.
    WorkflowName,
    "a workflow name",
    128
);
name!(
    /// Tells the versions of one workflow apart, for example `1.0` or `2026-11-30`.
    VersionLabel,
    "a version label",
    64
);

/// The SHA-256 of a component's bytes; a component is named by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentDigest([u8; 32]);

impl ComponentDigest {
    /// Wraps a SHA-256.
    pub const fn from_bytes(sha256: [u8; 32]) -> Self {
        Self(sha256)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ComponentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ComponentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ComponentDigest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let error = || Error::Digest { found: cut(text) };
        let hex = text.strip_prefix("sha256:").unwrap_or(text).as_bytes();
        if hex.len() != 64 {
            return Err(error());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            let digit = |c: u8| {
                char::from(c)
                    .to_digit(16)
                    .and_then(|d| u8::try_from(d).ok())
            };
            let (high, low) = digit(pair[0]).zip(digit(pair[1])).ok_or_else(error)?;
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

/// The number of an operation in the program order of one run's journal, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation(pub u32);

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The place of an entry in one run's journal, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

impl Sequence {
    /// The place `count` entries further on.
    #[must_use]
    pub fn plus(self, count: usize) -> Self {
        Self(self.0 + count as u64)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Grows with every claim of a run and is checked in every write; the first claim has 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The place of an item in one run's inbox, from 1. An event's item is also the event's id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u64);

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "evt_{}", self.0)
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for EventId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.strip_prefix("evt_")
            .and_then(|number| number.parse().ok())
            .map(Self)
            // One text for each id: neither `evt_+1` nor `evt_01`.
            .filter(|id| id.to_string() == text)
            .ok_or_else(|| Error::Event { found: cut(text) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_and_refuse_another_kind() {
        let run = RunId::from_raw(0x0192_0000_0000_7000_8000_0000_0000_0001);
        assert_eq!(run.to_string().parse(), Ok(run));
        let error = run
            .to_string()
            .parse::<HostId>()
            .expect_err("not a host id");
        assert_eq!(
            error.to_string(),
            "`run_01920000000070008000000000000001` is not a host id: expected `host_` followed by 32 hexadecimal digits"
        );
        assert!(
            "run_+1920000000070008000000000000001"
                .parse::<RunId>()
                .is_err()
        );
    }

    #[test]
    fn an_event_id_has_one_text_only() {
        assert_eq!("evt_10".parse(), Ok(EventId(10)));
        for other in ["evt_+10", "evt_010", "evt_", "evt_1 ", "10", "run_10"] {
            assert!(other.parse::<EventId>().is_err(), "{other}");
        }
    }

    #[test]
    fn names_are_bounded_and_plain() {
        for good in ["order", "1.0", "a-b_c.d", &"x".repeat(64)] {
            assert!(good.parse::<TenantName>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "a b", "ä", "a/b", &"x".repeat(65)] {
            assert!(bad.parse::<TenantName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn digests_round_trip_with_and_without_prefix() {
        let digest = ComponentDigest::from_bytes([0xab; 32]);
        let text = digest.to_string();
        assert_eq!(text.parse(), Ok(digest));
        assert_eq!(text["sha256:".len()..].parse(), Ok(digest));
        assert!("sha256:zz".parse::<ComponentDigest>().is_err());
        assert!(
            format!("sha256:{}", "z".repeat(64))
                .parse::<ComponentDigest>()
                .is_err()
        );
    }
}
