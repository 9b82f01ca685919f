//! The login page. It needs no user, and responds immediately unless a switch says otherwise.

use super::exchange::AuthExchange;
use super::http::{AuthResponse, field, percent_encode};
use super::request_log::lock_ignoring_poison;
use super::switches::{IssParameter, LoginPageBehaviour};
use super::token_store::{AuthorizationCode, TokenOwner};

impl AuthExchange<'_> {
    /// Redirects the user back to the client.
    pub fn respond_to_login(&self) -> AuthResponse {
        let asked = |name| field(&self.query, name);
        let (Some(client), Some(redirect_uri)) = (asked("client_id"), asked("redirect_uri")) else {
            return AuthResponse::error(400, "invalid_request");
        };
        if !self.may_redirect_to(client, redirect_uri) {
            return AuthResponse::error(400, "unauthorized_client");
        }
        match self.switches.page {
            LoginPageBehaviour::Denied => self.send_back(redirect_uri, &[("error", "access_denied")]),
            LoginPageBehaviour::Immediate => match self.issue_code(client, redirect_uri) {
                Some(code) => self.send_back(redirect_uri, &[("code", &code)]),
                None => self.send_back(redirect_uri, &[("error", "invalid_request")]),
            },
        }
    }

    /// Issues a code if the request is complete: PKCE with S256, and a matching `resource` if present.
    fn issue_code(&self, client: &str, redirect_uri: &str) -> Option<String> {
        let asked = |name| field(&self.query, name);
        let is_code = asked("response_type") == Some("code") && asked("code_challenge_method") == Some("S256");
        let challenge = asked("code_challenge").filter(|challenge| challenge.len() == 43)?;
        if !is_code || asked("resource").is_some_and(|resource| resource != self.shared.resource()) {
            return None;
        }
        let mut book = lock_ignoring_poison(&self.shared.book);
        book.counts.authorizations += 1;
        let holder = TokenOwner {
            site: self.site,
            client: client.to_owned(),
            scope: asked("scope").unwrap_or_default().to_owned(),
            key: None,
            family: book.new_family(),
        };
        let code = book.secret("code");
        let kept = AuthorizationCode { holder, redirect_uri: redirect_uri.to_owned(), challenge: challenge.to_owned() };
        book.codes.insert(code.clone(), kept);
        Some(code)
    }

    fn send_back(&self, redirect_uri: &str, fields: &[(&str, &str)]) -> AuthResponse {
        let mut fields: Vec<(&str, String)> = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        fields.extend(field(&self.query, "state").map(|state| ("state", state.to_owned())));
        fields.extend(self.iss().map(|iss| ("iss", iss)));
        let query: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", percent_encode(value))).collect();
        let joint = if redirect_uri.contains('?') { '&' } else { '?' };
        AuthResponse::redirect(format!("{redirect_uri}{joint}{}", query.join("&")))
    }

    fn iss(&self) -> Option<String> {
        match self.switches.iss {
            IssParameter::Right => Some(self.issuer()),
            IssParameter::Wrong => Some("https://elsewhere.example".to_owned()),
            IssParameter::Slash => Some(format!("{}/", self.issuer())),
            IssParameter::Absent => None,
        }
    }
}
