//! Grants without user interaction: client credentials, or an assertion from a third party.

use std::io::{self, Read as _};
use std::path::Path;

use serde_json::Value;
use wharf_spec::Secret;

use super::GrantRequest;
use crate::auth_http::UrlSource;
use crate::client::{ClientOrigin, OAuthClient, TokenEndpointAuth};
use crate::error::{LoginError, TokenError};
use crate::login::AuthServerContext;
use crate::settings::{AssertionSource, TokenGrant};
use crate::token::{TokenRequest, TokenSet, successful_members};

/// Maximum length of an assertion in bytes.
const MAX_ASSERTION_BYTES: usize = 64 << 10;
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// Requests tokens with the configured grant. Makes a single attempt, without retry or fallback.
pub(crate) async fn request_unattended(
    attempt: &AuthServerContext<'_>,
    grant_request: &GrantRequest<'_>,
) -> Result<TokenSet, LoginError> {
    let scope = grant_request.scope.map(|scope| ("scope", scope));
    let statement = match &attempt.settings.grant {
        TokenGrant::ClientSecret | TokenGrant::ClientKey { .. } => {
            let fields = [("grant_type", "client_credentials")].into_iter().chain(scope);
            return grant_request.request_tokens(attempt, fields.collect()).await;
        }
        TokenGrant::Workload { assertion } => read_assertion(assertion).await?,
        TokenGrant::Enterprise { token_url, client_id, client_secret, id_token } => {
            let provider = IdentityProvider { token_url, client: provider_client(client_id, client_secret.as_ref()) };
            provider.exchange(attempt, grant_request, &read_assertion(id_token).await?).await?
        }
        _ => return Err(LoginError::Needed { scope: None }),
    };
    let fields = [("grant_type", JWT_BEARER), ("assertion", statement.reveal())].into_iter().chain(scope);
    grant_request.request_tokens(attempt, fields.collect()).await
}

/// The identity provider of an enterprise. Its URL is configured by the user.
struct IdentityProvider<'a> {
    token_url: &'a str,
    client: OAuthClient,
}

fn provider_client(id: &str, secret: Option<&Secret>) -> OAuthClient {
    let proof = if secret.is_some() { TokenEndpointAuth::ClientSecretBasic } else { TokenEndpointAuth::None };
    OAuthClient { id: id.to_owned(), secret: secret.cloned(), proof, origin: ClientOrigin::Given, expires_at: None }
}

impl IdentityProvider<'_> {
    /// Exchanges an ID token for an assertion to the authorization server (SEP-990; RFC 8693, 2.1).
    async fn exchange(
        &self,
        attempt: &AuthServerContext<'_>,
        grant_request: &GrantRequest<'_>,
        id_token: &Secret,
    ) -> Result<Secret, LoginError> {
        let mut fields = vec![
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("audience", &grant_request.server.issuer),
            ("resource", grant_request.resource.unwrap_or(attempt.url.as_str())),
            ("subject_token", id_token.reveal()),
            ("subject_token_type", ID_TOKEN),
        ];
        fields.extend(grant_request.scope.map(|scope| ("scope", scope)));
        let (endpoint, client) = (self.token_url, &self.client);
        // The provider's client never signs, so the issuer is not used.
        let request = TokenRequest { endpoint, named: UrlSource::ByOwner, issuer: "", client, dpop: None, fields };
        let answer = request.send(attempt).await?;
        let said = successful_members(&answer).map_err(|error| request.redact_error(error, &answer))?;
        let is_of_type = said.get("issued_token_type").is_none_or(|kind| kind == ID_JAG);
        let statement =
            said.get("access_token").and_then(Value::as_str).filter(|_| is_of_type).and_then(parse_assertion);
        let lacks = || TokenError::Unclear("the identity provider's response has no valid ID-JAG".to_owned());
        Ok(statement.ok_or_else(lacks)?)
    }
}

/// Reads an assertion from the settings or from its file. The file is read on each call.
async fn read_assertion(assertion: &AssertionSource) -> Result<Secret, LoginError> {
    let file = match assertion {
        AssertionSource::Given(secret) => {
            return parse_assertion(secret.reveal()).ok_or_else(|| invalid_assertion("the configured value"));
        }
        AssertionSource::File(file) => file.clone(),
    };
    let path = file.clone();
    let text = wharf_threads::run_blocking(move || read_bounded(&path)).await.flatten();
    let text = text.map_err(|error| LoginError::Proof(format!("`{}` cannot be read: {error}", file.display())))?;
    parse_assertion(&text).ok_or_else(|| invalid_assertion(&format!("the content of `{}`", file.display())))
}

/// Reads a file, at most one byte more than the maximum length of an assertion. Blocks.
fn read_bounded(file: &Path) -> io::Result<String> {
    // Opening a pipe would block until it has a writer.
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = String::new();
    std::fs::File::open(file)?.take(MAX_ASSERTION_BYTES as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

fn parse_assertion(text: &str) -> Option<Secret> {
    let fits = text.len() <= MAX_ASSERTION_BYTES;
    let text = text.trim();
    (fits && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Secret::new(text))
}

fn invalid_assertion(what: &str) -> LoginError {
    LoginError::Proof(format!("{what} is not a valid assertion (JWT)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn assertion_file_is_reread_and_size_limited() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        let assertion = AssertionSource::File(file.clone());
        assert!(matches!(read_assertion(&assertion).await, Err(LoginError::Proof(_))));
        for (text, expected) in [
            (" a.b.c\n".to_owned(), Some("a.b.c".to_owned())),
            ("d.e.f".to_owned(), Some("d.e.f".to_owned())),
            (String::new(), None),
            (" \n".to_owned(), None),
            ("hush\nhush".to_owned(), None),
            ("x".repeat(MAX_ASSERTION_BYTES), Some("x".repeat(MAX_ASSERTION_BYTES))),
            ("x".repeat(MAX_ASSERTION_BYTES + 1), None),
        ] {
            std::fs::write(&file, &text).unwrap();
            let found = read_assertion(&assertion).await;
            assert!(found.as_ref().err().is_none_or(|error| !error.to_string().contains("hush")));
            assert_eq!(found.ok().map(|secret| secret.reveal().to_owned()), expected);
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn assertion_path_must_be_a_regular_file() {
        let error = read_assertion(&AssertionSource::File("/dev/null".into())).await.unwrap_err();
        assert!(error.to_string().ends_with("`/dev/null` cannot be read: not a regular file"), "{error}");
    }
}
