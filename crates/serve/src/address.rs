//! Parses the address to listen on.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Parses an address such as `127.0.0.1:8080`, `localhost:0`, `:8080` or `8080`.
///
/// # Errors
///
/// Returns a sentence for anything but loopback: without TLS, no other machine is served.
pub fn parse_loopback_address(text: &str) -> Result<SocketAddr, String> {
    let address = parse_address(text)?;
    if !address.ip().is_loopback() {
        return Err(format!("{} is not a loopback address, and other machines cannot be served", address.ip()));
    }
    Ok(address)
}

/// Parses an address, of any machine: as [`parse_loopback_address`], or such as `0.0.0.0:8080`.
///
/// # Errors
///
/// Returns a sentence if it is not an address.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let parsed = parse_with_default_host(text);
    parsed.ok_or_else(|| format!("`{text}` is not an address; write one such as 127.0.0.1:8080"))
}

fn parse_with_default_host(text: &str) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let is_loopback = host.is_empty() || host.eq_ignore_ascii_case("localhost");
    let port = port.parse().ok()?;
    is_loopback.then_some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
}

#[cfg(test)]
mod tests {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found =
            super::parse_loopback_address(text).map_or_else(|complaint| complaint, |address| address.to_string());
        assert!(found.contains(expected), "{text:?} gave {found:?}");
    }

    #[test]
    fn only_loopback_addresses_are_accepted() {
        for text in ["127.0.0.1:80", ":80", "80", "localhost:80", "LOCALHOST:80"] {
            check(text, "127.0.0.1:80");
        }
        check("127.3.4.5:0", "127.3.4.5:0");
        check("[::1]:0", "[::1]:0");
        for text in ["0.0.0.0:80", "[::]:80", "192.168.0.1:80", "[2001:db8::1]:80"] {
            check(text, "is not a loopback address");
        }
        for text in ["", ":", "harbour", "harbour:80", "127.0.0.1", "127.0.0.1:65536", "::1:80x", "localhost:-1"] {
            check(text, "is not an address");
        }
    }
}
