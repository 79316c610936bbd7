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
use tokio::sync::Semaphore;

use crate::error::{Kind, Problem};
use crate::server::Server;

/// A JSON body: a payload of the default limit (1 MiB), as base64, and room for the rest.
const JSON_BYTES_MAX: usize = 2 * 1024 * 1024;

/// For a JSON body to arrive.
const JSON_TIMEOUT: Duration = Duration::from_secs(30);

/// A body up to this size is read without further ado: of each connection, that is little.
const SMALL_BYTES_MAX: usize = 64 * 1024;

/// How a body is read.
#[derive(Debug)]
pub(crate) struct Bounds<'a> {
    /// Its size, at most.
    pub(crate) bytes_max: usize,
    /// For all of it to arrive.
    pub(crate) timeout: Duration,
    /// Places for bodies that are not small: thousands of clients that each send most of a large
    /// body, and then nothing, must not fill the memory.
    pub(crate) places: &'a Semaphore,
}

/// Reads a body to its end.
///
/// # Errors
/// [`Kind::TooLarge`] names the limit and, if the client announced it, the size;
/// [`Kind::BodyTimeout`]; [`Kind::BadRequest`] if the connection breaks.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    bounds: &Bounds<'_>,
) -> Result<Bytes, Problem> {
    tokio::time::timeout(bounds.timeout, bounded(headers, body, bounds))
        .await
        .unwrap_or_else(|_| {
            let detail = format!(
                "the body did not arrive within {} s; send it again",
                bounds.timeout.as_secs()
            );
            Err(Problem::new(Kind::BodyTimeout, detail))
        })
}

async fn bounded(
    headers: &HeaderMap,
    mut body: Body,
    bounds: &Bounds<'_>,
) -> Result<Bytes, Problem> {
    let announced = announced(headers);
    if let Some(found) = announced.filter(|&found| found > bounds.bytes_max as u64) {
        let detail = format!(
            "the body has {found} bytes; the limit is {} bytes",
            bounds.bytes_max
        );
        return Err(too_large(bounds, detail).with("found_bytes", found));
    }
    let mut bytes = BytesMut::new();
    let mut place = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Problem::new(Kind::BadRequest, format!("the body broke off: {error}"))
        })?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        let size = bytes.len() + data.len();
        if size > bounds.bytes_max {
            let detail = format!(
                "the body has more than {} bytes, which is the limit",
                bounds.bytes_max
            );
            return Err(too_large(bounds, detail));
        }
        if size > SMALL_BYTES_MAX && place.is_none() {
            // Only closed when the server is gone, and then nobody is here.
            place = bounds.places.acquire().await.ok();
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes.freeze())
}

/// The size that a request says its body has.
pub(crate) fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(bounds: &Bounds<'_>, detail: String) -> Problem {
    Problem::new(Kind::TooLarge, detail).with("limit_bytes", bounds.bytes_max)
}

/// A request's JSON. No body at all counts as `{}`.
#[derive(Debug)]
pub(crate) struct JsonRequest<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Server> for JsonRequest<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, server: &Server) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bounds = Bounds {
            bytes_max: JSON_BYTES_MAX,
            timeout: JSON_TIMEOUT,
            places: server.body_places(),
        };
        let bytes = read(&parts.headers, body, &bounds).await?;
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

/// Every body is an object; serde would also fill one's fields from an array, in their order.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'{') {
        let detail = "the body is not the JSON expected: it must be an object, `{…}`";
        return Err(Problem::new(Kind::BadBody, detail));
    }
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
