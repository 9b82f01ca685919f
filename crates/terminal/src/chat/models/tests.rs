use anstream::ColorChoice;
use wharf_spec::Environment;
use wharf_testkit::test_home::TestHome;

use super::*;
use crate::config_context::ConfigArgs;
use crate::console::{Console, OutputMode};
use crate::failure::{FailureKind, render_failure};

/// Builds the catalog for a configuration and an environment.
fn models(home: &TestHome, settings: &str, variables: &[(&str, &str)]) -> ModelCatalog {
    let file = home.write("config.json", settings);
    let named = [("WHARF_CONFIG", file.to_str().unwrap())];
    let env = named.iter().chain(variables).map(|(name, value)| (name.into(), value.into())).collect();
    let environment = Environment { env, cwd: home.path("project") };
    let console =
        Arc::new(Console::new(OutputMode { json: false, debug: false, info: false, color: ColorChoice::Never }));
    let configuration = Arc::new(ConfigContext::new(ConfigArgs::default(), &environment, console));
    let config = Arc::clone(configuration.config().unwrap());
    ModelCatalog { configuration, config }
}

/// Formats a selected model as `name format url key`.
fn describe(chosen: &SelectedModel) -> String {
    let ModelProvider { format, base_url, key, .. } = chosen.model.provider();
    let key = key.as_ref().map_or("-", Secret::reveal);
    format!("{} {format} {base_url} {key}", chosen.name)
}

async fn check(settings: &str, variables: &[(&str, &str)], name: Option<&str>, expected: Result<&str, &str>) {
    let home = TestHome::new();
    let models = models(&home, settings, variables);
    let (called, found) = (models.display_name(name), models.open_model(name).await);
    if let Ok(chosen) = &found {
        assert_eq!(called.as_ref(), Some(&chosen.name));
        assert_eq!(models.context_size(name), Some(chosen.limits.context));
    }
    let found = found.map(|chosen| describe(&chosen)).map_err(|failure| {
        assert_eq!(failure.kind, FailureKind::Usage);
        render_failure(&failure)
    });
    match (found, expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected),
        (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
        (found, expected) => panic!("{found:?} and not {expected:?}"),
    }
}

const KEYS: &[(&str, &str)] = &[("ANTHROPIC_API_KEY", "a-1"), ("OPENAI_API_KEY", "o-1")];
const OWN: &str = r#"{"providers": {"own": {"format": "chat", "baseUrl": "http://10.0.0.7:9/v1", "model": "small"}}}"#;
const SONNET: &str = "anthropic/claude-sonnet-5 anthropic https://api.anthropic.com/ a-1";
const GPT: &str = "openai/gpt-5.6 responses https://api.openai.com/ o-1";

