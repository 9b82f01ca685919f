//! Fault switches of the two servers. Every switch can be changed at run time; see [`Authd::change_switches`](super::Authd).

use serde_json::{Value, json};

/// Behaviour of the two servers. The default is healthy: metadata named in the challenge, dynamic registration of
/// public clients, single-use refresh tokens.
#[derive(Clone, Debug)]
pub struct AuthSwitches {
    /// The server requires no authentication.
    pub open: bool,
    /// Both servers share one origin, as in revision 2025-03-26.
    pub one_origin: bool,
    /// Location of the resource metadata.
    pub description: MetadataLocation,
    /// Defect of the resource metadata.
    pub description_fault: DocumentDefect,
    /// The `resource` identifier of the server.
    pub resource: Resource,
    /// Scopes listed as supported.
    pub scopes_supported: Vec<String>,
    /// Scopes requested in the challenge.
    pub challenge_scope: Option<String>,
    /// Path of the issuer: empty, or with a leading slash.
    pub issuer_path: String,
    /// Location of the authorization-server metadata.
    pub metadata: IssuerMetadataLocation,
    /// Defect of the authorization-server metadata.
    pub metadata_fault: DocumentDefect,
    /// Response to client registration.
    pub registration: RegistrationBehaviour,
    /// Client authentication: assigned at registration, and required of all clients.
    pub client_auth: ClientAuthMethod,
    /// Verbatim `client_secret_expires_at`; enforced once it has passed.
    pub secret_expires_at: u64,
    /// Accept the URL of a client metadata document as a client id.
    pub client_documents: bool,
    /// The `iss` returned by the login page.
    pub iss: IssParameter,
    /// Advertise `iss` support in the metadata.
    pub iss_advertised: bool,
    /// Behaviour of the login page.
    pub page: LoginPageBehaviour,
    /// Verbatim `expires_in`; omitted if null.
    pub expires_in: Value,
    /// Number of requests after which an access token is rejected.
    pub access_uses: Option<u64>,
    /// Issue refresh tokens.
    pub refresh_tokens: bool,
    /// Treatment of used refresh tokens.
    pub rotation: RefreshRotation,
    /// Response to refresh requests.
    pub refresh: TokenBehaviour,
    /// Response to all other token requests: codes, credentials, assertions.
    pub grant: TokenBehaviour,
    /// DPoP binding of tokens (RFC 9449).
    pub dpop: DpopRequirement,
    /// Device login (RFC 8628), if supported.
    pub device: Option<DeviceLoginBehaviour>,
    /// Response to token revocation.
    pub revocation: RevocationBehaviour,
    /// Scope that calls require in addition to a token.
    pub step_up: ScopeRequirement,
    /// Break the response stream of the next call, and expire all access tokens at that point.
    pub break_stream: bool,
}

impl Default for AuthSwitches {
    fn default() -> AuthSwitches {
        AuthSwitches {
            open: false,
            one_origin: false,
            description: MetadataLocation::Header,
            description_fault: DocumentDefect::Good,
            resource: Resource::Exact,
            scopes_supported: Vec::new(),
            challenge_scope: None,
            issuer_path: String::new(),
            metadata: IssuerMetadataLocation::Oauth,
            metadata_fault: DocumentDefect::Good,
            registration: RegistrationBehaviour::Good,
            client_auth: ClientAuthMethod::None,
            secret_expires_at: 0,
            client_documents: false,
            iss: IssParameter::Right,
            iss_advertised: true,
            page: LoginPageBehaviour::Immediate,
            expires_in: json!(3600),
            access_uses: None,
            refresh_tokens: true,
            rotation: RefreshRotation::SingleUse,
            refresh: TokenBehaviour::Good,
            grant: TokenBehaviour::Good,
            dpop: DpopRequirement::No,
            device: None,
            revocation: RevocationBehaviour::Good,
            step_up: ScopeRequirement::Nothing,
            break_stream: false,
        }
    }
}

/// Location of the resource metadata (RFC 9728).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataLocation {
    /// At a custom path, named only in the challenge.
    Header,
    /// At the well-known path with the resource path appended; not named in the challenge.
    Path,
    /// At the well-known path of the origin; not named in the challenge.
    Root,
    /// Not available.
    Absent,
}

/// The `resource` identifier of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The server's URL.
    Exact,
    /// The server's origin, without a trailing slash.
    Origin,
    /// A different server.
    Foreign,
}

