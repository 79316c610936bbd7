//! Errors, as RFC 9457 writes them: `application/problem+json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Why a request was not carried out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Problem {
    /// Stable and machine-readable: `urn:stepwell:problem:` and the kind, for example
    /// `no-such-run`.
    pub r#type: String,
    /// The kind, for a person to read.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What was attempted, what was found, what to do next.
    pub detail: String,
    /// Facts that go with this kind, for programs. (The one `flatten` of this module: there are no
    /// payloads in it.)
    #[serde(flatten)]
    pub facts: BTreeMap<String, serde_json::Value>,
}

impl Problem {
    /// How every type begins.
    pub const TYPE_PREFIX: &'static str = "urn:stepwell:problem:";

    /// The type without its prefix.
    pub fn kind(&self) -> &str {
        self.r#type
            .strip_prefix(Self::TYPE_PREFIX)
            .unwrap_or(&self.r#type)
    }
}
