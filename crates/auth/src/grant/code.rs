//! Authorization code grant (OAuth 2.1, with PKCE, RFC 8707 and RFC 9207).

use sha2::{Digest as _, Sha256};
use url::form_urlencoded;
use wharf_spec::UntrustedText;

use super::{GrantRequest, missing_endpoint};
use crate::auth_http::{check_url, display_url};
use crate::browser::{BrowserVisit, LoginCallback, LoginPage, VisitError};
use crate::discovery::AuthServerMetadata;
use crate::error::LoginError;
use crate::jwt::{base64url, random_token};
use crate::login::AuthServerContext;
use crate::token::TokenSet;

/// Maximum length of a quoted error text in characters.
const MAX_ERROR_TEXT_CHARS: usize = 200;

/// State of a pending authorization request.
struct PendingAuthorization {
    state: String,
    verifier: String,
    redirect_uri: String,
}

/// Opens the login page, and exchanges the returned code for tokens. Dropping the future cancels the visit.
pub(crate) async fn request_with_code(
    attempt: &AuthServerContext<'_>,
    grant_request: &GrantRequest<'_>,
    visit: Box<dyn BrowserVisit>,
) -> Result<TokenSet, LoginError> {
    let redirect_uri = visit.redirect_uri().to_owned();
    let asked = PendingAuthorization { state: random_token()?, verifier: random_token()?, redirect_uri };
    let page = LoginPage {
        url: authorization_url(grant_request, &asked)?,
        state: asked.state.clone(),
        server: attempt.server.to_owned(),
        issuer: grant_request.server.issuer.clone(),
        scope: grant_request.scope.map(str::to_owned),
    };
    let returned = visit.open_and_wait(page).await.map_err(|error| match error {
        VisitError::Declined => LoginError::Denied(None),
        other => other.into(),
    })?;
    let code = validate_callback(returned, grant_request.server, &asked.state)?;
    let fields = vec![
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", &asked.redirect_uri),
        ("code_verifier", &asked.verifier),
    ];
    grant_request.request_tokens(attempt, fields).await
}

/// Returns the URL of the login page: the endpoint as written, with the request parameters appended to its query.
fn authorization_url(grant_request: &GrantRequest<'_>, asked: &PendingAuthorization) -> Result<String, LoginError> {
    let endpoint = grant_request.server.authorization_endpoint.as_deref();
    let endpoint = endpoint.ok_or_else(|| missing_endpoint("authorization_endpoint"))?;
    check_url(endpoint).map_err(|flaw| LoginError::Unsafe(format!("`{}`: {flaw}", display_url(endpoint))))?;
    let challenge = pkce_challenge(&asked.verifier);
    let mut query = form_urlencoded::Serializer::new(String::new());
    query
        .append_pair("response_type", "code")
        .append_pair("client_id", &grant_request.client.id)
        .append_pair("redirect_uri", &asked.redirect_uri)
        .append_pair("state", &asked.state)
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256");
    query.extend_pairs(grant_request.scope.map(|scope| ("scope", scope)));
    query.extend_pairs(grant_request.resource.map(|resource| ("resource", resource)));
    // OpenID Connect Core, 11: `offline_access` is ignored without `prompt=consent`.
    let lasts = grant_request.scope.is_some_and(|scope| scope.split(' ').any(|word| word == "offline_access"));
    query.extend_pairs(lasts.then_some(("prompt", "consent")));
    Ok(format!("{endpoint}{}{}", query_separator(endpoint), query.finish()))
}

/// Returns the separator between a URL and additional query parameters.
fn query_separator(address: &str) -> &'static str {
    match address.split_once('?') {
        None => "?",
        Some((_, query)) if query.is_empty() || query.ends_with('&') => "",
        Some(_) => "&",
    }
}

/// Computes the PKCE challenge (RFC 7636, 4.2).
fn pkce_challenge(verifier: &str) -> String {
    base64url(Sha256::digest(verifier))
}

