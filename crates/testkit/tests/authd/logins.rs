//! Registering and the login page.

use serde_json::json;
use wharf_testkit::authd::{Authd, ClientAuthMethod, IssParameter, LoginPageBehaviour, RegistrationBehaviour};

use crate::client::{
    CALLBACK, exchange, form, get, log_in, page, register, send, status_with, try_form, visit, written,
};
use crate::start;

fn metadata(authd: &Authd) -> serde_json::Value {
    get(&format!("{}/.well-known/oauth-authorization-server", authd.issuer())).json()
}

#[test]
fn o11_registering_fails_as_it_is_told() {
    for (registration, status) in [
        (RegistrationBehaviour::Good, 201),
        (RegistrationBehaviour::BadRequest, 400),
        (RegistrationBehaviour::TooMany, 429),
        (RegistrationBehaviour::Absent, 404),
    ] {
        let authd = start(|switches| switches.registration = registration);
        assert_eq!(register(&authd).status, status);
        assert_eq!(
            metadata(&authd).get("registration_endpoint").is_some(),
            registration != RegistrationBehaviour::Absent
        );
        assert_eq!(authd.counts().registrations, u64::from(status == 201));
    }
}

#[test]
fn o11_an_expired_or_deleted_client_is_refused() {
    let authd = start(|switches| {
        switches.client_auth = ClientAuthMethod::Post;
        switches.secret_expires_at = 1;
    });
    let client = register(&authd).json();
    assert_eq!(client["client_secret_expires_at"], 1);
    let ask = |id: &str, secret: &str| {
        let fields = [("grant_type", "client_credentials"), ("client_id", id), ("client_secret", secret)];
        form(&format!("{}/token", authd.issuer()), &fields)
    };
    let expired = ask(client["client_id"].as_str().unwrap(), client["client_secret"].as_str().unwrap());
    assert_eq!((expired.status, expired.error().as_str()), (401, "invalid_client"));
    let (id, secret) = authd.registered_client();
    assert_eq!(ask(&id, &secret).status, 200);
    authd.delete_client();
    assert_eq!(ask(&id, &secret).error(), "invalid_client");
    assert_eq!(visit(&authd, &id, "").status, 400);
}

#[test]
fn clients_prove_themselves_in_the_one_way_they_were_given() {
    for auth in [ClientAuthMethod::None, ClientAuthMethod::Basic, ClientAuthMethod::Post] {
        let authd = start(|switches| switches.client_auth = auth);
        let client = register(&authd).json();
        let id = client["client_id"].as_str().unwrap();
        let secret = client["client_secret"].as_str().unwrap_or_default();
        assert_eq!(secret.is_empty(), auth == ClientAuthMethod::None);
        let basic = basic(id, secret);
        let grant = ("grant_type", "client_credentials");
        let token = format!("{}/token", authd.issuer());
        let statuses = [
            form(&token, &[grant, ("client_id", id)]).status,
            try_form(&token, &[grant], &[("Authorization", &basic)]).unwrap().status,
            form(&token, &[grant, ("client_id", id), ("client_secret", secret)]).status,
        ];
        let expected = [ClientAuthMethod::None, ClientAuthMethod::Basic, ClientAuthMethod::Post];
        assert_eq!(statuses.map(|status| status == 200), expected.map(|way| way == auth), "{auth:?}");
    }
}

/// Id and secret, percent-encoded each, in Base64.
fn basic(id: &str, secret: &str) -> String {
    use base64::Engine as _;
    let [id, secret] = [id, secret].map(|text| written(&[("x", text)])[2..].to_owned());
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{id}:{secret}")))
}

#[test]
fn a_document_may_be_a_client_where_that_is_supported() {
    let id = "https://client.example/about.json";
    for supported in [true, false] {
        let authd = start(|switches| switches.client_documents = supported);
        assert_eq!(metadata(&authd).get("client_id_metadata_document_supported").is_some(), supported);
        assert_eq!(visit(&authd, id, "").status, if supported { 302 } else { 400 });
    }
}

#[test]
fn t41_the_iss_of_the_page_is_as_it_is_told() {
    for (iss, advertised) in [
        (IssParameter::Right, true),
        (IssParameter::Wrong, true),
        (IssParameter::Slash, true),
        (IssParameter::Absent, false),
    ] {
        let authd = start(|switches| {
            switches.iss = iss;
            switches.iss_advertised = advertised;
        });
        let client = register(&authd).json()["client_id"].as_str().unwrap().to_owned();
        let back = visit(&authd, &client, "");
        let said = back.led_to("iss").map(|iss| iss.replace("%3A", ":").replace("%2F", "/"));
        let expected = match iss {
            IssParameter::Right => Some(authd.issuer()),
            IssParameter::Wrong => Some("https://elsewhere.example".to_owned()),
            IssParameter::Slash => Some(format!("{}/", authd.issuer())),
            IssParameter::Absent => None,
        };
        assert_eq!(said, expected);
        assert_eq!(back.led_to("state").as_deref(), Some("xyz"));
        let says_so = metadata(&authd).get("authorization_response_iss_parameter_supported").is_some();
        assert_eq!(says_so, advertised);
    }
}

