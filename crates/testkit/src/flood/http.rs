//! The flood server over HTTP: one thread per connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::exit;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::messages::answer;
use super::{FloodKind, send_unprompted};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Streamable,
    /// HTTP+SSE: all responses are sent on one stream.
    Sse,
}

/// The response stream of HTTP+SSE.
type ResponseStream = Arc<Mutex<Option<TcpStream>>>;

pub fn serve(kind: FloodKind, form: Form) -> ! {
    let Ok(listener) = TcpListener::bind("127.0.0.1:0") else { exit(1) };
    let Ok(address) = listener.local_addr() else { exit(1) };
    println!("http://{address}/mcp");
    let stream = ResponseStream::default();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let stream = Arc::clone(&stream);
            std::thread::spawn(move || serve_connection(&connection, kind, form, &stream));
        }
    });
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    exit(0)
}

fn serve_connection(connection: &TcpStream, kind: FloodKind, form: Form, stream: &ResponseStream) {
    let _ = connection.set_nodelay(true);
    let mut reader = BufReader::new(connection);
    while let Some((is_get, body)) = read_request(&mut reader) {
        let went = match (is_get, form) {
            (true, _) => return open_stream(connection, kind, form, stream),
            (false, Form::Streamable) => reply(connection, kind, &body),
            (false, Form::Sse) => post(connection, kind, &body, stream),
        };
        if went.is_err() {
            return;
        }
    }
}

/// Reads one request. Returns true for a GET, and the body.
fn read_request(reader: &mut impl BufRead) -> Option<(bool, Vec<u8>)> {
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let is_get = line.starts_with("GET");
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((is_get, body))
}

/// Answers with JSON, or every other time with an SSE stream of one event.
fn reply(mut connection: &TcpStream, kind: FloodKind, body: &[u8]) -> std::io::Result<()> {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(answer) = answer(kind, &message, "2025-11-25") else {
        return connection.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
    };
    let (media, text) = match message["id"].as_u64().unwrap_or_default() / 2 % 2 {
        0 => ("application/json", answer),
        _ => ("text/event-stream", format!("data: {answer}\n\n")),
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {}\r\n\r\n", text.len());
    connection.write_all(head.as_bytes())?;
    connection.write_all(text.as_bytes())
}

/// Accepts a message over HTTP+SSE and answers on the stream.
fn post(mut connection: &TcpStream, kind: FloodKind, body: &[u8], stream: &ResponseStream) -> std::io::Result<()> {
    connection.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")?;
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(answer) = answer(kind, &message, "2024-11-05") {
        send(stream, &answer);
    }
    Ok(())
}

fn open_stream(mut connection: &TcpStream, kind: FloodKind, form: Form, stream: &ResponseStream) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let endpoint = if form == Form::Sse { "event: endpoint\ndata: /mcp\n\n" } else { "" };
    if connection.write_all(format!("{head}{endpoint}").as_bytes()).is_err() {
        return;
    }
    // HTTP+SSE has one stream at a time; streams of Streamable HTTP carry notifications only.
    let own = if form == Form::Sse { Arc::clone(stream) } else { ResponseStream::default() };
    *own.lock().unwrap_or_else(PoisonError::into_inner) = connection.try_clone().ok();
    if form == Form::Sse {
        // Let the opening finish first.
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    send_unprompted(kind, &|remark| send(&own, remark));
    let _ = connection.read(&mut [0]);
}

fn send(stream: &ResponseStream, message: &str) -> bool {
    let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(open) = stream.as_mut() else { return false };
    let sent = open
        .write_all(b"data: ")
        .and_then(|()| open.write_all(message.as_bytes()))
        .and_then(|()| open.write_all(b"\n\n"));
    if sent.is_err() {
        *stream = None;
    }
    sent.is_ok()
}
