//! The token endpoint and token revocation.

use serde_json::json;

use super::exchange::AuthExchange;
use super::http::AuthResponse;
use super::proof::ProofError;
use super::random::sha256;
use super::request_log::lock_ignoring_poison;
use super::switches::{RevocationBehaviour, TokenBehaviour};
use super::token_store::{TokenOwner, TokenPair};

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

impl AuthExchange<'_> {
    /// Answers a token request.
    pub fn token(&mut self) -> AuthResponse {
        self.shared.gate.pass();
        let is_refresh = self.field("grant_type") == Some("refresh_token");
        let fault = if is_refresh { self.switches.refresh } else { self.switches.grant };
        if let Some(answer) = fault_response(fault) {
            return answer;
        }
        let answer = self.exchange_grant().unwrap_or_else(|refusal| refusal);
        if fault == TokenBehaviour::CutAfter { AuthResponse::Cut } else { self.with_nonce(answer) }
    }

    fn exchange_grant(&mut self) -> Result<AuthResponse, AuthResponse> {
        let key = self.proven_key(None).map_err(|flaw| match flaw {
            ProofError::Invalid => AuthResponse::error(400, "invalid_dpop_proof"),
            ProofError::Nonce => AuthResponse::error(400, "use_dpop_nonce"),
        })?;
        let client = self.authenticated_client()?;
        if self.field("resource").is_some_and(|resource| resource != self.shared.resource()) {
            return Err(AuthResponse::error(400, "invalid_target"));
        }
        match self.field("grant_type").unwrap_or_default() {
            "authorization_code" => self.redeem_code(&client, key),
            "refresh_token" => self.renew(&client, key.as_deref()),
            "client_credentials" => Ok(self.new_login(&client, key)),
            JWT_BEARER => self.redeem_assertion(&client, key),
            DEVICE_CODE => self.poll_device_login(&client, key),
            _ => Err(AuthResponse::error(400, "unsupported_grant_type")),
        }
    }

    fn redeem_code(&self, client: &str, key: Option<String>) -> Result<AuthResponse, AuthResponse> {
        let mut book = lock_ignoring_poison(&self.shared.book);
        let code = self.field("code").and_then(|code| book.codes.remove(code));
        let is_answer = |challenge: &str| self.field("code_verifier").map(sha256).as_deref() == Some(challenge);
        let code = code
            .filter(|code| code.holder.site == self.site && code.holder.client == client)
            .filter(|code| Some(code.redirect_uri.as_str()) == self.field("redirect_uri") && is_answer(&code.challenge))
            .ok_or_else(|| AuthResponse::error(400, "invalid_grant"))?;
        let holder = TokenOwner { key, ..code.holder };
        let pair = book.issue(&holder, self.switches.refresh_tokens);
        Ok(self.token_response(&holder, &pair))
    }

    fn renew(&mut self, client: &str, key: Option<&str>) -> Result<AuthResponse, AuthResponse> {
        let old = self.field("refresh_token").unwrap_or_default().to_owned();
        let mut book = lock_ignoring_poison(&self.shared.book);
        let holder = book.redeem(&old, self.site, client).filter(|holder| holder.key.as_deref() == key);
        let holder = holder.ok_or_else(|| AuthResponse::error(400, "invalid_grant"))?;
        let pair = book.renew(&old, &holder, self.switches.rotation);
        drop(book);
        Ok(self.token_response(&holder, &pair))
    }

    /// Issues tokens to a client without a user.
    fn new_login(&self, client: &str, key: Option<String>) -> AuthResponse {
        let mut book = lock_ignoring_poison(&self.shared.book);
        let scope = self.field("scope").unwrap_or_default().to_owned();
        let holder = TokenOwner { site: self.site, client: client.to_owned(), scope, key, family: book.new_family() };
        let pair = book.issue(&holder, false);
        self.token_response(&holder, &pair)
    }

    fn redeem_assertion(&self, client: &str, key: Option<String>) -> Result<AuthResponse, AuthResponse> {
        let assertion = self.field("assertion").unwrap_or_default();
        let is_known = lock_ignoring_poison(&self.shared.book).assertions.contains(assertion);
        if is_known { Ok(self.new_login(client, key)) } else { Err(AuthResponse::error(400, "invalid_grant")) }
    }

    /// Acts as the identity provider: issues an assertion for the authorization server in exchange for an identity
    /// token.
    pub fn issue_identity_assertion(&self) -> AuthResponse {
        let fits = self.field("grant_type") == Some(TOKEN_EXCHANGE)
            && self.field("requested_token_type") == Some(ID_JAG)
            && self.field("subject_token_type") == Some(ID_TOKEN)
            && self.field("audience") == Some(&self.shared.issuer(self.shared.current_site()))
            && self.field("resource") == Some(&self.shared.resource());
        if !fits {
            return AuthResponse::error(400, "invalid_request");
        }
        if self.field("subject_token") != Some(&self.shared.given.id_token) {
            return AuthResponse::error(400, "invalid_grant");
        }
        let mut book = lock_ignoring_poison(&self.shared.book);
        let assertion = book.secret("vouched");
        book.assertions.insert(assertion.clone());
        let mut body = json!({ "issued_token_type": ID_JAG, "token_type": "N_A", "expires_in": 300 });
        body["access_token"] = json!(assertion);
        AuthResponse::json(200, &body)
    }

    /// Returns the response with the tokens.
    pub fn token_response(&self, holder: &TokenOwner, pair: &TokenPair) -> AuthResponse {
        let kind = if holder.key.is_some() { "DPoP" } else { "Bearer" };
        let mut body = json!({ "access_token": pair.access, "token_type": kind });
        if let Some(refresh) = &pair.refresh {
            body["refresh_token"] = json!(refresh);
        }
        if !holder.scope.is_empty() {
            body["scope"] = json!(holder.scope);
        }
        if !self.switches.expires_in.is_null() {
            body["expires_in"] = self.switches.expires_in.clone();
        }
        AuthResponse::json(200, &body)
    }

    /// Revokes a token; an unknown token is treated as revoked (RFC 7009, 2.2).
    pub fn revoke(&self) -> AuthResponse {
        if self.switches.revocation == RevocationBehaviour::ServerError {
            return AuthResponse::error(500, "server_error");
        }
        match (self.authenticated_client(), self.field("token")) {
            (Err(refusal), _) => refusal,
            (Ok(_), None) => AuthResponse::error(400, "invalid_request"),
            (Ok(_), Some(token)) => {
                lock_ignoring_poison(&self.shared.book).revoke(token);
                AuthResponse::empty(200)
            }
        }
    }
}

fn fault_response(fault: TokenBehaviour) -> Option<AuthResponse> {
    Some(match fault {
        TokenBehaviour::Good | TokenBehaviour::CutAfter => return None,
        TokenBehaviour::InvalidGrant => AuthResponse::error(400, "invalid_grant"),
        TokenBehaviour::OtherError => AuthResponse::error(400, "invalid_request"),
        TokenBehaviour::Unauthorized => AuthResponse::error(401, "invalid_client"),
        TokenBehaviour::TooMany => AuthResponse::error(429, "slow_down").with_header("Retry-After", "1"),
        TokenBehaviour::ServerError => AuthResponse::error(500, "server_error"),
        TokenBehaviour::Hang => AuthResponse::Silence,
        TokenBehaviour::Garbage => AuthResponse::text(200, "text/html", "<!doctype html><title>Be right back</title>"),
    })
}
