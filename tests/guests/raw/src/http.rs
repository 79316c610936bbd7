//! Outbound HTTP, with the bare bindings.

use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, OutgoingRequest, Scheme,
};
use wasip2::io::streams::{InputStream, StreamError};

use crate::Workflow;
use crate::steps::{nap, step};

pub(crate) const WORKFLOWS: &[Workflow] = &[
    ("http-in-step", |authority| {
        step("call", || exchange(authority, &[]))
    }),
    ("http-with-a-key", |authority| {
        step("call", || {
            exchange(authority, &[("Idempotency-Key", "mine")])
        })
    }),
    ("http-outside", |authority| exchange(authority, &[])),
    ("too-many-zeroes", |_| {
        step("call", || {
            let request = OutgoingRequest::new(Fields::new());
            let body = request.body().expect("a body");
            format!(
                "{:?}",
                body.write().expect("a stream").write_zeroes(1 << 40)
            )
        })
    }),
    ("response-kept-from-a-step", |authority| {
        let mut kept = None;
        step("call", || {
            let sent = send(authority, &[]);
            sent.subscribe().block();
            kept = Some(sent);
            String::new()
        });
        format!("{:?}", kept.expect("kept").get())
    }),
    ("body-kept-from-a-step", |authority| {
        let mut kept = None;
        step("call", || {
            kept = Some(open(response(&send(authority, &[]))));
            String::new()
        });
        let (stream, _body) = kept.expect("kept");
        format!("{:?}", stream.read(100))
    }),
    ("request-left-behind", |authority| {
        let mut kept = None;
        step("call", || {
            kept = Some(send(authority, &[]));
            // Long enough for the request to be on its way.
            std::thread::sleep(std::time::Duration::from_millis(50));
            String::new()
        });
        nap()
    }),
];

fn send(authority: &str, headers: &[(&str, &str)]) -> FutureIncomingResponse {
    let headers: Vec<(String, Vec<u8>)> = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
        .collect();
    let request = OutgoingRequest::new(Fields::from_list(&headers).expect("good headers"));
    request.set_scheme(Some(&Scheme::Http)).expect("a scheme");
    request
        .set_authority(Some(authority))
        .expect("an authority");
    request.set_path_with_query(Some("/path")).expect("a path");
    outgoing_handler::handle(request, None).expect("sent")
}

fn response(sent: &FutureIncomingResponse) -> IncomingResponse {
    sent.subscribe().block();
    sent.get()
        .expect("ready")
        .expect("not taken")
        .expect("answered")
}

fn open(response: IncomingResponse) -> (InputStream, IncomingBody) {
    let body = response.consume().expect("a body");
    (body.stream().expect("not taken"), body)
}

fn exchange(authority: &str, headers: &[(&str, &str)]) -> String {
    let response = response(&send(authority, headers));
    let status = response.status();
    // A stream must be dropped before its body.
    let (stream, _body) = open(response);
    let stream = stream;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(4096) {
            Ok(more) => bytes.extend(more),
            Err(StreamError::Closed) => break,
            Err(error) => panic!("{error:?}"),
        }
    }
    format!("{status} {}", String::from_utf8_lossy(&bytes))
}