#[test]
fn o08_the_page_denies_stays_or_never_answers() {
    let authd = start(|switches| switches.page = LoginPageBehaviour::Denied);
    let client = register(&authd).json()["client_id"].as_str().unwrap().to_owned();
    assert_eq!(visit(&authd, &client, "").led_to("error").as_deref(), Some("access_denied"));
    authd.change_switches(|switches| switches.page = LoginPageBehaviour::Stays);
    assert_eq!(visit(&authd, &client, "").status, 200);
    assert_eq!(wharf_testkit::authd::visit(&page(&authd, &client, "")).unwrap(), None);
    authd.change_switches(|switches| switches.page = LoginPageBehaviour::Never);
    let mut silent = send("GET", &page(&authd, &client, ""), &[], "");
    // It has arrived, and is still silent when the server ends.
    crate::wait(authd.wait_for_request(|seen| seen.path == "/authorize" && seen.field("state") == Some("xyz")));
    assert_eq!(authd.counts().authorizations, 0);
    drop(authd);
    assert!(crate::client::receive(&mut silent).is_none());
}

#[test]
fn the_page_insists_on_what_it_needs() {
    let authd = start(|_| {});
    let client = register(&authd).json()["client_id"].as_str().unwrap().to_owned();
    let good = page(&authd, &client, "");
    assert!(get(&good).led_to("code").is_some());
    assert!(wharf_testkit::authd::visit(&good).unwrap().unwrap().starts_with(CALLBACK));
    let callback = written(&[("redirect_uri", CALLBACK)]);
    let any_port = written(&[("redirect_uri", "http://127.0.0.1:12345/back")]);
    assert!(get(&good.replace(&callback, &any_port)).led_to("code").is_some());
    let elsewhere = written(&[("redirect_uri", "http://127.0.0.1:9/elsewhere")]);
    assert_eq!(get(&good.replace(&callback, &elsewhere)).status, 400);
    for (name, value) in
        [("code_challenge_method", "plain"), ("resource", "https://other.example/"), ("response_type", "token")]
    {
        let spoilt = format!("{}&{}", without(&good, name), written(&[(name, value)]));
        assert_eq!(get(&spoilt).led_to("error").as_deref(), Some("invalid_request"), "{name}");
    }
}

/// The address without one of its fields.
fn without(url: &str, name: &str) -> String {
    let (path, query) = url.split_once('?').unwrap();
    let rest: Vec<_> = query.split('&').filter(|pair| !pair.starts_with(&format!("{name}="))).collect();
    format!("{path}?{}", rest.join("&"))
}

#[test]
fn codes_are_good_once_and_for_whoever_has_the_verifier() {
    let authd = start(|_| {});
    let client = register(&authd).json()["client_id"].as_str().unwrap().to_owned();
    let code = visit(&authd, &client, "").led_to("code").unwrap();
    let fields = [("grant_type", "authorization_code"), ("code", &code), ("client_id", &client)];
    let more = [("redirect_uri", CALLBACK), ("code_verifier", "another")];
    let token = format!("{}/token", authd.issuer());
    assert_eq!(form(&token, &[&fields[..], &more[..]].concat()).error(), "invalid_grant");
    let code = visit(&authd, &client, "").led_to("code").unwrap();
    assert_eq!(exchange(&authd, &client, &code).unwrap().status, 200);
    assert_eq!(exchange(&authd, &client, &code).unwrap().error(), "invalid_grant");
    assert_eq!(authd.counts().authorizations, 2);
}

#[test]
fn t45_a_moved_issuer_knows_nobody_and_counts_strays() {
    let authd = start(|_| {});
    let first = log_in(&authd, "");
    let before = authd.issuer();
    authd.move_issuer();
    assert_ne!(authd.issuer(), before);
    assert_eq!(status_with(&authd, "tools/list", &first.access), 401);
    assert_eq!(visit(&authd, &first.client, "").status, 400);
    assert_eq!(authd.counts().strays, 1);
    let second = log_in(&authd, "");
    assert_eq!(status_with(&authd, "tools/list", &second.access), 200);
    assert_eq!(crate::client::refresh(&authd, &second.client, &first.refresh).unwrap().error(), "invalid_grant");
    assert_eq!(authd.counts().strays, 2);
}

#[test]
fn everything_that_arrives_is_recorded_and_every_secret_known() {
    let authd = start(|switches| switches.expires_in = json!(5));
    let login = log_in(&authd, "a b");
    let seen = authd.requests();
    let paths: Vec<_> = seen.iter().map(|seen| format!("{} {}", seen.method, seen.path)).collect();
    assert_eq!(paths, ["POST /register", "GET /authorize", "POST /token"]);
    assert_eq!(seen[0].json["client_name"], "test");
    assert_eq!(seen[1].field("scope"), Some("a b"));
    assert_eq!(seen[2].field("code_verifier"), Some(crate::client::VERIFIER));
    assert!(seen[2].is_grant("authorization_code") && seen[2].header("host").is_some());
    let secrets = authd.secrets();
    assert!([&login.access, &login.refresh].into_iter().all(|secret| secrets.contains(secret)));
}
