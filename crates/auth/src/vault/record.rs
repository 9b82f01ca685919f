//! The stored form of one login: a JSON object with the members of the token file. Unknown members are preserved.
//!
//! Errors never contain stored values, which may be misplaced secrets.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use wharf_spec::Secret;

use super::StoredLogin;
use crate::client::{ClientOrigin, OAuthClient, TokenEndpointAuth};
use crate::token::TokenSet;

/// Members of a stored login. Unknown members are in `others`.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct LoginRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "unix_millis_or_none")]
    expires_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_proof: Option<TokenEndpointAuth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_origin: Option<ClientOrigin>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "unix_millis_or_none")]
    client_expires_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revocation_endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dpop_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "unix_millis_or_none")]
    renewed_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// Reads a login. Returns `None` if a member has the wrong type.
pub(super) fn read(issuer: &str, value: &Value) -> Option<StoredLogin> {
    LoginRecord::deserialize(value).ok().map(|record| record.into_login(issuer))
}

/// Writes a login. Unknown members of `before` are preserved.
pub(super) fn write(kept: &StoredLogin, before: Option<&Value>) -> Value {
    let others = before.and_then(|value| LoginRecord::deserialize(value).ok()).map(|record| record.others);
    serde_json::to_value(LoginRecord::from_login(kept, others.unwrap_or_default())).unwrap_or_default()
}

impl LoginRecord {
    fn into_login(self, issuer: &str) -> StoredLogin {
        let client = OAuthClient {
            id: self.client_id.unwrap_or_default(),
            proof: self.client_proof.unwrap_or(match self.client_secret {
                Some(_) => TokenEndpointAuth::ClientSecretBasic,
                None => TokenEndpointAuth::None,
            }),
            secret: self.client_secret.map(Secret::new),
            origin: self.client_origin.unwrap_or(ClientOrigin::Given),
            expires_at: self.client_expires_at,
        };
        let tokens = self.access_token.map(|access| TokenSet {
            access: Secret::new(access),
            refresh: self.refresh_token.map(Secret::new),
            expires_at: self.expires_at,
            token_type: self.token_type.unwrap_or_else(|| "Bearer".to_owned()),
            scope: self.scope,
        });
        StoredLogin {
            issuer: issuer.to_owned(),
            url: self.url.unwrap_or_default(),
            resource: self.resource,
            tokens,
            client,
            token_endpoint: self.token_endpoint.unwrap_or_default(),
            revocation_endpoint: self.revocation_endpoint,
            asked: self.asked,
            dpop_key: self.dpop_key.map(Secret::new),
            renewed_at: self.renewed_at.unwrap_or(0),
            last_error: self.last_error,
        }
    }

    fn from_login(kept: &StoredLogin, others: Map<String, Value>) -> Self {
        let shown = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.reveal().to_owned());
        let tokens = kept.tokens.as_ref();
        Self {
            url: non_empty(&kept.url),
            resource: kept.resource.clone(),
            access_token: tokens.map(|tokens| tokens.access.reveal().to_owned()),
            refresh_token: tokens.and_then(|tokens| shown(&tokens.refresh)),
            expires_at: tokens.and_then(|tokens| tokens.expires_at),
            token_type: tokens.map(|tokens| tokens.token_type.clone()),
            scope: tokens.and_then(|tokens| tokens.scope.clone()),
            client_id: non_empty(&kept.client.id),
            client_secret: shown(&kept.client.secret),
            client_proof: Some(kept.client.proof),
            client_origin: Some(kept.client.origin),
            client_expires_at: kept.client.expires_at,
            token_endpoint: non_empty(&kept.token_endpoint),
            revocation_endpoint: kept.revocation_endpoint.clone(),
            asked: kept.asked.clone(),
            dpop_key: shown(&kept.dpop_key),
            renewed_at: Some(kept.renewed_at),
            last_error: kept.last_error.clone(),
            others,
        }
    }
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Reads a time in Unix milliseconds. Invalid values are treated as absent.
fn unix_millis_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be within bounds")]
    let whole = |number: f64| (0.0..9e15).contains(&number).then_some(number as u64);
    Ok(value.as_u64().or_else(|| value.as_f64().and_then(whole)))
}
