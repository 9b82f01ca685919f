//! Client registration (RFC 7591) and client authentication at the token endpoint.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::exchange::AuthExchange;
use super::http::{AuthResponse, percent_decode};
use super::proof::SignedJwt;
use super::random::random_hex;
use super::request_log::lock_ignoring_poison;
use super::switches::{ClientAuthMethod, RegistrationBehaviour};
use super::token_store::RegisteredClient;

const JWT_ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The client credentials of a request.
struct ClientCredentials {
    id: String,
    secret: Option<String>,
    auth: ClientAuthMethod,
}

impl AuthExchange<'_> {
    /// Registers a client.
    pub fn register(&self) -> AuthResponse {
        match self.switches.registration {
            RegistrationBehaviour::BadRequest => return AuthResponse::error(400, "invalid_client_metadata"),
            RegistrationBehaviour::TooMany => {
                return AuthResponse::error(429, "slow_down").with_header("Retry-After", "1");
            }
            RegistrationBehaviour::Good | RegistrationBehaviour::Absent => {}
        }
        let mut document = self.request.json();
        let Some(redirect_uris) = document["redirect_uris"].as_array().filter(|uris| !uris.is_empty()) else {
            return AuthResponse::error(400, "invalid_redirect_uri");
        };
        let redirect_uris = redirect_uris.iter().filter_map(|uri| uri.as_str().map(str::to_owned)).collect();
        let (id, client) = self.store_client(redirect_uris);
        fill_registration(&mut document, &id, &client);
        AuthResponse::json(201, &document)
    }

    fn store_client(&self, redirect_uris: Vec<String>) -> (String, RegisteredClient) {
        let auth = self.switches.client_auth;
        let mut book = lock_ignoring_poison(&self.shared.book);
        book.counts.registrations += 1;
        let is_secret = matches!(auth, ClientAuthMethod::Basic | ClientAuthMethod::Post);
        // These characters reveal a client that does not percent-encode (RFC 6749, 2.3.1).
        let secret = is_secret.then(|| book.secret("secret:/+%"));
        let client = RegisteredClient {
            secret,
            auth,
            redirect_uris: Some(redirect_uris),
            expires_at: self.switches.secret_expires_at,
        };
        let id = format!("client-{}", random_hex(6));
        book.clients.insert((self.site, id.clone()), client.clone());
        (id, client)
    }

    /// Reports whether a client with this id is registered and may use this redirect address.
    pub fn may_redirect_to(&self, id: &str, redirect_uri: &str) -> bool {
        self.find_client(id).is_some_and(|client| {
            client.redirect_uris.is_none_or(|uris| uris.iter().any(|known| is_same_redirect(known, redirect_uri)))
        })
    }

    /// Returns the id of the authenticated client.
    pub fn authenticated_client(&self) -> Result<String, AuthResponse> {
        let refused = || AuthResponse::error(401, "invalid_client").with_header("WWW-Authenticate", "Basic");
        let presented = self.read_credentials().ok_or_else(refused)?;
        let client = self.find_client(&presented.id).ok_or_else(refused)?;
        let wanted = self.shared.client_auth(&presented.id, &client);
        let fits = presented.auth == wanted && (wanted == ClientAuthMethod::None || presented.secret == client.secret);
        if fits && !has_passed(client.expires_at) { Ok(presented.id) } else { Err(refused()) }
    }

    fn find_client(&self, id: &str) -> Option<RegisteredClient> {
        let mut book = lock_ignoring_poison(&self.shared.book);
        if let Some(client) = book.clients.get(&(self.site, id.to_owned())) {
            return Some(client.clone());
        }
        let is_stray = book.clients.keys().any(|(_, known)| known == id);
        book.counts.strays += u64::from(is_stray);
        let is_document = self.switches.client_documents && id.starts_with("https://");
        is_document.then_some(RegisteredClient {
            secret: None,
            auth: ClientAuthMethod::None,
            redirect_uris: None,
            expires_at: 0,
        })
    }

    fn read_credentials(&self) -> Option<ClientCredentials> {
        if let Some(header) = self.request.header("authorization") {
            let pair = STANDARD.decode(header.strip_prefix("Basic ")?).ok()?;
            let (id, secret) = String::from_utf8(pair)
                .ok()?
                .split_once(':')
                .map(|(id, secret)| (percent_decode(id), percent_decode(secret)))?;
            return Some(ClientCredentials { id, secret: Some(secret), auth: ClientAuthMethod::Basic });
        }
        if self.field("client_assertion_type") == Some(JWT_ASSERTION_TYPE) {
            return self.read_client_assertion();
        }
        let secret = self.field("client_secret").map(str::to_owned);
        let auth = if secret.is_some() { ClientAuthMethod::Post } else { ClientAuthMethod::None };
        Some(ClientCredentials { id: self.field("client_id")?.to_owned(), secret, auth })
    }

    /// Authenticates a client by a signed assertion (RFC 7523). The audience is the issuer, not the endpoint.
    fn read_client_assertion(&self) -> Option<ClientCredentials> {
        let statement = SignedJwt::read(self.field("client_assertion")?)?;
        let given = &self.shared.given;
        let claims = &statement.claims;
        let is_ours = claims["iss"] == given.id && claims["sub"] == given.id && claims["aud"] == self.issuer();
        let is_dated = claims["exp"].as_u64().is_some_and(|end| !has_passed(end)) && claims["jti"].is_string();
        let is_good = is_ours && is_dated && statement.is_signed_by(given.key.point());
        is_good.then(|| ClientCredentials {
            id: given.id.clone(),
            secret: Some(given.secret.clone()),
            auth: ClientAuthMethod::Key,
        })
    }
}

fn fill_registration(document: &mut Value, id: &str, client: &RegisteredClient) {
    document["client_id"] = json!(id);
    document["token_endpoint_auth_method"] = json!(client.auth.as_str());
    if let Some(secret) = &client.secret {
        document["client_secret"] = json!(secret);
        document["client_secret_expires_at"] = json!(client.expires_at);
    }
}

/// Compares redirect addresses; on loopback the port is ignored (RFC 8252, 7.3).
fn is_same_redirect(known: &str, asked: &str) -> bool {
    let without_port = |uri: &str| {
        let rest = uri.strip_prefix("http://127.0.0.1").or_else(|| uri.strip_prefix("http://localhost"))?;
        Some(rest.trim_start_matches(|letter: char| letter == ':' || letter.is_ascii_digit()).to_owned())
    };
    known == asked || without_port(known).is_some_and(|path| without_port(asked) == Some(path))
}

/// Reports whether this Unix time has passed; 0 never passes.
fn has_passed(second: u64) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    second != 0 && second <= now
}
