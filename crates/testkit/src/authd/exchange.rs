//! Routing of one request to the module that answers it.

use super::connections::AuthShared;
use super::http::{self, AuthResponse, field};
use super::proof::{self, ProofError, ProofExpectation};
use super::request_log::{ListenerSite, lock_ignoring_poison};
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
}

impl<'a> AuthExchange<'a> {
    pub fn new(shared: &'a AuthShared, site: ListenerSite, request: &'a Request) -> AuthExchange<'a> {
        let switches = lock_ignoring_poison(&shared.switches).clone();
        let (query, form) = (http::query(request), http::form(request));
        AuthExchange { shared, site, request, query, form, switches }
    }

    pub fn respond(&mut self) -> AuthResponse {
        if let Some(document) = self.document() {
            return document;
        }
        let is_issuer = self.site != ListenerSite::Server || self.switches.one_origin;
        match (self.request.method.as_str(), self.request.path()) {
            (_, "/mcp") if self.site == ListenerSite::Server => self.respond_protected(),
            ("POST", "/idp/token") if self.site == ListenerSite::Issuer => self.issue_identity_assertion(),
            (method, path) if is_issuer => match path.strip_prefix(self.switches.issuer_path.as_str()) {
                Some(path) => self.respond_as_issuer(&format!("{method} {path}")),
                None => AuthResponse::empty(404),
            },
            _ => AuthResponse::empty(404),
        }
    }

    fn respond_as_issuer(&mut self, what: &str) -> AuthResponse {
        match what {
            "GET /authorize" => self.respond_to_login(),
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
        let nonce = lock_ignoring_poison(&self.shared.nonce).clone();
        let nonce = (self.switches.dpop == DpopRequirement::Nonce).then_some(nonce.as_str());
        let expected = ProofExpectation { method: &self.request.method, url: &url, token, nonce };
        let proven = proof::verify_proof(proof, &expected)?;
        let is_new = lock_ignoring_poison(&self.shared.book).proofs.insert(proven.id);
        if is_new { Ok(Some(proven.key)) } else { Err(ProofError::Invalid) }
    }

    /// Adds the nonce to a response if proofs need one.
    pub fn with_nonce(&self, answer: AuthResponse) -> AuthResponse {
        if self.switches.dpop == DpopRequirement::Nonce {
            answer.with_header("DPoP-Nonce", lock_ignoring_poison(&self.shared.nonce).clone())
        } else {
            answer
        }
    }
}
