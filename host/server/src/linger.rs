//! Bodies that nobody read to their end.
//!
//! A request may be refused before all of its body has arrived: the label is wrong, the component
//! too large. Closing the connection then resets it, and the client loses the answer that says why.
//! So what is left of the body is taken in and thrown away first, within bounds.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::EXPECT;
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::sync::oneshot;

use crate::body::announced;

/// What is taken in at most: twice the largest component.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// For how long at most.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Answers only after the request's body has arrived, or has had its chance.
pub(crate) async fn linger(request: Request, next: Next) -> Response {
    // Who asked first whether to send the body is spared it by an answer, and who announces more
    // than we would take in cannot be helped.
    let is_asking = request.headers().contains_key(EXPECT);
    if is_asking || announced(request.headers()).is_some_and(|bytes| bytes > BYTES_MAX as u64) {
        return next.run(request).await;
    }
    let (sender, left) = oneshot::channel();
    let response = next
        .run(request.map(|body| {
            Body::new(Lent {
                body: Some(body),
                sender: Some(sender),
            })
        }))
        .await;
    // The handler has dropped the body by now. If it keeps it for longer, there is nothing to do.
    if let Ok(body) = { left }.try_recv() {
        let _ = tokio::time::timeout(TIME_MAX, drain(body)).await;
    }
    response
}

async fn drain(mut body: Body) {
    let mut left = BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

/// A body that goes back to whoever lent it, if it is dropped before its end.
struct Lent {
    body: Option<Body>,
    sender: Option<oneshot::Sender<Body>>,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(SizeHint::default, HttpBody::size_hint)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(body), Some(sender)) = (self.body.take(), self.sender.take())
            && !body.is_end_stream()
        {
            // Nobody waits for it if the request was given up.
            let _ = sender.send(body);
        }
    }
}
