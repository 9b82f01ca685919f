//! One login from beginning to end: discover, register, visit, exchange.
//!
//! Keeps nothing and locks nothing: whoever calls does.

use std::sync::Arc;

use url::Url;
use wharf_spec::Untrusted;

use crate::challenge::{Challenge, Scheme};
use crate::client::{Client, ClientOrigin};
use crate::discovery::{Discovered, NamedBy, ServerMetadata, discover};
use crate::dpop::{ALGORITHM, DpopKey, Nonces};
use crate::error::{LoginError, TokenError};
use crate::fetch::{Named, Outside, shown};
use crate::grant::{Errand, by_code, by_device, by_nobody};
use crate::registration::{Wanted, client_at};
use crate::scope;
use crate::settings::{AuthSettings, Dpop, Grant};
use crate::token::{TokenRequest, Tokens};
use crate::vault::Kept;
use crate::visitor::Visitor;

#[cfg(test)]
pub(crate) mod desk;
#[cfg(test)]
mod tests;

/// What a login came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Login {
    /// What is kept of it.
    pub kept: Kept,
}

/// What a logout came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Logout {
    /// Whether there was anything.
    pub was_kept: bool,
    /// Why tokens may still be good although nobody has them any more; escaped.
    pub still_good: Option<String>,
}

/// What there is to log in with.
pub(crate) struct Attempt<'a> {
    /// The way to everything but the server itself.
    pub outside: &'a Outside,
    /// Where the server is.
    pub url: &'a Url,
    /// What it is called here.
    pub server: &'a str,
    /// What its owner says about logging in.
    pub settings: &'a AuthSettings,
    /// What authorization servers want repeated in proofs; not what the server itself does.
    pub nonces: &'a Nonces,
    /// Unix milliseconds, now.
    pub now: &'a (dyn Fn() -> u64 + Send + Sync),
}

/// Logs in. `before` is what was kept of the last login, whose client is shown to no other issuer (T45); `scope` is what
/// to ask for, where that is known already. Dropped while it waits, nothing has changed here.
pub(crate) async fn log_in(
    attempt: &Attempt<'_>,
    visitor: Option<Arc<dyn Visitor>>,
    challenge: Option<&Challenge>,
    before: Option<&Kept>,
    scope: Option<String>,
) -> Result<Kept, LoginError> {
    let found = discover(attempt.outside, attempt.url, challenge, attempt.settings).await?;
    let before = before.filter(|before| !before.issuer.is_empty());
    check_given_client(attempt.settings, &found.server, before)?;
    let asked = asked(attempt.settings, challenge, &found, scope);
    let key = wants_proofs(attempt.settings.dpop, challenge, &found).then(DpopKey::generate).transpose()?;
    let before = before.filter(|before| before.issuer == found.server.issuer);
    let plan = Plan { attempt, found: &found, asked: asked.as_deref(), key: key.as_ref() };
    let (client, tokens) = match attempt.settings.grant {
        Grant::Person => plan.with_person(visitor, before).await?,
        _ => plan.unattended().await?,
    };
    let dpop_key = key.filter(|_| tokens.is_bound()).map(|key| key.keep().clone());
    Ok(Kept {
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

/// Exchanges the refresh token for new tokens. What the answer leaves out stays as it was (O04). Dropped while it waits,
/// the refresh token may have been used up.
pub(crate) async fn renew(attempt: &Attempt<'_>, kept: &Kept) -> Result<Tokens, LoginError> {
    let Some((before, refresh)) = kept.tokens.as_ref().and_then(|tokens| Some((tokens, tokens.refresh.as_ref()?)))
    else {
        return Err(LoginError::Needed { scope: None });
    };
    if attempt.settings.dpop == Dpop::Always && !before.is_bound() {
        // What comes of it would not be bound either, and not be taken.
        return Err(LoginError::Needed { scope: None });
    }
    let key = kept.dpop_key.as_ref().map(DpopKey::load).transpose()?;
    let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh.reveal())];
    let resource = kept.resource.as_deref().map(|resource| ("resource", resource));
    let request = TokenRequest {
        endpoint: &kept.token_endpoint,
        named: Named::of(&kept.token_endpoint, attempt.settings),
        issuer: &kept.issuer,
        client: &kept.client,
        dpop: key.as_ref(),
        fields: fields.into_iter().chain(resource).collect(),
    };
    request.tokens_after(attempt, Some(before)).await
}

/// A client that somebody registered beforehand belongs to one issuer. Whether the new one knows it is for its owner to
/// say, and not to be found out by trying (2026-07-28, authorization: server binding).
fn check_given_client(
    settings: &AuthSettings,
    server: &ServerMetadata,
    before: Option<&Kept>,
) -> Result<(), LoginError> {
    let Some((before, id)) = before.zip(settings.client_id.as_ref()) else { return Ok(()) };
    let moved = before.issuer != server.issuer && server.named != NamedBy::Owner;
    if !moved || before.client.id != *id {
        return Ok(());
    }
    let (old, new) = (shown(&before.issuer), shown(&server.issuer));
    Err(LoginError::Registration(format!(
        "the server has moved from `{old}` to `{new}`, and `oauth.client_id` was used at the former; set the one that the \
         latter knows, or log out first if it is the same"
    )))
}

/// What to ask for. What the owner says stays as it is; else `offline_access` is among it where a person logs in and the
/// authorization server is known to know it, and nowhere else.
fn asked(
    settings: &AuthSettings,
    challenge: Option<&Challenge>,
    found: &Discovered,
    scope: Option<String>,
) -> Option<String> {
    let wanted = challenge.and_then(|challenge| challenge.scope.as_deref());
    let asked = scope.or_else(|| scope::chosen(settings.scope.as_deref(), wanted, &found.scopes))?;
    if settings.scope.is_some() {
        return Some(asked);
    }
    let words: Vec<_> = asked.split(' ').filter(|word| *word != "offline_access").collect();
    let asked = Some(words.join(" ")).filter(|asked| !asked.is_empty());
    match settings.grant {
        Grant::Person => scope::with_offline_access(asked.as_deref(), &found.server.scopes),
        _ => asked,
    }
}

fn wants_proofs(setting: Dpop, challenge: Option<&Challenge>, found: &Discovered) -> bool {
    let is_wanted = found.needs_dpop || challenge.is_some_and(|challenge| challenge.scheme == Scheme::Dpop);
    let is_known = found.server.dpop_algorithms.iter().any(|algorithm| algorithm == ALGORITHM);
    match setting {
        Dpop::Always => true,
        Dpop::Automatic => is_wanted && is_known,
        Dpop::Never => false,
    }
}

/// A login whose place is known.
struct Plan<'a> {
    attempt: &'a Attempt<'a>,
    found: &'a Discovered,
    asked: Option<&'a str>,
    key: Option<&'a DpopKey>,
}

