//! HTTP to the host process, over kept connections.

use std::time::Duration;

use serde::de::DeserializeOwned;
use stepwell_server::wire;

use crate::error::Error;

/// Longer than the longest that a host lets anybody wait (60 s).
const TIMEOUT: Duration = Duration::from_secs(90);
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// One pool of connections to one host. Cheap to clone; clones share the pool.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    agent: ureq::Agent,
    url: String,
}

impl Client {
    pub(crate) fn new(url: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .build();
        Self {
            agent: config.into(),
            url: format!("{url}/v1/"),
        }
    }

    /// Starts a run, and returns its id.
    pub(crate) fn start(&self, workflow: &str, input: u64) -> Result<String, Error> {
        self.start_with(workflow, &format!("{{\"input\":{input}}}"))
    }

    /// Starts a run that begins at a time, in milliseconds since 1970.
    pub(crate) fn start_at(&self, workflow: &str, input: u64, at_ms: u64) -> Result<String, Error> {
        let at = wire::Instant(stepwell_core::time::Timestamp::from_ms(at_ms));
        self.start_with(
            workflow,
            &format!("{{\"input\":{input},\"start_at\":\"{at}\"}}"),
        )
    }

    fn start_with(&self, workflow: &str, body: &str) -> Result<String, Error> {
        let started: wire::Started = self.post(&format!("workflows/{workflow}/runs"), body)?;
        Ok(started.run)
    }

    /// Waits until a run has completed.
    pub(crate) fn until_completed(&self, run: &str) -> Result<wire::Run, Error> {
        loop {
            let found: wire::Run = self.get(&format!("runs/{run}/wait"))?;
            match found.status.as_str() {
                "completed" => return Ok(found),
                "failed" | "stuck" | "cancelled" | "terminated" => {
                    return Err(Error::unexpected(format!(
                        "{run} did not complete: it is {}: {:?} {:?}",
                        found.status, found.failure, found.reason
                    )));
                }
                // It went on for longer than a request may wait.
                _ => {}
            }
        }
    }

    /// The whole journal of a run.
    pub(crate) fn history(&self, run: &str) -> Result<Vec<wire::Entry>, Error> {
        let mut entries = Vec::new();
        loop {
            let page: wire::History = self.get(&format!(
                "runs/{run}/history?limit=1000&from={}",
                entries.len()
            ))?;
            entries.extend(page.entries);
            if !page.more {
                return Ok(entries);
            }
        }
    }

    /// Whether any run is in one of these statuses, which are written with commas between them.
    pub(crate) fn has_any(&self, statuses: &str) -> Result<bool, Error> {
        let found: wire::Runs = self.get(&format!("runs?status={statuses}&limit=1"))?;
        Ok(!found.runs.is_empty())
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let answer = self.agent.get(format!("{}{path}", self.url)).call();
        read(format!("GET {path}"), answer)
    }

    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str, body: &str) -> Result<T, Error> {
        let request = self.agent.post(format!("{}{path}", self.url));
        let answer = request.content_type("application/json").send(body);
        read(format!("POST {path}"), answer)
    }

    pub(crate) fn put<T: DeserializeOwned>(&self, path: &str, body: &[u8]) -> Result<T, Error> {
        let request = self.agent.put(format!("{}{path}", self.url));
        let answer = request.content_type("application/wasm").send(body);
        read(format!("PUT {path}"), answer)
    }
}

fn read<T: DeserializeOwned>(
    request: String,
    answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
) -> Result<T, Error> {
    let read = answer.and_then(|mut answer| {
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX);
        Ok((status, body.read_to_string()?))
    });
    let (status, text) = match read {
        Ok(read) => read,
        Err(error) => {
            return Err(Error::Http {
                request,
                source: Box::new(error),
            });
        }
    };
    if !status.is_success() {
        return Err(Error::unexpected(format!(
            "{request} was answered with {status}: {text}"
        )));
    }
    serde_json::from_str(&text).map_err(|error| {
        Error::unexpected(format!("the answer to {request} cannot be read: {error}"))
    })
}
