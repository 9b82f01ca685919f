//! Resolves a command-line word to the logins of a server, also of one that is no longer configured.

use wharf_auth::AccountKey;
use wharf_config::{ConfiguredServer, TransportDefinition};
use wharf_spec::{HttpSpec, ServerSpec};

use wharf_terminal::config_context::login_key;
use wharf_terminal::failure::Failure;
use wharf_terminal::servers::{login_key_of_word, resolve_configured};
use wharf_terminal::session::CommandSession;

/// The logins that a word refers to.
pub struct LoginSelection {
    /// Server part of the key in the vault.
    pub server: String,
    /// Account in use for the server, if known.
    pub account: Option<String>,
    /// HTTP settings of the server, if it may be used.
    pub spec: Option<HttpSpec>,
    /// Reason that no such server exists. Reported only if no login is found either.
    pub missing: Option<Failure>,
}

impl LoginSelection {
    /// Resolves a word. A server that is no longer configured, or may not be used, can still have logins.
    pub async fn resolve(session: &CommandSession, word: &str) -> Self {
        let account = session.configuration.account.clone();
        match resolve_configured(session, word).await {
            Ok(entry) => match entry.spec {
                ServerSpec::Http(spec) => {
                    let AccountKey { server, account } = session.accounts.key(entry.name.as_str(), &spec);
                    Self { server, account: Some(account), spec: Some(spec), missing: None }
                }
                ServerSpec::Stdio(_) => {
                    let failure =
                        Failure::usage("this is a local (stdio) server; `wharf auth` applies to HTTP servers only")
                            .about_server(word);
                    Self { server: login_key_of_word(session, word), account, spec: None, missing: Some(failure) }
                }
            },
            Err(failure) => match session.configuration.find(word) {
                Ok(server) => Self { server: vault_key(server), account, spec: None, missing: None },
                Err(_) => {
                    Self { server: login_key_of_word(session, word), account, spec: None, missing: Some(failure) }
                }
            },
        }
    }
}

/// Returns the vault key of a configured server.
fn vault_key(server: &ConfiguredServer) -> String {
    login_key(server).unwrap_or_else(|| server.name.to_string())
}

/// Returns the accounts of the configured HTTP servers that have no `Authorization` header of their own.
///
/// # Errors
///
/// Fails if the configuration cannot be read.
pub async fn configured_accounts(session: &CommandSession) -> Result<Vec<AccountKey>, Failure> {
    let config = session.configuration.config()?;
    let mut keys = Vec::new();
    for server in &config.servers {
        let Ok(TransportDefinition::Http(http)) = server.described.as_ref().map(|described| &described.reach) else {
            continue;
        };
        if http.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            continue;
        }
        let account_name = http.oauth.as_ref().and_then(|oauth| oauth.text("account")).map(|text| text.value.clone());
        let account = match (&session.configuration.account, account_name) {
            (Some(named), _) => named.clone(),
            // Expand references the way a connection does.
            (None, Some(text)) if text.contains('$') => resolve_account(session, server).await.unwrap_or_default(),
            (None, account_name) => account_name.unwrap_or_default(),
        };
        keys.push(AccountKey { server: vault_key(server), account });
    }
    Ok(keys)
}

async fn resolve_account(session: &CommandSession, server: &ConfiguredServer) -> Option<String> {
    match session.configuration.entry_of(server).await.ok()?.spec {
        ServerSpec::Http(spec) => spec.account,
        ServerSpec::Stdio(_) => None,
    }
}
