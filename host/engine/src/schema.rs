//! JSON Schemas that tenants wrote, compiled, and held against payloads that strangers sent, at a
//! bounded cost.
//!
//! A schema of a few hundred bytes can ask for more work than any machine has: each level of a
//! chain of `anyOf`s doubles it, and so does each level of a payload under a schema that refers to
//! itself twice. So a schema's size is counted with all references followed, and the cost of a
//! check is estimated before it begins. What is dear runs beside the threads that everybody shares.
//! What is too dear is not checked here: the workflow's own types say no to what they cannot take.

use std::collections::BTreeSet;
use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;
use stepwell_core::payload::Payload;
use tokio::sync::Semaphore;

/// A compiled schema. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    validator: Arc<Validator>,
    size: Size,
}

/// How much a schema can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    /// Its nodes, with all references followed until one leads back to where it is in.
    nodes: u64,
    /// How often one leads back.
    loops: u64,
}

/// Why a schema is not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("it refers to `{0}`; it may refer to what is in it only, as `#/…`")]
    Reference(String),
    #[error("it uses `{0}`, which is not supported")]
    Keyword(&'static str),
    #[error(
        "with its references followed it has more than {NODES_MAX} nodes, which is the limit; make it simpler"
    )]
    TooLarge,
    #[error("{0}")]
    Invalid(String),
}

/// Nodes of a schema, with its references followed.
const NODES_MAX: u64 = 10_000;
/// The nesting of schemas and references that is followed.
const DEPTH_MAX: usize = 100;
/// Visits of a schema's node to a part of a payload, at most: about a second's work.
const VISITS_MAX: u64 = 10_000_000;
/// With more than these, a check does not run on a thread that others wait for.
const VISITS_INLINE_MAX: u64 = 20_000;
/// With more than these, the places that do not fit are not looked for: finding them keeps a note
/// of every visit.
const VISITS_EXPLAINED_MAX: u64 = 200_000;

/// Dear checks that run at once.
static DEAR: Semaphore = Semaphore::const_new(1);

impl Schema {
    pub(crate) fn compile(schema: &Value) -> Result<Self, Error> {
        let size = Size::of(schema)?;
        let validator =
            jsonschema::validator_for(schema).map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(Self {
            validator: Arc::new(validator),
            size,
        })
    }

    /// Where a payload does not fit: the first few places. Binary payloads fit every schema.
    pub(crate) async fn misfits(&self, payload: &Payload) -> Option<String> {
        let Payload::Json(text) = payload else {
            return None;
        };
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            // Half of a surrogate pair, or nested too deeply.
            Err(error) => return Some(format!("it is not JSON that stands for a value: {error}")),
        };
        let visits = self.size.visits(text.len(), depth(&value));
        if visits <= VISITS_INLINE_MAX {
            return self.first_misfits(&value, visits);
        }
        if visits > VISITS_MAX {
            tracing::debug!(
                visits,
                "a payload is too dear to be checked against its schema"
            );
            return None;
        }
        // Never closed.
        let _permit = DEAR.acquire().await;
        let schema = self.clone();
        let checked = tokio::task::spawn_blocking(move || schema.first_misfits(&value, visits));
        checked
            .await
            .unwrap_or_else(|_| Some("the check broke off; send it again".to_owned()))
    }

    fn first_misfits(&self, value: &Value, visits: u64) -> Option<String> {
        if self.validator.is_valid(value) {
            return None;
        }
        if visits > VISITS_EXPLAINED_MAX {
            return Some("it does not fit, and is too large to say where".to_owned());
        }
        let misfits: Vec<String> = self
            .validator
            .iter_errors(value)
            .take(3)
            .map(|error| match error.instance_path().to_string() {
                path if path.is_empty() => error.to_string(),
                path => format!("at {path}: {error}"),
            })
            .collect();
        Some(misfits.join("; "))
    }
}

impl Size {
    fn of(schema: &Value) -> Result<Self, Error> {
        let mut walk = Walk {
            root: schema,
            size: Self { nodes: 0, loops: 0 },
            within: BTreeSet::new(),
        };
        walk.follow(schema, 0)?;
        Ok(walk.size)
    }

    /// How often one of its nodes is held against a part of such a payload, at most and about.
    fn visits(self, bytes: usize, depth: u32) -> u64 {
        // A small part of a payload, with its comma and its key, has some eight bytes.
        let parts = 1 + bytes as u64 / 8;
        let levels = if self.loops < 2 {
            1
        } else {
            self.loops.saturating_pow(depth)
        };
        self.nodes.saturating_mul(parts).saturating_mul(levels)
    }
}

