use wharf_net::{AuthRejection, Authorizer as _, HeaderMap, Method, RequestCredentials, header};

use super::*;
use crate::account::{Account, AccountOptions};
use crate::revoke::{RevocationOutcome, revoke};
use crate::vault::{AccountKey, MemoryVault, Vault as _};

/// Returns the stored login after a login at this test server.
async fn kept(site: &ScriptedSite) -> StoredLogin {
    describe_servers(site, &json!({}));
    site.queue_response("/register", "201 Created", "", "{\"client_id\":\"first\"}");
    site.queue_document("/token", &tokens());
    log_in_as(site, &InstantBrowser::default(), None).await.unwrap()
}

#[tokio::test]
async fn t45_new_issuer_never_sees_old_client_or_tokens() {
    let device = json!({"device_code": "dc", "user_code": "AB", "verification_uri": "https://as/d", "interval": 1});
    for on_device in [false, true] {
        let (old, new) = (ScriptedSite::start(), ScriptedSite::start());
        let before = kept(&old).await;
        describe_servers(&new, &json!({"device_authorization_endpoint": format!("{}/device", new.origin())}));
        new.queue_response("/register", "201 Created", "", "{\"client_id\":\"second\"}")
            .queue_document("/token", &tokens());
        new.queue_document("/device", &device);
        let person = InstantBrowser { device: on_device, ..InstantBrowser::default() };
        let after = log_in_as(&new, &person, Some(&before)).await.unwrap();
        assert_eq!(after.client.id, "second");
        assert_eq!(person.asked("client_id"), if on_device { vec![] } else { vec!["second"] });
        let bodies = ["/register", "/device", "/token"].map(|path| new.requests_for(path)).concat();
        assert_eq!(bodies.len(), if on_device { 3 } else { 2 });
        let shown = |secret: &str| bodies.iter().any(|asked| asked.text().contains(secret));
        assert!(shown("second") && !shown("first") && !shown("=rt"));
    }
}

#[tokio::test]
async fn o14_configured_client_is_not_used_at_another_issuer() {
    let (old, mut new) = (ScriptedSite::start(), ScriptedSite::start());
    let before = kept(&old).await;
    describe_servers(&new, &json!({}));
    new.queue_document("/token", &tokens());
    new.settings.client_id = Some("first".to_owned());
    let person = InstantBrowser::default();
    let error = log_in_as(&new, &person, Some(&before)).await.unwrap_err();
    assert!(matches!(&error, LoginError::Registration(said) if said.contains("oauth.client_id")), "{error}");
    assert!(person.pages.lock().unwrap().is_empty());
    // Another client, or the same one after a logout, is the user's decision.
    assert!(log_in_as(&new, &person, None).await.is_ok());
    new.settings.client_id = Some("other".to_owned());
    assert!(log_in_as(&new, &person, Some(&before)).await.is_ok());
}

#[tokio::test]
async fn o14_issuer_still_listed_remains_in_use() {
    let (server, first) = (ScriptedSite::start(), ScriptedSite::start());
    let (here, there) = (server.origin(), first.origin());
    first.queue_document("/.well-known/oauth-authorization-server", &metadata(&there, &there, &json!({})));
    let key = AccountKey { server: "notes".to_owned(), account: String::new() };
    for (named, is_renewed) in [(json!([&there, &here]), true), (json!([&there]), false)] {
        let resource = json!({"resource": format!("{here}/mcp"), "authorization_servers": named});
        let place = format!("/description/{is_renewed}");
        server.queue_document(&place, &resource).queue_document("/token", &tokens());
        let (issuer, url, token_endpoint) = (here.clone(), format!("{here}/mcp"), format!("{here}/token"));
        let resource = Some(url.clone());
        let before =
            StoredLogin { issuer, url: url.clone(), resource, token_endpoint, ..kept(&ScriptedSite::start()).await };
        let vault = Arc::new(MemoryVault::default());
        vault.save(&key, &before).unwrap();
        let url = Url::parse(&url).unwrap();
        let mut options = AccountOptions::new(key.clone(), url.clone(), vault);
        options.now = Arc::new(|| 1_000_000);
        let account = Account::new(options);
        let RequestCredentials::Later(carried) = account.credentials(&Method::POST, &url) else {
            panic!("nothing was read")
        };
        let serial = carried.await.unwrap().map(|carried| carried.serial);
        let challenge = format!("Bearer resource_metadata=\"{here}{place}\"").parse().unwrap();
        let headers = HeaderMap::from_iter([(header::WWW_AUTHENTICATE, challenge)]);
        let mended = account.on_rejection(AuthRejection { status: 401, headers, serial }).await;
        assert_eq!((mended.is_ok(), server.requests_for("/token").len()), (is_renewed, 1), "{mended:?}");
    }
    assert!(first.requests_for("/token").is_empty());
}

