//! Logging in: finding out where, registering, the page and its answer.

use serde_json::json;
use wharf_auth::LoginError;
use wharf_net::AuthRecovery;
use wharf_testkit::authd::{
    ClientAuthMethod, DocumentDefect, IssParameter, IssuerMetadataLocation, ListenerSite, LoginPageBehaviour,
    MetadataLocation, RegistrationBehaviour, Resource,
};

use crate::scene::Scene;

#[tokio::test]
async fn o07_every_metadata_location_is_found() {
    let descriptions = [MetadataLocation::Header, MetadataLocation::Path, MetadataLocation::Root];
    let metadata = [
        (IssuerMetadataLocation::Oauth, ""),
        (IssuerMetadataLocation::OpenIdInserted, ""),
        (IssuerMetadataLocation::Oauth, "/t"),
    ];
    let more = [(IssuerMetadataLocation::OpenIdInserted, "/t"), (IssuerMetadataLocation::OpenIdAppended, "/t")];
    for description in descriptions {
        for (metadata, path) in metadata.into_iter().chain(more) {
            let scene = Scene::new(|switches| {
                (switches.description, switches.metadata) = (description, metadata);
                switches.issuer_path = path.to_owned();
            });
            let account = scene.attended();
            assert_eq!(scene.ask(&account, "tools/list").await, Ok(200), "{description:?} {metadata:?} {path}");
            assert_eq!(scene.authd.counts().authorizations, 1);
        }
    }
}

#[tokio::test]
async fn o07_servers_of_2025_03_26_are_supported() {
    for metadata in [IssuerMetadataLocation::Oauth, IssuerMetadataLocation::Absent] {
        let scene = Scene::new(|switches| {
            (switches.one_origin, switches.metadata) = (true, metadata);
            switches.description = MetadataLocation::Absent;
            (switches.iss, switches.iss_advertised) = (IssParameter::Absent, false);
        });
        assert_eq!(scene.ask(&scene.attended(), "tools/list").await, Ok(200), "{metadata:?}");
    }
}

#[tokio::test]
async fn o07_t42_t49_defective_issuer_metadata_opens_no_page() {
    let name = || "code_challenge_methods_supported".to_owned();
    let faults = [
        DocumentDefect::WrongIssuer,
        DocumentDefect::Html,
        DocumentDefect::Without("issuer".to_owned()),
        DocumentDefect::Without("authorization_endpoint".to_owned()),
        DocumentDefect::Without("token_endpoint".to_owned()),
        DocumentDefect::Without(name()),
        DocumentDefect::With(name(), json!(["plain"])),
        DocumentDefect::With("authorization_endpoint".to_owned(), json!("javascript:alert(1)")),
        DocumentDefect::With("token_endpoint".to_owned(), json!(17)),
        DocumentDefect::Deep,
        DocumentDefect::Huge,
    ];
    for fault in faults {
        let scene = Scene::new(|switches| switches.metadata_fault = fault.clone());
        let error = scene.refused_login().await;
        let is_said = matches!(error, LoginError::Discovery(_) | LoginError::Unsafe(_));
        assert!(is_said, "{fault:?}: {error:?}");
        assert!(error.to_string().len() < 2000, "{fault:?}");
        let counts = scene.authd.counts();
        assert_eq!((counts.authorizations, counts.registrations), (0, 0), "{fault:?}");
    }
}

#[tokio::test]
async fn o07_defective_resource_metadata_opens_no_page() {
    let faults = [
        DocumentDefect::Html,
        DocumentDefect::Without("resource".to_owned()),
        DocumentDefect::With("authorization_servers".to_owned(), json!(["file:///etc/passwd"])),
        DocumentDefect::With("authorization_servers".to_owned(), json!(17)),
        DocumentDefect::Deep,
        DocumentDefect::Huge,
    ];
    for fault in faults {
        let scene = Scene::new(|switches| switches.description_fault = fault.clone());
        let account = scene.attended();
        assert!(scene.ask(&account, "tools/list").await.is_err(), "{fault:?}");
        assert_eq!(scene.authd.counts().authorizations, 0, "{fault:?}");
    }
}

#[tokio::test]
async fn o07_metadata_redirect_to_another_origin_is_refused() {
    let scene = Scene::new(|switches| switches.metadata_fault = DocumentDefect::Redirect);
    scene.refused_login().await;
    assert!(scene.authd.requests().iter().all(|seen| seen.site != ListenerSite::Second));
}

#[tokio::test]
async fn t43_foreign_resource_metadata_ends_discovery() {
    let scene = Scene::new(|switches| switches.resource = Resource::Foreign);
    let account = scene.attended();
    assert_eq!(scene.ask(&account, "tools/list").await.unwrap_err().remedy, AuthRecovery::Reading);
    assert!(scene.authd.requests().iter().all(|seen| seen.site == ListenerSite::Server));
    let parent = Scene::new(|switches| switches.resource = Resource::Origin);
    let account = parent.attended();
    assert_eq!(parent.ask(&account, "tools/list").await, Ok(200));
    let asked = parent.authd.requests().into_iter().filter_map(|seen| seen.field("resource").map(str::to_owned));
    assert_eq!(asked.collect::<Vec<_>>(), [parent.authd.resource(), parent.authd.resource()]);
}

