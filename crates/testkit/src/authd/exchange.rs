//! Routing of one request to the module that answers it.

use super::connections::{AuthShared, TokenRotation};
use super::http::{self, AuthResponse, field};
use super::proof::{self, ProofError, ProofExpectation};
use super::request_log::{ListenerSite, locked};
use super::switches::{AuthSwitches, DpopRequirement, RegistrationBehaviour, RevocationBehaviour};
use crate::request::{Fields, Request};

/// One request being answered.
pub(super) struct AuthExchange<'a> {
    pub shared: &'a AuthShared,
    pub site: ListenerSite,
    pub request: &'a Request,
    pub query: Fields,
    pub form: Fields,
    /// Snapshot from the arrival of the request.
    pub switches: AuthSwitches,
    /// The refresh token that this request used.
    pub rotated: Option<TokenRotation>,
}

impl<'a> AuthExchange<'a> {
    pub fn new(shared: &'a AuthShared, site: ListenerSite, request: &'a Request) -> AuthExchange<'a> {
        let switches = locked(&shared.switches).clone();
        let (query, form) = (http::query(request), http::form(request));
        AuthExchange { shared, site, request, query, form, switches, rotated: None }
    }

    pub fn answer(&mut self) -> AuthResponse {
        if let Some(document) = self.document() {
            return document;
        }
        let is_issuer = self.site != ListenerSite::Server || self.switches.one_origin;
        match (self.request.method.as_str(), self.request.path()) {
            (_, "/mcp") if self.site == ListenerSite::Server => self.protected(),
            ("POST", "/idp/token") if self.site == ListenerSite::Issuer => self.vouch(),
            (method, path) if is_issuer => match path.strip_prefix(self.switches.issuer_path.as_str()) {
                Some(path) => self.issue(&format!("{method} {path}")),
                None => AuthResponse::empty(404),
            },
            _ => AuthResponse::empty(404),
        }
    }

    fn issue(&mut self, what: &str) -> AuthResponse {
        match what {
            "GET /authorize" => self.page(),
            "POST /token" => self.token(),
            "POST /register" if self.switches.registration != RegistrationBehaviour::Absent => self.register(),
            "POST /device" if self.switches.device.is_some() => self.begin_device_login(),
            "POST /revoke" if self.switches.revocation != RevocationBehaviour::Absent => self.revoke(),
            _ => AuthResponse::empty(404),
        }
    }

    /// Returns a field of the form.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.form, name)
    }

    /// Returns the issuer at the requested site.
    pub fn issuer(&self) -> String {
        self.shared.issuer(self.site)
    }

    /// Returns the thumbprint of the key proven by the request; `None` if it has no proof and needs none.
    pub fn proven_key(&self, token: Option<&str>) -> Result<Option<String>, ProofError> {
        let proof = match (self.request.header("dpop"), self.switches.dpop) {
            (None, DpopRequirement::No) => return Ok(None),
            (None, _) => return Err(ProofError::Invalid),
            (Some(proof), _) => proof,
        };
        let url = format!("{}{}", self.shared.origin(self.site), self.request.path());
        let nonce = locked(&self.shared.nonce).clone();
        let nonce = (self.switches.dpop == DpopRequirement::Nonce).then_some(nonce.as_str());
        let expected = ProofExpectation { method: &self.request.method, url: &url, token, nonce };
        let proven = proof::check(proof, &expected)?;
        let is_new = locked(&self.shared.book).proofs.insert(proven.id);
        if is_new { Ok(Some(proven.key)) } else { Err(ProofError::Invalid) }
    }

    /// Adds the nonce to a response if proofs need one.
    pub fn with_nonce(&self, answer: AuthResponse) -> AuthResponse {
        if self.switches.dpop == DpopRequirement::Nonce {
            answer.with("DPoP-Nonce", locked(&self.shared.nonce).clone())
        } else {
            answer
        }
    }
}
