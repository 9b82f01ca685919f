use sha2::{Digest as _, Sha256};

use super::*;
use crate::jwt::base64url;

#[tokio::test]
async fn browser_login_registers_and_exchanges_the_code() {
    let site = ScriptedSite::start();
    describe_servers(&site, &json!({}));
    site.queue_response("/register", "201 Created", "", "{\"client_id\":\"registered\"}")
        .queue_document("/token", &tokens());
    let person = InstantBrowser::default();
    let (attempt, visitor) = (site.attempt(), Arc::new(person.clone()));
    let kept = sendable(log_in(&attempt, Some(visitor), None, None, Some("notes".to_owned()))).await.unwrap();
    let resource = site.origin() + "/mcp";
    assert_eq!((kept.issuer, kept.client.id.as_str()), (site.origin(), "registered"));
    assert_eq!(kept.resource.as_deref(), Some(resource.as_str()));
    assert_eq!(kept.tokens.unwrap().expires_at, Some(1_060_000));
    assert_eq!(person.asked("client_id"), ["registered"]);
    assert_eq!((person.asked("resource"), person.asked("scope")), (vec![resource.clone()], vec!["notes".to_owned()]));
    let [asked] = &site.requests_for("/token")[..] else { panic!("one request") };
    for (name, value) in [
        ("grant_type", "authorization_code"),
        ("code", "the code"),
        ("redirect_uri", "http://127.0.0.1:9/callback"),
        ("resource", &resource),
        ("client_id", "registered"),
    ] {
        assert_eq!(form_field(asked, name).as_deref(), Some(value), "{name}");
    }
    let verifier = form_field(asked, "code_verifier").unwrap();
    assert_eq!(person.asked("code_challenge"), [base64url(Sha256::digest(&verifier))]);
    assert!(asked.header("dpop").is_none() && asked.header("authorization").is_none());
}

#[tokio::test]
async fn t41_mismatched_callback_is_not_exchanged() {
    let answers: [fn(&LoginPage) -> LoginCallback; 4] = [
        |_| LoginCallback { code: Some("c".to_owned()), state: Some("guessed".to_owned()), ..LoginCallback::default() },
        |_| LoginCallback { code: Some("c".to_owned()), ..LoginCallback::default() },
        |page| LoginCallback {
            code: Some("c".to_owned()),
            state: Some(page.state.clone()),
            iss: Some(format!("{}/", page.issuer)),
            ..LoginCallback::default()
        },
        |page| LoginCallback {
            code: Some("c".to_owned()),
            state: Some(page.state.clone()),
            ..LoginCallback::default()
        },
    ];
    for answer in answers {
        let site = ScriptedSite::start();
        describe_servers(&site, &json!({"authorization_response_iss_parameter_supported": true}));
        site.queue_response("/register", "201 Created", "", "{\"client_id\":\"c\"}")
            .queue_document("/token", &tokens());
        let person = InstantBrowser { answer: Some(answer), ..InstantBrowser::default() };
        let error = log_in_as(&site, &person, None).await.unwrap_err();
        assert!(matches!(error, LoginError::Mismatch(_)), "{error}");
        assert_eq!((person.pages.lock().unwrap().len(), site.requests_for("/token").len()), (1, 0));
    }
}

#[tokio::test]
async fn unattended_login_registers_no_client() {
    let site = ScriptedSite::start();
    describe_servers(&site, &json!({}));
    let error = log_in(&site.attempt(), None, None, None, Some("a\u{1b}".to_owned())).await.unwrap_err();
    assert!(matches!(&error, LoginError::Needed { scope: Some(scope) } if scope == "a\\u{1b}"), "{error}");
    assert!(error.needs_user() && site.requests_for("/register").is_empty());
}

#[tokio::test]
async fn dpop_is_used_where_both_sides_support_it() {
    let challenge = AuthChallenge { scheme: TokenScheme::Dpop, resource_metadata: None, scope: None, error: None };
    for (setting, listed, challenged, answered, proves, bound) in [
        (DpopMode::Automatic, "ES256", true, "DPoP", true, true),
        (DpopMode::Automatic, "ES256", true, "Bearer", true, false),
        (DpopMode::Automatic, "ES256", false, "Bearer", false, false),
        (DpopMode::Automatic, "RS256", true, "Bearer", false, false),
        (DpopMode::Always, "RS256", false, "DPoP", true, true),
        (DpopMode::Never, "ES256", true, "Bearer", false, false),
    ] {
        let mut site = ScriptedSite::start();
        site.settings.dpop = setting;
        describe_servers(&site, &json!({"dpop_signing_alg_values_supported": [listed]}));
        site.queue_response("/register", "201 Created", "", "{\"client_id\":\"c\"}");
        site.queue_document("/token", &json!({"access_token": "at", "token_type": answered}));
        let visitor: Arc<dyn LoginBrowser> = Arc::new(InstantBrowser::default());
        let challenge = challenged.then_some(&challenge);
        let kept = log_in(&site.attempt(), Some(visitor), challenge, None, None).await.unwrap();
        assert_eq!(site.requests_for("/token")[0].header("dpop").is_some(), proves, "{setting:?} {listed}");
        assert_eq!((kept.dpop_key.is_some(), kept.tokens.unwrap().is_bound()), (bound, bound));
    }
}