#[tokio::test]
async fn o08_denied_login_exchanges_no_code() {
    let scene = Scene::new(|switches| switches.page = LoginPageBehaviour::Denied);
    let error = scene.refused_login().await;
    assert!(matches!(error, LoginError::Denied(_)), "{error:?}");
    assert_eq!(scene.grants("authorization_code"), 0);
}

#[tokio::test]
async fn o10_concurrent_logins_share_one_flow() {
    let scene = Scene::new(|_| {});
    let account = scene.account();
    let (first, second) = tokio::join!(account.log_in(scene.person()), account.log_in(scene.person()));
    assert_eq!(first.unwrap().kept, second.unwrap().kept);
    assert_eq!((scene.authd.counts().authorizations, scene.authd.counts().registrations), (1, 1));
}

#[tokio::test]
async fn o11_failed_registration_suggests_a_client_id() {
    for registration in
        [RegistrationBehaviour::BadRequest, RegistrationBehaviour::TooMany, RegistrationBehaviour::Absent]
    {
        let scene = Scene::new(|switches| switches.registration = registration);
        let error = scene.refused_login().await;
        let may_pass = registration == RegistrationBehaviour::TooMany;
        assert_eq!(matches!(error, LoginError::Registration(_)), !may_pass, "{registration:?}: {error:?}");
        assert!(error.is_transient() == may_pass && error.to_string().contains("`oauth.client_id`"), "{error}");
        let tries = scene.authd.requests().iter().filter(|seen| seen.path == "/register").count();
        assert!(tries <= 2, "{registration:?}: {tries}");
    }
}

#[tokio::test]
async fn o11_deleted_client_is_reregistered() {
    let scene = Scene::new(|_| {});
    let account = scene.attended();
    assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
    scene.authd.delete_client();
    scene.authd.expire_access_tokens();
    assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
    assert_eq!(scene.authd.counts().registrations, 2);
}

#[tokio::test]
async fn o11_clients_authenticate_as_registered() {
    for auth in [ClientAuthMethod::None, ClientAuthMethod::Basic, ClientAuthMethod::Post] {
        let scene = Scene::new(|switches| switches.client_auth = auth);
        let account = scene.logged_in().await;
        scene.authd.expire_access_tokens();
        assert_eq!(scene.ask(&account, "tools/list").await, Ok(200), "{auth:?}");
        assert_eq!(scene.authd.counts().rotations, 1, "{auth:?}");
    }
}

#[tokio::test]
async fn o14_t45_moved_issuer_sees_nothing_of_the_first() {
    let scene = Scene::new(|_| {});
    let account = scene.attended();
    assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
    scene.authd.move_issuer();
    let unattended = scene.account();
    assert_eq!(scene.ask(&unattended, "tools/list").await.unwrap_err().remedy, AuthRecovery::Login);
    assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
    let counts = scene.authd.counts();
    assert_eq!((counts.registrations, counts.strays, counts.refreshes), (2, 0, 0));
    assert_eq!(account.status().await.unwrap().kept.unwrap().issuer, scene.authd.issuer());
}

#[tokio::test]
async fn t41_code_of_another_issuer_is_not_exchanged() {
    let cases = [
        (IssParameter::Right, true, true),
        (IssParameter::Right, false, true),
        (IssParameter::Absent, false, true),
        (IssParameter::Absent, true, false),
        (IssParameter::Wrong, true, false),
        (IssParameter::Wrong, false, false),
        (IssParameter::Slash, true, false),
    ];
    for (iss, advertised, is_good) in cases {
        let scene = Scene::new(|switches| (switches.iss, switches.iss_advertised) = (iss, advertised));
        let outcome = scene.account().log_in(scene.person()).await;
        assert_eq!(outcome.is_ok(), is_good, "{iss:?} {advertised}");
        assert_eq!(scene.grants("authorization_code"), usize::from(is_good), "{iss:?} {advertised}");
        if let Err(error) = outcome {
            assert!(matches!(error, LoginError::Mismatch(_)), "{error:?}");
        }
    }
}

#[tokio::test]
async fn t41_denial_of_another_issuer_is_not_shown() {
    let scene =
        Scene::new(|switches| (switches.page, switches.iss) = (LoginPageBehaviour::Denied, IssParameter::Wrong));
    let error = scene.refused_login().await;
    assert!(matches!(error, LoginError::Mismatch(_)), "{error:?}");
    assert!(!error.to_string().contains("access_denied"));
}

#[tokio::test]
async fn logout_reports_tokens_that_remain_valid() {
    use wharf_testkit::authd::RevocationBehaviour;
    for (revocation, is_said) in [
        (RevocationBehaviour::Good, false),
        (RevocationBehaviour::Absent, true),
        (RevocationBehaviour::ServerError, true),
    ] {
        let scene = Scene::new(|switches| switches.revocation = revocation);
        let account = scene.logged_in().await;
        let logout = account.log_out().await.unwrap();
        assert_eq!((logout.was_kept, logout.still_good.is_some()), (true, is_said), "{revocation:?}: {logout:?}");
        assert!(account.status().await.unwrap().kept.is_none());
    }
}
