//! A server in front of an engine in this process, a client that shows everything, and the
//! redaction of what differs from one time to the next.

use serde_json::{Value, json};
use stepwell_engine::clock::SystemClock;
use stepwell_server::Server;
use tokio::sync::oneshot;

use crate::in_process::World;

/// A server in front of a world.
pub(super) struct Api {
    pub(super) world: World,
    pub(super) url: String,
    agent: ureq::Agent,
    pub(super) server: Server,
    pub(super) stop: Option<oneshot::Sender<()>>,
    pub(super) serving: tokio::task::JoinHandle<()>,
}

/// An answer, whatever its status.
pub(super) struct Answer {
    pub(super) status: u16,
    headers: ureq::http::HeaderMap,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

/// One request.
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: &'a [u8],
}

impl Api {
    pub(super) async fn new() -> Self {
        Self::in_front_of(World::new().await).await
    }

    pub(super) async fn in_front_of(world: World) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Server::new(world.engine.clone(), std::sync::Arc::new(SystemClock));
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(stepwell_server::serve(listener, server.clone(), async {
            let _ = stopped.await;
        }));
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .build()
            .into();
        Self {
            world,
            url,
            agent,
            server,
            stop: Some(stop),
            serving,
        }
    }

    pub(super) fn ask(&self, request: &Request<'_>) -> Answer {
        tokio::task::block_in_place(|| self.send(request))
    }

    pub(super) fn send(&self, request: &Request<'_>) -> Answer {
        let mut builder = ureq::http::Request::builder()
            .method(request.method)
            .uri(format!("{}{}", self.url, request.path));
        for (name, value) in request.headers {
            builder = builder.header(*name, *value);
        }
        let mut answer = match request.body {
            [] => self.agent.run(builder.body(()).unwrap()).unwrap(),
            body => self.agent.run(builder.body(body).unwrap()).unwrap(),
        };
        let text = answer
            .body_mut()
            .with_config()
            .limit(64 << 20)
            .read_to_string()
            .unwrap();
        Answer {
            status: answer.status().as_u16(),
            headers: answer.headers().clone(),
            text,
        }
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.ask(&Request {
            method: "GET",
            path,
            headers: &[],
            body: b"",
        })
    }

    pub(super) fn post(&self, path: &str, body: &str) -> Answer {
        let headers = [("content-type", "application/json")];
        self.ask(&Request {
            method: "POST",
            path,
            headers: &headers,
            body: body.as_bytes(),
        })
    }

    /// Starts a run, and answers with its id.
    pub(super) fn start(&self, workflow: &str, input: &str) -> String {
        let answer = self.post(
            &format!("/v1/workflows/{workflow}/runs"),
            &format!(r#"{{"input":{input}}}"#),
        );
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["run"].as_str().unwrap().to_owned()
    }

    /// The run, once it has ended.
    pub(super) fn ended(&self, run: &str) -> Value {
        let run = self.get(&format!("/v1/runs/{run}/wait")).json();
        assert_eq!(run["is_final"], true, "{run}");
        run
    }

    /// Waits until the run has this status.
    pub(super) async fn until(&self, run: &str, status: &str) {
        self.world
            .until(run.parse().unwrap(), status.parse().unwrap())
            .await;
    }
}

/// Replaces what differs from one time to the next: ids, times, digests.
pub(super) fn redacted(text: &str) -> String {
    let mut redacted = text.to_owned();
    for (prefix, name) in [
        ("run_", "[run]"),
        ("host_", "[host]"),
        ("sha256:", "[digest]"),
    ] {
        let mut from = 0;
        while let Some(found) = redacted[from..].find(prefix) {
            let begin = from + found;
            let rest = &redacted[begin + prefix.len()..];
            let digits = rest
                .find(|c: char| !c.is_ascii_hexdigit())
                .unwrap_or(rest.len());
            from = begin + prefix.len();
            // Shorter ones are words that begin alike.
            if digits >= 32 {
                redacted.replace_range(begin..from + digits, name);
                from = begin + name.len();
            }
        }
    }
    let bytes = redacted.as_bytes();
    let is_time = |at: usize| {
        let shape = b"0000-00-00T00:00:00.000Z";
        bytes.len() >= at + shape.len()
            && shape.iter().zip(&bytes[at..]).all(|(want, found)| {
                if *want == b'0' {
                    found.is_ascii_digit()
                } else {
                    want == found
                }
            })
    };
    let mut plain = String::new();
    let mut at = 0;
    while at < bytes.len() {
        if is_time(at) {
            plain.push_str("[time]");
            at += 24;
        } else {
            let next = redacted[at..].chars().next().unwrap();
            plain.push(next);
            at += next.len_utf8();
        }
    }
    plain
}

/// The same in a document; also fields that a change elsewhere may change.
pub(super) fn redacted_json(document: &Value) -> Value {
    let mut document: Value = serde_json::from_str(&redacted(&document.to_string())).unwrap();
    if let Some(fields) = document.as_object_mut() {
        for name in ["journal_bytes", "revision", "sdk"] {
            if fields.contains_key(name) {
                fields.insert(name.to_owned(), json!("[varies]"));
            }
        }
    }
    document
}
