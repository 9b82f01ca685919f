//! One login: discovery, registration, visit, token exchange.
//!
//! Stores nothing and takes no lock: the caller does.

use std::sync::Arc;

use url::Url;
use wharf_spec::UntrustedText;

use crate::auth_http::{AuthHttpClient, UrlSource, display_url};
use crate::browser::LoginBrowser;
use crate::challenge::{AuthChallenge, TokenScheme};
use crate::client::{ClientOrigin, OAuthClient};
use crate::discovery::{AuthServerMetadata, DiscoveryResult, EndpointSource, discover};
use crate::dpop::{DPOP_ALGORITHM, DpopKey, DpopNonces};
use crate::error::{LoginError, TokenError};
use crate::grant::{GrantRequest, request_unattended, request_with_code, request_with_device_code};
use crate::registration::{ClientRequirements, choose_client};
use crate::scope;
use crate::settings::{AuthSettings, DpopMode, TokenGrant};
use crate::token::{TokenRequest, TokenSet};
use crate::vault::StoredLogin;

#[cfg(test)]
pub(crate) mod scripted_site;
#[cfg(test)]
mod tests;

/// Result of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginOutcome {
    /// The stored login.
    pub kept: StoredLogin,
}

/// Result of a logout.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogoutOutcome {
    /// A login was stored.
    pub was_kept: bool,
    /// Reason why tokens may still be valid although they were deleted locally, escaped.
    pub still_good: Option<String>,
}

/// Context of a login.
pub(crate) struct AuthServerContext<'a> {
    /// HTTP access to authorization servers.
    pub outside: &'a AuthHttpClient,
    /// URL of the server.
    pub url: &'a Url,
    /// Configured name of the server.
    pub server: &'a str,
    /// Login settings of the server.
    pub settings: &'a AuthSettings,
    /// DPoP nonces of authorization servers, not of the server itself.
    pub nonces: &'a DpopNonces,
    /// Returns the current time in Unix milliseconds.
    pub now: &'a (dyn Fn() -> u64 + Send + Sync),
}

/// Logs in. `before` is the last stored login, whose client is sent to no other issuer (T45). `scope` is the scope to
/// request, if already determined. Cancelling changes no local state.
pub(crate) async fn log_in(
    attempt: &AuthServerContext<'_>,
    visitor: Option<Arc<dyn LoginBrowser>>,
    challenge: Option<&AuthChallenge>,
    before: Option<&StoredLogin>,
    scope: Option<String>,
) -> Result<StoredLogin, LoginError> {
    let found = discover(attempt.outside, attempt.url, challenge, attempt.settings).await?;
    let before = before.filter(|before| !before.issuer.is_empty());
    check_given_client(attempt.settings, &found.server, before)?;
    let asked = scope_to_request(attempt.settings, challenge, &found, scope);
    let key = uses_dpop(attempt.settings.dpop, challenge, &found).then(DpopKey::generate).transpose()?;
    let before = before.filter(|before| before.issuer == found.server.issuer);
    let plan = LoginPlan { attempt, found: &found, asked: asked.as_deref(), key: key.as_ref() };
    let (client, tokens) = match attempt.settings.grant {
        TokenGrant::Person => plan.log_in_with_browser(visitor, before).await?,
        _ => plan.log_in_unattended().await?,
    };
    let dpop_key = key.filter(|_| tokens.is_bound()).map(|key| key.stored_form().clone());
    Ok(StoredLogin {
        issuer: found.server.issuer,
        url: attempt.url.as_str().to_owned(),
        resource: found.resource,
        tokens: Some(tokens),
        client,
        token_endpoint: found.server.token_endpoint.unwrap_or_default(),
        revocation_endpoint: found.server.revocation_endpoint,
        asked,
        dpop_key,
        renewed_at: (attempt.now)(),
        last_error: None,
    })
}

/// Exchanges the refresh token for new tokens. Members missing in the response keep their previous value (O04). Not
/// cancel-safe: the refresh token may be spent.
pub(crate) async fn renew(attempt: &AuthServerContext<'_>, kept: &StoredLogin) -> Result<TokenSet, LoginError> {
    let Some((before, refresh)) = kept.tokens.as_ref().and_then(|tokens| Some((tokens, tokens.refresh.as_ref()?)))
    else {
        return Err(LoginError::Needed { scope: None });
    };
    if attempt.settings.dpop == DpopMode::Always && !before.is_bound() {
        // The new tokens would not be bound either, and would be rejected.
        return Err(LoginError::Needed { scope: None });
    }
    let key = kept.dpop_key.as_ref().map(DpopKey::load).transpose()?;
    let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh.reveal())];
    let resource = kept.resource.as_deref().map(|resource| ("resource", resource));
    let request = TokenRequest {
        endpoint: &kept.token_endpoint,
        named: UrlSource::from_settings(&kept.token_endpoint, attempt.settings),
        issuer: &kept.issuer,
        client: &kept.client,
        dpop: key.as_ref(),
        fields: fields.into_iter().chain(resource).collect(),
    };
    request.request_replacement(attempt, Some(before)).await
}

/// Rejects a configured client that was used at another issuer before. A preregistered client belongs to one issuer,
/// and only the user can tell whether the new issuer knows it (2026-07-28, authorization: server binding).
fn check_given_client(
    settings: &AuthSettings,
    server: &AuthServerMetadata,
    before: Option<&StoredLogin>,
) -> Result<(), LoginError> {
    let Some((before, id)) = before.zip(settings.client_id.as_ref()) else { return Ok(()) };
    let moved = before.issuer != server.issuer && server.named != EndpointSource::Owner;
    if !moved || before.client.id != *id {
        return Ok(());
    }
    let (old, new) = (display_url(&before.issuer), display_url(&server.issuer));
    Err(LoginError::Registration(format!(
        "the issuer changed from `{old}` to `{new}`, but `oauth.client_id` belongs to the old one; set the client ID of the \
         new issuer, or log out first if the ID is the same"
    )))
}

