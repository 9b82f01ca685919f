//! What the owner of this program says about logging in at one server.

use std::path::PathBuf;

use crate::Secret;

/// How to log in at one server. Everything has a default: what is not said is discovered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthSettings {
    /// Where people log in, instead of what is discovered.
    pub authorization_url: Option<String>,
    /// Where tokens come from, instead of what is discovered.
    pub token_url: Option<String>,
    /// Where clients are registered, instead of what is discovered.
    pub registration_url: Option<String>,
    /// Where a login on another device begins, instead of what is discovered.
    pub device_url: Option<String>,
    /// What the authorization server calls itself, instead of what the server says.
    pub issuer: Option<String>,
    /// The client that was registered beforehand.
    pub client_id: Option<String>,
    /// What proves to be that client.
    pub client_secret: Option<Secret>,
    /// The address of a document that describes this client, used as its id where the authorization server takes such.
    pub client_metadata_url: Option<String>,
    /// What is asked for, instead of what the server wants: words separated by blanks.
    pub scope: Option<String>,
    /// The port of the loopback address that a login comes back to; any free one when absent.
    pub callback_port: Option<u16>,
    /// How tokens are got.
    pub grant: Grant,
    /// Whether tokens are bound to a key of ours.
    pub dpop: Dpop,
}

/// How tokens are got.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Grant {
    /// A person logs in.
    #[default]
    Person,
    /// The client is its own account, and proves itself by its secret.
    ClientSecret,
    /// The client is its own account, and proves itself by signing with a key.
    ClientKey {
        /// The private key, PKCS #8 in PEM.
        key: Secret,
        /// How it signs; `ES256` when absent.
        algorithm: Option<String>,
    },
    /// An identity provider of the enterprise vouches for the person (SEP-990).
    Enterprise {
        /// Where the identity provider exchanges tokens.
        token_url: String,
        /// The client at the identity provider.
        client_id: String,
        /// What proves to be that client, where it needs proof.
        client_secret: Option<Secret>,
        /// The person's identity token from there.
        id_token: Assertion,
    },
    /// The machine this runs on vouches for it (SEP-1933).
    Workload {
        /// The token of the workload.
        assertion: Assertion,
    },
}

/// A signed statement that somebody else has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assertion {
    /// This one.
    Given(Secret),
    /// Whatever this file holds when it is needed: such files are renewed.
    File(PathBuf),
}

/// Whether tokens are bound to a key of ours (RFC 9449).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dpop {
    /// Where the server or its authorization server says so.
    #[default]
    Automatic,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl AuthSettings {
    /// Everything in it that may not be shown.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let of_grant = match &self.grant {
            Grant::Person | Grant::ClientSecret => [None, None],
            Grant::ClientKey { key, .. } => [Some(key), None],
            Grant::Enterprise { client_secret, id_token, .. } => [client_secret.as_ref(), id_token.given()],
            Grant::Workload { assertion } => [assertion.given(), None],
        };
        self.client_secret.iter().chain(of_grant.into_iter().flatten())
    }
}

impl Assertion {
    fn given(&self) -> Option<&Secret> {
        match self {
            Self::Given(secret) => Some(secret),
            Self::File(_) => None,
        }
    }
}