struct Walk<'a> {
    root: &'a Value,
    size: Size,
    /// The references that lead to where the walk is.
    within: BTreeSet<&'a str>,
}

impl<'a> Walk<'a> {
    fn follow(&mut self, node: &'a Value, depth: usize) -> Result<(), Error> {
        self.size.nodes += 1;
        if self.size.nodes > NODES_MAX || depth > DEPTH_MAX {
            return Err(Error::TooLarge);
        }
        match node {
            Value::Object(fields) => {
                for keyword in ["$id", "$dynamicRef", "$recursiveRef"] {
                    // The root may have a name.
                    if fields.contains_key(keyword) && depth > 0 {
                        return Err(Error::Keyword(keyword));
                    }
                }
                for (keyword, field) in fields {
                    match (keyword.as_str(), field) {
                        ("$ref", Value::String(reference)) => self.refer(reference, depth)?,
                        // Counted where they are referred to.
                        ("$defs" | "definitions", _) => {}
                        _ => self.follow(field, depth + 1)?,
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.follow(item, depth + 1)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }

    fn refer(&mut self, reference: &'a str, depth: usize) -> Result<(), Error> {
        let unknown = || Error::Reference(reference.chars().take(80).collect());
        let pointer = reference.strip_prefix('#').ok_or_else(unknown)?;
        let target = self.root.pointer(pointer).ok_or_else(unknown)?;
        // The root is within itself from the start.
        if pointer.is_empty() || !self.within.insert(reference) {
            self.size.loops += 1;
            return Ok(());
        }
        self.follow(target, depth + 1)?;
        self.within.remove(reference);
        Ok(())
    }
}

fn depth(value: &Value) -> u32 {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;

    fn payload(text: impl Into<String>) -> Payload {
        Payload::Json(text.into())
    }

    #[tokio::test]
    async fn the_first_places_that_do_not_fit_are_told() {
        let schema = Schema::compile(&json!({
            "type": "object",
            "properties": { "n": { "$ref": "#/$defs/count" } },
            "required": ["n"],
            "$defs": { "count": { "type": "integer", "minimum": 0 } },
        }))
        .unwrap();
        assert_eq!(schema.misfits(&payload(r#"{"n":1}"#)).await, None);
        assert_eq!(schema.misfits(&Payload::Binary(vec![1])).await, None);
        let misfits = schema.misfits(&payload(r#"{"n":-1}"#)).await.unwrap();
        assert!(misfits.starts_with("at /n: "), "{misfits}");
        assert!(schema.misfits(&payload(r#""\ud800""#)).await.is_some());
    }

    #[test]
    fn schemas_that_double_their_work_at_each_level_are_refused() {
        let mut defs = serde_json::Map::new();
        for level in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            defs.insert(format!("d{level}"), json!({ "anyOf": [next, next] }));
        }
        defs.insert("d40".to_owned(), json!({ "type": "string" }));
        let schema = json!({ "$ref": "#/$defs/d0", "$defs": defs });
        assert!(matches!(Schema::compile(&schema), Err(Error::TooLarge)));
    }

    #[tokio::test]
    async fn a_payload_that_doubles_the_work_at_each_level_costs_little_time() {
        let schema = Schema::compile(&json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "$ref": "#" } },
            { "type": "array", "items": { "$ref": "#" }, "minItems": 0 },
        ]}))
        .unwrap();
        let nested =
            |depth: usize| payload(format!("{}\"x\"{}", "[".repeat(depth), "]".repeat(depth)));
        let began = Instant::now();
        for depth in [5, 15, 20, 64, 120] {
            assert_eq!(schema.misfits(&nested(depth)).await, None, "{depth}");
        }
        assert!(schema.misfits(&payload("[[7]]")).await.is_some());
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{:?}",
            began.elapsed()
        );
    }

    #[tokio::test]
    async fn a_list_that_refers_to_itself_once_may_be_as_deep_as_json_is() {
        let schema = Schema::compile(&json!({
            "type": ["object", "null"],
            "properties": { "next": { "$ref": "#" } },
        }))
        .unwrap();
        let deep = format!("{}null{}", r#"{"next":"#.repeat(100), "}".repeat(100));
        assert_eq!(schema.misfits(&payload(deep)).await, None);
    }

    #[test]
    fn what_is_no_schema_or_refers_elsewhere_is_refused() {
        for bad in [
            json!({ "type": "strange" }),
            json!({ "$ref": "https://example.com/schema.json" }),
            json!({ "$ref": "#/$defs/missing" }),
            json!({ "items": { "$dynamicRef": "#node" } }),
            json!({ "items": { "$id": "other", "type": "string" } }),
        ] {
            assert!(Schema::compile(&bad).is_err(), "{bad}");
        }
    }
}
