//! The host's API, as far as the workloads need it.

use serde::de::DeserializeOwned;
use stepwell_server::wire;

use crate::connections::{Connections, Request};
use crate::error::Error;

/// Asks one host. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub(crate) struct Client(Connections);

impl Client {
    /// For the host at this address of the loopback, such as `127.0.0.1:7117`.
    pub(crate) fn new(address: &str) -> Self {
        Self(Connections::new(address))
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
        self.ask("GET", path, "", &[])
    }

    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str, body: &str) -> Result<T, Error> {
        self.ask("POST", path, "application/json", body.as_bytes())
    }

    pub(crate) fn put<T: DeserializeOwned>(&self, path: &str, body: &[u8]) -> Result<T, Error> {
        self.ask("PUT", path, "application/wasm", body)
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> Result<T, Error> {
        let asked = || format!("{method} /v1/{path}");
        let request = Request {
            method,
            path,
            content_type,
            body,
        };
        let answer = self.0.ask(&request).map_err(|source| Error::Http {
            request: asked(),
            source,
        })?;
        if !(200..300).contains(&answer.status) {
            return Err(Error::unexpected(format!(
                "{} was answered with {}: {}",
                asked(),
                answer.status,
                String::from_utf8_lossy(&answer.body)
            )));
        }
        serde_json::from_slice(&answer.body).map_err(|error| {
            Error::unexpected(format!("the answer to {} cannot be read: {error}", asked()))
        })
    }
}
