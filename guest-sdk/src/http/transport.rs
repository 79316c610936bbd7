//! One request and its answer over `wasi:http`. Only in a component.

use wasip2::clocks::monotonic_clock;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingResponse, Method, OutgoingBody,
    OutgoingRequest, RequestOptions, Scheme,
};
use wasip2::io::poll::{self, Pollable};
use wasip2::io::streams::{OutputStream, StreamError};

use super::request::Request;
use super::response::Response;
use super::url::Url;
use crate::failure::Failure;

/// How much is read at once: 64 KiB.
const CHUNK_BYTES_MAX: u64 = 64 * 1024;

/// Sends a request and waits for the whole answer.
pub(super) fn exchange(request: &Request, url: &Url<'_>) -> Result<Response, Failure> {
    let timeout_ns = u64::try_from(request.timeout.as_nanos()).unwrap_or(u64::MAX);
    let exchange = Exchange {
        request,
        timer: monotonic_clock::subscribe_duration(timeout_ns),
    };
    let outgoing = exchange.outgoing(url)?;
    let body = outgoing
        .body()
        .map_err(|()| request.bad("its body was taken before"))?;
    let options = RequestOptions::new();
    // The timer above bounds the whole; these stop the host from going on alone after it.
    let _ = options.set_connect_timeout(Some(timeout_ns));
    let _ = options.set_first_byte_timeout(Some(timeout_ns));
    let _ = options.set_between_bytes_timeout(Some(timeout_ns));
    let incoming = outgoing_handler::handle(outgoing, Some(options))
        .map_err(|error| exchange.failed(&error))?;
    exchange.write(body)?;
    let incoming = exchange.wait(&incoming)?;
    let headers = incoming.headers().entries();
    let mut response =
        Response::new(incoming.status(), exchange.read(&incoming)?).answering(request.name());
    response.headers = headers
        .into_iter()
        .map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned()))
        .collect();
    Ok(response)
}

struct Exchange<'a> {
    request: &'a Request,
    /// Ready when the time is up.
    timer: Pollable,
}

