//! HTTP/1.1 over kept connections, with as little as possible between a workload and its host: what
//! a client library does beside that would be counted as the host's time.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longer than the longest that a host lets anybody wait (60 s).
const TIMEOUT: Duration = Duration::from_secs(90);
/// A host closes connections that nobody has used for a while; one that it may be about to close
/// is not used.
const IDLE_MAX: Duration = Duration::from_secs(10);
/// A page of history ends a little over 4 MiB.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The connections to one host. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Connections {
    address: Arc<str>,
    idle: Arc<Mutex<Vec<(Instant, Connection)>>>,
}

type Connection = BufReader<TcpStream>;

/// Something to ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    /// Below `/v1/`.
    pub(crate) path: &'a str,
    pub(crate) content_type: &'a str,
    pub(crate) body: &'a [u8],
}

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Connections {
    pub(crate) fn new(address: &str) -> Self {
        Self {
            address: Arc::from(address),
            idle: Arc::default(),
        }
    }

    /// Asks over a connection that is free, or over a new one.
    pub(crate) fn ask(&self, request: &Request) -> io::Result<Answer> {
        let mut connection = match self.free() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        connection.get_mut().write_all(&self.written(request))?;
        let answer = read(&mut connection)?;
        self.idle().push((Instant::now(), connection));
        Ok(answer)
    }

    fn free(&self) -> Option<Connection> {
        let mut idle = self.idle();
        idle.retain(|(since, _)| since.elapsed() < IDLE_MAX);
        idle.pop().map(|(_, connection)| connection)
    }

    fn connect(&self) -> io::Result<Connection> {
        let stream = TcpStream::connect(&*self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(BufReader::new(stream))
    }

    /// In one piece: two would be two packets.
    fn written(&self, request: &Request) -> Vec<u8> {
        let Request {
            method,
            path,
            content_type,
            body,
        } = request;
        let mut bytes = format!("{method} /v1/{path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        if !content_type.is_empty() {
            bytes += &format!(
                "content-type: {content_type}\r\ncontent-length: {}\r\n",
                body.len()
            );
        }
        bytes += "\r\n";
        [bytes.as_bytes(), body].concat()
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(Instant, Connection)>> {
        // Nothing in here can panic half-way.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads an answer that says how long it is, as all of a host's do.
fn read(connection: &mut impl BufRead) -> io::Result<Answer> {
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut line = String::new();
    if connection.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| bad("this is no HTTP answer"))?;
    let mut length = None;
    loop {
        line.clear();
        if connection.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok();
        }
    }
    let length: usize = length.ok_or_else(|| bad("the answer does not say how long it is"))?;
    if length > ANSWER_BYTES_MAX {
        return Err(bad("the answer is too long"));
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    Ok(Answer { status, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_to_its_end_and_no_further() {
        let mut bytes: &[u8] =
            b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nserver: x\r\n\r\n{}HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
        let answer = |status, body: &[u8]| Answer {
            status,
            body: body.to_vec(),
        };
        assert_eq!(read(&mut bytes).unwrap(), answer(201, b"{}"));
        assert_eq!(read(&mut bytes).unwrap(), answer(404, b""));
        assert_eq!(
            read(&mut bytes).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        for text in [
            "nonsense\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-le",
        ] {
            assert!(read(&mut text.as_bytes()).is_err(), "{text}");
        }
    }
}
