//! A first input for a workflow, made from its schema: something to edit rather than to look up.

use serde_json::{Map, Value};

/// The longest sketch; beyond it, the schema is better company.
const LENGTH_MAX: usize = 120;

/// An input with every required property and a placeholder for each value; `None` if the workflow
/// takes nothing, or nothing in particular.
pub(super) fn sketch(schema: &str) -> Option<String> {
    let schema: Value = serde_json::from_str(schema).ok()?;
    let value = placeholder(&schema, &schema)?;
    let text = value.to_string();
    // Single quotes are what keeps the sketch together in a shell.
    if text.chars().count() > LENGTH_MAX || text.contains('\'') {
        Some("…".to_owned())
    } else {
        Some(text)
    }
}

fn placeholder(whole: &Value, schema: &Value) -> Option<Value> {
    if let Some(example) = schema
        .get("default")
        .or_else(|| schema["enum"].get(0))
        .or_else(|| schema.get("const"))
    {
        return Some(example.clone());
    }
    match schema["type"].as_str() {
        Some("string") => Some("…".into()),
        Some("integer" | "number") => {
            Some(schema.get("minimum").cloned().unwrap_or_else(|| 1.into()))
        }
        Some("boolean") => Some(false.into()),
        Some("array") => Some(Value::Array(Vec::new())),
        Some("object") => Some(Value::Object(properties(whole, schema))),
        _ => {
            let inner = referred(whole, schema)?;
            // One look-up is enough for what derive writes, and cannot go round in circles.
            let is_plain = inner.get("$ref").is_none();
            is_plain.then(|| placeholder(whole, inner)).flatten()
        }
    }
}

fn properties(whole: &Value, schema: &Value) -> Map<String, Value> {
    let required = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    required
        .map(|name| {
            let property = &schema["properties"][name];
            // What stands in `$defs` may hold itself; its type is enough at this depth.
            let value = match referred(whole, property) {
                Some(inner) if inner["type"] == "object" => Value::Object(Map::new()),
                _ => placeholder(whole, property).unwrap_or(Value::Null),
            };
            (name.to_owned(), value)
        })
        .collect()
}

fn referred<'a>(whole: &'a Value, schema: &Value) -> Option<&'a Value> {
    whole.pointer(schema["$ref"].as_str()?.strip_prefix('#')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sketches_have_what_is_required_and_nothing_else() {
        let schema = r##"{
            "type": "object", "required": ["id", "amount", "rush", "how", "lines", "to"],
            "properties": {
                "id": { "type": "string" }, "amount": { "type": "integer", "minimum": 0 }, "rush": { "type": "boolean" },
                "how": { "$ref": "#/$defs/How" }, "lines": { "type": "array" }, "note": { "type": "string" },
                "to": { "$ref": "#/$defs/To" }
            },
            "$defs": {
                "How": { "type": "string", "enum": ["fast", "slow"] },
                "To": { "type": "object", "required": ["back"], "properties": { "back": { "$ref": "#/$defs/To" } } }
            }
        }"##;
        assert_eq!(
            sketch(schema).as_deref(),
            Some(r#"{"amount":0,"how":"fast","id":"…","lines":[],"rush":false,"to":{}}"#)
        );
    }

    #[test]
    fn nothing_in_particular_has_no_sketch_and_a_loop_has_an_end() {
        assert_eq!(sketch("true"), None);
        assert_eq!(sketch(r#"{"type":"null"}"#), None);
        assert_eq!(sketch("not json"), None);
        assert_eq!(sketch(r##"{"$ref":"#"}"##), None);
        assert_eq!(
            sketch(r##"{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/A"}}}"##),
            None
        );
        let nested = r#"{"type":"object","required":["a"],"properties":{"a":{"type":"object","required":["b"]}}}"#;
        assert_eq!(sketch(nested).as_deref(), Some(r#"{"a":{"b":null}}"#));
    }
}
