//! Secure connections that must not come about, and those that must: H03.

use std::time::Instant;

use wharf_net::{Net, NetOpenError, NetOptions, SendError};
use wharf_testkit::transport_faults::{FaultCount, TestCa, TestIdentity, TlsFault, serve_tls};

use crate::files::File;
use crate::{BRIEF, SOON, assert_proof, exchange, hurried, open, open_with, secure};

/// A way out that trusts this authority, and may show a certificate.
pub async fn trusting(authority: &TestCa, identity: Option<&TestIdentity>) -> Net {
    trusting_with(NetOptions::default(), authority, identity).await
}

async fn trusting_with(mut options: NetOptions, authority: &TestCa, identity: Option<&TestIdentity>) -> Net {
    let trusted = File::holding(&authority.pem());
    options.extra_ca = vec![trusted.path()];
    let shown = identity.map(|identity| File::holding(identity.pem()));
    options.client_certificate = shown.as_ref().map(File::path);
    open_with(options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn extra_ca_is_trusted_only_when_configured() {
    let authority = TestCa::new();
    let server = serve_tls(&authority, TlsFault::None, FaultCount::Always).unwrap();
    let error = exchange(&open().await, &secure(server.address())).await.unsent();
    assert!(matches!(&error, SendError::Encryption(why) if why.contains("UnknownIssuer")), "{error:?}");
    assert_proof(&error, &server);
    assert!(exchange(&trusting(&authority, None).await, &secure(server.address())).await.is_healthy("hello"));
    let by_address = format!("https://{}/mcp", server.address());
    assert!(exchange(&trusting(&authority, None).await, &by_address).await.is_healthy("hello"));
    assert_eq!(server.requests(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn h03_each_tls_fault_fails_with_its_own_reason() {
    for (fault, reason) in [
        (TlsFault::Expired, "expired"),
        (TlsFault::WrongHost, "not valid for name"),
        (TlsFault::SelfSigned, "UnknownIssuer"),
        (TlsFault::SelfSignedCa, "is a CA certificate (CA:TRUE), which is not valid for a server"),
        (TlsFault::UnknownAuthority, "UnknownIssuer"),
        (TlsFault::ForgedAuthority, "BadSignature"),
        (TlsFault::OldVersion, "incompatible"),
        (TlsFault::OldVersionAlert, "ProtocolVersion"),
        (TlsFault::NoCommonAlpn, "NoApplicationProtocol"),
        (TlsFault::NotTls, "InvalidContentType"),
    ] {
        let authority = TestCa::new();
        let server = serve_tls(&authority, fault, FaultCount::First(1)).unwrap();
        let net = trusting(&authority, None).await;
        let error = exchange(&net, &secure(server.address())).await.unsent();
        assert!(matches!(&error, SendError::Encryption(why) if why.contains(reason)), "{fault:?}: {error:?}");
        assert!(error.to_string().starts_with("TLS handshake failed: "), "{fault:?}: {error}");
        assert!(!error.is_transient(), "{fault:?}: a certificate does not mend by asking again");
        assert_proof(&error, &server);
        assert_eq!(server.connections(), 1, "{fault:?} was tried again");
        assert!(exchange(&net, &secure(server.address())).await.is_healthy("hello"), "{fault:?} stuck");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h03_false_h2_negotiation_is_an_error() {
    let authority = TestCa::new();
    let server = serve_tls(&authority, TlsFault::AlpnLie, FaultCount::Always).unwrap();
    let error = exchange(&trusting(&authority, None).await, &secure(server.address())).await.unsent();
    assert_eq!(server.requests(), 0, "HTTP/1.1 was spoken after all");
    assert!(server.connections() <= 3, "{} connections", server.connections());
    assert!(matches!(error, SendError::Refused(_) | SendError::Broken(_)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn h03_stalled_handshake_hits_the_connect_timeout() {
    let authority = TestCa::new();
    let server = serve_tls(&authority, TlsFault::Stall, FaultCount::Always).unwrap();
    let net = trusting_with(hurried(), &authority, None).await;
    let since = Instant::now();
    let error = exchange(&net, &secure(server.address())).await.unsent();
    assert_eq!(error, SendError::Slow(BRIEF));
    assert!(since.elapsed() < SOON / 2, "{:?}", since.elapsed());
    assert_proof(&error, &server);
}

#[tokio::test(flavor = "multi_thread")]
async fn client_certificate_is_presented_when_required() {
    let authority = TestCa::new();
    let server = serve_tls(&authority, TlsFault::ClientCertificate, FaultCount::Always).unwrap();
    let url = secure(server.address());
    let stranger = TestCa::named("Another Authority").client("somebody");
    for (shown, reason) in [(None, "CertificateRequired"), (Some(&stranger), "UnknownCA")] {
        let error = exchange(&trusting(&authority, shown).await, &url).await.unsent();
        // In TLS 1.3 the refusal comes when the handshake is over for us, and may find the connection not yet in use.
        let told = match &error {
            SendError::Encryption(why) => why.contains(reason),
            other => matches!(other, SendError::Refused(_)),
        };
        assert!(told, "{reason}: {error:?}");
        assert_proof(&error, &server);
    }
    let known = authority.client("somebody");
    assert!(exchange(&trusting(&authority, Some(&known)).await, &url).await.is_healthy("hello"));
    assert_eq!(server.requests(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_without_a_certificate_are_named_in_the_error() {
    let empty = File::holding("no certificate here\n");
    let certificate = File::holding(&TestCa::new().pem());
    let gone = empty.path().with_extension("gone");
    let mut options = NetOptions::default();
    options.extra_ca = vec![certificate.path(), empty.path()];
    assert!(matches!(Net::open(&options).await.err(), Some(NetOpenError::NoCertificate(file)) if file == empty.path()));
    options.extra_ca = vec![gone.clone()];
    assert!(matches!(Net::open(&options).await.err(), Some(NetOpenError::Unreadable { file, .. }) if file == gone));
    options.extra_ca = Vec::new();
    options.client_certificate = Some(certificate.path());
    assert!(
        matches!(Net::open(&options).await.err(), Some(NetOpenError::NoIdentity(file)) if file == certificate.path())
    );
}
