//! Rejects requests with a foreign `Host` or `Origin`, and bodies over the limit.
//!
//! A web page can send requests to loopback, and with DNS rebinding even read the responses. It cannot forge these two
//! headers.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::MAX_BODY_BYTES;
use super::refusal::HttpRefusal;

/// Rejects requests with a foreign `Host` or `Origin` (2026-07-28 basic/transports, "Security").
pub async fn reject_foreign_origins(State(address): State<SocketAddr>, request: Request, next: Next) -> Response {
    match check_host_and_origin(request.headers(), address) {
        Ok(()) => next.run(request).await,
        Err(complaint) => HttpRefusal::plain(StatusCode::FORBIDDEN, complaint).into_response(),
    }
}

/// Rejects a body with a `Content-Length` over the limit. Bodies without one are limited while they are read.
pub async fn reject_large_bodies(request: Request, next: Next) -> Response {
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length = length.and_then(|length| length.parse().ok());
    if length.is_some_and(|length: u64| length > MAX_BODY_BYTES as u64) {
        return HttpRefusal::plain(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large").into_response();
    }
    next.run(request).await
}

fn check_host_and_origin(headers: &HeaderMap, address: SocketAddr) -> Result<(), &'static str> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !is_own_host(host, address) {
        return Err("the `Host` is not this server");
    }
    match headers.get(header::ORIGIN) {
        Some(origin) if origin.as_bytes() != format!("http://{host}").as_bytes() => {
            Err("the `Origin` is another page than this server's")
        }
        _ => Ok(()),
    }
}

fn is_own_host(host: &str, address: SocketAddr) -> bool {
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "80"));
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_loopback = bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    port == address.port().to_string() && (is_loopback || name.eq_ignore_ascii_case("localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, origin: Option<&str>, is_welcome: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let address = "127.0.0.1:8080".parse().unwrap();
        assert_eq!(check_host_and_origin(&headers, address).is_ok(), is_welcome, "{host} {origin:?}");
    }

    #[test]
    fn foreign_hosts_and_origins_are_rejected() {
        check("127.0.0.1:8080", None, true);
        check("localhost:8080", None, true);
        check("[::1]:8080", None, true);
        check("127.0.0.1:8081", None, false);
        check("127.0.0.1", None, false);
        check("evil.example:8080", None, false);
        check("127.0.0.1.evil.example:8080", None, false);
        check("", None, false);
        check("localhost:8080", Some("http://localhost:8080"), true);
        check("localhost:8080", Some("http://127.0.0.1:8080"), false);
        check("localhost:8080", Some("http://localhost:3000"), false);
        check("localhost:8080", Some("https://evil.example"), false);
        check("localhost:8080", Some("null"), false);
    }
}
