//! The protected server: token checks and a minimal MCP server. Supports the stateless revision and the newest
//! handshake revision, without sessions.

use serde_json::{Value, json};

use super::exchange::AuthExchange;
use super::http::{AuthResponse, StreamEnding};
use super::proof::ProofError;
use super::request_log::lock_ignoring_poison;
use super::switches::{DpopRequirement, ScopeRequirement};
use super::token_store::TokenOwner;

impl AuthExchange<'_> {
    /// Serves an MCP request if its token is sufficient.
    pub fn respond_protected(&self) -> AuthResponse {
        let message = self.request.json();
        let holder = match (!self.switches.open).then(|| self.token_owner()).transpose() {
            Ok(holder) => holder,
            Err(refusal) => return refusal,
        };
        if message["method"] == "tools/call"
            && let Some(refusal) = holder.and_then(|holder| self.scope_challenge(&holder))
        {
            return refusal;
        }
        match self.request.method.as_str() {
            "POST" => self.serve(&message),
            _ => AuthResponse::empty(405).with_header("Allow", "POST"),
        }
    }

    /// Returns the owner of the request's token, or the rejection.
    fn token_owner(&self) -> Result<TokenOwner, AuthResponse> {
        let header = self.request.header("authorization").unwrap_or_default();
        let Some((scheme, token)) = header.split_once(' ') else { return Err(self.unauthorized(None)) };
        let invalid = || self.unauthorized(Some("invalid_token"));
        let key = self.proven_key(Some(token)).map_err(|flaw| match flaw {
            ProofError::Invalid => self.unauthorized(Some("invalid_dpop_proof")),
            ProofError::Nonce => self.unauthorized(Some("use_dpop_nonce")),
        })?;
        let holder = lock_ignoring_poison(&self.shared.book).use_access_token(token, self.switches.access_uses);
        let holder = holder.ok_or_else(invalid)?;
        let wanted_scheme = if holder.key.is_some() { "DPoP" } else { "Bearer" };
        let is_current = holder.site == self.shared.current_site();
        let fits = scheme.eq_ignore_ascii_case(wanted_scheme) && holder.key == key && is_current;
        if fits { Ok(holder) } else { Err(invalid()) }
    }

    /// Returns 401 with a challenge.
    fn unauthorized(&self, error: Option<&str>) -> AuthResponse {
        lock_ignoring_poison(&self.shared.book).counts.refusals += 1;
        let scheme = if self.switches.dpop == DpopRequirement::No { "Bearer" } else { "DPoP" };
        let scope = self.switches.challenge_scope.as_deref();
        let answer = AuthResponse::empty(401).with_header("WWW-Authenticate", self.challenge(scheme, error, scope));
        self.with_nonce(answer)
    }

    /// Returns 403 with a challenge if a call needs a scope that the token lacks.
    fn scope_challenge(&self, holder: &TokenOwner) -> Option<AuthResponse> {
        let scope = match &self.switches.step_up {
            ScopeRequirement::Nothing => return None,
            ScopeRequirement::Needs(scope) if holder.scope.split(' ').any(|granted| granted == scope) => return None,
            ScopeRequirement::Needs(scope) => scope.clone(),
            ScopeRequirement::Forever => format!("mcp:more-{}", holder.scope.split(' ').count()),
        };
        let challenge = self.challenge("Bearer", Some("insufficient_scope"), Some(&scope));
        Some(AuthResponse::empty(403).with_header("WWW-Authenticate", challenge))
    }

    fn challenge(&self, scheme: &str, error: Option<&str>, scope: Option<&str>) -> String {
        let description = self.challenged_description();
        let parameters = [("error", error), ("scope", scope), ("resource_metadata", description.as_deref())];
        let written = parameters.iter().filter_map(|(name, value)| Some(format!("{name}=\"{}\"", (*value)?)));
        let parameters: Vec<String> = std::iter::once("realm=\"authd\"".to_owned()).chain(written).collect();
        format!("{scheme} {}", parameters.join(", "))
    }

    fn serve(&self, message: &Value) -> AuthResponse {
        let Some(id) = message.get("id") else { return AuthResponse::empty(202) };
        let is_call = message["method"] == "tools/call";
        if is_call && std::mem::take(&mut lock_ignoring_poison(&self.shared.switches).break_stream) {
            return AuthResponse::Events(vec![progress(message)], StreamEnding::Broken);
        }
        if message["method"] == "subscriptions/listen" {
            return AuthResponse::Events(vec![acknowledgement(message)], StreamEnding::WithTokens);
        }
        match result(message) {
            Some(result) => AuthResponse::json(200, &json!({ "jsonrpc": "2.0", "id": id, "result": result })),
            None => {
                let error = json!({ "code": -32601, "message": "Method not found" });
                AuthResponse::json(404, &json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            }
        }
    }
}

fn result(message: &Value) -> Option<Value> {
    let info = json!({ "name": "authd", "version": "0" });
    let mut result = match message["method"].as_str()? {
        "initialize" => {
            let capabilities = json!({ "tools": {} });
            return Some(json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info }));
        }
        "ping" => return Some(json!({})),
        "server/discover" => json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": { "listChanged": true } },
            "_meta": { "io.modelcontextprotocol/serverInfo": info },
        }),
        "tools/list" => json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": message["params"]["arguments"].to_string() }] }),
        _ => return None,
    };
    result["resultType"] = json!("complete");
    if message["method"] != "tools/call" {
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
    }
    Some(result)
}

fn acknowledgement(message: &Value) -> Value {
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
    let params = json!({ "notifications": message["params"]["notifications"], "_meta": meta });
    json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params })
}

fn progress(message: &Value) -> Value {
    let params = json!({ "progressToken": message["params"]["_meta"]["progressToken"], "progress": 1 });
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
}
