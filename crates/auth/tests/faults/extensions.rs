//! Tokens without a person, tokens bound to a key, logins on another device.

use std::sync::Arc;

use wharf_auth::{Account, AssertionSource, AuthSettings, DpopMode as Binding, LoginError, TokenGrant, VisitError};
use wharf_net::AuthRecovery;
use wharf_spec::Secret;
use wharf_testkit::authd::{
    ClientAuthMethod, DeviceLoginBehaviour, DeviceLoginOutcome, DpopRequirement, TokenBehaviour,
};

use crate::scene::Scene;

fn account(scene: &Scene, change: impl FnOnce(&mut AuthSettings)) -> Account {
    scene.account_with(|options| change(&mut options.settings))
}

/// Checks that an account gets its own tokens, and new ones when they are refused.
async fn check(scene: &Scene, account: &Account, grant: &str) {
    assert_eq!(scene.ask(account, "tools/list").await, Ok(200), "{grant}");
    scene.authd.expire_access_tokens();
    assert_eq!(scene.ask(account, "tools/list").await, Ok(200), "{grant}");
    assert_eq!(scene.grants(grant), 2);
    assert_eq!(scene.authd.counts().authorizations, 0);
}

#[tokio::test]
async fn client_credentials_with_secret() {
    let scene = Scene::new(|switches| switches.client_auth = ClientAuthMethod::Basic);
    let (id, secret) = scene.authd.registered_client();
    let account = account(&scene, |settings| {
        (settings.client_id, settings.client_secret) = (Some(id), Some(Secret::new(secret)));
        settings.grant = TokenGrant::ClientSecret;
    });
    check(&scene, &account, "client_credentials").await;
}

#[tokio::test]
async fn client_credentials_with_private_key() {
    let scene = Scene::new(|switches| switches.client_auth = ClientAuthMethod::Key);
    let account = account(&scene, |settings| {
        settings.client_id = Some(scene.authd.registered_client().0);
        settings.grant =
            TokenGrant::ClientKey { key: Secret::new(scene.authd.client_key().pem().to_owned()), algorithm: None };
    });
    check(&scene, &account, "client_credentials").await;
}

#[tokio::test]
async fn enterprise_grant_exchanges_the_id_token() {
    let scene = Scene::new(|switches| switches.client_auth = ClientAuthMethod::Basic);
    let (id, secret) = scene.authd.registered_client();
    let account = account(&scene, |settings| {
        (settings.client_id, settings.client_secret) = (Some(id), Some(Secret::new(secret)));
        settings.grant = TokenGrant::Enterprise {
            token_url: scene.authd.identity_provider_url(),
            client_id: "at-the-provider".to_owned(),
            client_secret: None,
            id_token: AssertionSource::Given(Secret::new(scene.authd.id_token())),
        };
    });
    check(&scene, &account, "urn:ietf:params:oauth:grant-type:jwt-bearer").await;
}

#[tokio::test]
async fn workload_assertion_is_used_once_without_fallback() {
    let scene = Scene::new(|_| {});
    let workload = |assertion: String| {
        account(&scene, |settings| {
            settings.client_id = Some(scene.authd.registered_client().0);
            settings.grant = TokenGrant::Workload { assertion: AssertionSource::Given(Secret::new(assertion)) };
        })
    };
    let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
    check(&scene, &workload(scene.authd.workload_assertion()), grant).await;
    let fresh = Scene::new(|switches| switches.grant = TokenBehaviour::InvalidGrant);
    let refused = account(&fresh, |settings| {
        settings.client_id = Some(fresh.authd.registered_client().0);
        settings.grant = TokenGrant::Workload { assertion: AssertionSource::Given(Secret::new("made-up".to_owned())) };
    });
    assert!(fresh.ask(&refused, "tools/list").await.is_err());
    assert_eq!(fresh.grants(grant), 1);
}

#[tokio::test]
async fn required_dpop_survives_refresh_nonce_and_restart() {
    for dpop in [DpopRequirement::Required, DpopRequirement::Nonce] {
        let scene = Scene::new(|switches| switches.dpop = dpop);
        let account = scene.attended();
        assert_eq!(scene.ask(&account, "tools/list").await, Ok(200), "{dpop:?}");
        scene.authd.expire_access_tokens();
        assert_eq!(scene.ask(&account, "tools/list").await, Ok(200), "{dpop:?}");
        scene.authd.renew_nonce();
        assert_eq!(scene.ask(&account, "tools/list").await, Ok(200), "{dpop:?}");
        let restarted = scene.account();
        assert_eq!(scene.ask(&restarted, "tools/list").await, Ok(200), "{dpop:?}: the key is kept");
        assert_eq!(scene.authd.counts().authorizations, 1, "{dpop:?}");
    }
}

#[tokio::test]
async fn dpop_always_binds_tokens() {
    let scene = Scene::new(|_| {});
    let always = account(&scene, |settings| settings.dpop = Binding::Always);
    always.log_in(scene.person()).await.unwrap();
    assert_eq!(scene.ask(&always, "tools/list").await, Ok(200));
    assert_eq!(always.status().await.unwrap().kept.unwrap().tokens.unwrap().token_type, "DPoP");
}

#[tokio::test]
async fn device_login_is_granted_denied_or_expired() {
    // Together, since each has to wait for a second before it may ask.
    tokio::join!(
        check_device(DeviceLoginOutcome::Granted, |error| error.is_none()),
        check_device(DeviceLoginOutcome::Denied, |error| matches!(error, Some(LoginError::Denied(_)))),
        check_device(DeviceLoginOutcome::Expired, |error| matches!(
            error,
            Some(LoginError::Visit(VisitError::TooLate(_)))
        )),
    );
}

async fn check_device(end: DeviceLoginOutcome, is_expected: impl Fn(Option<LoginError>) -> bool) {
    let device = DeviceLoginBehaviour { end, ..DeviceLoginBehaviour::default() };
    let scene = Scene::new(|switches| switches.device = Some(device));
    let account = scene.account();
    let mut person = scene.somebody();
    person.wants_device = true;
    let outcome = account.log_in(Arc::new(person)).await;
    assert!(is_expected(outcome.err()), "{end:?}");
    let answer = scene.ask(&account, "tools/list").await.map_err(|why| why.remedy);
    assert_eq!(answer, if end == DeviceLoginOutcome::Granted { Ok(200) } else { Err(AuthRecovery::Login) }, "{end:?}");
    assert_eq!(scene.authd.counts().authorizations, 0, "{end:?}");
}
