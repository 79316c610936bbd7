//! Where and who: tenant, path segments and query of a request, parsed before a handler runs.

use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use stepwell_core::id::{RunId, TenantName, VersionLabel, WorkflowName};

use crate::error::{Kind, Problem};

/// Whose runs the request is about: the header `Stepwell-Tenant`, or `default`.
#[derive(Debug)]
pub(crate) struct Tenant(pub(crate) TenantName);

/// The header that names the tenant.
pub(crate) const TENANT_HEADER: &str = "stepwell-tenant";

impl<S: Sync> FromRequestParts<S> for Tenant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let text = header(&parts.headers, TENANT_HEADER)?.unwrap_or("default");
        text.parse()
            .map(Self)
            .map_err(|error| bad(&format!("header {TENANT_HEADER}"), &error))
    }
}

/// A header that may be given once. Given twice, a proxy and we might each believe another one.
pub(crate) fn header<'a>(
    headers: &'a HeaderMap,
    name: &'static str,
) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().map(|value| value.to_str()).transpose();
    match (value, values.next()) {
        (Ok(value), None) => Ok(value),
        (Ok(_), Some(_)) => Err(bad(&format!("header {name}"), &"it is given twice")),
        (Err(_), _) => Err(bad(&format!("header {name}"), &"it is not plain text")),
    }
}

/// Something that stands in a path as one segment.
pub(crate) trait Segment: FromStr<Err: std::fmt::Display> {
    /// What the router calls it.
    const NAME: &'static str;
}

impl Segment for RunId {
    const NAME: &'static str = "run";
}

impl Segment for WorkflowName {
    const NAME: &'static str = "workflow";
}

impl Segment for VersionLabel {
    const NAME: &'static str = "version";
}

/// A segment of the path.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<T: Segment, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|error| {
                Problem::new(
                    Kind::BadRequest,
                    format!("the path cannot be read: {error}"),
                )
            })?;
        // The router only calls handlers whose segments it has found.
        let text = params
            .iter()
            .find(|(name, _)| *name == T::NAME)
            .map_or("", |(_, text)| text);
        text.parse()
            .map(Self)
            .map_err(|error| bad("the path", &error))
    }
}

/// The query; its type refuses parameters that it does not know.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(query)| Self(query))
            .map_err(|error| {
                let text = error.body_text();
                bad(
                    "the query",
                    &text
                        .strip_prefix("Failed to deserialize query string: ")
                        .unwrap_or(&text),
                )
            })
    }
}

/// A number in a query; serde's own message would not say what was found.
pub(crate) fn number<'de, D: Deserializer<'de>, T: FromStr>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = |_| D::Error::custom(format!("`{text}` is not a whole number that fits"));
    text.parse().map(Some).map_err(wrong)
}

/// A part of the request that cannot be read.
pub(crate) fn bad(what: &str, error: &dyn std::fmt::Display) -> Problem {
    Problem::new(Kind::BadRequest, format!("{what}: {error}"))
}
