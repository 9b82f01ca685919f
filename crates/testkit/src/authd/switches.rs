//! What the pair is told to do wrong. Every switch may be turned while it runs; see [`Authd::change`](super::Authd).

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// How the two servers behave. The default is a healthy pair: description in the challenge, dynamic registration of
/// public clients, single-use refresh tokens.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Switches {
    /// The server asks nobody who they are.
    pub open: bool,
    /// Both are at one address, as the revision of 2025-03-26 has it.
    pub one_origin: bool,
    /// Where the server's description of itself is.
    pub description: Description,
    /// What is wrong with it.
    pub description_fault: Document,
    /// What it calls itself.
    pub resource: Resource,
    /// The scopes it says there are.
    pub scopes_supported: Vec<String>,
    /// The scopes its challenge asks for.
    pub challenge_scope: Option<String>,
    /// The path of the issuer: empty, or with a slash before it.
    pub issuer_path: String,
    /// Where the authorization server's metadata is.
    pub metadata: Metadata,
    /// What is wrong with it.
    pub metadata_fault: Document,
    /// What comes of registering.
    pub registration: Registration,
    /// How clients prove themselves: given to those that register, wanted of all.
    pub client_auth: ClientAuth,
    /// `client_secret_expires_at`, word for word; one that has passed is enforced.
    pub secret_expires_at: u64,
    /// The address of a document may be a client's id.
    pub client_documents: bool,
    /// The `iss` that comes back from the login page.
    pub iss: Iss,
    /// The metadata says that there will be one.
    pub iss_advertised: bool,
    /// What the login page does.
    pub page: Page,
    /// `expires_in`, word for word; left out where null.
    pub expires_in: Value,
    /// After how many requests an access token is refused.
    pub access_uses: Option<u64>,
    /// Whether there are refresh tokens at all.
    pub refresh_tokens: bool,
    /// What becomes of a refresh token that was used.
    pub rotation: Rotation,
    /// What comes of refreshing.
    pub refresh: Refresh,
    /// What comes of all else at the token endpoint: codes, credentials, assertions.
    pub grant: Refresh,
    /// Tokens are bound to a key (RFC 9449).
    pub dpop: Dpop,
    /// Login on another device (RFC 8628), where there is that.
    pub device: Option<Device>,
    /// What comes of giving tokens back.
    pub revocation: Revocation,
    /// What calls need besides a token.
    pub step_up: StepUp,
    /// The stream that answers the next call breaks off, and all access tokens expire with it.
    pub break_stream: bool,
}

impl Default for Switches {
    fn default() -> Switches {
        Switches {
            open: false,
            one_origin: false,
            description: Description::Header,
            description_fault: Document::Good,
            resource: Resource::Exact,
            scopes_supported: Vec::new(),
            challenge_scope: None,
            issuer_path: String::new(),
            metadata: Metadata::Oauth,
            metadata_fault: Document::Good,
            registration: Registration::Good,
            client_auth: ClientAuth::None,
            secret_expires_at: 0,
            client_documents: false,
            iss: Iss::Right,
            iss_advertised: true,
            page: Page::Immediate,
            expires_in: json!(3600),
            access_uses: None,
            refresh_tokens: true,
            rotation: Rotation::SingleUse,
            refresh: Refresh::Good,
            grant: Refresh::Good,
            dpop: Dpop::No,
            device: None,
            revocation: Revocation::Good,
            step_up: StepUp::Nothing,
            break_stream: false,
        }
    }
}

impl Switches {
    /// Reads `name=value` words: a value is JSON, or else a string.
    pub fn parse(words: impl Iterator<Item = String>) -> Result<Switches, String> {
        let mut members = Map::new();
        for word in words {
            let (name, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not NAME=VALUE"))?;
            members.insert(name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| json!(value)));
        }
        serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())
    }
}

/// Where a server's description of itself is (RFC 9728).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Description {
    /// At a place of its own, which only the challenge names.
    Header,
    /// At the well-known place with the path after it; the challenge does not say so.
    Path,
    /// At the well-known place of the origin; the challenge does not say so.
    Root,
    /// Nowhere.
    Absent,
}

/// What a server calls itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Its address.
    Exact,
    /// Its origin, without a slash at the end.
    Origin,
    /// Another server.
    Foreign,
}

