//! Registers credentials with the redactor: a server may repeat them in an error, a log or a page.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use url::Url;
use wharf_net::{
    AuthFuture, AuthRejection, Authorizer, CredentialHeaders, HeaderMap, Method, NotAuthorized, RequestCredentials,
    StatusCode, header,
};
use wharf_spec::Redactor;

/// An authorizer whose tokens are registered with a redactor before they are sent.
pub(super) struct RedactingAuthorizer {
    authorizer: Arc<dyn Authorizer>,
    secrets: Arc<CredentialRegistrar>,
}

struct CredentialRegistrar {
    redactor: Arc<Redactor>,
    /// Serial number of the last registered credentials plus one. Most requests carry the same credentials.
    told: AtomicU64,
}

impl RedactingAuthorizer {
    pub fn new(authorizer: Arc<dyn Authorizer>, redactor: Arc<Redactor>) -> Arc<Self> {
        Arc::new(Self { authorizer, secrets: Arc::new(CredentialRegistrar { redactor, told: AtomicU64::new(0) }) })
    }
}

impl Authorizer for RedactingAuthorizer {
    fn credentials(&self, method: &Method, url: &Url) -> RequestCredentials {
        match self.authorizer.credentials(method, url) {
            RequestCredentials::None => RequestCredentials::None,
            RequestCredentials::Ready(carried) => {
                self.secrets.register(&carried);
                RequestCredentials::Ready(carried)
            }
            RequestCredentials::Later(pending) => {
                let secrets = self.secrets.clone();
                RequestCredentials::Later(Box::pin(async move {
                    let carried = pending.await?;
                    carried.iter().for_each(|carried| secrets.register(carried));
                    Ok(carried)
                }))
            }
        }
    }

    fn on_response(&self, status: StatusCode, headers: &HeaderMap) {
        self.authorizer.on_response(status, headers);
    }

    fn on_rejection(&self, refusal: AuthRejection) -> AuthFuture<Result<(), NotAuthorized>> {
        self.authorizer.on_rejection(refusal)
    }
}

impl CredentialRegistrar {
    /// Registers credentials with the redactor, if they are new. A proof is valid for one request only and is not
    /// registered.
    fn register(&self, carried: &CredentialHeaders) {
        let number = carried.serial.wrapping_add(1);
        if self.told.load(Ordering::Acquire) == number {
            return;
        }
        let tokens = carried.headers.iter().filter(|(name, _)| *name == header::AUTHORIZATION);
        tokens.filter_map(|(_, value)| value.to_str().ok()).for_each(|value| self.redactor.learn_header(value));
        self.told.store(number, Ordering::Release);
    }
}
