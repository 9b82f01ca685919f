//! Who we are to an authorization server.

use serde::{Deserialize, Serialize};
use wharf_spec::Secret;

/// A client as an authorization server knows it. Bound to the issuer it was registered at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its id, as it was given.
    pub id: String,
    /// Its secret, where it has one.
    pub secret: Option<Secret>,
    /// How it proves itself at the token endpoint.
    pub proof: Proof,
    /// Where it comes from.
    pub origin: ClientOrigin,
    /// When the secret ends, in Unix milliseconds.
    pub expires_at: Option<u64>,
}

/// How a client proves itself at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// Not at all.
    None,
    /// Its secret, in the `Authorization` header: id and secret percent-encoded (RFC 6749, 2.3.1).
    ClientSecretBasic,
    /// Its secret, among the fields.
    ClientSecretPost,
    /// A statement it has signed (RFC 7523).
    PrivateKeyJwt,
}

/// Where a client comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientOrigin {
    /// Somebody registered it beforehand.
    Given,
    /// Its id is the address of a document that describes it; valid at every issuer that takes such.
    Document,
    /// We registered it at this issuer.
    Registered,
}
