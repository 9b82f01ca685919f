//! TLS servers, met by a client that trusts the test's authority and nobody else.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, InvalidMessage, PeerIncompatible,
    RootCertStore, StreamOwned,
};
use wharf_testkit::transport_faults::{FaultCount, TestCa, TlsFault, serve_tls};

use super::{assert_healthy, assert_silent, call, connect, post, rest};

pub type Secured = StreamOwned<ClientConnection, TcpStream>;

/// Opens a TLS connection, or says why not.
pub fn secure(stream: TcpStream, config: ClientConfig) -> Result<Secured, Error> {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut secured = StreamOwned::new(connection, stream);
    while secured.conn.is_handshaking() {
        if let Err(error) = secured.conn.complete_io(&mut secured.sock) {
            return Err(reason(error));
        }
    }
    Ok(secured)
}

/// What a client of this authority offers by ALPN.
pub fn trusting(authority: &TestCa, protocol: &str) -> ClientConfig {
    client_config(authority, protocol, None)
}

fn client_config(authority: &TestCa, protocol: &str, identity: Option<&str>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match identity.map(str::as_bytes) {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let chain = vec![CertificateDer::from_pem_slice(pem).unwrap()];
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(pem).unwrap()).unwrap()
        }
    };
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    config
}

fn reason(error: std::io::Error) -> Error {
    let kind = error.kind();
    error.downcast::<Error>().unwrap_or_else(|_| panic!("no error of TLS but {kind}"))
}

/// The reason for which a client turns away from a server with this fault.
fn refusal(fault: TlsFault) -> Error {
    let authority = TestCa::new();
    let server = serve_tls(&authority, fault, FaultCount::First(1)).unwrap();
    let error = secure(connect(server.address()), trusting(&authority, "http/1.1")).err().unwrap();
    assert_eq!(server.requests(), 0);
    assert_reachable(server.address(), &authority);
    error
}

fn assert_reachable(address: SocketAddr, authority: &TestCa) {
    assert_healthy(&mut secure(connect(address), trusting(authority, "http/1.1")).unwrap(), "good");
}

#[test]
fn certificates_are_bad_for_the_reason_they_are_named_after() {
    assert!(matches!(
        refusal(TlsFault::Expired),
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. })
    ));
    assert!(matches!(
        refusal(TlsFault::WrongHost),
        Error::InvalidCertificate(CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. })
    ));
    let unknown = Error::InvalidCertificate(CertificateError::UnknownIssuer);
    assert_eq!(refusal(TlsFault::SelfSigned), unknown);
    assert_eq!(refusal(TlsFault::UnknownAuthority), unknown);
    let forged = Error::InvalidCertificate(CertificateError::BadSignature);
    assert_eq!(refusal(TlsFault::ForgedAuthority), forged);
}

#[test]
fn an_old_server_is_recognised_by_its_version() {
    let too_old = Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13);
    assert_eq!(refusal(TlsFault::OldVersion), too_old);
    assert_eq!(refusal(TlsFault::OldVersionAlert), Error::AlertReceived(AlertDescription::ProtocolVersion));
}

#[test]
fn no_common_protocol_is_an_alert() {
    assert_eq!(refusal(TlsFault::NoCommonAlpn), Error::AlertReceived(AlertDescription::NoApplicationProtocol));
}

#[test]
fn plain_http_is_no_tls() {
    let error = refusal(TlsFault::NotTls);
    assert_eq!(error, Error::InvalidMessage(InvalidMessage::InvalidContentType));
}

#[test]
fn a_lie_about_the_protocol_comes_to_light_after_the_handshake() {
    let authority = TestCa::new();
    let server = serve_tls(&authority, TlsFault::AlpnLie, FaultCount::Always).unwrap();
    let mut client = secure(connect(server.address()), trusting(&authority, "h2")).unwrap();
    assert_eq!(client.conn.alpn_protocol(), Some(&b"h2"[..]));
    client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    let mut answer = [0; 8];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1");
}

#[test]
fn a_stalled_handshake_stays_stalled() {
    let authority = TestCa::new();
    let server = serve_tls(&authority, TlsFault::Stall, FaultCount::Always).unwrap();
    let mut stream = connect(server.address());
    let name = ServerName::try_from("localhost").unwrap();
    let mut hello = ClientConnection::new(Arc::new(trusting(&authority, "http/1.1")), name).unwrap();
    hello.write_tls(&mut stream).unwrap();
    assert_silent(&mut stream);
    drop(server);
    assert_eq!(rest(&mut stream), Ok(Vec::new()));
}

#[test]
fn a_client_certificate_is_demanded_and_checked() {
    let authority = TestCa::new();
    let server = serve_tls(&authority, TlsFault::ClientCertificate, FaultCount::Always).unwrap();
    let known = authority.client("somebody");
    let config = client_config(&authority, "http/1.1", Some(known.pem()));
    assert_healthy(&mut secure(connect(server.address()), config).unwrap(), "somebody");

    let turned_away = |identity: Option<&str>| {
        let config = client_config(&authority, "http/1.1", identity);
        let mut client = secure(connect(server.address()), config).unwrap();
        client.write_all(post(&call("nobody")).as_bytes()).ok();
        reason(client.read(&mut [0]).unwrap_err())
    };
    assert_eq!(turned_away(None), Error::AlertReceived(AlertDescription::CertificateRequired));
    let stranger = TestCa::new().client("stranger");
    assert!(matches!(turned_away(Some(stranger.pem())), Error::AlertReceived(_)));
    assert_eq!(server.requests(), 1);
}
