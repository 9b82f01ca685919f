//! Routing of one request to the module that answers it.

use super::http::{self, Answer, field};
use super::ledger::{Site, locked};
use super::proof::{self, Flaw, ProofExpectation};
use super::serving::{Shared, TokenRotation};
use super::switches::{Dpop, Registration, RevocationBehaviour, Switches};
use crate::request::{Fields, Request};

/// One request being answered.
pub(super) struct Exchange<'a> {
    pub shared: &'a Shared,
    pub site: Site,
    pub request: &'a Request,
    pub query: Fields,
    pub form: Fields,
    /// Snapshot from the arrival of the request.
    pub switches: Switches,
    /// The refresh token that this request used.
    pub rotated: Option<TokenRotation>,
}

impl<'a> Exchange<'a> {
    pub fn new(shared: &'a Shared, site: Site, request: &'a Request) -> Exchange<'a> {
        let switches = locked(&shared.switches).clone();
        let (query, form) = (http::query(request), http::form(request));
        Exchange { shared, site, request, query, form, switches, rotated: None }
    }

    pub fn answer(&mut self) -> Answer {
        if let Some(document) = self.document() {
            return document;
        }
        let is_issuer = self.site != Site::Server || self.switches.one_origin;
        match (self.request.method.as_str(), self.request.path()) {
            (_, "/mcp") if self.site == Site::Server => self.protected(),
            ("POST", "/idp/token") if self.site == Site::Issuer => self.vouch(),
            (method, path) if is_issuer => match path.strip_prefix(self.switches.issuer_path.as_str()) {
                Some(path) => self.issue(&format!("{method} {path}")),
                None => Answer::empty(404),
            },
            _ => Answer::empty(404),
        }
    }

    fn issue(&mut self, what: &str) -> Answer {
        match what {
            "GET /authorize" => self.page(),
            "POST /token" => self.token(),
            "POST /register" if self.switches.registration != Registration::Absent => self.register(),
            "POST /device" if self.switches.device.is_some() => self.begin_device_login(),
            "POST /revoke" if self.switches.revocation != RevocationBehaviour::Absent => self.revoke(),
            _ => Answer::empty(404),
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
    pub fn proven_key(&self, token: Option<&str>) -> Result<Option<String>, Flaw> {
        let proof = match (self.request.header("dpop"), self.switches.dpop) {
            (None, Dpop::No) => return Ok(None),
            (None, _) => return Err(Flaw::Invalid),
            (Some(proof), _) => proof,
        };
        let url = format!("{}{}", self.shared.origin(self.site), self.request.path());
        let nonce = locked(&self.shared.nonce).clone();
        let nonce = (self.switches.dpop == Dpop::Nonce).then_some(nonce.as_str());
        let expected = ProofExpectation { method: &self.request.method, url: &url, token, nonce };
        let proven = proof::check(proof, &expected)?;
        let is_new = locked(&self.shared.book).proofs.insert(proven.id);
        if is_new { Ok(Some(proven.key)) } else { Err(Flaw::Invalid) }
    }

    /// Adds the nonce to a response if proofs need one.
    pub fn with_nonce(&self, answer: Answer) -> Answer {
        if self.switches.dpop == Dpop::Nonce {
            answer.with("DPoP-Nonce", locked(&self.shared.nonce).clone())
        } else {
            answer
        }
    }
}
