//! Payloads in JSON documents: JSON stays as it is, anything else becomes base64 beside it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use stepwell_core::payload::Payload;

/// A JSON value as text, kept byte for byte.
pub type Json = Box<RawValue>;

/// A text that is not base64.
#[derive(Debug, thiserror::Error)]
#[error("`{field}_base64` is not base64: {detail}")]
pub(crate) struct BadBase64 {
    field: &'static str,
    detail: base64::DecodeError,
}

/// Splits a payload into its two fields: the JSON one and the `_base64` one.
///
/// A guest may hand over text as JSON that is none, and the store keeps it unread. It would break
/// the document around it, so it goes out as base64 too.
pub(crate) fn to_response(payload: &Payload) -> (Option<Json>, Option<String>) {
    match payload {
        Payload::Json(text) => match RawValue::from_string(text.clone()) {
            Ok(json) => (Some(json), None),
            Err(_) => (None, Some(STANDARD.encode(text))),
        },
        Payload::Binary(bytes) => (None, Some(STANDARD.encode(bytes))),
    }
}

/// Joins the two fields of a request; `None` if both are absent.
pub(crate) fn from_request(
    field: &'static str,
    json: Option<Json>,
    base64: Option<String>,
) -> Result<Option<Payload>, BadBase64> {
    match (json, base64) {
        (json, Some(text)) if json.is_none() => match STANDARD.decode(text) {
            Ok(bytes) => Ok(Some(Payload::Binary(bytes))),
            Err(detail) => Err(BadBase64 { field, detail }),
        },
        (json, _) => Ok(json.map(|json| Payload::Json(json.get().to_owned()))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    #[test]
    fn json_keeps_every_byte_and_the_rest_becomes_base64() {
        let text = r#"{ "id": 12345678901234567890123,  "x": 1.00 }"#;
        let (json, base64) = to_response(&Payload::Json(text.to_owned()));
        assert_eq!((json.unwrap().get(), base64), (text, None));
        let (json, base64) = to_response(&Payload::Binary(vec![0, 255]));
        assert!(json.is_none());
        assert_eq!(base64.as_deref(), Some("AP8="));
        let (json, base64) = to_response(&Payload::Json("{oops".to_owned()));
        assert!(json.is_none());
        assert_eq!(base64.as_deref(), Some("e29vcHM="));
    }

    #[test]
    fn requests_give_back_what_responses_were_given() {
        for payload in [
            Payload::Json("[1, 2]".to_owned()),
            Payload::Binary(b"\0x".to_vec()),
        ] {
            let (json, base64) = to_response(&payload);
            assert_eq!(from_request("input", json, base64).unwrap(), Some(payload));
        }
        let error = from_request("input", None, Some("*".to_owned())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`input_base64` is not base64: Invalid symbol 42, offset 0."
        );
    }
}