/// Returns the scope to request. A configured scope is used as is. Otherwise `offline_access` is added only if a user
/// logs in and the authorization server supports it, and removed if not.
fn scope_to_request(
    settings: &AuthSettings,
    challenge: Option<&AuthChallenge>,
    found: &DiscoveryResult,
    scope: Option<String>,
) -> Option<String> {
    let wanted = challenge.and_then(|challenge| challenge.scope.as_deref());
    let asked = scope.or_else(|| scope::initial_scope(settings.scope.as_deref(), wanted, &found.scopes))?;
    if settings.scope.is_some() {
        return Some(asked);
    }
    let words: Vec<_> = asked.split(' ').filter(|word| *word != "offline_access").collect();
    let asked = Some(words.join(" ")).filter(|asked| !asked.is_empty());
    match settings.grant {
        TokenGrant::Person => scope::with_offline_access(asked.as_deref(), &found.server.scopes),
        _ => asked,
    }
}

fn uses_dpop(setting: DpopMode, challenge: Option<&AuthChallenge>, found: &DiscoveryResult) -> bool {
    let is_wanted = found.needs_dpop || challenge.is_some_and(|challenge| challenge.scheme == TokenScheme::Dpop);
    let is_known = found.server.dpop_algorithms.iter().any(|algorithm| algorithm == DPOP_ALGORITHM);
    match setting {
        DpopMode::Always => true,
        DpopMode::Automatic => is_wanted && is_known,
        DpopMode::Never => false,
    }
}

/// A login after discovery.
struct LoginPlan<'a> {
    attempt: &'a AuthServerContext<'a>,
    found: &'a DiscoveryResult,
    asked: Option<&'a str>,
    key: Option<&'a DpopKey>,
}

impl LoginPlan<'_> {
    fn grant_request<'a>(&'a self, client: &'a OAuthClient) -> GrantRequest<'a> {
        let resource = self.found.resource.as_deref();
        GrantRequest { server: &self.found.server, client, resource, scope: self.asked, dpop: self.key }
    }

    async fn client(&self, redirect_uri: Option<&str>) -> Result<OAuthClient, LoginError> {
        let wanted = ClientRequirements { redirect_uri, scope: self.asked };
        choose_client(self.attempt.outside, &self.found.server, self.attempt.settings, wanted).await
    }

    async fn log_in_unattended(&self) -> Result<(OAuthClient, TokenSet), LoginError> {
        let client = self.client(None).await?;
        let tokens = request_unattended(self.attempt, &self.grant_request(&client)).await?;
        Ok((client, tokens))
    }

    async fn log_in_with_browser(
        &self,
        visitor: Option<Arc<dyn LoginBrowser>>,
        before: Option<&StoredLogin>,
    ) -> Result<(OAuthClient, TokenSet), LoginError> {
        let Some(visitor) = visitor else {
            let scope = self.asked.map(|scope| UntrustedText::new(scope).truncate(200).to_string());
            return Err(LoginError::Needed { scope });
        };
        let server = &self.found.server;
        let has_device = server.device_authorization_endpoint.is_some();
        if has_device && (visitor.prefers_device_code() || server.authorization_endpoint.is_none()) {
            return self.log_in_on_device(&*visitor, before).await;
        }
        if visitor.prefers_device_code() {
            return Err(LoginError::Discovery("the authorization server does not support the device flow".to_owned()));
        }
        let visit = visitor.prepare().await?;
        // A previously registered client has another redirect URI. Few authorization servers ignore a difference in the
        // port, and the others show the user an error page. So a new client is registered.
        let redirect_uri = visit.redirect_uri().to_owned();
        let client = self.client(Some(&redirect_uri)).await?;
        let tokens = request_with_code(self.attempt, &self.grant_request(&client), visit).await?;
        Ok((client, tokens))
    }

    /// The device flow has no redirect, so a previously registered client is reused. If the authorization server no
    /// longer knows it, a new one is registered, once (O11).
    async fn log_in_on_device(
        &self,
        visitor: &dyn LoginBrowser,
        before: Option<&StoredLogin>,
    ) -> Result<(OAuthClient, TokenSet), LoginError> {
        let now = (self.attempt.now)();
        let before =
            before.map(|before| &before.client).filter(|client| is_client_reusable(client, self.attempt.settings, now));
        if let Some(client) = before {
            let visit = visitor.prepare().await?;
            match request_with_device_code(self.attempt, &self.grant_request(client), visit).await {
                Err(LoginError::Token(TokenError::Refused { code, .. })) if code == "invalid_client" => {}
                other => return Ok((client.clone(), other?)),
            }
        }
        let visit = visitor.prepare().await?;
        let redirect_uri = visit.redirect_uri().to_owned();
        let client = self.client(Some(&redirect_uri)).await?;
        let tokens = request_with_device_code(self.attempt, &self.grant_request(&client), visit).await?;
        Ok((client, tokens))
    }
}

/// Reports whether a previous client may be reused. The settings take precedence.
fn is_client_reusable(client: &OAuthClient, settings: &AuthSettings, now: u64) -> bool {
    let is_ours = client.origin == ClientOrigin::Registered && settings.client_id.is_none();
    is_ours && client.expires_at.is_none_or(|end| now < end)
}
