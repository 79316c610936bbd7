//! The JSON of the HTTP API, and nothing else: one file per noun, each with the conversion from what
//! the store and the engine know.
//!
//! Written by the server and read by the CLI, so the two cannot drift apart. Domain types are never
//! serialized; a field changes here on purpose or not at all.
//!
//! - Points in time are RFC 3339 text in UTC with milliseconds; spans carry `_ms` in their name.
//! - A payload that is JSON stands in its field byte for byte, so a 64-bit integer keeps its digits.
//!   Any other payload stands under the same name with `_base64` behind it, and the first is absent.
//! - No type here uses `flatten` or an internal tag: serde buffers what it reads for them, and a
//!   buffered number loses its digits.

mod event;
mod failure;
mod history;
mod log;
mod problem;
mod published;
mod run;
mod time;
mod value;
mod version;

pub use event::{Event, Events, Send, Sent};
pub use failure::{Failure, Source};
pub use history::{Entry, EntryType, History};
pub use log::{Line, Logs};
pub use problem::Problem;
pub use published::{Published, PublishedValue};
pub use run::{Run, RunSummary, Runs, Start, Started, Verb, Verdict};
pub use time::{BadSpan, BadTime, Instant, Span};
pub use value::Json;
pub use version::{Registered, Task, Version, Versions, Workflow};

pub(crate) use value::from_request;
