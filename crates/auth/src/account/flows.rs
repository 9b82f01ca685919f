//! Operations of an account at its authorization server.

use std::sync::Arc;

use url::Url;
use wharf_net::AuthFuture;

use super::AccountOptions;
use crate::auth_http::{AuthHttpClient, display_url};
use crate::browser::LoginBrowser;
use crate::challenge::AuthChallenge;
use crate::discovery::{self, DiscoveryResult, EndpointSource};
use crate::dpop::DpopNonces;
use crate::error::LoginError;
use crate::login::{self, AuthServerContext};
use crate::revoke::{self, RevocationOutcome};
use crate::settings::AuthSettings;
use crate::token::TokenSet;
use crate::vault::StoredLogin;

/// Operations at the authorization server of a server.
pub(super) trait AuthorizationFlows: Send + Sync {
    /// Discovers the current authorization server.
    fn discover(&self, challenge: Option<AuthChallenge>) -> AuthFuture<Result<DiscoveryResult, LoginError>>;
    /// Logs in. `before` is the last login, whose client is reused at the same issuer.
    fn log_in(
        &self,
        visitor: Option<Arc<dyn LoginBrowser>>,
        challenge: Option<AuthChallenge>,
        before: Option<StoredLogin>,
        scope: Option<String>,
    ) -> AuthFuture<Result<StoredLogin, LoginError>>;
    /// Exchanges the refresh token. Members missing in the response keep their previous value (O04).
    fn renew(&self, kept: StoredLogin) -> AuthFuture<Result<TokenSet, LoginError>>;
    /// Revokes tokens, as far as possible.
    fn revoke(&self, kept: StoredLogin) -> AuthFuture<RevocationOutcome>;
}

/// The implementation over the network.
pub(super) struct NetworkFlows {
    server: String,
    url: Url,
    settings: AuthSettings,
    outside: AuthHttpClient,
    nonces: DpopNonces,
    now: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl NetworkFlows {
    pub(super) fn new(options: &AccountOptions) -> Arc<Self> {
        let outside = AuthHttpClient::new(&options.url, options.net.clone());
        let AccountOptions { key, url, settings, now, .. } = options;
        let (url, settings, now) = (url.clone(), settings.clone(), now.clone());
        Arc::new(Self { server: key.server.clone(), url, settings, outside, nonces: DpopNonces::default(), now })
    }

    fn auth_server_context(&self) -> AuthServerContext<'_> {
        AuthServerContext {
            outside: &self.outside,
            url: &self.url,
            settings: &self.settings,
            server: &self.server,
            nonces: &self.nonces,
            now: &*self.now,
        }
    }

    /// Completes a challenge with the metadata URL that the server sends to unauthenticated requests. Without a
    /// challenge, requests one.
    async fn complete_challenge(&self, challenge: Option<AuthChallenge>) -> Option<AuthChallenge> {
        match challenge {
            Some(challenge) if challenge.resource_metadata.is_none() => {
                let resource_metadata = self.outside.probe_challenge().await.and_then(|said| said.resource_metadata);
                Some(AuthChallenge { resource_metadata, ..challenge })
            }
            Some(challenge) => Some(challenge),
            None => self.outside.probe_challenge().await,
        }
    }

    /// Rejects an apparent move of the issuer that is only due to missing metadata. Otherwise a client would be
    /// registered at default endpoints while the metadata are temporarily unavailable.
    async fn check_issuer_move(
        &self,
        challenge: Option<&AuthChallenge>,
        before: &StoredLogin,
    ) -> Result<(), LoginError> {
        let origin = self.url.origin().ascii_serialization();
        if before.issuer.is_empty() || before.issuer == origin {
            return Ok(());
        }
        let found = discovery::discover(&self.outside, &self.url, challenge, &self.settings).await?;
        if found.server.named != EndpointSource::Presumed || found.server.issuer == before.issuer {
            return Ok(());
        }
        let issuer = display_url(&before.issuer);
        Err(LoginError::Unreachable(format!(
            "the server's OAuth metadata are unavailable (previous issuer: `{issuer}`)"
        )))
    }
}

impl AuthorizationFlows for Arc<NetworkFlows> {
    fn discover(&self, challenge: Option<AuthChallenge>) -> AuthFuture<Result<DiscoveryResult, LoginError>> {
        let online = self.clone();
        Box::pin(async move {
            let challenge = match challenge {
                None => online.complete_challenge(None).await,
                challenge => challenge,
            };
            discovery::discover(&online.outside, &online.url, challenge.as_ref(), &online.settings).await
        })
    }

    fn log_in(
        &self,
        visitor: Option<Arc<dyn LoginBrowser>>,
        challenge: Option<AuthChallenge>,
        before: Option<StoredLogin>,
        scope: Option<String>,
    ) -> AuthFuture<Result<StoredLogin, LoginError>> {
        let online = self.clone();
        Box::pin(async move {
            let challenge = online.complete_challenge(challenge).await;
            if let Some(before) = &before {
                online.check_issuer_move(challenge.as_ref(), before).await?;
            }
            login::log_in(&online.auth_server_context(), visitor, challenge.as_ref(), before.as_ref(), scope).await
        })
    }

    fn renew(&self, kept: StoredLogin) -> AuthFuture<Result<TokenSet, LoginError>> {
        let online = self.clone();
        Box::pin(async move { login::renew(&online.auth_server_context(), &kept).await })
    }

    fn revoke(&self, kept: StoredLogin) -> AuthFuture<RevocationOutcome> {
        let online = self.clone();
        Box::pin(async move { revoke::revoke(&online.auth_server_context(), &kept).await })
    }
}