impl Exchange<'_> {
    fn outgoing(&self, url: &Url<'_>) -> Result<OutgoingRequest, Failure> {
        let request = self.request;
        let mut headers: Vec<(String, Vec<u8>)> = request
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().into_bytes()))
            .collect();
        // Said by hand, since the host would otherwise send the body in chunks, which small
        // servers do not all read.
        let says_length = headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        if !says_length && (!request.body.is_empty() || request.method != "GET") {
            headers.push((
                "content-length".to_owned(),
                request.body.len().to_string().into_bytes(),
            ));
        }
        let headers = Fields::from_list(&headers)
            .map_err(|error| request.bad(&format!("its headers: {error}")))?;
        let outgoing = OutgoingRequest::new(headers);
        let method = match request.method {
            "GET" => Method::Get,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "PATCH" => Method::Patch,
            "DELETE" => Method::Delete,
            other => Method::Other(other.to_owned()),
        };
        let scheme = if url.is_tls {
            Scheme::Https
        } else {
            Scheme::Http
        };
        outgoing
            .set_method(&method)
            .and_then(|()| outgoing.set_scheme(Some(&scheme)))
            .and_then(|()| outgoing.set_authority(Some(url.authority)))
            .and_then(|()| outgoing.set_path_with_query(Some(&url.path_and_query)))
            .map_err(|()| request.bad("the host takes no such URL"))?;
        Ok(outgoing)
    }

    fn write(&self, body: OutgoingBody) -> Result<(), Failure> {
        let stream = body
            .write()
            .map_err(|()| self.request.bad("its body was taken before"))?;
        // A server that answers early stops reading; its answer tells more than the broken pipe.
        if let Err(StreamError::LastOperationFailed(_) | StreamError::Closed) =
            self.write_all(&stream)?
        {
            return Ok(());
        }
        drop(stream);
        OutgoingBody::finish(body, None).map_err(|error| self.failed(&error))
    }

    fn write_all(&self, stream: &OutputStream) -> Result<Result<(), StreamError>, Failure> {
        let ready = stream.subscribe();
        let mut rest = &self.request.body[..];
        while !rest.is_empty() {
            let room = match stream.check_write() {
                Ok(room) => usize::try_from(room).unwrap_or(usize::MAX).min(rest.len()),
                Err(error) => return Ok(Err(error)),
            };
            if room == 0 {
                self.block_on(&ready)?;
                continue;
            }
            let (now, later) = rest.split_at(room);
            if let Err(error) = stream.write(now) {
                return Ok(Err(error));
            }
            rest = later;
        }
        Ok(stream.flush())
    }

    fn wait(&self, incoming: &FutureIncomingResponse) -> Result<IncomingResponse, Failure> {
        let ready = incoming.subscribe();
        loop {
            match incoming.get() {
                Some(Ok(answer)) => return answer.map_err(|error| self.failed(&error)),
                Some(Err(())) => return Err(self.broken("the host gave the answer away")),
                None => self.block_on(&ready)?,
            }
        }
    }

    fn read(&self, incoming: &IncomingResponse) -> Result<Vec<u8>, Failure> {
        let body = incoming
            .consume()
            .map_err(|()| self.broken("the host gave the body away"))?;
        let stream = body
            .stream()
            .map_err(|()| self.broken("the host gave the body away"))?;
        let ready = stream.subscribe();
        let mut bytes = Vec::new();
        loop {
            match stream.read(CHUNK_BYTES_MAX) {
                Ok(chunk) if chunk.is_empty() => self.block_on(&ready)?,
                Ok(chunk) => bytes.extend(chunk),
                Err(StreamError::Closed) => return Ok(bytes),
                Err(StreamError::LastOperationFailed(error)) => {
                    return Err(self.broken(&error.to_debug_string()));
                }
            }
            // Checked while reading, so that a body without end is not kept in memory first.
            if bytes.len() > self.request.response_bytes_max {
                return Err(self.request.too_large());
            }
        }
    }

    /// Waits until something is ready, or fails when the time is up.
    fn block_on(&self, ready: &Pollable) -> Result<(), Failure> {
        if poll::poll(&[ready, &self.timer]).contains(&0) {
            return Ok(());
        }
        let message = format!(
            "{}: no whole answer within {:?}",
            self.request.name(),
            self.request.timeout
        );
        Err(Failure::new("http-timeout", message))
    }

    fn broken(&self, found: &str) -> Failure {
        Failure::new(
            "http-connection",
            format!("{}: {found}", self.request.name()),
        )
    }

    fn failed(&self, error: &ErrorCode) -> Failure {
        let message = format!("{}: {}", self.request.name(), words(error));
        match error {
            ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited => {
                Failure::new("http-denied", message).permanent()
            }
            ErrorCode::ConnectionTimeout
            | ErrorCode::ConnectionReadTimeout
            | ErrorCode::ConnectionWriteTimeout
            | ErrorCode::HttpResponseTimeout
            | ErrorCode::DnsTimeout => Failure::new("http-timeout", message),
            ErrorCode::HttpRequestLengthRequired
            | ErrorCode::HttpRequestBodySize(_)
            | ErrorCode::HttpRequestMethodInvalid
            | ErrorCode::HttpRequestUriInvalid
            | ErrorCode::HttpRequestUriTooLong
            | ErrorCode::HttpRequestHeaderSectionSize(_)
            | ErrorCode::HttpRequestHeaderSize(_)
            | ErrorCode::HttpRequestTrailerSectionSize(_)
            | ErrorCode::HttpRequestTrailerSize(_) => {
                Failure::new("http-request", message).permanent()
            }
            ErrorCode::DnsError(_)
            | ErrorCode::DestinationNotFound
            | ErrorCode::DestinationUnavailable
            | ErrorCode::DestinationIpUnroutable
            | ErrorCode::ConnectionRefused
            | ErrorCode::ConnectionTerminated
            | ErrorCode::ConnectionLimitReached
            | ErrorCode::TlsProtocolError
            | ErrorCode::TlsCertificateError
            | ErrorCode::TlsAlertReceived(_)
            | ErrorCode::HttpResponseIncomplete
            | ErrorCode::HttpResponseHeaderSectionSize(_)
            | ErrorCode::HttpResponseHeaderSize(_)
            | ErrorCode::HttpResponseBodySize(_)
            | ErrorCode::HttpResponseTrailerSectionSize(_)
            | ErrorCode::HttpResponseTrailerSize(_)
            | ErrorCode::HttpResponseTransferCoding(_)
            | ErrorCode::HttpResponseContentCoding(_)
            | ErrorCode::HttpUpgradeFailed
            | ErrorCode::HttpProtocolError
            | ErrorCode::LoopDetected
            | ErrorCode::ConfigurationError
            | ErrorCode::InternalError(_) => Failure::new("http-connection", message),
        }
    }
}

/// `ErrorCode::ConnectionRefused` as a person reads it: `connection refused`, with whatever the
/// host says besides.
fn words(error: &ErrorCode) -> String {
    let text = format!("{error:?}");
    let text = text.strip_prefix("ErrorCode::").unwrap_or(&text);
    let (name, rest) = text.split_at(text.find(['(', ' ']).unwrap_or(text.len()));
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words + rest
}