#[tokio::test]
async fn token_type_must_match_the_dpop_setting() {
    for (setting, answered) in [(DpopMode::Always, "Bearer"), (DpopMode::Automatic, "DPoP"), (DpopMode::Never, "DPoP")]
    {
        let mut site = ScriptedSite::start();
        site.settings.dpop = setting;
        describe_servers(&site, &json!({}));
        site.queue_response("/register", "201 Created", "", "{\"client_id\":\"c\"}");
        site.queue_document("/token", &json!({"access_token": "at", "token_type": answered}));
        let error = log_in_as(&site, &InstantBrowser::default(), None).await.unwrap_err();
        assert!(matches!(error, LoginError::Unsafe(_)), "{setting:?} {error}");
    }
}

#[tokio::test]
async fn o11_unknown_client_is_reregistered_once() {
    let device = json!({
        "device_code": "dc", "user_code": "AB-CD", "verification_uri": "https://as/d", "interval": 1, "expires_in": 9,
    });
    let unknown = "{\"error\":\"invalid_client\"}";
    for comes_back in [true, false] {
        let site = ScriptedSite::start();
        describe_servers(&site, &json!({"device_authorization_endpoint": format!("{}/device", site.origin())}));
        site.queue_response("/register", "201 Created", "", "{\"client_id\":\"first\"}");
        site.queue_response("/register", "201 Created", "", "{\"client_id\":\"second\"}")
            .queue_document("/token", &tokens());
        let person = InstantBrowser { device: true, ..InstantBrowser::default() };
        site.queue_document("/device", &device).queue_response("/device", "401 Unauthorized", "", unknown);
        if comes_back {
            site.queue_document("/device", &device);
        }
        let first = log_in_as(&site, &person, None).await.unwrap();
        assert_eq!(first.client.id, "first");
        let second = log_in_as(&site, &person, Some(&first)).await;
        assert_eq!(second.ok().map(|kept| kept.client.id), comes_back.then(|| "second".to_owned()));
        let clients: Vec<_> =
            site.requests_for("/device").iter().map(|asked| form_field(asked, "client_id").unwrap()).collect();
        assert_eq!(clients, ["first", "first", "second"]);
        assert_eq!(site.requests_for("/register").len(), 2);
        assert_eq!(person.codes.lock().unwrap()[0].code, "AB-CD");
        assert_eq!(form_field(&site.requests_for("/token")[0], "device_code").as_deref(), Some("dc"));
    }
}

#[tokio::test]
async fn o20_clock_jump_does_not_end_a_login() {
    let site = ScriptedSite::start();
    describe_servers(&site, &json!({}));
    site.queue_response("/register", "201 Created", "", "{\"client_id\":\"c\"}").queue_document("/token", &tokens());
    for clock in [[u64::MAX, 0, 86_400_000], [86_400_000, 172_800_000, 0], [0, u64::MAX, 0]] {
        let turn = std::sync::atomic::AtomicUsize::new(0);
        let jumping = || clock[turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % clock.len()];
        let attempt = AuthServerContext { now: &jumping, ..site.attempt() };
        let kept = log_in(&attempt, Some(Arc::new(InstantBrowser::default())), None, None, None).await.unwrap();
        assert!(kept.tokens.is_some() && turn.into_inner() > 1);
    }
}

#[test]
fn offline_access_is_requested_where_supported_and_useful() {
    let person = AuthSettings::default();
    let owner = AuthSettings { scope: Some("x offline_access".to_owned()), ..AuthSettings::default() };
    let alone = AuthSettings { grant: TokenGrant::ClientSecret, ..AuthSettings::default() };
    for (settings, known, scope, expected) in [
        (&person, "offline_access", None, Some("a offline_access")),
        (&person, "offline_access", Some("a offline_access b"), Some("a b offline_access")),
        (&person, "other", None, Some("a")),
        (&person, "other", Some("a offline_access b"), Some("a b")),
        (&person, "other", Some("offline_access"), None),
        (&owner, "other", None, Some("x offline_access")),
        (&owner, "other", Some("x offline_access y"), Some("x offline_access y")),
        (&alone, "offline_access", None, Some("a")),
    ] {
        let server = AuthServerMetadata { scopes: vec![known.to_owned()], ..AuthServerMetadata::default() };
        let (scopes, issuers) = (vec!["a".to_owned()], Vec::new());
        let found = DiscoveryResult { resource: None, scopes, needs_dpop: false, issuers, server };
        let found = scope_to_request(settings, None, &found, scope.map(str::to_owned));
        assert_eq!(found.as_deref(), expected, "{known} {scope:?}");
    }
}
