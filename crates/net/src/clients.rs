//! The HTTP clients of a connection pool: one for plain connections, and one for TLS that is built on first use.

use reqwest::{Certificate, Client, ClientBuilder, Identity, Proxy};
use tokio::sync::OnceCell;
use url::Url;

use crate::SendError;
use crate::error::cause_chain;

/// Variables that select the CA certificates in place of the system's.
const CERTIFICATE_VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Settings of both clients.
pub(crate) struct ClientSettings {
    /// Returns a builder with the settings that do not concern TLS.
    pub builder: Box<dyn Fn() -> ClientBuilder + Send + Sync>,
    pub proxy: Option<Proxy>,
    /// Set if the connection to the proxy uses TLS.
    pub proxy_uses_tls: bool,
    pub extra_ca: Vec<Certificate>,
    pub identity: Option<Identity>,
}

/// The clients for plain connections and for TLS.
pub(crate) struct HttpClients {
    plain: Client,
    /// Built on first use: it reads the system's CA certificates, which plain connections do not need.
    secure: OnceCell<Client>,
    settings: std::sync::Arc<ClientSettings>,
}

impl HttpClients {
    pub fn new(settings: ClientSettings) -> Result<Self, reqwest::Error> {
        // With an empty list of roots, no certificate is read, and none is trusted.
        let plain = settings.without_tls().tls_certs_only([]).build()?;
        Ok(Self { plain, secure: OnceCell::new(), settings: settings.into() })
    }

    /// Returns the client for a URL.
    ///
    /// Cancel-safe: the next request for a TLS connection starts again.
    pub async fn for_url(&self, url: &Url) -> Result<&Client, SendError> {
        if url.scheme() != "https" && !self.settings.proxy_uses_tls {
            return Ok(&self.plain);
        }
        self.secure
            .get_or_try_init(|| async {
                let settings = std::sync::Arc::clone(&self.settings);
                let built = wharf_threads::run_blocking(move || settings.build_secure(names_certificates())).await;
                built.unwrap_or_else(|error| Err(SendError::TlsSetup(error.to_string())))
            })
            .await
    }
}

impl ClientSettings {
    fn without_tls(&self) -> ClientBuilder {
        let builder = (self.builder)();
        match &self.proxy {
            Some(proxy) => builder.proxy(proxy.clone()),
            None => builder,
        }
    }

    fn with_tls(&self) -> ClientBuilder {
        let builder = self.without_tls();
        match &self.identity {
            Some(identity) => builder.identity(identity.clone()),
            None => builder,
        }
    }

    /// Builds the client for TLS. Without certificates of the system, uses the bundled ones of Mozilla's list, unless
    /// the user has named certificates: then only those are trusted. Blocks.
    fn build_secure(&self, user_named: bool) -> Result<Client, SendError> {
        let failed = |error: reqwest::Error| SendError::TlsSetup(cause_chain(&error));
        match self.with_tls().build() {
            Ok(client) if self.extra_ca.is_empty() => Ok(client),
            Ok(_) => self.with_tls().tls_certs_merge(self.extra_ca.clone()).build().map_err(failed),
            Err(_) if user_named && self.extra_ca.is_empty() => {
                Err(SendError::TlsSetup(format!("{} contain no certificate", CERTIFICATE_VARIABLES.join(" and "))))
            }
            Err(_) => {
                tracing::debug!("the system has no CA certificates");
                let bundled = if user_named { Vec::new() } else { bundled_roots() };
                let roots = self.extra_ca.iter().cloned().chain(bundled);
                self.with_tls().tls_certs_only(roots).build().map_err(failed)
            }
        }
    }
}

fn bundled_roots() -> Vec<Certificate> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().filter_map(|root| Certificate::from_der(root).ok()).collect()
}

/// Reports whether the user has named certificates, by the variables that the reader of the system's certificates uses.
#[expect(clippy::disallowed_methods, reason = "the reader of the system's certificates reads the same variables")]
fn names_certificates() -> bool {
    CERTIFICATE_VARIABLES.iter().any(|name| std::env::var_os(name).is_some())
}
