//! `wharf logout`: revokes tokens where the issuer supports it, and deletes stored logins.

use serde_json::json;
use wharf_auth::{AccountKey, Vault as _, VaultError};
use wharf_spec::HttpSpec;

use super::auth::{LoginSelection, account_label, run_blocking, vault};
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::login_errors::{login_failure, vault_failure};
use wharf_terminal::servers::printable_word;
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{GOOD, NAME, paint};

/// Log out: revoke and delete stored tokens
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Tokens are revoked if the authorization server supports it, and deleted here in any case.

Examples:
  wharf logout docs
  wharf logout docs --account work
  wharf logout docs --all")]
pub struct LogoutArgs {
    /// Server: a configured name, a URL, or FILE:NAME
    #[arg(value_name = "SERVER")]
    word: String,
    /// Log out of every account of the server
    #[arg(long, conflicts_with = "account")]
    all: bool,
    /// Write one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Account to log out of; default: the one in use
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    account: Option<String>,
}

impl LogoutArgs {
    pub fn common(&self) -> CommonArgs {
        CommonArgs { json: self.json, account: self.account.clone(), ..CommonArgs::default() }
    }
}

pub async fn run(args: &LogoutArgs, session: &CommandSession) -> CommandResult {
    let meant = LoginSelection::resolve(session, &args.word).await;
    let mut left = Vec::new();
    for key in accounts_to_log_out(args, session, &meant).await? {
        if let Some(how) = log_out(session, &key, meant.spec.as_ref()).await? {
            left.push((key, how));
        }
    }
    match meant.missing.filter(|_| left.is_empty()) {
        Some(failure) => Err(failure),
        None => report_logout(session, &args.word, &left),
    }
}

/// Returns the accounts to log out.
async fn accounts_to_log_out(
    args: &LogoutArgs,
    session: &CommandSession,
    meant: &LoginSelection,
) -> Result<Vec<AccountKey>, Failure> {
    let server = meant.server.clone();
    if args.all {
        let vault = vault(session)?;
        let keys = run_blocking(move || vault.keys()).await?.map_err(|error| vault_failure(&error))?;
        return Ok(keys.into_iter().filter(|key| key.server == server).collect());
    }
    Ok(vec![AccountKey { server, account: meant.account.clone().unwrap_or_default() }])
}

/// Reason for not revoking a login that cannot be read.
const UNREADABLE_LOGIN: &str = "the stored login could not be read";

/// Result of a logout.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LogoutResult {
    GivenBack,
    /// Deleted locally but not revoked: a copy may still be valid. Holds the reason.
    Forgotten(String),
}

impl LogoutResult {
    fn not_revoked_reason(&self) -> Option<&str> {
        if let Self::Forgotten(why) = self { Some(why) } else { None }
    }
}

/// Logs out of one account. Returns `None` if there was no login.
async fn log_out(
    session: &CommandSession,
    key: &AccountKey,
    spec: Option<&HttpSpec>,
) -> Result<Option<LogoutResult>, Failure> {
    let (vault, wanted) = (vault(session)?, key.clone());
    let login = match run_blocking(move || vault.load(&wanted)).await? {
        // A damaged login is deleted as well.
        Err(VaultError::Damaged { .. }) => {
            return Ok(delete_login(session, key).await?.then(|| LogoutResult::Forgotten(UNREADABLE_LOGIN.to_owned())));
        }
        login => login.unwrap_or_default(),
    };
    let address = login.as_ref().and_then(|login| login.url.parse().ok());
    let spec = spec.cloned().or_else(|| address.map(HttpSpec::new));
    let Some(account) = spec.and_then(|spec| session.accounts.open(key.clone(), &spec)) else {
        return Ok(delete_login(session, key).await?.then(|| LogoutResult::Forgotten(UNREADABLE_LOGIN.to_owned())));
    };
    let logout =
        account.log_out().await.map_err(|error| login_failure(&error).about_server(&printable_word(&key.server)))?;
    Ok(logout.was_kept.then(|| logout.still_good.map_or(LogoutResult::GivenBack, LogoutResult::Forgotten)))
}

async fn delete_login(session: &CommandSession, key: &AccountKey) -> Result<bool, Failure> {
    let (vault, key) = (vault(session)?, key.clone());
    run_blocking(move || vault.remove(&key)).await?.map_err(|error| vault_failure(&error))
}

fn report_logout(session: &CommandSession, word: &str, left: &[(AccountKey, LogoutResult)]) -> CommandResult {
    if session.console.mode.json {
        let accounts: Vec<&str> = left.iter().map(|(key, _)| key.account.as_str()).collect();
        let revoked = left.iter().all(|(_, how)| *how == LogoutResult::GivenBack);
        let server = printable_word(word);
        let document = json!({ "success": true, "server": server, "accounts": accounts, "revoked": revoked });
        session.console.print_document(true, &document)?;
        return Ok(CommandEnding::Fine);
    }
    for (key, how) in left {
        session.console.say(format_args!("{} {}", paint(GOOD, "Logged out:"), paint(NAME, account_label(key))));
        if let Some(why) = how.not_revoked_reason() {
            session.console.warn(format_args!("the tokens were deleted here but not revoked: {why}"));
        }
    }
    if left.is_empty() {
        session.console.say(format_args!("No login stored for {}.", paint(NAME, printable_word(word))));
    }
    Ok(CommandEnding::Fine)
}
