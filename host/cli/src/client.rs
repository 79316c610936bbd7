//! HTTP to a server: requests out, documents or typed errors back.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_server::wire::Problem;

/// For a connection to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// For an answer: longer than the longest wait that a server allows (60 s).
const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);

/// The same after an upload, which is checked and compiled before it is answered.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The longest answer: a page of history ends a little over 4 MiB, a run has two payloads.
const ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A server, on behalf of a tenant.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    agent: ureq::Agent,
    url: String,
    tenant: String,
}

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The server says no (4xx).
    #[error("{}", .0.detail)]
    Refused(Box<Problem>),
    /// The server has a fault (5xx).
    #[error("the server has a fault: {}", .0.detail)]
    Fault(Box<Problem>),
    /// Nobody answers.
    #[error(
        "no Stepwell server answers at {url}: {detail}\n\
         start one with `stepwell serve`, or name another with --server or STEPWELL_SERVER"
    )]
    Unreachable { url: String, detail: String },
    /// Somebody answers, who is no Stepwell server or one of another release.
    #[error(
        "the answer of {url} cannot be read: {detail}\nis it a Stepwell server of the same release as this command?"
    )]
    Unreadable { url: String, detail: String },
}

/// A document, as the server wrote it.
#[derive(Debug, Clone)]
pub(crate) struct Document(String);

impl Document {
    /// The text.
    pub(crate) fn text(&self) -> &str {
        self.0.trim_end()
    }
}

impl Client {
    pub(crate) fn new(url: &str, tenant: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(ANSWER_TIMEOUT))
            .user_agent(concat!("stepwell/", env!("CARGO_PKG_VERSION")))
            .build();
        Self {
            agent: config.into(),
            url: url.trim_end_matches('/').to_owned(),
            tenant: tenant.to_owned(),
        }
    }

    /// `GET` a path below `/v1/`.
    pub(crate) fn get(&self, path: &Path) -> Result<Document, Error> {
        let request = self
            .agent
            .get(self.url_of(path))
            .header("stepwell-tenant", &self.tenant);
        self.read(request.call())
    }

    /// `POST` a JSON document.
    pub(crate) fn post(&self, path: &Path, body: &impl Serialize) -> Result<Document, Error> {
        let request = self
            .agent
            .post(self.url_of(path))
            .header("stepwell-tenant", &self.tenant);
        self.read(request.send_json(body))
    }

    /// `PUT` bytes.
    pub(crate) fn put(&self, path: &Path, bytes: &[u8]) -> Result<Document, Error> {
        let request = self
            .agent
            .put(self.url_of(path))
            .header("stepwell-tenant", &self.tenant);
        let patient = request
            .config()
            .timeout_recv_response(Some(UPLOAD_TIMEOUT))
            .build();
        self.read(patient.content_type("application/wasm").send(bytes))
    }

    /// A document as its type.
    pub(crate) fn parse<T: DeserializeOwned>(&self, document: &Document) -> Result<T, Error> {
        serde_json::from_str(document.text()).map_err(|error| Error::Unreadable {
            url: self.url.clone(),
            detail: error.to_string(),
        })
    }

    fn url_of(&self, path: &Path) -> String {
        format!("{}/v1/{path}", self.url)
    }

    fn read(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Document, Error> {
        let unreachable = |error: ureq::Error| Error::Unreachable {
            url: self.url.clone(),
            detail: match error {
                ureq::Error::Io(error) => error.to_string(),
                other => other.to_string(),
            },
        };
        let mut answer = answer.map_err(unreachable)?;
        let status = answer.status();
        let text = answer
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_string()
            .map_err(unreachable)?;
        if status.is_success() {
            return Ok(Document(text));
        }
        match serde_json::from_str::<Problem>(&text) {
            Ok(problem) if status.is_server_error() => Err(Error::Fault(Box::new(problem))),
            Ok(problem) => Err(Error::Refused(Box::new(problem))),
            Err(_) => Err(Error::Unreadable {
                url: self.url.clone(),
                detail: format!("status {status} without a reason"),
            }),
        }
    }
}

/// A path below `/v1/`, with everything in it escaped.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    text: String,
    has_query: bool,
}

impl Path {
    /// From its segments.
    pub(crate) fn of(segments: &[&str]) -> Self {
        let text = segments
            .iter()
            .map(|segment| escaped(segment))
            .collect::<Vec<_>>()
            .join("/");
        Self {
            text,
            has_query: false,
        }
    }

    /// Adds a query parameter.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.text.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.text.push_str(name);
        self.text.push('=');
        self.text.push_str(&escaped(&value.to_string()));
        self
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_escape_what_they_are_made_of() {
        let path = Path::of(&["runs", "run_1", "events", "a/b ü?"])
            .with("env", "A=1&B=2")
            .with("limit", 5);
        assert_eq!(
            path.to_string(),
            "runs/run_1/events/a%2Fb%20%C3%BC%3F?env=A%3D1%26B%3D2&limit=5"
        );
    }
}
