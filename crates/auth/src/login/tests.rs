mod browser_login;
mod issuer_move;
mod unattended;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use url::Url;
use wharf_net::AuthFuture;
use wharf_spec::Secret;

use super::scripted_site::{ScriptedSite, form_field};
use super::*;
use crate::browser::{BrowserVisit, DeviceCodePage, LoginCallback, LoginPage, VisitError};
use crate::client::TokenEndpointAuth;

/// Describes a server and its authorization server, both at this test server.
fn describe_servers(site: &ScriptedSite, more: &Value) {
    let origin = site.origin();
    let resource = json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]});
    site.queue_document("/.well-known/oauth-protected-resource/mcp", &resource);
    site.queue_document("/.well-known/oauth-authorization-server", &metadata(&origin, &origin, more));
}

/// Returns the metadata of an authorization server.
fn metadata(issuer: &str, origin: &str, more: &Value) -> Value {
    let mut metadata = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": format!("{origin}/token"),
        "registration_endpoint": format!("{origin}/register"),
        "revocation_endpoint": format!("{origin}/revoke"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        metadata[name] = value.clone();
    }
    metadata
}

fn tokens() -> Value {
    json!({"access_token": "at", "token_type": "Bearer", "expires_in": 60, "refresh_token": "rt"})
}

/// A user that completes the login immediately.
#[derive(Clone, Default)]
struct InstantBrowser {
    device: bool,
    /// Returns the callback for a page.
    answer: Option<fn(&LoginPage) -> LoginCallback>,
    pages: Arc<Mutex<Vec<LoginPage>>>,
    codes: Arc<Mutex<Vec<DeviceCodePage>>>,
}

impl LoginBrowser for InstantBrowser {
    fn prepare(&self) -> AuthFuture<Result<Box<dyn BrowserVisit>, VisitError>> {
        let visit: Box<dyn BrowserVisit> = Box::new(self.clone());
        Box::pin(async { Ok(visit) })
    }

    fn prefers_device_code(&self) -> bool {
        self.device
    }
}

impl BrowserVisit for InstantBrowser {
    fn redirect_uri(&self) -> &str {
        "http://127.0.0.1:9/callback"
    }

    fn open_and_wait(self: Box<Self>, page: LoginPage) -> AuthFuture<Result<LoginCallback, VisitError>> {
        let consents = |page: &LoginPage| LoginCallback {
            code: Some("the code".to_owned()),
            state: Some(page.state.clone()),
            ..LoginCallback::default()
        };
        let returned = self.answer.unwrap_or(consents)(&page);
        self.pages.lock().unwrap().push(page);
        Box::pin(async { Ok(returned) })
    }

    /// Enters the code, and advances the clock by the minimum polling interval.
    fn show_code(&self, page: &DeviceCodePage) -> Result<(), VisitError> {
        tokio::spawn(async {
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(1)).await;
            tokio::time::resume();
        });
        self.codes.lock().unwrap().push(page.clone());
        Ok(())
    }
}

impl InstantBrowser {
    /// Returns the values of a query parameter of all pages.
    fn asked(&self, name: &str) -> Vec<String> {
        let pages = self.pages.lock().unwrap();
        let pages = pages.iter().map(|page| Url::parse(&page.url).unwrap());
        pages
            .flat_map(|url| url.query_pairs().into_owned().filter(|(key, _)| key == name).collect::<Vec<_>>())
            .map(|(_, value)| value)
            .collect()
    }
}

async fn log_in_as(
    site: &ScriptedSite,
    person: &InstantBrowser,
    before: Option<&StoredLogin>,
) -> Result<StoredLogin, LoginError> {
    log_in(&site.attempt(), Some(Arc::new(person.clone())), None, before, None).await
}

/// Checks that a future is `Send`.
fn sendable<T: Send>(future: T) -> T {
    future
}
