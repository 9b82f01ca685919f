//! The faults below HTTP by name, as used by `faultd below`.

use super::connect::Manner;
use super::http1::HeadFault;
use super::http2::Http2Fault;
use super::tls::TlsFault;

/// One named fault. The expected client behaviour is defined by the test harness.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Unique name; starts with the row of `faults.md`.
    pub name: &'static str,
    pub about: &'static str,
    pub(super) kind: Kind,
}

/// The component that serves a case.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Plain,
    Refused,
    FullBacklog,
    Reset,
    BlackHole,
    Tls(TlsFault),
    Head(HeadFault),
    Http2(Http2Fault),
    /// A CONNECT proxy to the address given with `--to`.
    Connect(fn(Target) -> Manner),
    /// The byte-level proxy to the address given with `--to`, with the rules given with `--rule`.
    FaultProxy,
}

/// Tunnel target of a proxy, and the authorization it requires.
pub(super) struct Target {
    pub server: std::net::SocketAddr,
    pub authorization: String,
}

/// Returns the case with this name.
pub(super) fn find(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}

/// The rows of `faults.md`, 2.2, that occur below HTTP. H01 and H41 need no server: see
/// [`NO_SUCH_NAME`](super::NO_SUCH_NAME) and [`UNREACHABLE_URLS`](super::UNREACHABLE_URLS).
pub const CASES: &[Case] = &[
    row("ok", Kind::Plain, "a healthy server over plain HTTP"),
    row("ok-tls", Kind::Tls(TlsFault::None), "a healthy server over TLS"),
    row("ok-h2", Kind::Http2(Http2Fault::None), "a healthy server over HTTP/2"),
    row("H02-refused", Kind::Refused, "a port that refuses"),
    row("H02-blackhole", Kind::BlackHole, "accepts and never answers"),
    row("H02-backlog", Kind::FullBacklog, "never accepts"),
    row("H02-reset", Kind::Reset, "RST after accept"),
    row("H03-expired", Kind::Tls(TlsFault::Expired), "a certificate that has expired"),
    row("H03-host", Kind::Tls(TlsFault::WrongHost), "a certificate for another host"),
    row("H03-self-signed", Kind::Tls(TlsFault::SelfSigned), "a certificate that vouches for itself"),
    row("H03-unknown-ca", Kind::Tls(TlsFault::UnknownAuthority), "a certificate from an unknown authority"),
    row("H03-forged", Kind::Tls(TlsFault::ForgedAuthority), "a certificate in the authority's name, not by its key"),
    row("H03-old", Kind::Tls(TlsFault::OldVersion), "chooses TLS 1.0"),
    row("H03-old-alert", Kind::Tls(TlsFault::OldVersionAlert), "turns away whoever is newer than TLS 1.0"),
    row("H03-alpn", Kind::Tls(TlsFault::NoCommonAlpn), "no common ALPN protocol"),
    row("H03-alpn-lie", Kind::Tls(TlsFault::AlpnLie), "agrees on h2 and speaks HTTP/1.1"),
    row("H03-stall", Kind::Tls(TlsFault::Stall), "never answers the client's hello"),
    row("H03-plain", Kind::Tls(TlsFault::NotTls), "answers the client's hello in plain HTTP"),
    row("H03-client", Kind::Tls(TlsFault::ClientCertificate), "demands a client certificate"),
    row("H26", Kind::Http2(Http2Fault::Silent), "takes a request over HTTP/2 and answers no ping any more"),
    row("H29-long", Kind::Head(HeadFault::LongHeader), "a header of 64 KiB"),
    row("H29-many", Kind::Head(HeadFault::ManyHeaders), "10,000 headers"),
    row("H29-endless", Kind::Head(HeadFault::Endless), "a header that never ends"),
    row("H29-lengths", Kind::Head(HeadFault::TwoLengths), "two different lengths"),
    row("H29-te-cl", Kind::Head(HeadFault::LengthAndChunks), "a length and chunks"),
    row("H29-garbage", Kind::Head(HeadFault::Garbage), "no HTTP at all"),
    row("H30-goaway-first", Kind::Http2(Http2Fault::GoAwayFirst), "GOAWAY before any request"),
    row("H30-goaway-refuse", Kind::Http2(Http2Fault::GoAwayRefusing), "GOAWAY that excludes the request"),
    row("H30-goaway-drain", Kind::Http2(Http2Fault::GoAwayDraining), "GOAWAY, then the answer"),
    row("H30-goaway-abandon", Kind::Http2(Http2Fault::GoAwayAbandoning), "GOAWAY, and no answer"),
    row("H30-refused-stream", Kind::Http2(Http2Fault::RefusedStream), "RST_STREAM: not looked at"),
    row("H30-reset-stream", Kind::Http2(Http2Fault::ResetStream), "RST_STREAM: outcome unknown"),
    row("H30-reset-flood", Kind::Http2(Http2Fault::ResetFlood), "RST_STREAM without end"),
    row("H30-settings-flood", Kind::Http2(Http2Fault::SettingsFlood), "SETTINGS without end"),
    row("H30-ping-flood", Kind::Http2(Http2Fault::PingFlood), "PING without end"),
    row("H30-continuation-flood", Kind::Http2(Http2Fault::ContinuationFlood), "a header block without end"),
    row("H30-zero-window", Kind::Http2(Http2Fault::ZeroWindow), "a window that never opens"),
    row("H30-empty-data-flood", Kind::Http2(Http2Fault::EmptyDataFlood), "empty DATA without end"),
    row("H31-works", Kind::Connect(|target| Manner::Works(target.server)), "a proxy that works"),
    row("H31-password", Kind::Connect(demands), "a proxy that wants --authorization"),
    row("H31-407", Kind::Connect(|_| Manner::Refuses), "a proxy that answers 407"),
    row("H31-502", Kind::Connect(|_| Manner::BadGateway), "a proxy that answers 502"),
    row("H31-garbage", Kind::Connect(|_| Manner::Garbage), "a proxy that is none"),
    row("H31-silent", Kind::Connect(|_| Manner::Silent), "a proxy that never answers"),
    row("proxy", Kind::FaultProxy, "the byte-level fault proxy"),
];

const fn row(name: &'static str, kind: Kind, about: &'static str) -> Case {
    Case { name, about, kind }
}

fn demands(target: Target) -> Manner {
    Manner::Demands(target.authorization, target.server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (index, case) in CASES.iter().enumerate() {
            assert!(CASES[..index].iter().all(|earlier| earlier.name != case.name), "{} twice", case.name);
        }
    }
}
