//! Minimal browser for the suite's login pages: sends one plain HTTP request and reads the redirect target.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::Url;

/// Maximum bytes of a response. Every page of the suite is smaller.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;

/// Requests a page and returns its redirect target, or the page's own address if it does not redirect.
pub async fn fetch_redirect(address: &str) -> Result<String, String> {
    let url = Url::parse(address).map_err(|error| error.to_string())?;
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(80));
    let mut stream = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    stream.take(MAX_RESPONSE_BYTES).read_to_end(&mut answer).await.map_err(|error| error.to_string())?;
    Ok(location_header(&String::from_utf8_lossy(&answer)).unwrap_or(address).to_owned())
}

fn location_header(answer: &str) -> Option<&str> {
    let (head, _) = answer.split_once("\r\n\r\n")?;
    let headers = head.lines().filter_map(|line| line.split_once(':'));
    headers.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("location")).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_location_is_read_from_headers_only() {
        let answer = "HTTP/1.1 302 Found\r\nDate: x\r\nlocation: http://127.0.0.1:1/back?code=1\r\n\r\n";
        assert_eq!(location_header(answer), Some("http://127.0.0.1:1/back?code=1"));
        assert_eq!(location_header("HTTP/1.1 200 OK\r\nDate: x\r\n\r\nlocation: y"), None);
    }
}