/// Returns the code, if the response matches the request and comes from the expected issuer. The issuer is checked
/// before any other parameter is used, including errors (RFC 9207, 2.4).
fn validate_callback(returned: LoginCallback, server: &AuthServerMetadata, state: &str) -> Result<String, LoginError> {
    if !returned.matches_state(state) {
        return Err(LoginError::Mismatch("the `state` does not match".to_owned()));
    }
    check_issuer(returned.iss.as_deref(), server)?;
    let said = |text: &str| UntrustedText::new(text).truncate(MAX_ERROR_TEXT_CHARS).to_string();
    let description = returned.error_description.as_deref().map(said);
    match (returned.error.as_deref(), returned.code) {
        (Some("access_denied"), _) => Err(LoginError::Denied(description)),
        (Some(error), _) => {
            let description = description.map(|said| format!(" ({said})")).unwrap_or_default();
            Err(LoginError::Mismatch(format!("error `{}`{description}", said(error))))
        }
        (None, Some(code)) if !code.is_empty() => Ok(code),
        (None, _) => Err(LoginError::Mismatch("no authorization code".to_owned())),
    }
}

fn check_issuer(iss: Option<&str>, server: &AuthServerMetadata) -> Result<(), LoginError> {
    match iss {
        Some(_) if server.is_guessed => Ok(()),
        Some(iss) if iss == server.issuer => Ok(()),
        Some(iss) => {
            let (iss, issuer) = (display_url(iss), display_url(&server.issuer));
            Err(LoginError::Mismatch(format!("wrong issuer `{iss}`, expected `{issuer}`")))
        }
        None if server.names_itself => Err(LoginError::Mismatch("missing `iss` parameter".to_owned())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::client::{ClientOrigin, OAuthClient, TokenEndpointAuth};

    fn client() -> OAuthClient {
        OAuthClient {
            id: "https://c/doc?x=1".to_owned(),
            secret: None,
            proof: TokenEndpointAuth::None,
            origin: ClientOrigin::Document,
            expires_at: None,
        }
    }

    fn address_at(endpoint: &str, scope: Option<&str>, resource: Option<&str>) -> Result<String, LoginError> {
        let server = AuthServerMetadata { authorization_endpoint: Some(endpoint.to_owned()), ..Default::default() };
        let grant_request = GrantRequest { server: &server, client: &client(), resource, scope, dpop: None };
        let (state, verifier) = ("st".to_owned(), "ver".to_owned());
        authorization_url(
            &grant_request,
            &PendingAuthorization { state, verifier, redirect_uri: "http://127.0.0.1:1/callback".to_owned() },
        )
    }

    #[test]
    fn pkce_challenge_matches_rfc_7636_appendix_b() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(pkce_challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn authorization_endpoint_is_extended_verbatim() {
        for (endpoint, begins) in [
            ("http://localhost:80", "http://localhost:80?response_type=code&"),
            ("https://H/a/../b", "https://H/a/../b?response_type=code&"),
            ("https://h/a?tenant=%7e1", "https://h/a?tenant=%7e1&response_type=code&"),
            ("https://h/a?", "https://h/a?response_type=code&"),
            ("https://h/a?b&", "https://h/a?b&response_type=code&"),
        ] {
            let address = address_at(endpoint, None, None).unwrap();
            assert!(address.starts_with(begins), "{address}");
        }
    }

    #[test]
    fn authorization_url_has_each_parameter_once() {
        for (scope, resource, more) in [
            (None, None, vec![]),
            (Some("a b&c"), Some("http://h:1"), vec![("scope", "a b&c"), ("resource", "http://h:1")]),
            (Some("a offline_access"), None, vec![("scope", "a offline_access"), ("prompt", "consent")]),
            (Some("no_offline_access"), None, vec![("scope", "no_offline_access")]),
        ] {
            let address = Url::parse(&address_at("https://h/a", scope, resource).unwrap()).unwrap();
            let found: Vec<_> = address.query_pairs().into_owned().collect();
            let challenge = pkce_challenge("ver");
            let usual = [
                ("response_type", "code"),
                ("client_id", "https://c/doc?x=1"),
                ("redirect_uri", "http://127.0.0.1:1/callback"),
                ("state", "st"),
                ("code_challenge", &challenge),
                ("code_challenge_method", "S256"),
            ];
            let expected = usual.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(found, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn t39_only_https_and_loopback_authorization_urls() {
        let schemes = "javascript data file ftp ftps gopher ws wss ssh telnet mailto tel sms vbscript about chrome blob \
                       view-source ms-settings smb ldap jar intent itms-services x-apple";
        let mut refused = 0;
        for scheme in schemes.split_whitespace() {
            let address = address_at(&format!("{scheme}://127.0.0.1/authorize"), None, None);
            assert!(matches!(address, Err(LoginError::Unsafe(_))), "{scheme}");
            refused += 1;
        }
        assert_eq!(refused, 25);
        for endpoint in ["http://example.org/a", "http://10.0.0.1/a", "javascript:alert(1)", "-https://h/", "", "/a"] {
            assert!(matches!(address_at(endpoint, None, None), Err(LoginError::Unsafe(_))), "{endpoint}");
        }
    }

    const ISSUER: &str = "https://as.example/t";

    /// Returns the code of a response, or the error message.
    fn check(returned: &str, server: &AuthServerMetadata) -> String {
        let mut read = LoginCallback::default();
        for (name, value) in form_urlencoded::parse(returned.as_bytes()).into_owned() {
            match &*name {
                "code" => read.code = Some(value),
                "state" => read.state = Some(value),
                "iss" => read.iss = Some(value),
                "error" => read.error = Some(value),
                _ => read.error_description = Some(value),
            }
        }
        validate_callback(read, server, "st").unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn t41_issuer_of_the_callback_is_checked_first() {
        const WRONG: &str = "invalid login callback: ";
        for (returned, names_itself, expected) in [
            ("state=st&code=c", false, "c"),
            ("state=st&code=c&iss=https://as.example/t", false, "c"),
            ("state=st&code=c&iss=https://as.example/t", true, "c"),
            ("state=st&code=c", true, "missing `iss` parameter"),
            ("state=st&code=c&iss=https://as.example/t/", true, "wrong issuer `https://as.example/t/`, expected"),
            ("state=st&code=c&iss=https://AS.example/t", false, "wrong issuer"),
            ("state=st&code=c&iss=", false, "wrong issuer"),
            ("state=st&error=access_denied&iss=https://evil/", false, "wrong issuer"),
            ("state=st&error=access_denied", true, "missing `iss` parameter"),
            ("state=su&code=c&iss=https://as.example/t", true, "the `state` does not match"),
            ("code=c&iss=https://as.example/t", true, "the `state` does not match"),
            ("state=st", false, "no authorization code"),
            ("state=st&code=", false, "no authorization code"),
            ("state=st&error=server_error&d=%1b[2J", false, "error `server_error` (\\u{1b}[2J)"),
        ] {
            let server = AuthServerMetadata { issuer: ISSUER.to_owned(), names_itself, ..Default::default() };
            let found = check(returned, &server);
            assert!(found.strip_prefix(WRONG).unwrap_or(&found).starts_with(expected), "{returned}: {found}");
        }
    }

    #[test]
    fn o08_denied_login_reports_the_reason() {
        let server = AuthServerMetadata { issuer: ISSUER.to_owned(), ..Default::default() };
        assert_eq!(check("state=st&error=access_denied&d=not+today", &server), "the login was denied: not today");
        let long = format!("state=st&error=access_denied&d={}", "x".repeat(1000));
        assert!(check(&long, &server).len() < 300);
    }

    #[test]
    fn guessed_issuer_is_not_checked_against_the_callback() {
        let mut server = AuthServerMetadata { issuer: ISSUER.to_owned(), is_guessed: true, ..Default::default() };
        assert_eq!(check("state=st&code=c&iss=https://other/", &server), "c");
        // Unless it is configured (`oauth.issuer`).
        server.is_guessed = false;
        assert!(check("state=st&code=c&iss=https://other/", &server).contains("wrong issuer `https://other/`"));
    }
}
