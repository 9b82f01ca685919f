//! The OAuth client identity.

use serde::{Deserialize, Serialize};
use wharf_spec::Secret;

/// A client registered at an authorization server. Bound to the issuer it was registered at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthClient {
    /// The client ID, as issued.
    pub id: String,
    /// The client secret, if any.
    pub secret: Option<Secret>,
    /// Authentication method at the token endpoint.
    pub proof: TokenEndpointAuth,
    /// Origin of the client.
    pub origin: ClientOrigin,
    /// Expiry of the secret in Unix milliseconds.
    pub expires_at: Option<u64>,
}

/// Authentication method of a client at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenEndpointAuth {
    /// No authentication.
    None,
    /// Secret in the `Authorization` header: ID and secret percent-encoded (RFC 6749, 2.3.1).
    ClientSecretBasic,
    /// Secret in the form fields.
    ClientSecretPost,
    /// Signed client assertion (RFC 7523).
    PrivateKeyJwt,
}

/// Origin of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientOrigin {
    /// Preregistered and configured by the user.
    Given,
    /// The ID is the URL of a metadata document. Valid at every issuer that accepts such IDs.
    Document,
    /// Dynamically registered at this issuer.
    Registered,
}