/// Where an authorization server's metadata is, in the order in which clients are to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metadata {
    /// `/.well-known/oauth-authorization-server/path`
    Oauth,
    /// `/.well-known/openid-configuration/path`
    OpenIdInserted,
    /// `/path/.well-known/openid-configuration`
    OpenIdAppended,
    /// Nowhere.
    Absent,
}

/// What is wrong with a document.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Document {
    /// Nothing.
    Good,
    /// It is about somebody else: another issuer.
    WrongIssuer,
    /// It is a page for people, with status 200.
    Html,
    /// It is elsewhere: the same document, at the end of a redirect to another origin.
    Redirect,
    /// It lacks this member.
    Without(String),
    /// It has this member with this value.
    With(String, Value),
    /// It is 100,000 arrays deep.
    Deep,
    /// It is 64 MiB long.
    Huge,
}

/// What comes of registering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Registration {
    /// A client.
    Good,
    /// 400.
    BadRequest,
    /// 429.
    TooMany,
    /// There is no such endpoint.
    Absent,
}

/// How clients prove themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// Not at all.
    None,
    /// `client_secret_basic`
    Basic,
    /// `client_secret_post`
    Post,
    /// `private_key_jwt`, with the key that is [`Authd::client_key`](super::Authd::client_key).
    Key,
}

impl ClientAuth {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            ClientAuth::None => "none",
            ClientAuth::Basic => "client_secret_basic",
            ClientAuth::Post => "client_secret_post",
            ClientAuth::Key => "private_key_jwt",
        }
    }
}

/// The `iss` that comes back from a login page (RFC 9207).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Iss {
    /// The issuer.
    Right,
    /// Somebody else.
    Wrong,
    /// The issuer with a slash at its end.
    Slash,
    /// None.
    Absent,
}

/// What a login page does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Page {
    /// Sends the person back with a code, without a question.
    Immediate,
    /// Sends them back with `access_denied`.
    Denied,
    /// Stays: a page, and nobody who answers it.
    Stays,
    /// Never answers.
    Never,
}

/// What becomes of a refresh token that was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rotation {
    /// It is good for ever, and repeated in every answer.
    Repeated,
    /// It is good for ever, and left out of the answer.
    Omitted,
    /// A new one takes its place. Presented again, it takes everything that came from it with it.
    SingleUse,
}

/// What comes of asking for tokens. All but [`Refresh::CutAfter`] change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refresh {
    /// Tokens.
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
    /// No answer.
    Hang,
    /// 200, and no JSON.
    Garbage,
    /// The connection ends instead of an answer, and the tokens are nevertheless changed.
    CutAfter,
}

/// Whether tokens are bound to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dpop {
    /// Only where a client comes with a proof.
    No,
    /// Always.
    Required,
    /// Always, and proofs must have the nonce that is given out at the first refusal.
    Nonce,
}

/// How logging in on another device goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Device {
    /// How often it is `authorization_pending`.
    pub pending: u32,
    /// How often it is then `slow_down`.
    pub slow_downs: u32,
    /// What it comes to.
    pub end: DeviceEnd,
    /// The seconds to wait between questions.
    pub interval: u64,
}

impl Default for Device {
    fn default() -> Device {
        Device { pending: 0, slow_downs: 0, end: DeviceEnd::Granted, interval: 1 }
    }
}

/// What a login on another device comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceEnd {
    /// Tokens.
    Granted,
    /// `access_denied`
    Denied,
    /// `expired_token`
    Expired,
}

/// What comes of giving tokens back (RFC 7009).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Revocation {
    /// They are good no more.
    Good,
    /// There is no such endpoint.
    Absent,
    /// 500.
    ServerError,
}

/// What calls need besides a token.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepUp {
    /// Nothing.
    Nothing,
    /// A token of this scope; else 403 `insufficient_scope`.
    Needs(String),
    /// Something else each time, whatever the token has.
    Forever,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command_line_turn_switches() {
        let words = ["rotation=omitted", "expires_in=\"300\"", "access_uses=2", "step_up={\"needs\":\"mcp:write\"}"];
        let switches = Switches::parse(words.map(str::to_owned).into_iter()).expect("good words");
        assert_eq!(switches.rotation, Rotation::Omitted);
        assert_eq!(switches.expires_in, json!("300"));
        assert_eq!(switches.access_uses, Some(2));
        assert_eq!(switches.step_up, StepUp::Needs("mcp:write".to_owned()));
        for bad in ["rotation", "rotations=omitted", "rotation=never"] {
            assert!(Switches::parse(std::iter::once(bad.to_owned())).is_err(), "{bad}");
        }
    }
}