#[tokio::test]
async fn flag_overrides_environment_overrides_settings() {
    check("{}", KEYS, None, Ok(SONNET)).await;
    check("{}", &KEYS[1..], None, Ok(GPT)).await;
    check(r#"{"model": "openai"}"#, KEYS, None, Ok(GPT)).await;
    let variable = &[KEYS[0], KEYS[1], ("WHARF_MODEL", "anthropic")];
    check(r#"{"model": "openai"}"#, variable, None, Ok(SONNET)).await;
    check(r#"{"model": "openai"}"#, variable, Some("openai/gpt-5.6"), Ok(GPT)).await;
    check(OWN, KEYS, None, Ok("own/small chat http://10.0.0.7:9/v1 -")).await;
}

#[tokio::test]
async fn model_name_is_a_provider_a_model_or_both() {
    for (name, expected) in [
        ("ollama", "ollama/gpt-oss:20b chat http://127.0.0.1:11434/ -"),
        ("ollama/hf.co/some/model:q4", "ollama/hf.co/some/model:q4 chat http://127.0.0.1:11434/ -"),
        ("llama/", "llama/default chat http://127.0.0.1:8080/ -"),
        ("openai-chat/gpt-5.4", "openai-chat/gpt-5.4 chat https://api.openai.com/ o-1"),
        ("claude-opus-5", "anthropic/claude-opus-5 anthropic https://api.anthropic.com/ a-1"),
        ("anthropic/vendor/model", "anthropic/vendor/model anthropic https://api.anthropic.com/ a-1"),
    ] {
        check("{}", KEYS, Some(name), Ok(expected)).await;
    }
    check(r#"{"model": "openai/x"}"#, KEYS, Some("y"), Ok("openai/y responses https://api.openai.com/ o-1")).await;
}

/// F13: the default provider must not get the request of a misspelt one.
#[tokio::test]
async fn unknown_provider_is_an_error_with_suggestions() {
    check("{}", KEYS, Some("antropic/x"), Err("unknown provider `antropic`")).await;
    check("{}", KEYS, Some("antropic/x"), Err("did you mean `anthropic`?")).await;
    check("{}", KEYS, Some("vendor/model"), Err("--model PROVIDER/vendor/model")).await;
    check(r#"{"model": "opnai/x"}"#, KEYS, None, Err("did you mean `openai`?")).await;
}

#[tokio::test]
async fn url_and_key_come_from_settings_or_environment() {
    let elsewhere = &[("ANTHROPIC_BASE_URL", "http://127.0.0.1:7/")];
    check("{}", elsewhere, Some("anthropic/m"), Ok("anthropic/m anthropic http://127.0.0.1:7/ -")).await;
    check("{}", &[("ANTHROPIC_BASE_URL", "hush")], Some("anthropic"), Err("ANTHROPIC_BASE_URL is not an http")).await;
    let written = r#"{"providers": {"openai": {"apiKey": "${OTHER}", "format": "chat", "baseUrl": "http://h/"}}}"#;
    check(written, &[("OTHER", "x-1")], None, Ok("openai/gpt-5.6 chat http://h/ x-1")).await;
    check(written, KEYS, None, Err("the variable `OTHER` is not set")).await;
    check(r#"{"providers": {"openai": {"format": 1}}}"#, KEYS, Some("openai"), Err("`format` must be one of")).await;
}

#[tokio::test]
async fn missing_key_has_setup_hints() {
    for (settings, name, expected) in [
        ("{}", None, "no API key is set"),
        ("{}", None, "work without a model"),
        ("{}", Some("anthropic"), "set ANTHROPIC_API_KEY"),
        ("{}", Some("openai/x"), "--model ollama/MODEL"),
        ("{}", Some("antropic/x"), "did you mean `anthropic`?"),
        (r#"{"providers": {"own": {"format": "chat", "baseUrl": "http://h"}}}"#, Some("own"), "--model own/MODEL"),
    ] {
        check(settings, &[("OPENAI_API_KEY", " ")], name, Err(expected)).await;
    }
}

#[test]
fn unavailable_model_has_no_display_name() {
    let home = TestHome::new();
    let secret = r#"{"providers": {"openai": {"apiKey": "${secret:nobody-knows}"}}}"#;
    for (settings, name, expected) in [
        ("{}", None, None),
        ("{}", Some("anthropic"), None),
        (r#"{"model": "openai/x"}"#, None, None),
        ("{}", Some("ollama/x"), Some("ollama/x")),
        // A missing key is detected only on lookup.
        (secret, None, Some("openai/gpt-5.6")),
    ] {
        assert_eq!(models(&home, settings, &[]).display_name(name).as_deref(), expected, "{settings} {name:?}");
    }
}

#[tokio::test]
async fn limits_are_the_providers_own() {
    let home = TestHome::new();
    let text = r#"{"providers": {"own": {"format": "chat", "baseUrl": "http://h", "model": "m", "maxTokens": 9,
        "contextTokens": 5000, "toolTokens": 700, "effort": "high", "headers": {"X-A": "b"}}}}"#;
    let models = models(&home, text, KEYS);
    let own = models.open_model(Some("own")).await.unwrap();
    assert_eq!((own.limits.context, own.limits.tool_tokens), (5000, Some(700)));
    assert_eq!(own.effort, Some(ReasoningEffort::High));
    let provider = own.model.provider();
    assert_eq!((provider.max_tokens, provider.headers[0].0.as_str()), (9, "X-A"));
    let local = models.open_model(Some("llama")).await.unwrap();
    assert_eq!((local.limits.context, local.model.provider().max_tokens, local.effort), (32_768, 8192, None));
    let expected = [
        "own/m",
        "anthropic/claude-sonnet-5",
        "openai/gpt-5.6",
        "openai-chat/gpt-5.6",
        "ollama/gpt-oss:20b",
        "llama/default",
    ];
    assert_eq!(models.names(), expected);
}
