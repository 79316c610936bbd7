//! What a run shows to the outside.

use serde::{Deserialize, Serialize};
use stepwell_core::id::RunId;

use super::time::Instant;
use super::value::{Json, to_response};

/// All that a run has published.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Published {
    /// The run.
    pub run: String,
    /// By key.
    pub published: Vec<PublishedValue>,
}

/// The newest value under one key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PublishedValue {
    /// The key.
    pub key: String,
    /// When it was published.
    pub at: Instant,
    /// The value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Json>,
    /// The value, if it is not JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_base64: Option<String>,
}

impl Published {
    pub(crate) fn new(run: RunId, values: &[stepwell_store::Published]) -> Self {
        let published = values
            .iter()
            .map(|row| {
                let (value, value_base64) = to_response(&row.value);
                PublishedValue {
                    key: row.key.clone(),
                    at: Instant(row.at),
                    value,
                    value_base64,
                }
            })
            .collect();
        Self {
            run: run.to_string(),
            published,
        }
    }
}
