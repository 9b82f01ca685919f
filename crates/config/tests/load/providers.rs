//! How models are reached: what may be said, where it counts, and what is said about what is wrong.

use wharf_config::{
    KNOWN_PROVIDERS, ProviderEffort, ProviderFormat, ProviderSettings, ResolveContext, ResolvedProvider,
};

use crate::support::{ConfigHome, told};

/// Each text is what stands in the braces of `providers`, and what is told of it.
#[test]
fn invalid_provider_has_position_and_affects_only_itself() {
    for (providers, expected) in [
        (r#""anthropic": {}"#, &[][..]),
        (r#""own": {"format": "chat", "baseUrl": "http://h", "_note": 1}"#, &[]),
        (r#""own": {"format": "chat"}"#, &["missing_key 2:1"]),
        (r#""own": {}"#, &["missing_key 2:1", "missing_key 2:1"]),
        (r#""own": 7"#, &["wrong_type 2:8"]),
        (r#""a/b": {"format": "chat", "baseUrl": "http://h"}"#, &["bad_id 2:1"]),
        (r#""openai": {"format": "grpc"}"#, &["wrong_type 2:22"]),
        (r#""openai": {"effort": "max"}"#, &["wrong_type 2:22"]),
        (r#""openai": {"maxTokens": 0}"#, &["wrong_type 2:25"]),
        (r#""openai": {"maxTokens": 5000000000}"#, &["wrong_type 2:25"]),
        (r#""openai": {"contextTokens": 1.5}"#, &["wrong_type 2:29"]),
        (r#""openai": {"apiKey": ["k"]}"#, &["wrong_type 2:22"]),
        (r#""openai": {"apikey": "k"}"#, &["unknown_key 2:12"]),
        (r#""openai": {"headers": {"X-A": "1", "x-a": "2"}}"#, &["duplicate_key 2:36"]),
        (r#""openai": {}, "openai": {}"#, &["duplicate_key 2:15"]),
    ] {
        let home = ConfigHome::new();
        home.write(
            "home/config.json",
            &format!("{{\"providers\": {{\n{providers},\n\"ollama\": {{\"model\": \"m\"}}}}}}"),
        );
        let config = home.load();
        assert_eq!(told(&config.problems), expected, "{providers}: {:#?}", config.problems);
        let ollama = config.settings.providers.iter().find(|(name, _)| name == "ollama");
        assert!(ollama.is_some_and(|(_, provider)| provider.is_ok()), "{providers}");
    }
}

#[test]
fn similar_provider_name_is_suggested() {
    let home = ConfigHome::new();
    home.write("home/config.json", r#"{"providers": {"antropic": {}}}"#);
    let config = home.load();
    let fixes: Vec<_> = config.problems.iter().filter_map(|problem| problem.fix.as_deref()).collect();
    assert_eq!(fixes, ["did you mean `anthropic`?"; 2]);
}

/// A provider of the user's file, as it is found.
fn provider(home: &ConfigHome, name: &str) -> ProviderSettings {
    let config = home.load();
    let found = config.settings.providers.iter().find(|(other, _)| other == name);
    found.unwrap().1.clone().unwrap()
}

fn resolved(home: &ConfigHome, name: &str) -> Result<ResolvedProvider, String> {
    let settings = home.load().settings;
    let secrets = |name: &str| if name == "kept" { Ok("hush".to_owned()) } else { Err("nobody keeps it".to_owned()) };
    let with = ResolveContext { around: &home.around, settings: &settings, secrets: &secrets, places: &home.places };
    provider(home, name).resolve(&with).map_err(|problem| told(&[problem]).remove(0))
}

#[test]
fn provider_keys_are_typed_and_expanded() {
    let mut home = ConfigHome::new();
    home.set("PORT", "8080");
    home.write(
        "home/config.json",
        r#"{"model": "own/large", "providers": {"own": {
            "format": "responses", "baseUrl": "http://127.0.0.1:${PORT}/v1", "apiKey": "${secret:kept}",
            "headers": {"X-Team": "${TEAM:-blue}"}, "maxTokens": 99, "contextTokens": 4096, "toolTokens": 0, "effort": "low",
            "model": "small", "proxy": "http://p:1", "ca": ["ca.pem"]}}}"#,
    );
    assert_eq!(home.load().settings.model.as_deref(), Some("own/large"));
    let own = provider(&home, "own");
    assert_eq!((own.format, own.effort), (Some(ProviderFormat::Responses), Some(ProviderEffort::Low)));
    assert_eq!((own.max_tokens, own.context_tokens, own.model.as_deref()), (Some(99), Some(4096), Some("small")));
    assert_eq!(own.tool_tokens, Some(0));
    let found = resolved(&home, "own").unwrap();
    assert_eq!(found.base_url.unwrap().as_str(), "http://127.0.0.1:8080/v1");
    assert_eq!((found.api_key.unwrap().reveal(), found.proxy.unwrap().reveal()), ("hush", "http://p:1"));
    assert_eq!((found.headers[0].0.as_str(), found.headers[0].1.reveal()), ("X-Team", "blue"));
    assert_eq!(found.ca, [home.path("home/ca.pem")]);
}

#[test]
fn unresolved_provider_reference_has_position() {
    for (own, expected) in [
        (r#""baseUrl": "http://h", "apiKey": "${NONE}""#, "unset_variable 1:73"),
        (r#""baseUrl": "http://h", "apiKey": "${secret:other}""#, "no_secret 1:73"),
        (r#""baseUrl": "http://h", "apiKey": "${input:x}""#, "bad_reference 1:73"),
        (r#""baseUrl": "h:hush", "apiKey": "k""#, "bad_url 1:51"),
        (r#""baseUrl": "ftp://h""#, "bad_url 1:51"),
    ] {
        let home = ConfigHome::new();
        home.write("home/config.json", &format!(r#"{{"providers": {{"x": {{"format": "chat", {own}}}}}}}"#));
        assert_eq!(resolved(&home, "x").unwrap_err(), expected, "{own}");
    }
    let home = ConfigHome::new();
    let text = r#"{"expandEnv": false, "providers": {"openai": {"apiKey": "${X}"}}}"#;
    home.write("home/config.json", text);
    assert_eq!(resolved(&home, "openai").unwrap().api_key.unwrap().reveal(), "${X}");
}

#[test]
fn api_key_is_redacted_and_project_providers_ignored() {
    let mut home = ConfigHome::new();
    let own =
        |key: &str| format!(r#"{{"providers": {{"openai": {{"apiKey": "{key}", "headers": {{"A": "{key}"}}}}}}}}"#);
    home.write("home/config.json", &own("hush"));
    home.write("project/.wharf/config.json", &own("theirs"));
    let config = home.load();
    assert_eq!(told(&config.problems), ["not_a_projects 1:2"]);
    assert!(!format!("{config:?}").contains("hush"));
    assert_eq!(resolved(&home, "openai").unwrap().api_key.unwrap().reveal(), "hush");
    home.write("team.json", &own("team"));
    home.places.flags = vec![home.path("team.json")];
    assert_eq!(resolved(&home, "openai").unwrap().api_key.unwrap().reveal(), "team");
    assert_eq!(home.load().settings.providers.len(), 1);
}

#[test]
fn known_providers_have_valid_defaults() {
    for known in KNOWN_PROVIDERS {
        assert!(url::Url::parse(known.base_url).is_ok(), "{}", known.name);
        assert!(u64::from(known.max_tokens) < known.context_tokens, "{}", known.name);
    }
}
