//! Values as they cross the boundary: JSON text for every type that serde knows, raw bytes for
//! [`Binary`]. No size is checked here: the host has the limits and says which was met.

use std::any::{Any, TypeId, type_name};
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bindings::stepwell::workflow::types::Payload;
use crate::failure::Failure;

/// Bytes that cross the boundary as they are, where any other type crosses as JSON: as an input, a
/// result, an event or a published value. Inside another value it is a JSON array of numbers.
///
/// ```
/// # use stepwell_sdk::{Binary, Ctx, Error, workflow};
/// /// Keeps a picture.
/// #[workflow]
/// async fn keep(ctx: Ctx, picture: Binary) -> Result<usize, Error> {
///     let small = ctx.step("shrink", || Ok(Binary(picture.0[..100].to_vec()))).await?;
///     Ok(small.0.len())
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binary(pub Vec<u8>);

impl JsonSchema for Binary {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Binary".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 255 } })
    }
}

/// The schema of a type as JSON text; none for bytes, which no JSON Schema describes.
pub(crate) fn schema<T: JsonSchema + 'static>() -> Option<String> {
    if TypeId::of::<T>() == TypeId::of::<Binary>() {
        return None;
    }
    serde_json::to_string(&schemars::schema_for!(T)).ok()
}

/// A value as it crosses the boundary; `what` names it in the failure.
pub(crate) fn encode<T: Serialize + 'static>(value: &T, what: &str) -> Result<Payload, Failure> {
    if let Some(Binary(bytes)) = (value as &dyn Any).downcast_ref() {
        return Ok(Payload::Binary(bytes.clone()));
    }
    serde_json::to_string(value)
        .map(Payload::Json)
        .map_err(|error| {
            let message = format!(
                "{what}: cannot write a {} as JSON: {error}",
                type_name::<T>()
            );
            Failure::new("encode", message).permanent()
        })
}

/// A value that crossed the boundary; `what` names it in the failure.
pub(crate) fn decode<T: DeserializeOwned + 'static>(
    payload: &Payload,
    what: &str,
) -> Result<T, Failure> {
    let failure = |found: String| {
        Failure::new(
            "decode",
            format!("{what}: cannot read it as a {}: {found}", type_name::<T>()),
        )
        .permanent()
    };
    let wants_bytes = TypeId::of::<T>() == TypeId::of::<Binary>();
    match payload {
        Payload::Json(text) if !wants_bytes => {
            serde_json::from_str(text).map_err(|error| failure(error.to_string()))
        }
        Payload::Binary(bytes) if wants_bytes => {
            let value: Box<dyn Any> = Box::new(Binary(bytes.clone()));
            value
                .downcast()
                .map(|value| *value)
                .map_err(|_| failure("it is not of that type".to_owned()))
        }
        Payload::Json(_) => Err(failure("it is JSON text".to_owned())),
        Payload::Binary(bytes) => Err(failure(format!(
            "it is {} bytes that are not JSON text",
            bytes.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]

    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn bytes_cross_as_bytes_and_all_else_as_json() {
        let bytes = encode(&Binary(vec![0, 255]), "x").unwrap();
        assert_eq!(bytes, Payload::Binary(vec![0, 255]));
        assert_eq!(decode::<Binary>(&bytes, "x"), Ok(Binary(vec![0, 255])));
        let json = encode(&vec![1_u8, 2], "x").unwrap();
        assert_eq!(json, Payload::Json("[1,2]".to_owned()));
        assert_eq!(decode::<Vec<u8>>(&json, "x"), Ok(vec![1, 2]));
        assert_eq!(schema::<Binary>(), None);
    }

    #[test]
    fn large_integers_keep_their_digits() {
        for number in [u64::MAX, 9_007_199_254_740_993] {
            let payload = encode(&number, "x").unwrap();
            assert_eq!(decode::<u64>(&payload, "x"), Ok(number));
        }
    }

    #[test]
    fn a_misfit_names_the_value_the_type_and_the_place() {
        let failure = decode::<u32>(
            &Payload::Json("\"a\"".to_owned()),
            "the result of step `count`",
        )
        .unwrap_err();
        assert_eq!(
            failure.message,
            "the result of step `count`: cannot read it as a u32: invalid type: string \"a\", expected u32 at line 1 column 3"
        );
        assert!(!failure.retryable);
        assert!(
            decode::<u32>(&Payload::Binary(vec![1]), "x")
                .unwrap_err()
                .message
                .contains("1 bytes that are not JSON")
        );
        assert!(
            decode::<Binary>(&Payload::Json("[1]".to_owned()), "x")
                .unwrap_err()
                .message
                .contains("JSON text")
        );
        let unwritable = BTreeMap::from([(vec![1_u8], 1)]);
        assert_eq!(encode(&unwritable, "x").unwrap_err().kind, "encode");
    }
}
