//! `wharf auth status`: lists logins, their expiry and their last error.

use std::time::SystemTime;

use serde_json::{Value, json};
use wharf_auth::{AccountKey, StoredLogin, Vault as _, VaultError};
use wharf_spec::UntrustedText;

use super::login_lookup::{LoginSelection, configured_accounts};
use super::{run_blocking, vault};
use wharf_terminal::accounts::{LazyVault, LoginLocation, unix_millis_now};
use wharf_terminal::age::{AgeText, ExpiryText};
use wharf_terminal::clock::{timestamp, unix_time};
use wharf_terminal::columns::{left_aligned, render_columns};
use wharf_terminal::config_context::split_project_key;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure, FailureKind};
use wharf_terminal::login_errors::{permanent_refusal_hint, vault_failure};
use wharf_terminal::servers::printable_word;
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{BAD, GOOD, NAME, QUIET, WARNING, paint};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
No server is contacted. With a server, the exit code is 4 if it has no usable login.

Examples:
  wharf auth status
  wharf auth status docs --json")]
pub struct AuthStatusArgs {
    /// Show only this server
    #[arg(value_name = "SERVER")]
    word: Option<String>,
    /// Write one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Show only this account
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    account: Option<String>,
}

impl AuthStatusArgs {
    pub fn common(&self) -> CommonArgs {
        CommonArgs { json: self.json, account: self.account.clone(), ..CommonArgs::default() }
    }
}

/// State of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenState {
    LoggedIn,
    Renewable,
    NeedsLogin,
    None,
}

/// One account and its stored login.
struct LoginRow {
    key: AccountKey,
    login: Result<Option<StoredLogin>, VaultError>,
    /// Storage location, if a login is stored.
    place: Option<LoginLocation>,
}

pub async fn run(args: &AuthStatusArgs, session: &CommandSession) -> CommandResult {
    let vault = vault(session)?;
    if let Some(trouble) = vault.storage_error() {
        session.console.warn(format_args!("{trouble}; {}", trouble.fix().unwrap_or_default()));
    }
    let meant = match &args.word {
        Some(word) => Some(LoginSelection::resolve(session, word).await),
        None => None,
    };
    let wanted = match &meant {
        Some(meant) => AccountFilter::from_selection(meant, session),
        None => AccountFilter {
            keys: configured_accounts(session).await?,
            server: None,
            account: session.configuration.account.clone(),
        },
    };
    let used = meant.as_ref().and_then(|_| wanted.keys.first().cloned());
    let place = vault.location();
    let read = move || rows(&vault, wanted);
    let rows = run_blocking(read).await?.map_err(|error| vault_failure(&error))?;
    if let Some(failure) = meant.and_then(|meant| meant.missing).filter(|_| rows.is_empty()) {
        return Err(failure);
    }
    let is_usable = |row: &LoginRow| matches!(row.state(), TokenState::LoggedIn | TokenState::Renewable);
    let counts = |row: &&LoginRow| used.as_ref().is_none_or(|used| row.key == *used);
    let missing = args.word.is_some() && !rows.iter().filter(counts).any(is_usable);
    let ending = if missing { CommandEnding::Reported(FailureKind::LoginNeeded) } else { CommandEnding::Fine };
    show(session, &rows, &place, ending)?;
    Ok(ending)
}

/// Accounts to show.
struct AccountFilter {
    /// Accounts shown even without a login.
    keys: Vec<AccountKey>,
    /// Also show stored logins, but only of this server.
    server: Option<String>,
    /// Also show stored logins, but only of this account.
    account: Option<String>,
}

impl AccountFilter {
    fn from_selection(meant: &LoginSelection, session: &CommandSession) -> Self {
        let LoginSelection { server, account, missing, .. } = meant;
        let key = || AccountKey { server: server.clone(), account: account.clone().unwrap_or_default() };
        let is_there = missing.is_none();
        let only = session.configuration.account.clone();
        Self { keys: is_there.then(key).into_iter().collect(), server: Some(server.clone()), account: only }
    }
}

fn rows(vault: &LazyVault, wanted: AccountFilter) -> Result<Vec<LoginRow>, VaultError> {
    let AccountFilter { mut keys, server, account } = wanted;
    let is_meant = |key: &AccountKey| {
        server.as_ref().is_none_or(|server| key.server == *server)
            && account.as_ref().is_none_or(|account| key.account == *account)
    };
    keys.extend(vault.keys()?.into_iter().filter(is_meant));
    keys.sort();
    keys.dedup();
    Ok(keys.into_iter().map(|key| LoginRow { login: vault.load(&key), place: vault.location_of(&key), key }).collect())
}

impl LoginRow {
    fn state(&self) -> TokenState {
        let Ok(Some(login)) = &self.login else { return TokenState::None };
        let Some(tokens) = &login.tokens else { return TokenState::NeedsLogin };
        match tokens.expires_at {
            Some(at)
                if at <= unix_millis_now()
                    && tokens.refresh.is_some()
                    && !login.last_error.as_deref().is_some_and(is_permanent_refusal) =>
            {
                TokenState::Renewable
            }
            Some(at) if at <= unix_millis_now() => TokenState::NeedsLogin,
            _ => TokenState::LoggedIn,
        }
    }

