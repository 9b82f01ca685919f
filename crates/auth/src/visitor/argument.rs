//! An address as a browser's opener is given it (CVE-2025-6514: an opener that was a shell).

use std::fmt::Write as _;

use url::{Host, Url};

use super::VisitError;

/// The longest address that is handed over.
const LONGEST: usize = 16 << 10;

/// The address as the one argument that a browser's opener is given; refused where it is none that may be opened.
///
/// Only `https` is, and `http` on this machine. Whatever a shell could act on is percent-encoded, in case the opener
/// is a script that forgets its quotes; `&` has to stay, as queries are made with it.
pub fn browser_argument(url: &str) -> Result<String, VisitError> {
    let refused = |why: &str| VisitError::NotPossible(format!("its address may not be opened: {why}"));
    if url.len() > LONGEST {
        return Err(refused("it is too long"));
    }
    if url.contains(|letter: char| letter.is_control() || letter == '\\') || url.trim() != url {
        return Err(refused("it has characters that no address has"));
    }
    let parsed = Url::parse(url).map_err(|_| refused("it is no address"))?;
    check(&parsed).map_err(refused)?;
    let (_, rest) = url.split_once("://").ok_or_else(|| refused("it names no host"))?;
    let path = rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]);
    let argument = format!("{}{}", parsed.origin().ascii_serialization(), encoded(path));
    // What was looked at and what is opened have to be one and the same place.
    match Url::parse(&argument) {
        Ok(opened) if opened.origin() == parsed.origin() && check(&opened).is_ok() => Ok(argument),
        _ => Err(refused("it can be read in more than one way")),
    }
}

fn check(url: &Url) -> Result<(), &'static str> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it has a login in it");
    }
    match (url.scheme(), url.host()) {
        (_, None) => Err("it names no host"),
        ("https", Some(_)) => Ok(()),
        ("http", Some(host)) if is_loopback(&host) => Ok(()),
        ("http", _) => Err("only https is opened, and http on this machine"),
        _ => Err("only https is opened"),
    }
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// What stands after the host, with everything escaped that is neither needed nor harmless. Escapes stay as they are.
fn encoded(path: &str) -> String {
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