#[tokio::test]
async fn o04_refresh_preserves_omitted_fields() {
    let site = ScriptedSite::start();
    let mut before = kept(&site).await;
    let tokens = before.tokens.as_mut().unwrap();
    tokens.scope = Some("a".to_owned());
    before.client.secret = Some(Secret::new("s"));
    before.client.proof = TokenEndpointAuth::ClientSecretBasic;
    let renewed = json!({"access_token": "at2", "token_type": "Bearer"});
    site.queue_document("/token", &renewed);
    // The queue still contains the first response.
    sendable(renew(&site.attempt(), &before)).await.unwrap();
    let after = renew(&site.attempt(), &before).await.unwrap();
    assert_eq!((after.access.reveal(), after.refresh, after.scope), ("at2", Some(Secret::new("rt")), Some("a".into())));
    assert_eq!(after.expires_at, None);
    let asked = site.requests_for("/token");
    let asked = asked.last().unwrap();
    let resource = site.origin() + "/mcp";
    for (name, value) in [("grant_type", "refresh_token"), ("refresh_token", "rt"), ("resource", &resource)] {
        assert_eq!(form_field(asked, name).as_deref(), Some(value), "{name}");
    }
    assert!(asked.header("authorization").unwrap().starts_with("Basic "));
    before.tokens.as_mut().unwrap().refresh = None;
    assert!(matches!(renew(&site.attempt(), &before).await, Err(LoginError::Needed { .. })));
}

#[tokio::test]
async fn bound_login_is_refreshed_with_its_own_key() {
    let site = ScriptedSite::start();
    let mut before = kept(&site).await;
    let key = DpopKey::generate().unwrap();
    before.dpop_key = Some(key.stored_form().clone());
    renew(&site.attempt(), &before).await.unwrap();
    assert!(site.requests_for("/token").last().unwrap().header("dpop").is_some());
    before.dpop_key = Some(Secret::new("damaged"));
    assert!(matches!(renew(&site.attempt(), &before).await, Err(LoginError::Vault(_))));
    assert_eq!(site.requests_for("/token").len(), 2);
}

#[tokio::test]
async fn refresh_must_return_the_same_token_type() {
    let mut site = ScriptedSite::start();
    let plain = kept(&site).await;
    let mut bound = plain.clone();
    bound.dpop_key = Some(DpopKey::generate().unwrap().stored_form().clone());
    bound.tokens.as_mut().unwrap().token_type = "DPoP".to_owned();
    assert!(matches!(renew(&site.attempt(), &bound).await, Err(LoginError::Unsafe(_))));
    site.queue_document("/token", &json!({"access_token": "at2", "token_type": "dpop"}));
    site.queue_document("/token", &json!({"access_token": "at3"}));
    // The queue still contains the first response.
    assert!(renew(&site.attempt(), &plain).await.is_ok());
    assert!(matches!(renew(&site.attempt(), &plain).await, Err(LoginError::Unsafe(_))));
    let after = renew(&site.attempt(), &bound).await.unwrap();
    assert_eq!((after.access.reveal(), after.is_bound()), ("at3", true));
    // If the settings require bound tokens, unbound ones are not used any more.
    site.settings.dpop = DpopMode::Always;
    let asked = site.requests_for("/token").len();
    assert!(matches!(renew(&site.attempt(), &plain).await, Err(LoginError::Needed { .. })));
    assert_eq!(site.requests_for("/token").len(), asked);
}

#[tokio::test]
async fn revocation_outcome_is_reported() {
    let site = ScriptedSite::start();
    let mut before = kept(&site).await;
    site.queue_response("/revoke", "200 OK", "", "").queue_response("/revoke", "200 OK", "", "");
    site.queue_response("/revoke", "503 Service Unavailable", "", "").queue_response("/revoke", "200 OK", "", "");
    site.queue_response("/revoke", "400 Bad Request", "", "{\"error\":\"unsupported_token_type\"}");
    assert_eq!(sendable(revoke(&site.attempt(), &before)).await, RevocationOutcome::All);
    let given = |at: usize, name: &str| form_field(&site.requests_for("/revoke")[at], name).unwrap();
    assert_eq!((given(0, "token"), given(0, "token_type_hint")), ("rt".into(), "refresh_token".into()));
    assert_eq!((given(1, "token"), given(1, "client_id")), ("at".into(), "first".into()));
    assert!(matches!(revoke(&site.attempt(), &before).await, RevocationOutcome::Unsure(why) if why.contains("503")));
    assert_eq!(site.requests_for("/revoke").len(), 4);
    assert!(
        matches!(revoke(&site.attempt(), &before).await, RevocationOutcome::Unsure(why) if why.contains("unsupported"))
    );
    before.revocation_endpoint = None;
    assert_eq!(revoke(&site.attempt(), &before).await, RevocationOutcome::NotTaken);
    before.tokens = None;
    assert_eq!(revoke(&site.attempt(), &before).await, RevocationOutcome::Nothing);
    assert_eq!(site.requests_for("/revoke").len(), 6);
}
