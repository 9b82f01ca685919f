//! `wharf serve --http` beyond this machine: what it requires, and the flags that provide it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use url::Url;
use wharf_serve::{HttpExposure, HttpProtection, TlsIdentity};
use wharf_store::{Document, DocumentPrivacy};
use wharf_terminal::failure::Failure;

/// Maximum size of a file with certificates or a key.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// The flags that decide who can reach a gateway.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ExposureArgs {
    /// With --http: serve TLS with this certificate chain in PEM
    #[arg(long, value_name = "FILE", requires_all = ["http", "tls_key"], conflicts_with = "behind_proxy")]
    tls_cert: Option<PathBuf>,
    /// With --tls-cert: private key of the certificate in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// With --http: serve plain HTTP to a proxy that provides TLS
    #[arg(long, requires_all = ["http", "public_url"])]
    behind_proxy: bool,
    /// With --http: URL by which clients reach the gateway, such as https://gateway.example
    #[arg(long, value_name = "URL", requires = "http", value_parser = parse_public_url)]
    public_url: Option<PublicUrl>,
}

/// The URL by which clients reach a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    /// Scheme, host and port.
    pub origin: String,
    is_secure: bool,
}

fn parse_public_url(text: &str) -> Result<PublicUrl, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or("write a URL such as https://gateway.example")?;
    let has_more = !matches!(url.path(), "/" | "/mcp") || url.query().is_some() || url.fragment().is_some();
    if has_more || !url.username().is_empty() || url.password().is_some() {
        return Err("write only scheme, host and port; the path is always /mcp".to_owned());
    }
    Ok(PublicUrl { origin: url.origin().ascii_serialization(), is_secure: url.scheme() == "https" })
}

impl ExposureArgs {
    /// Returns the URL that clients use, if it is not that of the address.
    pub fn public_url(&self) -> Option<&PublicUrl> {
        self.public_url.as_ref()
    }

    /// Reads the certificate and checks that an address may be served. Blocks on the file system.
    ///
    /// # Errors
    ///
    /// Fails if other machines can reach the address without protection, or a file cannot be used.
    pub fn open(&self, address: SocketAddr) -> Result<HttpExposure, Failure> {
        let is_local = address.ip().is_loopback();
        if !is_local && self.tls_cert.is_none() && !self.behind_proxy {
            let message = format!("{} can be reached from other machines, which needs TLS", address.ip());
            return Err(Failure::usage(message)
                .with_hint("add --tls-cert FILE --tls-key FILE --public-url URL")
                .with_hint("or let a proxy provide TLS: --behind-proxy --public-url URL")
                .with_hint("or serve this machine only: --http 127.0.0.1:8089"));
        }
        if !is_local && self.public_url.is_none() {
            return Err(Failure::usage(
                "clients of other machines need a name for the gateway, which requests are \
                                       checked for",
            )
            .with_hint("add --public-url https://NAME, with the name in the certificate"));
        }
        if self.tls_cert.is_some() && self.public_url.as_ref().is_some_and(|url| !url.is_secure) {
            return Err(Failure::usage("with --tls-cert the URL of --public-url begins with https://"));
        }
        let protection = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => HttpProtection::Tls(read_identity(certificate, key)?),
            _ if self.behind_proxy => HttpProtection::Proxy,
            _ => HttpProtection::Loopback,
        };
        Ok(HttpExposure { public_origins: self.public_url.iter().map(|url| url.origin.clone()).collect(), protection })
    }
}

fn read_identity(certificate: &Path, key: &Path) -> Result<TlsIdentity, Failure> {
    let identity = TlsIdentity::from_pem(&read(certificate)?, &read(key)?);
    let place = format!("{}, {}", certificate.display(), key.display());
    identity.map_err(|reason| Failure::usage(format_args!("{place}: {reason}")))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let document = Document::new(path, DocumentPrivacy::Shared).with_limit(MAX_PEM_BYTES);
    let loaded = document.load().map_err(Failure::usage)?;
    let missing = || Failure::usage(format_args!("{} does not exist", path.display()));
    loaded.map(|loaded| loaded.bytes.to_vec()).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_url_is_an_origin() {
        for (text, origin) in [
            ("https://gateway.example", "https://gateway.example"),
            ("https://Gateway.example:443/mcp", "https://gateway.example"),
            ("http://gateway.example:8080/", "http://gateway.example:8080"),
        ] {
            assert_eq!(parse_public_url(text).unwrap().origin, origin);
        }
        for wrong in ["gateway.example", "ftp://a", "https://a/b", "https://a?b", "https://u:p@a", ""] {
            assert!(parse_public_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unprotected_address_is_refused_with_the_flags() {
        let any = "0.0.0.0:0".parse().unwrap();
        let refused = ExposureArgs::default().open(any).err().unwrap();
        let text = refused.hints.join(" ");
        for flag in ["--tls-cert", "--tls-key", "--behind-proxy", "--public-url", "127.0.0.1"] {
            assert!(text.contains(flag), "{flag}: {text}");
        }
        let behind = ExposureArgs { behind_proxy: true, ..ExposureArgs::default() };
        assert!(behind.open(any).is_err(), "its name is unknown");
        let public_url = parse_public_url("https://gateway.example").ok();
        assert!(ExposureArgs { public_url, ..behind }.open(any).is_ok());
        assert!(ExposureArgs::default().open("127.0.0.1:0".parse().unwrap()).is_ok());
    }
}
