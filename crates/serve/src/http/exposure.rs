//! The reach of an HTTP server, and its protection: TLS, or a proxy that provides it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::admission::{AllowedHosts, ClientAccess};

/// The reach of an HTTP server.
#[derive(Clone, Default)]
pub struct HttpExposure {
    /// Origins under which clients reach the server, such as `https://gateway.example`. They may be its `Host` and
    /// `Origin`, besides the loopback names of its address.
    pub public_origins: Vec<String>,
    /// Protection of the connections.
    pub protection: HttpProtection,
}

/// Protection of the connections of an HTTP server.
#[derive(Clone, Default)]
pub enum HttpProtection {
    /// They do not leave this machine.
    #[default]
    Loopback,
    /// TLS.
    Tls(TlsIdentity),
    /// A proxy that provides TLS. Connections to this server are plain.
    Proxy,
}

/// The certificate of a server, and its key.
#[derive(Clone)]
pub struct TlsIdentity(TlsAcceptor);

impl TlsIdentity {
    /// Reads a chain of certificates and the private key of the first one, both in PEM.
    ///
    /// # Errors
    ///
    /// Returns a sentence if one of them is missing or they do not belong together.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, String> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain.map_err(|error| format!("the certificate cannot be read: {error}"))?;
        if chain.is_empty() {
            return Err("the file has no certificate in PEM".to_owned());
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("the key cannot be read: {error}"))?;
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
        let config = builder.with_no_client_auth().with_single_cert(chain, key);
        let mut config = config.map_err(|error| format!("certificate and key cannot be used: {error}"))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Performs the handshake of a connection.
    ///
    /// # Errors
    ///
    /// Fails if the client does not complete it in time.
    pub(super) async fn accept(&self, stream: TcpStream, time: Duration) -> io::Result<TlsStream<TcpStream>> {
        timeout(time, self.0.accept(stream)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl HttpExposure {
    /// Checks that a server at this address is protected, and its clients are known.
    ///
    /// # Errors
    ///
    /// Fails with what is missing.
    pub(super) fn check(&self, address: SocketAddr, access: &ClientAccess) -> io::Result<()> {
        let invalid = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        if address.ip().is_loopback() {
            return Ok(());
        }
        match (&self.protection, access) {
            (HttpProtection::Loopback, _) => invalid("not a loopback address"),
            (_, ClientAccess::Anyone) => invalid("other machines are served only with authentication"),
            _ if self.public_origins.is_empty() => invalid("other machines need to know the server by a public URL"),
            _ => Ok(()),
        }
    }

    /// Returns the hosts under which a server at this address is reached.
    pub(super) fn hosts(&self, address: SocketAddr) -> AllowedHosts {
        let hosts = AllowedHosts::loopback(address);
        let hosts = match self.protection {
            HttpProtection::Tls(_) => hosts.with_tls(),
            HttpProtection::Loopback | HttpProtection::Proxy => hosts,
        };
        self.public_origins.iter().fold(hosts, AllowedHosts::with_public)
    }

    /// Returns the identity for TLS, if connections are protected by it.
    pub(super) fn tls(&self) -> Option<TlsIdentity> {
        match &self.protection {
            HttpProtection::Tls(identity) => Some(identity.clone()),
            HttpProtection::Loopback | HttpProtection::Proxy => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_are_served_with_protection_and_authentication_only() {
        let any: SocketAddr = "0.0.0.0:80".parse().unwrap();
        let public = vec!["https://gateway.example".to_owned()];
        let behind = |public_origins| HttpExposure { public_origins, protection: HttpProtection::Proxy };
        let token = ClientAccess::token("t");
        for (exposure, access, is_served) in [
            (HttpExposure::default(), &token, false),
            (HttpExposure { public_origins: public.clone(), ..HttpExposure::default() }, &token, false),
            (behind(Vec::new()), &token, false),
            (behind(public.clone()), &ClientAccess::Anyone, false),
            (behind(public), &token, true),
        ] {
            assert_eq!(exposure.check(any, access).is_ok(), is_served);
            assert!(exposure.check("127.0.0.1:80".parse().unwrap(), access).is_ok());
        }
    }

    #[test]
    fn certificate_and_key_are_required() {
        for (certificate, key) in [("", ""), ("nonsense", "nonsense")] {
            assert!(TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).is_err());
        }
    }
}
