//! Sanitizing of URLs that are passed to a browser opener (CVE-2025-6514: an opener that was a shell).

use std::fmt::Write as _;

use url::{Host, Url};

use super::VisitError;

/// Maximum length of a URL in bytes.
const MAX_URL_BYTES: usize = 16 << 10;

/// Returns the URL as the single argument for a browser opener.
///
/// Only `https`, and `http` on the local machine, are allowed. Shell metacharacters are percent-encoded, in case the
/// opener is a script without quoting. `&` is kept, since queries need it.
///
/// # Errors
/// Fails if the URL must not be opened.
pub fn browser_argument(url: &str) -> Result<String, VisitError> {
    let refused = |why: &str| VisitError::NotPossible(format!("the URL must not be opened: {why}"));
    if url.len() > MAX_URL_BYTES {
        return Err(refused("too long"));
    }
    if url.contains(|letter: char| letter.is_control() || letter == '\\') || url.trim() != url {
        return Err(refused("invalid characters"));
    }
    let parsed = Url::parse(url).map_err(|_| refused("not a valid URL"))?;
    check_scheme_and_host(&parsed).map_err(refused)?;
    let (_, rest) = url.split_once("://").ok_or_else(|| refused("no host"))?;
    let path = rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]);
    let argument = format!("{}{}", parsed.origin().ascii_serialization(), percent_encode_path(path));
    // The sanitized URL must have the origin that was checked.
    match Url::parse(&argument) {
        Ok(opened) if opened.origin() == parsed.origin() && check_scheme_and_host(&opened).is_ok() => Ok(argument),
        _ => Err(refused("ambiguous URL")),
    }
}

fn check_scheme_and_host(url: &Url) -> Result<(), &'static str> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it contains credentials");
    }
    match (url.scheme(), url.host()) {
        (_, None) => Err("no host"),
        ("https", Some(_)) => Ok(()),
        ("http", Some(host)) if is_loopback(&host) => Ok(()),
        ("http", _) => Err("only https is allowed (http on this machine only)"),
        _ => Err("only https is allowed"),
    }
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// Percent-encodes all characters after the host that are not known to be safe. Existing escapes are kept.
fn percent_encode_path(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/?#&=%+:@,".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests;
