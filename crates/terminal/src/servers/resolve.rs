//! Resolves a word to a server: a configured name, a URL, or an entry of a file.

use std::path::Path;
use std::sync::Arc;

use url::Url;
use wharf_config::{ConfiguredServer, file_origin};
use wharf_spec::{ActivationState, ServerEntry, ServerName, UntrustedText, mask_url_secrets};

use super::DialArgs;
use crate::config_context::{ConfigArgs, ConfigContext, file_entry_key, usage_refusal, with_login};
use crate::failure::Failure;
use crate::session::CommandSession;

/// Extensions of configuration files.
const CONFIG_EXTENSIONS: [&str; 5] = [".json", ".jsonc", ".yaml", ".yml", ".toml"];

/// Returns the configured names.
///
/// # Errors
///
/// Fails if the configuration cannot be read.
pub fn configured_names(session: &CommandSession) -> Result<Vec<&str>, Failure> {
    Ok(session.configuration.config()?.servers.iter().map(|server| server.name.as_str()).collect())
}

/// Returns every usable server, and the failures of the others.
///
/// # Errors
///
/// Fails if the configuration cannot be read, or if all servers await approval.
pub async fn usable_servers(session: &CommandSession) -> Result<(Vec<ServerEntry>, Vec<Failure>), Failure> {
    let (entries, failures) = session.configuration.entries().await?;
    let servers = session.configuration.config()?.servers.iter();
    let mut waiting =
        servers.filter(|server| server.activation() == ActivationState::Unapproved).filter_map(usage_refusal);
    match waiting.next() {
        Some(first) if entries.is_empty() && failures.is_empty() => return Err(first),
        first => {
            for failure in first.into_iter().chain(waiting) {
                let server = failure.error.server.as_deref().unwrap_or_default();
                session.console.warn(format_args!("{server}: {}; wharf approve {server}", failure.error.message));
            }
        }
    }
    Ok((entries, failures))
}

/// Resolves a word to a server.
pub async fn resolve_word(session: &CommandSession, word: &str, dial: &DialArgs) -> Result<ServerEntry, Failure> {
    if is_address(word) {
        let mut servers = Vec::new();
        dial.resolve(&[word.to_owned()], session, &mut servers)?;
        return servers.pop().ok_or_else(|| Failure::other("internal error: the URL did not resolve to a server"));
    }
    if let Some((file, name)) = split_file_entry(word) {
        return match find_in_project(session, file, name)? {
            Some(server) => session.configuration.entry_of(server).await,
            None => {
                let mut entry = load_file(session, file)?.entry(name).await?;
                let file = session.environment.cwd.join(file);
                entry.settings.origin = file_origin(&file);
                let key = file_entry_key(&file, name);
                Ok(with_login(entry, Some(key), session.configuration.account.clone()))
            }
        };
    }
    if configured_names(session)?.is_empty() {
        let mut failure = no_server_failure(session);
        failure.error.message = format!("no server named `{word}`: no servers are configured");
        return Err(failure);
    }
    session.configuration.entry(word).await
}

/// Resolves a word to a server, without connection options.
pub async fn resolve_configured(session: &CommandSession, word: &str) -> Result<ServerEntry, Failure> {
    resolve_word(session, word, &DialArgs::default()).await
}

/// Reports whether a word is a server URL.
pub fn is_address(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
}

/// Reports whether a word has the form `FILE:NAME`.
pub fn is_file_entry(word: &str) -> bool {
    split_file_entry(word).is_some()
}

/// Returns the login key of a word that does not resolve to a server.
pub fn login_key_of_word(session: &CommandSession, word: &str) -> String {
    match (Url::parse(word), split_file_entry(word)) {
        (Ok(url), _) if is_address(word) => url.to_string(),
        (_, Some((file, name))) => file_entry_key(&session.environment.cwd.join(file), name),
        _ => word.to_owned(),
    }
}

/// Splits `servers.json:name` into file and name.
fn split_file_entry(word: &str) -> Option<(&str, &str)> {
    let (file, name) = word.rsplit_once(':')?;
    let is_file = CONFIG_EXTENSIONS.iter().any(|ending| file.to_ascii_lowercase().ends_with(ending));
    (is_file && ServerName::new(name).is_ok()).then_some((file, name))
}

/// Finds the server in one of the project's own files: naming the file does not approve it.
fn find_in_project<'a>(
    session: &'a CommandSession,
    file: &str,
    name: &str,
) -> Result<Option<&'a ConfiguredServer>, Failure> {
    let Ok(file) = session.environment.cwd.join(file).canonicalize() else { return Ok(None) };
    let is_this = |server: &&ConfiguredServer| {
        server.name.as_str() == name
            && server.layer.needs_approval()
            && server.place.file.canonicalize().is_ok_and(|place| place == file)
    };
    let config = session.configuration.config()?;
    Ok(config.servers.iter().chain(&config.beside).find(is_this))
}

/// Returns a word safe to print: a URL without credentials and query values.
pub fn printable_word(word: &str) -> String {
    match Url::parse(word) {
        Ok(url) if is_address(word) => UntrustedText::new(mask_url_secrets(&url)).to_string(),
        _ => UntrustedText::new(word).truncate(200).to_string(),
    }
}

/// Loads a single file, as with `--config` and `--only-config`.
fn load_file(session: &CommandSession, file: &str) -> Result<ConfigContext, Failure> {
    if !session.environment.cwd.join(Path::new(file)).is_file() {
        return Err(Failure::usage(format_args!("no such file: `{file}`")));
    }
    Ok(ConfigContext::new(ConfigArgs::only(file), &session.environment, Arc::clone(&session.console)))
}

/// Returns the failure of a command without a server.
pub fn no_server_failure(session: &CommandSession) -> Failure {
    if configured_names(session).is_ok_and(|names| !names.is_empty()) {
        let failure = Failure::usage("no server given");
        return failure.with_hint("name a server; `wharf list` shows the configured ones");
    }
    Failure::usage("no servers are configured, and none was given")
        .with_hint("`wharf add NAME -- COMMAND` or `wharf add NAME URL` configures one")
        .with_hint(
            "--stdio \"COMMAND\" or --url URL uses one without configuring it, e.g. --stdio \"wharf demo-server\"",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_entries_are_distinguished_from_names() {
        for (word, expected) in [
            ("servers.json:git", Some(("servers.json", "git"))),
            ("/a/b.c/x.TOML:my-git", Some(("/a/b.c/x.TOML", "my-git"))),
            ("a:b.yaml:c", Some(("a:b.yaml", "c"))),
            ("git:log", None),
            ("servers.json", None),
            ("servers.json:", None),
            ("servers.json:a b", None),
        ] {
            assert_eq!(split_file_entry(word), expected, "{word}");
        }
        assert!(is_address("https://x/mcp") && !is_address("httpx") && !is_address("git"));
    }
}
