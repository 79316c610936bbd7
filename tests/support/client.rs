//! Talks HTTP and JSON to a host.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A client of one host.
#[derive(Debug, Clone)]
pub struct Client {
    agent: ureq::Agent,
    url: String,
    tenant: Option<String>,
}

/// What a host answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body; `Null` if it is empty or not JSON.
    pub json: Value,
}

impl Answer {
    /// The body, if the status is one of success.
    ///
    /// # Errors
    /// With the status and the body, if it is not.
    pub fn ok(self) -> Result<Value> {
        if (200..300).contains(&self.status) {
            return Ok(self.json);
        }
        bail!("status {}: {}", self.status, self.json);
    }
}

impl Client {
    /// For the host at this URL, without a slash at the end.
    pub fn new(url: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(90)))
            .build();
        Self {
            agent: config.into(),
            url: url.to_owned(),
            tenant: None,
        }
    }

    /// The same, on behalf of this tenant.
    #[must_use]
    pub fn tenant(&self, tenant: &str) -> Self {
        Self {
            tenant: Some(tenant.to_owned()),
            ..self.clone()
        }
    }

    /// `GET path`.
    ///
    /// # Errors
    /// If the host cannot be reached.
    pub fn get(&self, path: &str) -> Result<Answer> {
        let mut request = self.agent.get(format!("{}{path}", self.url));
        if let Some(tenant) = &self.tenant {
            request = request.header("stepwell-tenant", tenant);
        }
        answer(request.call().with_context(|| format!("GET {path}"))?)
    }

    /// `POST path` with a JSON body.
    ///
    /// # Errors
    /// If the host cannot be reached.
    pub fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        self.send(
            "POST",
            path,
            "application/json",
            body.to_string().as_bytes(),
        )
    }

    /// Any method with a body of any kind.
    ///
    /// # Errors
    /// If the host cannot be reached.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> Result<Answer> {
        let url = format!("{}{path}", self.url);
        let request = match method {
            "PUT" => self.agent.put(url),
            "POST" => self.agent.post(url),
            other => bail!("{other} requests have no body"),
        };
        let mut request = request.header("content-type", content_type);
        if let Some(tenant) = &self.tenant {
            request = request.header("stepwell-tenant", tenant);
        }
        answer(
            request
                .send(body)
                .with_context(|| format!("{method} {path}"))?,
        )
    }
}

fn answer(mut response: ureq::http::Response<ureq::Body>) -> Result<Answer> {
    let status = response.status().as_u16();
    let text = response
        .body_mut()
        .with_config()
        .limit(64 * 1024 * 1024)
        .read_to_string()
        .context("the body broke off")?;
    Ok(Answer {
        status,
        json: serde_json::from_str(&text).unwrap_or(Value::Null),
    })
}