/// Location of the authorization-server metadata, in the order of client lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssuerMetadataLocation {
    /// `/.well-known/oauth-authorization-server/path`
    Oauth,
    /// `/.well-known/openid-configuration/path`
    OpenIdInserted,
    /// `/path/.well-known/openid-configuration`
    OpenIdAppended,
    /// Not available.
    Absent,
}

/// Defect of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum DocumentDefect {
    /// No defect.
    Good,
    /// Names a different issuer.
    WrongIssuer,
    /// An HTML page with status 200.
    Html,
    /// The same document behind a redirect to another origin.
    Redirect,
    /// Lacks this member.
    Without(String),
    /// Has this member with this value.
    With(String, Value),
    /// 100,000 nested arrays.
    Deep,
    /// 64 MiB long.
    Huge,
}

/// Response to client registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistrationBehaviour {
    /// Registers a client.
    Good,
    /// 400.
    BadRequest,
    /// 429.
    TooMany,
    /// No registration endpoint.
    Absent,
}

/// Client authentication method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuthMethod {
    /// No authentication.
    None,
    /// `client_secret_basic`
    Basic,
    /// `client_secret_post`
    Post,
    /// `private_key_jwt`, with [`Authd::client_key`](super::Authd::client_key).
    Key,
}

impl ClientAuthMethod {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            ClientAuthMethod::None => "none",
            ClientAuthMethod::Basic => "client_secret_basic",
            ClientAuthMethod::Post => "client_secret_post",
            ClientAuthMethod::Key => "private_key_jwt",
        }
    }
}

/// The `iss` returned by the login page (RFC 9207).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssParameter {
    /// The issuer.
    Right,
    /// A different issuer.
    Wrong,
    /// The issuer with a trailing slash.
    Slash,
    /// Missing.
    Absent,
}

/// Behaviour of the login page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginPageBehaviour {
    /// Redirects with a code immediately.
    Immediate,
    /// Redirects with `access_denied`.
    Denied,
}

/// Treatment of used refresh tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshRotation {
    /// Stays valid, and is repeated in every response.
    Repeated,
    /// Stays valid, and is omitted from the response.
    Omitted,
    /// Replaced by a new token. Reuse invalidates the whole family.
    SingleUse,
}

/// Response to a token request. All but [`TokenBehaviour::Good`] and [`TokenBehaviour::CutAfter`] leave the state unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenBehaviour {
    /// Issues tokens.
    Good,
    /// 400 `invalid_grant`.
    InvalidGrant,
    /// 400 `invalid_request`.
    OtherError,
    /// 401 `invalid_client`.
    Unauthorized,
    /// 429.
    TooMany,
    /// 500.
    ServerError,
    /// Never responds.
    Hang,
    /// 200 with a body that is not JSON.
    Garbage,
    /// Closes the connection without a response, after the tokens were changed.
    CutAfter,
}

/// DPoP binding of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DpopRequirement {
    /// Only for clients that send a proof.
    No,
    /// Required.
    Required,
    /// Required, with the nonce from the first rejection.
    Nonce,
}

/// Behaviour of device login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLoginBehaviour {
    /// Number of `authorization_pending` responses.
    pub pending: u32,
    /// Number of `slow_down` responses after them.
    pub slow_downs: u32,
    /// Outcome of the login.
    pub end: DeviceLoginOutcome,
    /// Polling interval in seconds.
    pub interval: u64,
}

impl Default for DeviceLoginBehaviour {
    fn default() -> DeviceLoginBehaviour {
        DeviceLoginBehaviour { pending: 0, slow_downs: 0, end: DeviceLoginOutcome::Granted, interval: 1 }
    }
}

/// Outcome of a device login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceLoginOutcome {
    /// Issues tokens.
    Granted,
    /// `access_denied`
    Denied,
    /// `expired_token`
    Expired,
}

/// Response to token revocation (RFC 7009).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevocationBehaviour {
    /// Revokes the token.
    Good,
    /// No revocation endpoint.
    Absent,
    /// 500.
    ServerError,
}

/// Scope that calls require in addition to a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeRequirement {
    /// No requirement.
    Nothing,
    /// This scope; otherwise 403 `insufficient_scope`.
    Needs(String),
    /// A different scope each time, independent of the token.
    Forever,
}
