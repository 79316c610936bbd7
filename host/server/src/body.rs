//! Bodies: read under a bound of size and of time, and JSON in both directions.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Kind, Problem};

/// A JSON body: a payload of the default limit (1 MiB), as base64, and room for the rest.
const JSON_BYTES_MAX: usize = 2 * 1024 * 1024;

/// For a JSON body to arrive.
const JSON_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads a body to its end.
///
/// # Errors
/// [`Kind::TooLarge`] names the limit and, if the client announced it, the size;
/// [`Kind::BodyTimeout`]; [`Kind::BadRequest`] if the connection breaks.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
    timeout: Duration,
) -> Result<Bytes, Problem> {
    tokio::time::timeout(timeout, bounded(headers, body, bytes_max))
        .await
        .unwrap_or_else(|_| {
            let detail = format!(
                "the body did not arrive within {} s; send it again",
                timeout.as_secs()
            );
            Err(Problem::new(Kind::BodyTimeout, detail))
        })
}

async fn bounded(headers: &HeaderMap, mut body: Body, bytes_max: usize) -> Result<Bytes, Problem> {
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok())
        .and_then(|text| text.parse().ok());
    let mut bytes = BytesMut::with_capacity(announced.unwrap_or(0_usize).min(bytes_max));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Problem::new(Kind::BadRequest, format!("the body broke off: {error}"))
        })?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        if bytes.len() + data.len() > bytes_max {
            let problem = match announced {
                Some(found) => Problem::new(
                    Kind::TooLarge,
                    format!("the body has {found} bytes; the limit is {bytes_max} bytes"),
                )
                .with("found_bytes", found),
                None => Problem::new(
                    Kind::TooLarge,
                    format!("the body has more than {bytes_max} bytes, which is the limit"),
                ),
            };
            return Err(problem.with("limit_bytes", bytes_max));
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes.freeze())
}

/// A request's JSON. No body at all counts as `{}`.
#[derive(Debug)]
pub(crate) struct JsonRequest<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonRequest<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = read(&parts.headers, body, JSON_BYTES_MAX, JSON_TIMEOUT).await?;
        if bytes.is_empty() {
            return parse(b"{}").map(Self);
        }
        // A browser sends this type to another site only if that site permits it, and we never do.
        // Text that happens to be JSON would go through unasked.
        let kind = parts
            .headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        if kind
            .split(';')
            .next()
            .map(str::trim)
            .is_none_or(|kind| !kind.eq_ignore_ascii_case("application/json"))
        {
            return Err(Problem::new(
                Kind::UnsupportedMediaType,
                format!(
                    "the body is `{kind}`; send it with the header `Content-Type: application/json` (curl has `--json`)"
                ),
            ));
        }
        parse(&bytes).map(Self)
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let reason = text
            .strip_suffix(&format!(" at line {line} column {column}"))
            .unwrap_or(&text);
        let detail =
            format!("the body is not the JSON expected, at line {line} column {column}: {reason}");
        Problem::new(Kind::BadBody, detail)
            .with("line", line)
            .with("column", column)
    })
}

/// A response's JSON.
#[derive(Debug)]
pub(crate) struct JsonResponse<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for JsonResponse<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(mut body) => {
                // A terminal's prompt should not end up behind the last brace.
                body.push(b'\n');
                (
                    [(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
                    body,
                )
                    .into_response()
            }
            Err(error) => Problem::new(
                Kind::Internal,
                format!("the answer could not be written: {error}"),
            )
            .into_response(),
        }
    }
}
