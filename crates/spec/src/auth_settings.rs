//! Login settings of a server, as configured by the user.

use std::path::PathBuf;

use crate::Secret;

/// Login settings of one server. Every field is optional: missing values are discovered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthSettings {
    /// Authorization endpoint. Overrides the discovered one.
    pub authorization_url: Option<String>,
    /// Token endpoint. Overrides the discovered one.
    pub token_url: Option<String>,
    /// Registration endpoint. Overrides the discovered one.
    pub registration_url: Option<String>,
    /// Device authorization endpoint. Overrides the discovered one.
    pub device_url: Option<String>,
    /// Issuer identifier of the authorization server. Overrides the one that the server names.
    pub issuer: Option<String>,
    /// Identifier of a pre-registered client.
    pub client_id: Option<String>,
    /// Secret of that client.
    pub client_secret: Option<Secret>,
    /// URL of a client metadata document, used as the client id if the authorization server supports it.
    pub client_metadata_url: Option<String>,
    /// Scopes to request, separated by spaces. Overrides the scopes that the server asks for.
    pub scope: Option<String>,
    /// Loopback port for the login callback. `None` selects any free port.
    pub callback_port: Option<u16>,
    /// Grant by which tokens are obtained.
    pub grant: TokenGrant,
    /// Setting for DPoP-bound tokens.
    pub dpop: DpopMode,
}

/// A way to obtain tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TokenGrant {
    /// A user logs in.
    #[default]
    Person,
    /// The client acts for itself and authenticates with its secret.
    ClientSecret,
    /// The client acts for itself and authenticates by signing with a private key.
    ClientKey {
        /// Private key, PKCS #8 in PEM.
        key: Secret,
        /// Signature algorithm. `None` means `ES256`.
        algorithm: Option<String>,
    },
    /// An enterprise identity provider vouches for the user (SEP-990).
    Enterprise {
        /// Token exchange endpoint of the identity provider.
        token_url: String,
        /// Client id at the identity provider.
        client_id: String,
        /// Client secret at the identity provider, if required.
        client_secret: Option<Secret>,
        /// ID token of the user, issued by the identity provider.
        id_token: AssertionSource,
    },
    /// Workload identity: the platform vouches for the program (SEP-1933).
    Workload {
        /// Token of the workload.
        assertion: AssertionSource,
    },
}

/// Source of a signed assertion that a third party has issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssertionSource {
    /// The assertion itself.
    Given(Secret),
    /// A file that holds the assertion. Read again on each use, since such files are renewed.
    File(PathBuf),
}

/// Mode of DPoP, the binding of tokens to a client key (RFC 9449).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DpopMode {
    /// Only if the server or its authorization server requires it.
    #[default]
    Automatic,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl AuthSettings {
    /// Returns every secret in these settings.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let of_grant = match &self.grant {
            TokenGrant::Person | TokenGrant::ClientSecret => [None, None],
            TokenGrant::ClientKey { key, .. } => [Some(key), None],
            TokenGrant::Enterprise { client_secret, id_token, .. } => {
                [client_secret.as_ref(), id_token.inline_secret()]
            }
            TokenGrant::Workload { assertion } => [assertion.inline_secret(), None],
        };
        self.client_secret.iter().chain(of_grant.into_iter().flatten())
    }
}

impl AssertionSource {
    fn inline_secret(&self) -> Option<&Secret> {
        match self {
            Self::Given(secret) => Some(secret),
            Self::File(_) => None,
        }
    }
}
