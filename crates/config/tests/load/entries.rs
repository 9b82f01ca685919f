//! What an entry may say, and what is said about one that is wrong.

use wharf_config::ReferenceTarget;
use wharf_spec::{
    AssertionSource, AuthSettings, DpopMode, EnvValue, HttpTransport, Secret, ServerSharing, ServerSpec, TokenGrant,
};

use crate::support::{ConfigHome, told};

/// Each text is what stands in the braces of an entry `x`, and what is told of it.
#[test]
fn invalid_entry_has_position_and_affects_only_itself() {
    for (entry, expected) in [
        (r#""args": []"#, &["no_transport 2:9 x"][..]),
        (r#""type": "stdio""#, &["missing_key 2:9 x"]),
        (r#""type": "http", "headers": {}"#, &["missing_key 2:9 x"]),
        (r#""command": "a", "url": "http://h/""#, &["two_transports 2:26 x"]),
        (r#""command": """#, &["missing_key 2:21 x"]),
        (r#""command": ["a", "b"]"#, &["wrong_type 2:21 x", "no_transport 2:9 x"]),
        (r#""command": "a", "args": "b""#, &["wrong_type 2:34 x"]),
        (r#""command": "a", "args": ["b", 1]"#, &["wrong_type 2:40 x"]),
        (r#""command": "a", "env": {"A": 1}"#, &["wrong_type 2:39 x"]),
        (r#""command": "a", "timeout": 1.5"#, &["wrong_type 2:37 x"]),
        (r#""command": "a", "timeout": 30"#, &["short_timeout 2:37 x"]),
        (r#""command": "a", "enabled": "no""#, &["wrong_type 2:37 x"]),
        (r#""command": "a", "comand": "b""#, &["unknown_key 2:26 x"]),
        (r#""command": "a", "_note": "b", "$x": 1, "description": "d""#, &[]),
        (r#""command": "a", "command": "b""#, &["duplicate_key 2:26 x"]),
        (r#""command": "npx -y thing""#, &["command_line 2:21 x"]),
        (r#""command": "~/bin/thing""#, &["tilde 2:21 x"]),
        (r#""type": "claudeai-proxy", "url": "http://h/""#, &["foreign_type 2:18 x"]),
        (r#""type": "sdk""#, &["foreign_type 2:18 x"]),
        (r#""type": "ws", "url": "ws://h/""#, &["unknown_type 2:18 x"]),
        (r#""url": "http://h/", "oauth": {"client_id": 7}"#, &["wrong_type 2:53 x"]),
        (r#""url": "http://h/", "oauth": {"clientid": "7"}"#, &["unknown_key 2:40 x"]),
        (r#""url": "http://h/", "oauth": {"callbackPort": 65536}"#, &["wrong_type 2:56 x"]),
        (r#""url": "http://h/", "oauth": {"grant": "password"}"#, &["wrong_type 2:49 x"]),
        (r#""command": "a", "reconnect": {"attempts": 0, "maxMS": 1}"#, &["unknown_key 2:55 x", "wrong_type 2:52 x"]),
        (r#""command": null, "command": "b""#, &["duplicate_key 2:27 x", "no_transport 2:9 x"]),
        (r#""command": "a", "env": {"A": "1", "A": "2"}"#, &["duplicate_key 2:44 x"]),
        (r#""command": "a", "env": {"A": "1", "a": "2"}"#, &[]),
        (r#""command": "a", "toolTimeouts": {"t": 1000, "t": 2000}"#, &["duplicate_key 2:54 x"]),
        (r#""url": "http://h/", "headers": {"X-A": "1", "x-a": "2"}"#, &["duplicate_key 2:54 x"]),
        (r#""command": "a", "$x": 1, "$x": 2, "_note": "", "_note": """#, &["duplicate_key 2:35 x"]),
        (r#""command": "a", "env": {"A=B": "1", "": "2"}"#, &["bad_variable 2:34 x", "bad_variable 2:46 x"]),
        (r#""command": "a", "envVars": ["A=B"]"#, &["bad_variable 2:38 x"]),
        (
            r#""command": "a\u0000", "args": ["\u0000"], "env": {"A": "\u0000"}"#,
            &["nul 2:21 x", "nul 2:41 x", "nul 2:65 x"],
        ),
    ] {
        let home = ConfigHome::new();
        home.write(
            "home/config.json",
            &format!("{{\"mcpServers\": {{\n   \"x\": {{{entry}}},\n\"good\": {{\"command\": \"a\"}}}}}}"),
        );
        let config = home.load();
        assert_eq!(told(&config.problems), expected, "{entry}: {:#?}", config.problems);
        assert!(config.server("good").unwrap().described.is_ok());
    }
}

#[test]
fn problem_has_position_and_fix() {
    let home = ConfigHome::new();
    let file = home.write("home/config.json", "{\"mcpServers\": {\"x\": {\"type\": \"stdio\", \"comand\": \"a\"}}}");
    let problems = home.load().problems;
    let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let file = file.display();
    assert_eq!(
        shown,
        [format!("{file}:1:40: unknown key `comand`"), format!("{file}:1:22: missing `command` in stdio server `x`")]
    );
    assert_eq!(problems[0].fix.as_deref(), Some("did you mean `command`?"));
}

#[test]
fn profile_has_rules_a_surface_and_a_waiting_time() {
    let home = ConfigHome::new();
    let rule = r#"{"tool": "mcp__git__*", "action": "allow"}"#;
    home.write(
        "home/config.json",
        &format!(
            r#"{{"serve": {{"waitForAnswerMs": 5000}}, "profiles": {{
            "ci": {{"rules": [{rule}], "surface": "search", "waitForAnswerMs": 0}},
            "odd": {{"rules": [{rule}, {{"tool": "mcp__*"}}]}}}}}}"#
        ),
    );
    let settings = home.load().settings;
    assert_eq!(settings.wait_for_answer.unwrap().as_secs(), 5);
    assert!(settings.rules.is_empty(), "rules of a profile are not for all");
    let profile = |name: &str| settings.profiles.iter().find(|(known, _)| known == name).unwrap().1.clone();
    let ci = profile("ci").unwrap();
    assert_eq!((ci.rules.len(), ci.rules[0].tool.as_str()), (1, "mcp__git__*"));
    assert!(ci.searches_tools && ci.wait_for_answer.unwrap().is_zero());
    assert!(profile("odd").unwrap_err()[0].text.contains("a rule must be"), "one bad rule costs the profile");
}

#[test]
fn every_entry_key_is_applied() {
    let mut home = ConfigHome::new();
    home.set("TOKEN", "hush");
    home.write("home/vars", "FROM_FILE=1\nA=lost\n");
    let entry = r#"{"mcpServers": {"x": {
        "command": "${TOOL:-run}", "args": ["--key", "${TOKEN}", "$${x}"], "cwd": "sub", "env": {"A": "${TOKEN}"},
        "envVars": ["HANDED"], "envFile": "vars", "trust": true, "lazy": true, "includeTools": ["a*"], "excludeTools": ["b"],
        "toolTimeouts": {"slow*": 90000}, "startupTimeoutMs": 5000, "maxConcurrent": 1, "reconnect": false,
        "idleStopMs": 100, "cacheTtlMs": 200, "request_timeout_ms": 1234, "sharing": "session", "maxInstances": 7}}}"#;
    home.write("home/config.json", entry);
    assert!(home.load().problems.is_empty(), "{:?}", home.load().problems);
    let entry = home.resolve("x").unwrap();
    let ServerSpec::Stdio(spec) = &entry.spec else { panic!("{entry:?}") };
    assert_eq!(spec.program, "run");
    assert_eq!(spec.args, ["--key", "hush", "${x}"]);
    assert_eq!(spec.hidden.iter().map(|secret| secret.reveal()).collect::<Vec<_>>(), ["hush"]);
    assert_eq!(spec.cwd.as_deref(), Some(home.path("home/sub").as_path()));
    let env: Vec<_> = spec
        .env
        .iter()
        .map(|(name, value)| match value {
            EnvValue::Secret(secret) => (name.to_str().unwrap(), secret.reveal()),
            EnvValue::Inherit => (name.to_str().unwrap(), "(handed down)"),
            EnvValue::Plain(_) => panic!("shown"),
        })
        .collect();
    assert_eq!(env, [("HANDED", "(handed down)"), ("FROM_FILE", "1"), ("A", "hush")]);
    let settings = &entry.settings;
    assert!(settings.trust && settings.lazy && settings.max_concurrent == Some(1));
    let instances = settings.instances;
    assert_eq!((instances.sharing, instances.max_instances), (ServerSharing::Session, Some(7)));
    assert_eq!(settings.timeout.unwrap().as_millis(), 1234);
    assert_eq!(settings.reconnect, wharf_spec::ReconnectPolicy::Off);
}

#[test]
fn transport_is_inferred_from_all_spellings() {
    for (entry, expected) in [
        (r#""url": "https://h/mcp""#, HttpTransport::Automatic),
        (r#""httpUrl": "https://h/mcp""#, HttpTransport::Streamable),
        (r#""url": "https://h/mcp", "type": "http""#, HttpTransport::Streamable),
        (r#""url": "https://h/mcp", "transport": "streamable-http""#, HttpTransport::Streamable),
        (r#""url": "https://h/mcp", "type": "sse""#, HttpTransport::Sse),
    ] {
        let home = ConfigHome::new();
        home.write("home/config.json", &format!("{{\"mcpServers\": {{\"x\": {{{entry}}}}}}}"));
        let ServerSpec::Http(spec) = home.resolve("x").unwrap().spec else { panic!("{entry}") };
        assert_eq!(spec.form, expected, "{entry}");
    }
}

/// C07: what is missing is named, and never what is there.
#[test]
fn unresolvable_entry_is_reported_without_its_values() {
    for (entry, expected) in [
        (r#"{"command": "a", "args": ["${NONE}"]}"#, "unset_variable 1:48 x"),
        (r#"{"command": "a", "env": {"A": "${secret:gone}"}}"#, "no_secret 1:52 x"),
        (r#"{"command": "a", "envFile": "none"}"#, "env_file 1:50 x"),
        (r#"{"url": "http://h/", "oauth": {"client_id": "${NONE}"}}"#, "unset_variable 1:66 x"),
        (r#"{"url": "http://h/", "oauth": {"client_secret": "${secret:gone}"}}"#, "no_secret 1:70 x"),
        (r#"{"url": "http://h/", "oauth": {"grant": "client_credentials"}}"#, "incomplete_login 1:62 x"),
        (r#"{"url": "http://h/", "oauth": {"grant": "workload"}}"#, "incomplete_login 1:62 x"),
        (r#"{"url": "http://h/", "oauth": {"grant": "enterprise", "id_token": "hush"}}"#, "incomplete_login 1:62 x"),
        (
            r#"{"url": "http://h/", "oauth": {"grant": "client_credentials", "private_key_file": "none"}}"#,
            "key_file 1:104 x",
        ),
        (r#"{"url": "hush"}"#, "bad_url 1:30 x"),
        (r#"{"url": "ftp://hush/"}"#, "bad_url 1:30 x"),
    ] {
        let home = ConfigHome::new();
        home.write("home/config.json", &format!("{{\"mcpServers\": {{\"x\": {entry}}}}}"));
        let problems = home.resolve("x").unwrap_err();
        assert_eq!(told(&problems), [expected]);
        assert!(!problems[0].to_string().contains("hush"));
    }
    let home = ConfigHome::new();
    home.write("home/config.json", r#"{"expandEnv": false, "mcpServers": {"x": {"command": "${NONE}"}}}"#);
    let ServerSpec::Stdio(spec) = home.resolve("x").unwrap().spec else { panic!("stdio") };
    assert_eq!(spec.program, "${NONE}");
}

/// C02 and R3.4.
#[test]
fn duplicate_id_names_both_lines() {
    let home = ConfigHome::new();
    home.write("home/config.json", "{\"mcpServers\": {\n\"x\": {\"command\": \"a\"},\n\"x\": {\"command\": \"b\"}, \"X\": {\"command\": \"c\"}, \"a b\": {}}}");
    let problems = home.load().problems;
    assert_eq!(told(&problems), ["alike 3:24 X", "bad_id 3:47 a b", "duplicate_id 3:1 x"]);
    assert!(problems[2].text.contains("on line 2 and on line 3"), "{}", problems[2]);
    assert!(home.resolve("x").is_err());
}

#[test]
fn references_in_oauth_are_listed() {
    let home = ConfigHome::new();
    let oauth = r#"{"client_id": "${ID}", "client_secret": "${secret:pass}"}"#;
    home.write("home/config.json", &format!(r#"{{"mcpServers": {{"x": {{"url": "http://h/", "oauth": {oauth}}}}}}}"#));
    let config = home.load();
    let references = config.server("x").unwrap().described.as_ref().unwrap().references();
    let found: Vec<_> = references.into_iter().map(|reference| reference.to).collect();
    let id = ReferenceTarget::Variable { name: "ID".to_owned(), has_default: false };
    assert_eq!(found, [id, ReferenceTarget::Secret("pass".to_owned())]);
}

#[track_caller]
fn check_login(oauth: &str, expected: impl FnOnce(&mut AuthSettings)) {
    let home = ConfigHome::new();
    home.write("key.pem", "the key");
    home.write("home/config.json", &format!(r#"{{"mcpServers": {{"x": {{"url": "http://h/", "oauth": {oauth}}}}}}}"#));
    let ServerSpec::Http(spec) = home.resolve("x").unwrap().spec else { panic!("{oauth}") };
    let mut wanted = AuthSettings::default();
    expected(&mut wanted);
    assert_eq!(*spec.login, wanted, "{oauth}");
}

#[test]
fn oauth_settings_are_resolved() {
    let secret = |text: &str| Secret::new(text);
    check_login("{}", |_| ());
    check_login(r#"{"clientId": "me", "client_secret": "hush", "callbackPort": 7777, "dpop": "never"}"#, |login| {
        login.client_id = Some("me".to_owned());
        login.client_secret = Some(secret("hush"));
        login.callback_port = Some(7777);
        login.dpop = DpopMode::Never;
    });
    let pages = r#"{"authorization_url": "https://a/in", "device_url": "https://a/device", "issuer": "https://a/"}"#;
    check_login(pages, |login| {
        login.authorization_url = Some("https://a/in".to_owned());
        login.device_url = Some("https://a/device".to_owned());
        login.issuer = Some("https://a/".to_owned());
    });
    check_login(r#"{"grant": "client_credentials", "client_secret": "hush"}"#, |login| {
        login.client_secret = Some(secret("hush"));
        login.grant = TokenGrant::ClientSecret;
    });
    let key = r#"{"grant": "client_credentials", "private_key": "hush", "signing_algorithm": "RS256"}"#;
    check_login(key, |login| {
        login.grant = TokenGrant::ClientKey { key: secret("hush"), algorithm: Some("RS256".to_owned()) };
    });
    check_login(r#"{"grant": "workload", "assertion_file": "/run/token"}"#, |login| {
        login.grant = TokenGrant::Workload { assertion: AssertionSource::File("/run/token".into()) };
    });
    let enterprise = r#"{"grant": "enterprise", "idp_token_url": "https://i/", "idp_client_id": "c", "id_token": "t"}"#;
    check_login(enterprise, |login| {
        login.grant = TokenGrant::Enterprise {
            token_url: "https://i/".to_owned(),
            client_id: "c".to_owned(),
            client_secret: None,
            id_token: AssertionSource::Given(secret("t")),
        };
    });
}

#[test]
fn login_pages_of_two_origins_need_a_token_url() {
    let home = ConfigHome::new();
    for (more, is_enough) in [("", false), (r#", "token_url": "https://t/""#, true), (r#", "grant": "person""#, false)]
    {
        let oauth = format!(r#"{{"authorization_url": "https://a/", "device_url": "https://b/"{more}}}"#);
        let entry = format!(r#"{{"mcpServers": {{"x": {{"url": "http://h/", "oauth": {oauth}}}}}}}"#);
        home.write("home/config.json", &entry);
        let problems = home.resolve("x").err().unwrap_or_default();
        let codes: Vec<_> = problems.iter().map(|problem| problem.code).collect();
        assert_eq!(codes, if is_enough { vec![] } else { vec!["incomplete_login"] }, "{oauth}");
        assert!(problems.iter().all(|problem| problem.fix.as_ref().unwrap().contains("`token_url`")));
    }
}

#[test]
fn problems_inside_a_setting_are_reported() {
    let home = ConfigHome::new();
    home.write("home/config.json", r#"{"reconnect": {"attempts": "5", "baseMS": 1}}"#);
    assert_eq!(told(&home.load().problems), ["wrong_type 1:28", "unknown_key 1:33"]);
}
