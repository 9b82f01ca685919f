//! The faults below HTTP by name, as used by `faultd below`.

use super::connect::ProxyBehaviour;
use super::http1::HeadFault;
use super::http2::Http2Fault;
use super::tls::TlsFault;

/// One named fault. The expected client behaviour is defined by the test harness.
#[derive(Clone, Copy, Debug)]
pub struct LowLevelCase {
    /// Unique name; starts with the row of `faults.md`.
    pub name: &'static str,
    pub about: &'static str,
    pub(super) kind: LowLevelFault,
}

/// The component that serves a case.
#[derive(Clone, Copy, Debug)]
pub(super) enum LowLevelFault {
    Plain,
    Refused,
    FullBacklog,
    Reset,
    BlackHole,
    Tls(TlsFault),
    Head(HeadFault),
    Http2(Http2Fault),
    /// A CONNECT proxy to the address given with `--to`.
    Connect(fn(ProxyTarget) -> ProxyBehaviour),
    /// The byte-level proxy to the address given with `--to`, with the rules given with `--rule`.
    FaultProxy,
}

/// Tunnel target of a proxy, and the authorization it requires.
pub(super) struct ProxyTarget {
    pub server: std::net::SocketAddr,
    pub authorization: String,
}

/// Returns the case with this name.
pub(super) fn find(name: &str) -> Option<&'static LowLevelCase> {
    CASES.iter().find(|case| case.name == name)
}

/// The rows of `faults.md`, 2.2, that occur below HTTP. H01 and H41 need no server: see
/// [`NO_SUCH_NAME`](super::NO_SUCH_NAME) and [`UNREACHABLE_URLS`](super::UNREACHABLE_URLS).
pub const CASES: &[LowLevelCase] = &[
    row("ok", LowLevelFault::Plain, "a healthy server over plain HTTP"),
    row("ok-tls", LowLevelFault::Tls(TlsFault::None), "a healthy server over TLS"),
    row("ok-h2", LowLevelFault::Http2(Http2Fault::None), "a healthy server over HTTP/2"),
    row("H02-refused", LowLevelFault::Refused, "a port that refuses"),
    row("H02-blackhole", LowLevelFault::BlackHole, "accepts and never answers"),
    row("H02-backlog", LowLevelFault::FullBacklog, "never accepts"),
    row("H02-reset", LowLevelFault::Reset, "RST after accept"),
    row("H03-expired", LowLevelFault::Tls(TlsFault::Expired), "a certificate that has expired"),
    row("H03-host", LowLevelFault::Tls(TlsFault::WrongHost), "a certificate for another host"),
    row("H03-self-signed", LowLevelFault::Tls(TlsFault::SelfSigned), "a self-signed certificate"),
    row("H03-unknown-ca", LowLevelFault::Tls(TlsFault::UnknownAuthority), "a certificate from an unknown authority"),
    row(
        "H03-forged",
        LowLevelFault::Tls(TlsFault::ForgedAuthority),
        "a certificate with the authority's name, signed by another key",
    ),
    row("H03-old", LowLevelFault::Tls(TlsFault::OldVersion), "chooses TLS 1.0"),
    row("H03-old-alert", LowLevelFault::Tls(TlsFault::OldVersionAlert), "rejects clients newer than TLS 1.0"),
    row("H03-alpn", LowLevelFault::Tls(TlsFault::NoCommonAlpn), "no common ALPN protocol"),
    row("H03-alpn-lie", LowLevelFault::Tls(TlsFault::AlpnLie), "agrees on h2 and speaks HTTP/1.1"),
    row("H03-stall", LowLevelFault::Tls(TlsFault::Stall), "never answers the ClientHello"),
    row("H03-plain", LowLevelFault::Tls(TlsFault::NotTls), "answers the ClientHello with plain HTTP"),
    row("H03-client", LowLevelFault::Tls(TlsFault::ClientCertificate), "demands a client certificate"),
    row(
        "H26",
        LowLevelFault::Http2(Http2Fault::Silent),
        "accepts a request over HTTP/2 and then stops answering, pings included",
    ),
    row("H29-long", LowLevelFault::Head(HeadFault::LongHeader), "a header of 64 KiB"),
    row("H29-many", LowLevelFault::Head(HeadFault::ManyHeaders), "10,000 headers"),
    row("H29-endless", LowLevelFault::Head(HeadFault::Endless), "a header that never ends"),
    row("H29-lengths", LowLevelFault::Head(HeadFault::TwoLengths), "two different lengths"),
    row("H29-te-cl", LowLevelFault::Head(HeadFault::LengthAndChunks), "a length and chunks"),
    row("H29-garbage", LowLevelFault::Head(HeadFault::Garbage), "not HTTP"),
    row("H30-goaway-first", LowLevelFault::Http2(Http2Fault::GoAwayFirst), "GOAWAY before any request"),
    row("H30-goaway-refuse", LowLevelFault::Http2(Http2Fault::GoAwayRefusing), "GOAWAY that excludes the request"),
    row("H30-goaway-drain", LowLevelFault::Http2(Http2Fault::GoAwayDraining), "GOAWAY, then the answer"),
    row("H30-goaway-abandon", LowLevelFault::Http2(Http2Fault::GoAwayAbandoning), "GOAWAY, and no answer"),
    row("H30-refused-stream", LowLevelFault::Http2(Http2Fault::RefusedStream), "RST_STREAM: request not processed"),
    row("H30-reset-stream", LowLevelFault::Http2(Http2Fault::ResetStream), "RST_STREAM: outcome unknown"),
    row("H30-reset-flood", LowLevelFault::Http2(Http2Fault::ResetFlood), "RST_STREAM without end"),
    row("H30-settings-flood", LowLevelFault::Http2(Http2Fault::SettingsFlood), "SETTINGS without end"),
    row("H30-ping-flood", LowLevelFault::Http2(Http2Fault::PingFlood), "PING without end"),
    row("H30-continuation-flood", LowLevelFault::Http2(Http2Fault::ContinuationFlood), "a header block without end"),
    row("H30-zero-window", LowLevelFault::Http2(Http2Fault::ZeroWindow), "a window that never opens"),
    row("H30-empty-data-flood", LowLevelFault::Http2(Http2Fault::EmptyDataFlood), "empty DATA without end"),
    row("H31-works", LowLevelFault::Connect(|target| ProxyBehaviour::Works(target.server)), "a proxy that works"),
    row("H31-password", LowLevelFault::Connect(require_authorization), "a proxy that wants --authorization"),
    row("H31-407", LowLevelFault::Connect(|_| ProxyBehaviour::Refuses), "a proxy that answers 407"),
    row("H31-502", LowLevelFault::Connect(|_| ProxyBehaviour::BadGateway), "a proxy that answers 502"),
    row("H31-garbage", LowLevelFault::Connect(|_| ProxyBehaviour::Garbage), "a proxy that answers with non-HTTP bytes"),
    row("H31-silent", LowLevelFault::Connect(|_| ProxyBehaviour::Silent), "a proxy that never answers"),
    row("proxy", LowLevelFault::FaultProxy, "the byte-level fault proxy"),
];

const fn row(name: &'static str, kind: LowLevelFault, about: &'static str) -> LowLevelCase {
    LowLevelCase { name, about, kind }
}

fn require_authorization(target: ProxyTarget) -> ProxyBehaviour {
    ProxyBehaviour::Demands(target.authorization, target.server)
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
