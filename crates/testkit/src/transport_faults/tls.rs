//! TLS servers that no client may accept (H03), and a valid one.
//!
//! Unless the handshake itself is faulty, it is followed by the minimal healthy server over HTTP/1.1.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::server::{ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::FaultCount;
use super::certificates::{TestCa, TestIdentity};
use super::endpoint::{AcceptedConnection, Endpoint};
use super::http1;

/// Fault of a TLS server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// A valid certificate from the test authority.
    None,
    Expired,
    WrongHost,
    SelfSigned,
    /// A self-signed certificate that is marked as the certificate of an authority.
    SelfSignedCa,
    /// A certificate from an authority unknown to the client.
    UnknownAuthority,
    /// A certificate with the authority's name, signed by another key.
    ForgedAuthority,
    /// Chooses TLS 1.0, independent of the client's offer.
    OldVersion,
    /// Rejects the client because it offers no version old enough.
    OldVersionAlert,
    /// Supports only protocols that no client offers.
    NoCommonAlpn,
    /// Negotiates `h2` and then uses HTTP/1.1.
    AlpnLie,
    /// Reads the ClientHello and never answers.
    Stall,
    /// Answers the ClientHello with plain HTTP.
    NotTls,
    /// Requires a client certificate signed by the test authority.
    ClientCertificate,
}

/// An open TLS connection.
pub(super) type TlsStream = StreamOwned<ServerConnection, AcceptedConnection>;

/// Serves with this fault; healthy after `times` connections.
pub fn serve(authority: &TestCa, fault: TlsFault, times: FaultCount) -> io::Result<Endpoint> {
    let faulty = config(authority, fault)?;
    let healthy = config(authority, TlsFault::None)?;
    Endpoint::start(move |guest| {
        let (fault, config) =
            if times.applies_to(guest.number()) { (fault, &faulty) } else { (TlsFault::None, &healthy) };
        match fault {
            TlsFault::OldVersion => answer_hello(guest, &server_hello_1_0()),
            TlsFault::OldVersionAlert => answer_hello(guest, &ALERT_PROTOCOL_VERSION),
            TlsFault::NotTls => answer_hello(guest, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
            TlsFault::Stall => stall_after_hello(guest),
            _ => serve_connection(guest, config),
        }
    })
}

/// Returns a server configuration with this certificate and these ALPN protocols.
pub(super) fn server_config(identity: &TestIdentity, protocols: &[&str]) -> io::Result<Arc<ServerConfig>> {
    finish(builder()?.with_no_client_auth(), identity, protocols)
}

/// Completes the handshake. A rejected client receives the alert.
pub(super) fn accept_tls(guest: AcceptedConnection, config: &Arc<ServerConfig>) -> io::Result<TlsStream> {
    let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    let mut secured = StreamOwned::new(connection, guest);
    while secured.conn.is_handshaking() {
        if let Err(error) = secured.conn.complete_io(&mut secured.sock) {
            // The alert is queued behind earlier output, of which only the first piece was written.
            while secured.conn.wants_write() && secured.conn.write_tls(&mut secured.sock).is_ok() {}
            secured.sock.finish();
            return Err(error);
        }
    }
    Ok(secured)
}

/// Sends close_notify, so that the peer does not detect a truncation.
pub(super) fn close_tls(mut secured: TlsStream) {
    secured.conn.send_close_notify();
    secured.flush().ok();
    secured.sock.finish();
}

fn serve_connection(guest: AcceptedConnection, config: &Arc<ServerConfig>) {
    let Ok(mut secured) = accept_tls(guest, config) else { return };
    http1::serve_requests(&mut secured, |secured| secured.sock.count_request());
    close_tls(secured);
}

fn config(authority: &TestCa, fault: TlsFault) -> io::Result<Arc<ServerConfig>> {
    let identity = match fault {
        TlsFault::Expired => authority.server_expired(),
        TlsFault::WrongHost => authority.server_for_other_host(),
        TlsFault::SelfSigned => TestIdentity::self_signed(),
        TlsFault::SelfSignedCa => TestIdentity::self_signed_ca(),
        TlsFault::UnknownAuthority => TestCa::named("Another Authority").server(),
        TlsFault::ForgedAuthority => TestCa::new().server(),
        _ => authority.server(),
    };
    match fault {
        TlsFault::ClientCertificate => client_auth_config(authority, &identity),
        TlsFault::NoCommonAlpn => server_config(&identity, &["no-such-protocol/1"]),
        TlsFault::AlpnLie => server_config(&identity, &["h2"]),
        _ => server_config(&identity, &["http/1.1"]),
    }
}

fn client_auth_config(authority: &TestCa, identity: &TestIdentity) -> io::Result<Arc<ServerConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der()).map_err(io::Error::other)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    finish(builder()?.with_client_cert_verifier(verifier.map_err(io::Error::other)?), identity, &["http/1.1"])
}

type TlsConfigBuilder<State> = rustls::ConfigBuilder<ServerConfig, State>;

fn builder() -> io::Result<TlsConfigBuilder<rustls::WantsVerifier>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(io::Error::other)
}

fn finish(
    builder: TlsConfigBuilder<rustls::server::WantsServerCert>,
    identity: &TestIdentity,
    protocols: &[&str],
) -> io::Result<Arc<ServerConfig>> {
    let (chain, key) = identity.der();
    let mut config = builder.with_single_cert(chain, key).map_err(io::Error::other)?;
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    config.session_storage = ServerSessionMemoryCache::new(32);
    Ok(Arc::new(config))
}

fn stall_after_hello(mut guest: AcceptedConnection) {
    if read_record(&mut guest).is_ok() {
        guest.wait_for_disconnect();
    }
}

fn answer_hello(mut guest: AcceptedConnection, answer: &[u8]) {
    if read_record(&mut guest).is_ok() && guest.write_all(answer).is_ok() {
        guest.finish();
    }
}

/// Reads one TLS record: type, version, length and payload.
fn read_record(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut header = [0; 5];
    stream.read_exact(&mut header)?;
    let mut payload = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
    stream.read_exact(&mut payload)?;
    Ok(payload)
}

/// A fatal alert in a TLS 1.0 record: `protocol_version`.
const ALERT_PROTOCOL_VERSION: [u8; 7] = [0x15, 3, 1, 0, 2, 2, 70];

/// Returns a TLS 1.0 ServerHello: no session, `TLS_RSA_WITH_AES_128_CBC_SHA`, no compression.
fn server_hello_1_0() -> Vec<u8> {
    let body = [&[3, 1][..], &[0x5a; 32], &[0], &[0x00, 0x2f], &[0]].concat();
    let handshake = [&[2, 0, 0, body.len() as u8][..], &body].concat();
    [&[0x16, 3, 1, 0, handshake.len() as u8][..], &handshake].concat()
}