    /// Returns the last error, escaped.
    fn error(&self) -> Option<String> {
        match &self.login {
            Err(error) => Some(UntrustedText::new(error.to_string()).to_string()),
            Ok(login) => {
                login.as_ref()?.last_error.as_ref().map(|error| UntrustedText::new(error.as_str()).to_string())
            }
        }
    }

    fn stored(&self) -> Option<&StoredLogin> {
        self.login.as_ref().ok()?.as_ref()
    }

    fn scope(&self) -> Option<&str> {
        let login = self.stored()?;
        login.tokens.as_ref().and_then(|tokens| tokens.scope.as_deref()).or(login.asked.as_deref())
    }

    fn expires_at(&self) -> Option<SystemTime> {
        self.stored()?.tokens.as_ref()?.expires_at.map(unix_time)
    }

    fn document(&self) -> Value {
        json!({
            "server": printable_word(&self.key.server),
            "account": self.key.account,
            "state": self.state().as_key(),
            "issuer": self.stored().map(|login| &login.issuer),
            "scope": self.scope(),
            "expires_at": self.expires_at().map(timestamp),
            "renewed_at": self.stored().map(|login| timestamp(unix_time(login.renewed_at))),
            "place": self.place.as_ref().map(|place| &place.label),
            "last_error": self.error(),
        })
    }

    fn cells(&self) -> [String; 7] {
        let shown = |text: &str| UntrustedText::new(text).truncate(200).to_string();
        let state = match (self.state(), self.expires_at()) {
            (TokenState::LoggedIn, Some(ends)) => format!("logged in, ends {}", ExpiryText(ends)),
            (state, _) => state.label().to_owned(),
        };
        [
            account_label(&self.key),
            state,
            self.stored().map(|login| shown(&login.issuer)).unwrap_or_default(),
            self.scope().map(shown).unwrap_or_default(),
            self.stored().map(|login| AgeText(unix_time(login.renewed_at)).to_string()).unwrap_or_default(),
            self.place.as_ref().map(|place| place.word.to_owned()).unwrap_or_default(),
            self.error().unwrap_or_default(),
        ]
    }
}

/// Reports whether an error message contains an OAuth error code that a retry does not resolve.
fn is_permanent_refusal(error: &str) -> bool {
    error
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .any(|word| permanent_refusal_hint(word).is_some())
}

impl TokenState {
    fn label(self) -> &'static str {
        match self {
            Self::LoggedIn => "logged in",
            Self::Renewable => "expired, renewable",
            Self::NeedsLogin => "needs login",
            Self::None => "none",
        }
    }

    fn as_key(self) -> &'static str {
        match self {
            Self::LoggedIn => "logged_in",
            Self::Renewable => "renewable",
            Self::NeedsLogin => "needs_login",
            Self::None => "none",
        }
    }
}

/// Returns the display name of a server and its account.
pub fn account_label(key: &AccountKey) -> String {
    let server = match split_project_key(&key.server) {
        Some((file, name)) => format!("{} of {}", printable_word(name), printable_word(file)),
        None => printable_word(&key.server),
    };
    match key.account.as_str() {
        "" => server,
        account => format!("{server} ({})", UntrustedText::new(account).truncate(80)),
    }
}

fn show(session: &CommandSession, rows: &[LoginRow], place: &str, ending: CommandEnding) -> Result<(), Failure> {
    if session.console.mode.json {
        let items: Vec<Value> = rows.iter().map(LoginRow::document).collect();
        let is_ok = ending == CommandEnding::Fine;
        return session.console.print_document(is_ok, &json!({ "place": place, "items": items }));
    }
    if rows.is_empty() {
        session.console.say("No logins, and no configured server uses one. Log in with: wharf auth SERVER");
        return Ok(());
    }
    let cells: Vec<[String; 7]> = rows.iter().map(LoginRow::cells).collect();
    let headings = left_aligned(["SERVER", "LOGIN", "ISSUER", "SCOPE", "RENEWED", "STORED IN", "LAST ERROR"]);
    let style = |cell: &str| match cell {
        cell if cell.starts_with("logged in") => GOOD,
        cell if cell.starts_with("expired") => WARNING,
        cell if cell.starts_with("needs") => BAD,
        _ => QUIET,
    };
    let dress = |at: usize, cell: &str| match at {
        0 => paint(NAME, cell).to_string(),
        1 => paint(style(cell), cell).to_string(),
        _ => cell.to_owned(),
    };
    session.console.print(render_columns(headings, &cells, session.console.stdout_width(), dress))?;
    session.console.say(format_args!("{} {place}", paint(QUIET, "stored in:")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_labels_hide_secrets() {
        let key = |server: &str, account: &str| AccountKey { server: server.to_owned(), account: account.to_owned() };
        assert_eq!(account_label(&key("docs", "")), "docs");
        assert_eq!(account_label(&key("docs", "w\u{1b}rk")), "docs (w\\u{1b}rk)");
        assert_eq!(account_label(&key("https://h/mcp?key=hush", "")), "https://h/mcp?key=***");
    }

    #[test]
    fn permanent_refusals_are_distinguished_from_transient() {
        assert!(is_permanent_refusal("the authorization server refused: invalid_client (unknown)"));
        assert!(!is_permanent_refusal("the authorization server refused: temporarily_unavailable"));
        assert!(!is_permanent_refusal("the authorization server gave no answer that counts: HTTP 503"));
    }
}
