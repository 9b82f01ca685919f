//! Where the documents are, and what is wrong with them.

use serde_json::json;
use wharf_testkit::authd::{Authd, DocumentDefect, IssuerMetadataLocation, ListenerSite, MetadataLocation, Resource};

use crate::client::{ask, get};
use crate::start;

/// The protected server's own.
fn origin(authd: &Authd) -> String {
    authd.server_url().strip_suffix("/mcp").unwrap().to_owned()
}

#[test]
fn the_description_is_where_the_switch_says() {
    let places = ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"];
    let cases = [
        (MetadataLocation::Header, true, [404, 404]),
        (MetadataLocation::Path, false, [200, 404]),
        (MetadataLocation::Root, false, [404, 200]),
        (MetadataLocation::Absent, false, [404, 404]),
    ];
    for (description, in_header, expected) in cases {
        let authd = start(|switches| switches.description = description);
        assert_eq!(places.map(|place| get(&format!("{}{place}", origin(&authd))).status), expected, "{description:?}");
        let refusal = ask(&authd, "tools/list", &[]);
        let challenge = refusal.header("www-authenticate").unwrap();
        let named = challenge.split("resource_metadata=\"").nth(1).map(|rest| rest.trim_end_matches('"'));
        assert_eq!(named.is_some(), in_header, "{challenge}");
        if let Some(named) = named {
            assert_eq!(get(named).json()["resource"], authd.server_url());
        }
    }
}

#[test]
fn the_description_names_resource_scopes_and_issuer() {
    for resource in [Resource::Exact, Resource::Origin, Resource::Foreign] {
        let authd = start(|switches| {
            switches.resource = resource;
            switches.description = MetadataLocation::Root;
            switches.scopes_supported = vec!["a".to_owned(), "b".to_owned()];
        });
        let document = get(&format!("{}/.well-known/oauth-protected-resource", origin(&authd))).json();
        let expected = match resource {
            Resource::Exact => authd.server_url(),
            Resource::Origin => origin(&authd),
            Resource::Foreign => "https://elsewhere.example/mcp".to_owned(),
        };
        assert_eq!(document["resource"], expected);
        assert_eq!(document["scopes_supported"], json!(["a", "b"]));
        assert_eq!(document["authorization_servers"], json!([authd.issuer()]));
    }
}

#[test]
fn metadata_is_where_the_switch_says() {
    let cases = [
        (IssuerMetadataLocation::Oauth, "", "/.well-known/oauth-authorization-server"),
        (IssuerMetadataLocation::OpenIdInserted, "", "/.well-known/openid-configuration"),
        (IssuerMetadataLocation::Oauth, "/t", "/.well-known/oauth-authorization-server/t"),
        (IssuerMetadataLocation::OpenIdInserted, "/t", "/.well-known/openid-configuration/t"),
        (IssuerMetadataLocation::OpenIdAppended, "/t", "/t/.well-known/openid-configuration"),
    ];
    for (metadata, path, place) in cases {
        let authd = start(|switches| {
            switches.metadata = metadata;
            switches.issuer_path = path.to_owned();
        });
        let issuer = authd.issuer();
        let origin = issuer.strip_suffix(path).unwrap();
        let places = cases.map(|(_, _, place)| place);
        let found: Vec<_> = places.into_iter().filter(|place| get(&format!("{origin}{place}")).status == 200).collect();
        assert_eq!(found, [place]);
        let document = get(&format!("{origin}{place}")).json();
        assert_eq!(document["issuer"], issuer);
        assert_eq!(document["token_endpoint"], format!("{issuer}/token"));
    }
    let absent = start(|switches| switches.metadata = IssuerMetadataLocation::Absent);
    assert_eq!(get(&format!("{}/.well-known/oauth-authorization-server", absent.issuer())).status, 404);
}

#[test]
fn o07_documents_can_be_spoilt() {
    let read = |fault: DocumentDefect| {
        let authd = start(|switches| switches.metadata_fault = fault);
        let reply = get(&format!("{}/.well-known/oauth-authorization-server", authd.issuer()));
        (authd, reply)
    };
    assert_eq!(read(DocumentDefect::WrongIssuer).1.json()["issuer"], "https://elsewhere.example");
    assert!(read(DocumentDefect::Html).1.body.starts_with("<!doctype"));
    let without = read(DocumentDefect::Without("code_challenge_methods_supported".to_owned())).1.json();
    assert!(without.get("code_challenge_methods_supported").is_none() && without.get("issuer").is_some());
    let with = read(DocumentDefect::With("code_challenge_methods_supported".to_owned(), json!(["plain"]))).1.json();
    assert_eq!(with["code_challenge_methods_supported"], json!(["plain"]));
    assert_eq!(read(DocumentDefect::Deep).1.body.len(), 100_000);
    assert!(read(DocumentDefect::Huge).1.body.len() > 64 << 20);
    let (authd, redirect) = read(DocumentDefect::Redirect);
    assert_eq!(redirect.status, 302);
    assert_eq!(get(redirect.header("location").unwrap()).json()["issuer"], authd.issuer());
    assert_eq!(authd.requests().last().unwrap().site, ListenerSite::Second);
}

#[test]
fn the_description_can_be_spoilt_too() {
    let authd = start(|switches| {
        switches.description = MetadataLocation::Root;
        switches.description_fault = DocumentDefect::Without("authorization_servers".to_owned());
    });
    let document = get(&format!("{}/.well-known/oauth-protected-resource", origin(&authd))).json();
    assert!(document.get("authorization_servers").is_none() && document.get("resource").is_some());
}

#[test]
fn both_may_be_at_one_origin() {
    let authd = start(|switches| {
        switches.one_origin = true;
        switches.description = MetadataLocation::Absent;
    });
    assert_eq!(authd.issuer(), origin(&authd));
    let login = crate::client::log_in(&authd, "");
    assert_eq!(crate::client::status_with(&authd, "tools/list", &login.access), 200);
    assert!(authd.requests().iter().all(|seen| seen.site == ListenerSite::Server));
}