impl Plan<'_> {
    fn errand<'a>(&'a self, client: &'a Client) -> Errand<'a> {
        let resource = self.found.resource.as_deref();
        Errand { server: &self.found.server, client, resource, scope: self.asked, dpop: self.key }
    }

    async fn client(&self, redirect_uri: Option<&str>) -> Result<Client, LoginError> {
        let wanted = Wanted { redirect_uri, scope: self.asked };
        client_at(self.attempt.outside, &self.found.server, self.attempt.settings, wanted).await
    }

    async fn unattended(&self) -> Result<(Client, Tokens), LoginError> {
        let client = self.client(None).await?;
        let tokens = by_nobody(self.attempt, &self.errand(&client)).await?;
        Ok((client, tokens))
    }

    async fn with_person(
        &self,
        visitor: Option<Arc<dyn Visitor>>,
        before: Option<&Kept>,
    ) -> Result<(Client, Tokens), LoginError> {
        let Some(visitor) = visitor else {
            let scope = self.asked.map(|scope| Untrusted::new(scope).shortened(200).to_string());
            return Err(LoginError::Needed { scope });
        };
        let server = &self.found.server;
        let has_device = server.device_authorization_endpoint.is_some();
        if has_device && (visitor.wants_device() || server.authorization_endpoint.is_none()) {
            return self.on_device(&*visitor, before).await;
        }
        if visitor.wants_device() {
            return Err(LoginError::Discovery("the authorization server has no login by a code".to_owned()));
        }
        let visit = visitor.prepare().await?;
        // A client registered before came back to another address. That only the port differs is what few authorization
        // servers overlook, and where they do not, the person is stuck at an error page: so it is registered anew.
        let redirect_uri = visit.redirect_uri().to_owned();
        let client = self.client(Some(&redirect_uri)).await?;
        let tokens = by_code(self.attempt, &self.errand(&client), visit).await?;
        Ok((client, tokens))
    }

    /// Nobody comes back from another device, so a client registered before will do. If it is known no more, another one
    /// is registered, once (O11).
    async fn on_device(&self, visitor: &dyn Visitor, before: Option<&Kept>) -> Result<(Client, Tokens), LoginError> {
        let now = (self.attempt.now)();
        let before =
            before.map(|before| &before.client).filter(|client| can_be_reused(client, self.attempt.settings, now));
        if let Some(client) = before {
            let visit = visitor.prepare().await?;
            match by_device(self.attempt, &self.errand(client), visit).await {
                Err(LoginError::Token(TokenError::Refused { code, .. })) if code == "invalid_client" => {}
                other => return Ok((client.clone(), other?)),
            }
        }
        let visit = visitor.prepare().await?;
        let redirect_uri = visit.redirect_uri().to_owned();
        let client = self.client(Some(&redirect_uri)).await?;
        let tokens = by_device(self.attempt, &self.errand(&client), visit).await?;
        Ok((client, tokens))
    }
}

/// Whether a client from before is the one that would be used now: what the settings say comes first.
fn can_be_reused(client: &Client, settings: &AuthSettings, now: u64) -> bool {
    let is_ours = client.origin == ClientOrigin::Registered && settings.client_id.is_none();
    is_ours && client.expires_at.is_none_or(|end| now < end)
}
