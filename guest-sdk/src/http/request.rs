//! What is sent.

use std::time::Duration;

use serde::Serialize;

use super::response::Response;
use super::url::Url;
use crate::failure::Failure;
use crate::span::IntoSpan;

/// How long a request may take unless it says otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How large the body of an answer may be unless the request says otherwise: 8 MiB.
const RESPONSE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A request that has not been sent; made by [`get`](super::get), [`post`](super::post) and their
/// like. What is wrong with it is said by [`send`](Self::send).
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    #[cfg_attr(
        not(target_arch = "wasm32"),
        allow(dead_code, reason = "a scripted answer takes no time")
    )]
    pub(super) timeout: Duration,
    pub(super) response_bytes_max: usize,
    problem: Option<Failure>,
}

impl Request {
    pub(super) fn new(method: &'static str, url: impl Into<String>) -> Self {
        Self {
            method,
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout: TIMEOUT,
            response_bytes_max: RESPONSE_BYTES_MAX,
            problem: None,
        }
    }

    /// Adds a header; one name may be added several times.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.body = bytes.into();
        self
    }

    /// Sets the body to a value as JSON, and says so in the `Content-Type`.
    pub fn json<T: Serialize + ?Sized>(mut self, value: &T) -> Self {
        match serde_json::to_vec(value) {
            Ok(bytes) => self.body = bytes,
            Err(error) => return self.problem(format!("cannot write its body as JSON: {error}")),
        }
        self.header("Content-Type", "application/json")
    }

    /// The longest that all of it may take, from the connection to the last byte of the answer;
    /// 30 seconds unless said otherwise.
    pub fn timeout(mut self, span: impl IntoSpan) -> Self {
        match span.into_span() {
            Ok(span) => self.timeout = span,
            Err(error) => return self.problem(error.to_string()),
        }
        self
    }

    /// The most bytes that the body of the answer may have; 8 MiB unless said otherwise.
    pub fn response_bytes_max(mut self, bytes: usize) -> Self {
        self.response_bytes_max = bytes;
        self
    }

    /// Sends it and waits for the whole answer, whatever its status.
    ///
    /// # Errors
    /// As in the [module's table](super); a bad status is none.
    pub fn send(self) -> Result<Response, Failure> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let url = Url::parse(&self.url).map_err(|found| self.bad(&found))?;
        let response = self.exchange(&url)?;
        if response.bytes().len() > self.response_bytes_max {
            return Err(self.too_large());
        }
        Ok(response)
    }

    #[cfg(target_arch = "wasm32")]
    fn exchange(&self, url: &Url<'_>) -> Result<Response, Failure> {
        super::transport::exchange(self, url)
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn exchange(&self, _: &Url<'_>) -> Result<Response, Failure> {
        crate::testing::answer_request(self)
    }

    /// The request as messages name it. Without query, where secrets travel.
    pub(crate) fn name(&self) -> String {
        let end = self.url.find(['?', '#']).unwrap_or(self.url.len());
        format!("{} {}", self.method, &self.url[..end])
    }

    pub(super) fn bad(&self, found: &str) -> Failure {
        Failure::new("http-request", format!("{}: {found}", self.name())).permanent()
    }

    pub(super) fn too_large(&self) -> Failure {
        let message = format!(
            "{}: the answer has more than {} bytes; ask for less, or raise `response_bytes_max`",
            self.name(),
            self.response_bytes_max
        );
        Failure::new("http-response", message).permanent()
    }

    /// Keeps the first thing that was wrong.
    fn problem(mut self, found: String) -> Self {
        if self.problem.is_none() {
            self.problem = Some(self.bad(&found));
        }
        self
    }
}
