//! Connections: accepted under a bound, given up when they dawdle, ended in good order.
//!
//! `axum::serve` knows no timeout for a request's head and no bound on connections, so a handful of
//! slow clients could hold every file descriptor of the host.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::server::Server;

/// Open connections; more wait in the system's queue. Room for every long poll, and for others.
const CONNECTIONS_MAX: usize = 4_096;

/// For the head of a request; also how long a kept-alive connection may be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// The head of a request.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// For requests in flight when the server stops.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// After an accept that failed for lack of file descriptors or memory: trying at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop` is ready; then takes no more connections, answers the requests that wait,
/// and gives those in flight ten seconds.
pub async fn serve(listener: TcpListener, server: Server, stop: impl Future<Output = ()>) {
    let router = server.router();
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let connections = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX);

    tokio::pin!(stop);
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            () = &mut stop => break,
            next = accepted => next,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Answers are small and whole; holding them back for more to send would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps Nagle's algorithm");
        }
        let service = TowerToHyperService::new(router.clone());
        let connection = connections.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke off");
            }
            drop(place);
        });
    }

    drop(listener);
    server.stop_waiting();
    if tokio::time::timeout(SHUTDOWN_GRACE, connections.shutdown())
        .await
        .is_err()
    {
        tracing::warn!(
            "requests were still in flight {} s after the stop; they are cut off",
            SHUTDOWN_GRACE.as_secs()
        );
    }
}
