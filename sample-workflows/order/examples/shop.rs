//! A shop to try the order against: answers every `POST`, prints it, and honours idempotency keys.
//!
//! `cargo run --release -p order --example shop [address] [action that it refuses]`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments
        .next()
        .unwrap_or_else(|| "127.0.0.1:9100".to_owned());
    let refused = arguments.next();
    let listener = TcpListener::bind(&address)?;
    println!("the shop is open at http://{}", listener.local_addr()?);
    let mut done: HashMap<String, String> = HashMap::new();
    // One customer after the other: small, and enough to try it.
    for stream in listener.incoming() {
        if let Err(error) = serve(stream?, refused.as_deref(), &mut done) {
            println!("a customer left: {error}");
        }
    }
    Ok(())
}

fn serve(
    stream: TcpStream,
    refused: Option<&str>,
    done: &mut HashMap<String, String>,
) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let action = request
        .split(' ')
        .nth(1)
        .unwrap_or("/")
        .trim_start_matches('/')
        .to_owned();
    let (mut length, mut key) = (0, String::new());
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "idempotency-key" => key = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body);

    let (status, answer) = if refused == Some(action.as_str()) {
        println!("refused  {action:8} {body}");
        ("409 Conflict", r#"{"error": "not today"}"#.to_owned())
    } else if let Some(answer) = done.get(&key) {
        println!("again    {action:8} {body}");
        ("200 OK", answer.clone())
    } else {
        println!("done     {action:8} {body}");
        let answer = format!(r#"{{"id": "{action}-{}"}}"#, done.len() + 1);
        done.insert(key, answer.clone());
        ("200 OK", answer)
    };
    write!(
        reader.get_mut(),
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len()
    )
}
