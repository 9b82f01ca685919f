//! Discovery documents: protected-resource metadata and authorization-server metadata.

use serde_json::{Value, json};

use super::exchange::AuthExchange;
use super::http::AuthResponse;
use super::request_log::ListenerSite;
use super::switches::{
    DocumentDefect, DpopRequirement, IssuerMetadataLocation, MetadataLocation, RegistrationBehaviour,
    RevocationBehaviour,
};

/// Path of redirected documents, at the second issuer.
const REDIRECTED_PATH: &str = "/elsewhere";
/// Path of the resource metadata if only the challenge names it.
const CUSTOM_METADATA_PATH: &str = "/about/this-resource.json";
const WELL_KNOWN_RESOURCE: &str = "/.well-known/oauth-protected-resource";

impl AuthExchange<'_> {
    /// Returns the document at the requested path, if any.
    pub fn document(&self) -> Option<AuthResponse> {
        if self.request.method != "GET" {
            return None;
        }
        let path = self.request.path();
        match (self.site, path.strip_prefix(REDIRECTED_PATH)) {
            (ListenerSite::Second, Some("/description")) => Some(AuthResponse::json(200, &self.description())),
            (ListenerSite::Second, Some("/metadata")) => {
                Some(AuthResponse::json(200, &self.metadata_of(ListenerSite::Issuer)))
            }
            _ if self.site == ListenerSite::Server && self.description_path() == Some(path) => {
                Some(self.apply_defect(self.description(), &self.switches.description_fault, "/description"))
            }
            _ if self.is_issuer() && self.metadata_path().as_deref() == Some(path) => {
                Some(self.apply_defect(self.metadata_of(self.site), &self.switches.metadata_fault, "/metadata"))
            }
            _ => None,
        }
    }

    /// Returns the metadata URL for the challenge.
    pub fn challenged_description(&self) -> Option<String> {
        (self.switches.description == MetadataLocation::Header)
            .then(|| format!("{}{CUSTOM_METADATA_PATH}", self.shared.origins().server))
    }

    fn is_issuer(&self) -> bool {
        self.site != ListenerSite::Server || self.switches.one_origin
    }

    fn description_path(&self) -> Option<&'static str> {
        match self.switches.description {
            MetadataLocation::Header => Some(CUSTOM_METADATA_PATH),
            MetadataLocation::Path => Some("/.well-known/oauth-protected-resource/mcp"),
            MetadataLocation::Root => Some(WELL_KNOWN_RESOURCE),
            MetadataLocation::Absent => None,
        }
    }

    fn description(&self) -> Value {
        let mut document = json!({
            "resource": self.shared.resource(),
            "authorization_servers": [self.shared.issuer(self.shared.current_site())],
            "bearer_methods_supported": ["header"],
        });
        if !self.switches.scopes_supported.is_empty() {
            document["scopes_supported"] = json!(self.switches.scopes_supported);
        }
        if self.switches.dpop != DpopRequirement::No {
            document["dpop_bound_access_tokens_required"] = json!(true);
            document["dpop_signing_alg_values_supported"] = json!(["ES256"]);
        }
        document
    }

    fn metadata_path(&self) -> Option<String> {
        let path = &self.switches.issuer_path;
        match self.switches.metadata {
            IssuerMetadataLocation::Oauth => Some(format!("/.well-known/oauth-authorization-server{path}")),
            IssuerMetadataLocation::OpenIdInserted => Some(format!("/.well-known/openid-configuration{path}")),
            IssuerMetadataLocation::OpenIdAppended => Some(format!("{path}/.well-known/openid-configuration")),
            IssuerMetadataLocation::Absent => None,
        }
    }

    fn metadata_of(&self, site: ListenerSite) -> Value {
        let issuer = self.shared.issuer(site);
        let mut document = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": [self.switches.client_auth.as_str()],
            "token_endpoint_auth_signing_alg_values_supported": ["ES256"],
        });
        let mut say = |name: &str, value: Value| document[name] = value;
        if self.switches.registration != RegistrationBehaviour::Absent {
            say("registration_endpoint", json!(format!("{issuer}/register")));
        }
        if self.switches.device.is_some() {
            say("device_authorization_endpoint", json!(format!("{issuer}/device")));
        }
        if self.switches.revocation != RevocationBehaviour::Absent {
            say("revocation_endpoint", json!(format!("{issuer}/revoke")));
        }
        if self.switches.client_documents {
            say("client_id_metadata_document_supported", json!(true));
        }
        if self.switches.iss_advertised {
            say("authorization_response_iss_parameter_supported", json!(true));
        }
        if self.switches.dpop != DpopRequirement::No {
            say("dpop_signing_alg_values_supported", json!(["ES256"]));
        }
        document
    }

    /// Applies the configured defect to a document.
    fn apply_defect(&self, mut document: Value, fault: &DocumentDefect, elsewhere: &str) -> AuthResponse {
        match fault {
            DocumentDefect::Good => {}
            DocumentDefect::WrongIssuer => document["issuer"] = json!("https://elsewhere.example"),
            DocumentDefect::Html => {
                return AuthResponse::text(200, "text/html", "<!doctype html><title>Welcome</title>");
            }
            DocumentDefect::Redirect => {
                return AuthResponse::redirect(format!("{}{REDIRECTED_PATH}{elsewhere}", self.shared.origins().second));
            }
            DocumentDefect::Without(name) => {
                document.as_object_mut().and_then(|members| members.remove(name));
            }
            DocumentDefect::With(name, value) => document[name.as_str()] = value.clone(),
            DocumentDefect::Deep => return AuthResponse::text(200, "application/json", "[".repeat(100_000)),
            DocumentDefect::Huge => document["padding"] = json!("a".repeat(64 << 20)),
        }
        AuthResponse::json(200, &document)
    }
}
