//! Certificates made at run time by a test-only authority.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Host names under which tests reach a server.
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// A certificate authority with its own key.
pub struct TestCa {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key.
pub struct TestIdentity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
    pem: String,
}

impl TestCa {
    pub fn new() -> TestCa {
        TestCa::named("Test Authority")
    }

    /// Creates an authority with this subject name. Two authorities of the same name have different keys.
    pub fn named(name: &str) -> TestCa {
        let mut params = params(&[], name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, key()).expect("nothing here that DER could not say");
        TestCa { issuer }
    }

    /// Returns the CA certificate that clients must trust, as PEM.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(super) fn der(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// Issues a valid certificate for `localhost` and `127.0.0.1`.
    pub fn server(&self) -> TestIdentity {
        self.issue(server_params(&NAMES))
    }

    /// Issues a valid certificate for another host.
    pub fn server_for_other_host(&self) -> TestIdentity {
        self.issue(server_params(&["elsewhere.example"]))
    }

    /// Issues a certificate that expired in 2021.
    pub fn server_expired(&self) -> TestIdentity {
        let mut params = server_params(&NAMES);
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
        self.issue(params)
    }

    /// Issues a client certificate.
    pub fn client(&self, name: &str) -> TestIdentity {
        let mut params = params(&[], name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params)
    }

    fn issue(&self, params: CertificateParams) -> TestIdentity {
        let key = key();
        let certificate = params.signed_by(&key, &self.issuer).expect("nothing here that DER could not say");
        TestIdentity::new(&certificate, &key)
    }
}

impl Default for TestCa {
    fn default() -> TestCa {
        TestCa::new()
    }
}

impl TestIdentity {
    /// Creates a self-signed server certificate.
    pub fn self_signed() -> TestIdentity {
        let key = key();
        let certificate = server_params(&NAMES).self_signed(&key).expect("nothing here that DER could not say");
        TestIdentity::new(&certificate, &key)
    }

    /// Creates a self-signed server certificate that is marked as the certificate of an authority, as
    /// `openssl req -x509` does.
    pub fn self_signed_ca() -> TestIdentity {
        let key = key();
        let mut params = server_params(&NAMES);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("nothing here that DER could not say");
        TestIdentity::new(&certificate, &key)
    }

    fn new(certificate: &rcgen::Certificate, key: &KeyPair) -> TestIdentity {
        let pem = certificate.pem() + &key.serialize_pem();
        TestIdentity { certificate: certificate.der().clone(), key: key.serialize_der(), pem }
    }

    /// Returns the certificate followed by its key, as PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the chain and the key for `rustls`.
    pub fn der(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (vec![self.certificate.clone()], PrivatePkcs8KeyDer::from(self.key.clone()).into())
    }
}

fn server_params(names: &[&str]) -> CertificateParams {
    let mut params = params(names, "Test Server");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}

fn params(names: &[&str], subject: &str) -> CertificateParams {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).expect("names are plain ASCII");
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, subject);
    params
}

fn key() -> KeyPair {
    KeyPair::generate().expect("the default algorithm is compiled in")
}
