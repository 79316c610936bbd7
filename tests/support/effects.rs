//! A service outside the host that counts what reaches it: what it has seen, no crash of the host
//! undoes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// One request that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// `POST`, `GET`, …
    pub method: String,
    /// With the query.
    pub path: String,
    /// The `Idempotency-Key` header.
    pub key: Option<String>,
    /// The body as text.
    pub body: String,
}

/// Answers every request with status 200 and a small JSON object, and remembers it.
#[derive(Debug, Clone)]
pub struct Effects {
    url: String,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    seen: Vec<Effect>,
    /// Requests whose path has one of these parts wait for their answer.
    held: BTreeSet<String>,
    /// Requests whose path has this part get this status instead of 200, so many times.
    refused: Vec<(String, u16, usize)>,
}

impl Effects {
    /// Starts listening on a free port of the loopback address. The thread ends with the process.
    ///
    /// # Errors
    /// If no port can be had.
    pub fn listen() -> Result<Self> {
        let listener =
            TcpListener::bind("127.0.0.1:0").context("no port on the loopback address")?;
        let url = format!(
            "http://{}",
            listener.local_addr().context("a listener has an address")?
        );
        let shared = Arc::<Shared>::default();
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&accepting);
                // A broken connection is the client's to notice.
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Ok(Self { url, shared })
    }

    /// Where it listens, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Everything that arrived, in order.
    pub fn seen(&self) -> Vec<Effect> {
        self.shared.state().seen.clone()
    }

    /// How many requests arrived whose path has this part.
    pub fn count(&self, part: &str) -> usize {
        self.shared
            .state()
            .seen
            .iter()
            .filter(|effect| effect.path.contains(part))
            .count()
    }

    /// How many different idempotency keys those had: what a service that honours keys would do.
    pub fn distinct(&self, part: &str) -> usize {
        let state = self.shared.state();
        state
            .seen
            .iter()
            .filter(|effect| effect.path.contains(part))
            .map(|effect| &effect.key)
            .collect::<BTreeSet<_>>()
            .len()
    }

    /// From now on, requests whose path has this part arrive and are counted, but get no answer
    /// until [`Effects::release`].
    pub fn hold(&self, part: &str) {
        self.shared.state().held.insert(part.to_owned());
    }

    /// Answers those that wait, and holds no more.
    pub fn release(&self) {
        self.shared.state().held.clear();
        self.shared.changed.notify_all();
    }

    /// The next `times` requests whose path has this part get this status.
    pub fn refuse(&self, part: &str, status: u16, times: usize) {
        self.shared
            .state()
            .refused
            .push((part.to_owned(), status, times));
    }

    /// Waits until so many requests with this part in their path have arrived.
    ///
    /// # Errors
    /// If they have not within 30 seconds.
    pub fn wait_for(&self, part: &str, count: usize) -> Result<()> {
        let give_up = Instant::now() + Duration::from_secs(30);
        let mut state = self.shared.state();
        loop {
            let found = state
                .seen
                .iter()
                .filter(|effect| effect.path.contains(part))
                .count();
            if found >= count {
                return Ok(());
            }
            let left = give_up.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!(
                    "{found} requests to `{part}` arrived within 30 s, expected {count}: {:?}",
                    state.seen
                );
            }
            state = self
                .shared
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    loop {
        let Some(effect) = read_request(&mut reader)? else {
            return Ok(());
        };
        let path = effect.path.clone();
        let (number, status) = {
            let mut state = shared.state();
            state.seen.push(effect);
            let number = state.seen.len();
            shared.changed.notify_all();
            while state.held.iter().any(|part| path.contains(part.as_str())) {
                state = shared
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            let refused = state
                .refused
                .iter_mut()
                .find(|(part, _, times)| *times > 0 && path.contains(part.as_str()));
            let status = refused.map(|(_, status, times)| {
                *times -= 1;
                *status
            });
            (number, status.unwrap_or(200))
        };
        let body = format!(
            "{{\"id\":\"{}-{number}\",\"ok\":{}}}",
            path.trim_matches('/').replace('/', "-"),
            status == 200
        );
        write!(
            writer,
            "HTTP/1.1 {status} Answer\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        writer.flush()?;
    }
}

fn read_request(reader: &mut impl BufRead) -> Result<Option<Effect>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let method = words.next().context("a request has a method")?.to_owned();
    let path = words.next().context("a request has a path")?.to_owned();
    let (mut length, mut key, mut chunked) = (0_usize, None, false);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(':') else {
            break;
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().context("content-length is a number")?,
            "idempotency-key" => key = Some(value.to_owned()),
            "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    if chunked {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim(), 16).context("a chunk has a size")?;
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk)?;
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                break;
            }
        }
    } else {
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
    }
    Ok(Some(Effect {
        method,
        path,
        key,
        body: String::from_utf8_lossy(&body).into_owned(),
    }))
}
