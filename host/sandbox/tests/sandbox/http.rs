//! Outbound HTTP: inside a step only, with the attempt's key, and cut off when the step ends.

use std::time::Duration;

use stepwell_sandbox::guest::TrapKind;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::Run;

/// A server that answers every request with the request's own `idempotency-key`.
async fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(answer(connection));
        }
    });
    authority
}

async fn head(connection: &mut TcpStream) -> String {
    let mut request = Vec::new();
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte).await.unwrap();
        request.push(byte[0]);
    }
    String::from_utf8(request).unwrap().to_lowercase()
}

async fn answer(mut connection: TcpStream) {
    let request = head(&mut connection).await;
    let key = request
        .lines()
        .filter_map(|line| line.strip_prefix("idempotency-key: "))
        .collect::<Vec<_>>()
        .join(",");
    let response = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{key}",
        key.len()
    );
    connection.write_all(response.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn a_request_inside_a_step_carries_the_attempts_key() {
    assert_eq!(
        Run::of("http-in-step").input(server().await).output().await,
        "200 run_1/0"
    );
}

#[tokio::test]
async fn a_key_of_the_guests_own_is_left_alone() {
    assert_eq!(
        Run::of("http-with-a-key")
            .input(server().await)
            .output()
            .await,
        "200 mine"
    );
}

#[tokio::test]
async fn outside_a_step_a_request_traps() {
    let trap = Run::of("http-outside").input(server().await).trap().await;
    assert_eq!(trap.kind, TrapKind::Forbidden);
    assert!(
        trap.message
            .contains("outbound HTTP is only allowed inside a step"),
        "{}",
        trap.message
    );
}

#[tokio::test]
async fn what_a_step_leaves_open_cannot_be_read_outside_it() {
    for (workflow, message) in [
        ("response-kept-from-a-step", "looks for the response"),
        (
            "body-kept-from-a-step",
            "reads or writes an HTTP body outside the step",
        ),
    ] {
        let trap = Run::of(workflow).input(server().await).trap().await;
        assert_eq!(trap.kind, TrapKind::Forbidden, "{workflow}: {trap:?}");
        assert!(
            trap.message.contains(message),
            "{workflow}: {}",
            trap.message
        );
    }
}

#[tokio::test]
async fn a_request_that_a_step_leaves_behind_is_cut_off() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = listener.local_addr().unwrap();
    let run = Run::of("request-left-behind")
        .input(authority)
        .engine(|engine| engine.park = true);
    let engine = run.engine.clone();
    let guest = tokio::spawn(run.exit());

    let (mut connection, _) = listener.accept().await.unwrap();
    head(&mut connection).await;
    // Never answered. The end of the step closes the connection, while the guest goes on.
    let mut rest = Vec::new();
    let closed =
        tokio::time::timeout(Duration::from_secs(10), connection.read_to_end(&mut rest)).await;
    assert_eq!(closed.expect("the connection must be closed").unwrap(), 0);
    while !engine.0.lock().unwrap().parked {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(!guest.is_finished());
    guest.abort();
}
