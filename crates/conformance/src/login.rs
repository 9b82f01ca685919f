//! Unattended login. Builds the settings from the suite's context and opens login pages with a stub browser.

use std::error::Error;
use std::sync::Arc;

use serde::Deserialize;
use url::Url;
use wharf_auth::{
    Account, AccountKey, AccountOptions, AssertionSource, AuthSettings, LoginPage, LoopbackBrowser, MemoryVault,
    PageOpener, TokenGrant, VisitError,
};
use wharf_client::{ConnectError, Connection, RequestOptions};
use wharf_net::AuthFuture;
use wharf_spec::Secret;

use crate::arguments::arguments_for;
use crate::{ExerciseResult, login_page};

/// URL of the client metadata document. Not fetched in these scenarios.
const CLIENT_METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";

/// Creates an account for the suite's server that logs in without a person.
pub fn new_account(server: &Url, scenario: &str, context: Option<&str>) -> ExerciseResult<Account> {
    let key = AccountKey { server: "suite".to_owned(), account: String::new() };
    let mut options = AccountOptions::new(key, server.clone(), Arc::new(MemoryVault::default()));
    options.settings = auth_settings(scenario, context)?;
    options.visitor = Some(Arc::new(LoopbackBrowser::new(&options.settings, Arc::new(HeadlessBrowser))));
    Ok(Account::new(options))
}

/// Calls every tool and expects one of the calls to be refused as not authorized.
pub async fn expect_insufficient_login(connection: &Connection) -> ExerciseResult {
    for tool in connection.list_tools().await?.items {
        let arguments = arguments_for(tool.input_schema.as_ref())?;
        if let Err(error) = connection.call_tool(&tool.name, &arguments, RequestOptions::default()).await {
            return if error.not_authorized().is_some() { Ok(()) } else { Err(error.into()) };
        }
    }
    Err("expected a call to be refused as not authorized, but all calls succeeded".into())
}

/// Returns `Ok` if connecting failed as not authorized, and an error for any other cause.
pub fn expect_login_refusal(error: &(dyn Error + 'static)) -> ExerciseResult {
    let cause = error.downcast_ref::<ConnectError>().map(|error| &error.cause);
    match cause.is_some_and(|cause| cause.not_authorized().is_some()) {
        true => Ok(()),
        false => Err(format!("expected a refused login, got another error: {error}").into()),
    }
}

/// Context fields that the suite may provide.
#[derive(Default, Deserialize)]
struct LoginContext {
    client_id: Option<String>,
    client_secret: Option<Secret>,
    private_key_pem: Option<Secret>,
    signing_algorithm: Option<String>,
    idp_client_id: Option<String>,
    idp_id_token: Option<Secret>,
    idp_token_endpoint: Option<String>,
    valid_jwt: Option<Secret>,
}

fn auth_settings(scenario: &str, context: Option<&str>) -> ExerciseResult<AuthSettings> {
    let given: LoginContext = context.map(serde_json::from_str).transpose()?.unwrap_or_default();
    let grant = scenario_grant(scenario, &given)?;
    let LoginContext { client_id, client_secret, .. } = given;
    let client_metadata_url = Some(CLIENT_METADATA_URL.to_owned());
    Ok(AuthSettings { client_id, client_secret, client_metadata_url, grant, ..AuthSettings::default() })
}

/// Returns the grant that a scenario requires, as a server's configuration would specify it.
fn scenario_grant(scenario: &str, given: &LoginContext) -> ExerciseResult<TokenGrant> {
    let missing = |what: &str| format!("missing in MCP_CONFORMANCE_CONTEXT: {what}");
    Ok(match scenario {
        "auth/client-credentials-basic" => TokenGrant::ClientSecret,
        "auth/client-credentials-jwt" => TokenGrant::ClientKey {
            key: given.private_key_pem.clone().ok_or_else(|| missing("key"))?,
            algorithm: given.signing_algorithm.clone(),
        },
        "auth/enterprise-managed-authorization" => TokenGrant::Enterprise {
            token_url: given.idp_token_endpoint.clone().ok_or_else(|| missing("identity provider"))?,
            client_id: given.idp_client_id.clone().ok_or_else(|| missing("identity provider client id"))?,
            client_secret: None,
            id_token: AssertionSource::Given(given.idp_id_token.clone().ok_or_else(|| missing("identity token"))?),
        },
        "auth/wif-jwt-bearer" => TokenGrant::Workload {
            assertion: AssertionSource::Given(given.valid_jwt.clone().ok_or_else(|| missing("token"))?),
        },
        _ => TokenGrant::Person,
    })
}

/// A browser without a person. The suite's login pages redirect it straight back.
struct HeadlessBrowser;

impl PageOpener for HeadlessBrowser {
    fn open(&self, page: &LoginPage) -> AuthFuture<Result<(), VisitError>> {
        let url = page.url.clone();
        Box::pin(async move {
            let sent_to = login_page::fetch_redirect(&url).await.map_err(VisitError::NotPossible)?;
            tokio::spawn(async move { login_page::fetch_redirect(&sent_to).await });
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suite_context_determines_auth_settings() {
        let context = r#"{"name":"auth/pre-registration","client_id":"me","client_secret":"hush"}"#;
        let known = auth_settings("auth/pre-registration", Some(context)).unwrap();
        assert_eq!((known.client_id.as_deref(), known.grant), (Some("me"), TokenGrant::Person));
        assert_eq!(
            auth_settings("auth/client-credentials-basic", Some(context)).unwrap().grant,
            TokenGrant::ClientSecret
        );
        assert!(auth_settings("auth/client-credentials-jwt", Some(context)).is_err(), "there is no key");
        assert_eq!(auth_settings("auth/metadata-default", None).unwrap().client_id, None);
    }
}
