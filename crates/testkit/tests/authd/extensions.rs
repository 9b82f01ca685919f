//! Proofs of possession, other devices, clients without a person, statements of others.

use serde_json::json;
use wharf_testkit::authd::{
    Authd, ClientAuthMethod, DeviceLoginBehaviour, DeviceLoginOutcome, DpopRequirement, SigningKey,
};

use crate::client::{Reply, ask, form, register, sha256, status_with, try_form};
use crate::start;

/// Asks for tokens as the client that was registered beforehand, with this proof.
fn tokens_with(authd: &Authd, proof: &str) -> Reply {
    let (id, _) = authd.registered_client();
    let fields = [("grant_type", "client_credentials"), ("client_id", id.as_str())];
    let headers: &[_] = if proof.is_empty() { &[] } else { &[("DPoP", proof)] };
    try_form(&format!("{}/token", authd.issuer()), &fields, headers).unwrap()
}

fn claims(url: &str, id: &str) -> serde_json::Value {
    json!({ "htm": "POST", "htu": url, "iat": 1, "jti": id })
}

#[test]
fn tokens_are_bound_to_the_key_of_the_proof() {
    let authd = start(|switches| switches.dpop = DpopRequirement::Required);
    let (key, other) = (SigningKey::new(), SigningKey::new());
    let token_url = format!("{}/token", authd.issuer());
    assert_eq!(tokens_with(&authd, "").error(), "invalid_dpop_proof");
    assert_eq!(tokens_with(&authd, &key.sign_proof(&claims("http://elsewhere/", "0"))).error(), "invalid_dpop_proof");
    let proof = key.sign_proof(&claims(&token_url, "1"));
    let tokens = tokens_with(&authd, &proof).json();
    assert_eq!(tokens["token_type"], "DPoP");
    assert_eq!(tokens_with(&authd, &proof).error(), "invalid_dpop_proof", "a proof is good once");
    let access = tokens["access_token"].as_str().unwrap();
    let status = |key: &SigningKey, id: &str, token: &str, scheme: &str| {
        let mut claims = claims(&authd.server_url(), id);
        claims["ath"] = json!(sha256(token));
        let header = format!("{scheme} {access}");
        ask(&authd, "tools/list", &[("Authorization", &header), ("DPoP", &key.sign_proof(&claims))]).status
    };
    assert_eq!(status(&key, "2", access, "DPoP"), 200);
    assert_eq!(status(&key, "2", access, "DPoP"), 401, "replayed");
    assert_eq!(status(&other, "3", access, "DPoP"), 401, "another key");
    assert_eq!(status(&key, "4", "another", "DPoP"), 401, "about another token");
    assert_eq!(status(&key, "5", access, "Bearer"), 401, "another scheme");
    assert_eq!(status_with(&authd, "tools/list", access), 401, "no proof");
}

#[test]
fn proofs_need_the_nonce_that_was_given_out() {
    let authd = start(|switches| switches.dpop = DpopRequirement::Nonce);
    let key = SigningKey::new();
    let mut claims = claims(&format!("{}/token", authd.issuer()), "1");
    let refusal = tokens_with(&authd, &key.sign_proof(&claims));
    assert_eq!((refusal.status, refusal.error().as_str()), (400, "use_dpop_nonce"));
    claims["nonce"] = json!(refusal.header("dpop-nonce").unwrap());
    assert_eq!(tokens_with(&authd, &key.sign_proof(&claims)).status, 200);
    authd.renew_nonce();
    claims["jti"] = json!("2");
    assert_eq!(tokens_with(&authd, &key.sign_proof(&claims)).error(), "use_dpop_nonce");
    let unproven = ask(&authd, "tools/list", &[]);
    assert!(
        unproven.header("www-authenticate").unwrap().starts_with("DPoP ") && unproven.header("dpop-nonce").is_some()
    );
}

#[test]
fn another_device_goes_as_it_is_told() {
    let waits = ["authorization_pending", "authorization_pending", "slow_down"];
    for (end, last) in [
        (DeviceLoginOutcome::Granted, None),
        (DeviceLoginOutcome::Denied, Some("access_denied")),
        (DeviceLoginOutcome::Expired, Some("expired_token")),
    ] {
        let device = DeviceLoginBehaviour { pending: 2, slow_downs: 1, end, interval: 7 };
        let authd = start(|switches| switches.device = Some(device));
        let client = register(&authd).json()["client_id"].as_str().unwrap().to_owned();
        let begun = form(&format!("{}/device", authd.issuer()), &[("client_id", &client)]).json();
        assert_eq!(begun["interval"], 7);
        let code = begun["device_code"].as_str().unwrap();
        let grant = "urn:ietf:params:oauth:grant-type:device_code";
        let fields = [("grant_type", grant), ("client_id", client.as_str()), ("device_code", code)];
        let question = || form(&format!("{}/token", authd.issuer()), &fields);
        assert_eq!([0, 1, 2].map(|_| question().error()), waits);
        let answer = question();
        match last {
            None => assert_eq!(status_with(&authd, "tools/list", answer.json()["access_token"].as_str().unwrap()), 200),
            Some(code) => assert_eq!(answer.error(), code),
        }
    }
    let without = start(|_| {});
    assert_eq!(form(&format!("{}/device", without.issuer()), &[]).status, 404);
}

#[test]
fn a_client_signs_for_itself() {
    let authd = start(|switches| switches.client_auth = ClientAuthMethod::Key);
    let (id, _) = authd.registered_client();
    let ask = |key: &SigningKey, audience: &str| {
        let claims = json!({ "iss": id, "sub": id, "aud": audience, "exp": u32::MAX, "jti": "1" });
        let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
        let assertion = key.sign_assertion(&claims);
        let proof = [("client_assertion_type", kind), ("client_assertion", &assertion)];
        let fields = [&[("grant_type", "client_credentials")], &proof[..]].concat();
        form(&format!("{}/token", authd.issuer()), &fields)
    };
    let issuer = authd.issuer();
    assert_eq!(ask(authd.client_key(), &issuer).status, 200);
    assert_eq!(ask(authd.client_key(), &format!("{issuer}/token")).error(), "invalid_client");
    assert_eq!(ask(&SigningKey::new(), &issuer).error(), "invalid_client");
}

#[test]
fn an_identity_provider_vouches_for_a_person() {
    let authd = start(|_| {});
    let (issuer, resource, identity) = (authd.issuer(), authd.resource(), authd.id_token());
    let vouch = |audience: &str, identity: &str| {
        let fields = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
            ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
            ("subject_token", identity),
            ("audience", audience),
            ("resource", &resource),
        ];
        form(&authd.identity_provider_url(), &fields)
    };
    assert_eq!(vouch("https://elsewhere.example", &identity).error(), "invalid_request");
    assert_eq!(vouch(&issuer, "made-up").error(), "invalid_grant");
    let vouched = vouch(&issuer, &identity).json()["access_token"].as_str().unwrap().to_owned();
    let (id, _) = authd.registered_client();
    let bearer = |assertion: &str| {
        let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
        form(&format!("{issuer}/token"), &[("grant_type", grant), ("assertion", assertion), ("client_id", &id)])
    };
    for assertion in [vouched, authd.workload_assertion()] {
        let access = bearer(&assertion).json()["access_token"].as_str().unwrap().to_owned();
        assert_eq!(status_with(&authd, "tools/list", &access), 200);
    }
    assert_eq!(bearer("made-up").error(), "invalid_grant");
}
