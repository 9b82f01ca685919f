//! `wharf auth`: logs in to a server. `wharf auth status` lists logins.

mod login_lookup;
mod status;

use std::sync::Arc;

use clap::Subcommand;
use serde_json::json;
use wharf_auth::{LoginError, StoredLogin};
use wharf_client::ClientServices;
use wharf_spec::{HttpSpec, ServerEntry, ServerSpec, UntrustedText};

use wharf_terminal::accounts::{LoginPageMode, has_own_credentials, login_visitor};
use wharf_terminal::age::ExpiryText;
use wharf_terminal::clock::{timestamp, unix_time};
use wharf_terminal::count_text::CountText;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure, login_arguments};
use wharf_terminal::login_errors::login_failure;
use wharf_terminal::servers::{UrlArg, connect_one, printable_word};
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{GOOD, NAME, QUIET, paint};

pub use login_lookup::LoginSelection;
pub use status::account_label;

/// Log in to a server, or list logins
#[derive(Debug, clap::Args)]
#[command(
    visible_alias = "login",
    args_conflicts_with_subcommands = true,
    after_help = "\
Opens the login page in your browser after you confirm, and waits for the redirect. The login is stored in the \
system keyring if one works, otherwise in a file that only you can read. It is renewed automatically. If \
discovery fails, set the login parameters under `oauth` in the server's entry.

Examples:
  wharf auth docs
  wharf auth docs --account work
  wharf auth docs --no-browser
  wharf auth https://example.org/mcp
  wharf auth status"
)]
pub struct AuthArgs {
    #[command(subcommand)]
    action: Option<AuthAction>,
    /// Server: a configured name, a URL, or FILE:NAME
    #[arg(value_name = "SERVER", conflicts_with = "url")]
    word: Option<String>,
    /// Print the login URL instead of opening it, and read the redirect URL from stdin
    #[arg(long, conflicts_with_all = ["device", "yes"])]
    no_browser: bool,
    /// Log in on another device with a code
    #[arg(long, conflicts_with = "yes")]
    device: bool,
    /// Open the browser without asking
    #[arg(long, short)]
    yes: bool,
    /// Scopes to request in addition to the earlier ones, separated by spaces
    #[arg(long, value_name = "SCOPES")]
    scope: Option<String>,
    #[command(flatten)]
    server: UrlArg,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Subcommand)]
enum AuthAction {
    /// List logins and their state
    Status(status::AuthStatusArgs),
}

impl AuthArgs {
    pub fn common(&self) -> CommonArgs {
        match &self.action {
            Some(AuthAction::Status(status)) => status.common(),
            None => self.common.clone(),
        }
    }

    fn login_method(&self) -> LoginPageMode {
        match self {
            Self { no_browser: true, .. } => LoginPageMode::Address,
            Self { device: true, .. } => LoginPageMode::Code,
            Self { yes: true, .. } => LoginPageMode::AtOnce,
            _ => LoginPageMode::Asking,
        }
    }
}

pub async fn run(args: &AuthArgs, session: &CommandSession) -> CommandResult {
    if let Some(AuthAction::Status(status)) = &args.action {
        return status::run(status, session).await;
    }
    let entry = args.server.resolve(session, args.word.as_deref()).await?;
    let spec = http_spec(&entry)?.clone();
    let nowhere = || Failure::usage("no directory to store logins in").with_hint("set HOME or XDG_CONFIG_HOME");
    let account = session.accounts.for_server(entry.name.as_str(), &spec).ok_or_else(nowhere)?;
    let failed = |error: LoginError| login_failure(&error).about_server(entry.name.as_str());
    // Check that the login can be stored before the user goes through the login page.
    account.check_storage().await.map_err(failed)?;
    let visitor = login_visitor(session, &spec.login, args.login_method());
    let login = match &args.scope {
        Some(more) => account.log_in_for(more, visitor).await,
        None => account.log_in(visitor).await,
    };
    let login = login.map_err(failed)?;
    session.console.clear_status();
    let place = account.status().await.map(|standing| standing.place).unwrap_or_default();
    let tools = count_tools(session, &entry).await;
    report_login(
        session,
        &LoginReport { entry: &entry, spec: &spec, login: &login.kept, place: &place, tools: tools.as_ref() },
    )?;
    tools.map(|_| CommandEnding::Fine)
}

/// Returns the HTTP settings of a server that supports login.
fn http_spec(entry: &ServerEntry) -> Result<&HttpSpec, Failure> {
    let name = entry.name.to_string();
    let ServerSpec::Http(spec) = &entry.spec else {
        let failure = Failure::usage("this is a local (stdio) server; `wharf auth` applies to HTTP servers only")
            .about_server(&name);
        return Err(failure.with_hint("pass credentials in its `env`; `wharf get` shows its entry"));
    };
    if has_own_credentials(spec) {
        let failure =
            Failure::usage("its entry already has credentials: an `Authorization` header, or a user in the URL");
        return Err(failure.about_server(&name).with_hint("remove them to log in"));
    }
    Ok(spec)
}

/// Connects with the new login and returns the number of tools.
async fn count_tools(session: &CommandSession, entry: &ServerEntry) -> Result<usize, Failure> {
    let connection = connect_one(session, entry, &ClientServices::default()).await?;
    if !connection.facts().capabilities.tools {
        return Ok(0);
    }
    let listed = connection.list_tools().await;
    listed.map(|listing| listing.items.len()).map_err(|error| Failure::from_call_error(&connection, error))
}

/// Result of a login, to report to the user.
struct LoginReport<'a> {
    entry: &'a ServerEntry,
    spec: &'a HttpSpec,
    login: &'a StoredLogin,
    place: &'a str,
    tools: Result<&'a usize, &'a Failure>,
}

fn report_login(session: &CommandSession, done: &LoginReport<'_>) -> Result<(), Failure> {
    let key = session.accounts.key(done.entry.name.as_str(), done.spec);
    let tokens = done.login.tokens.as_ref();
    let (expires, scope) =
        (tokens.and_then(|tokens| tokens.expires_at), tokens.and_then(|tokens| tokens.scope.as_deref()));
    let scope = scope.or(done.login.asked.as_deref());
    let renewable = tokens.is_some_and(|tokens| tokens.refresh.is_some());
    if session.console.mode.json {
        // A failure after the login is written as a document of its own.
        let Ok(tools) = done.tools else { return Ok(()) };
        return session.console.print_document(
            true,
            &json!({
                "success": true, "server": printable_word(&key.server), "account": key.account,
                "issuer": done.login.issuer, "scope": scope, "expires_at": expires.map(|at| timestamp(unix_time(at))),
                "renewable": renewable, "place": done.place, "tools": tools,
            }),
        );
    }
    let say = |label: &str, text: &str| session.console.say(format_args!("  {} {text}", paint(QUIET, label)));
    let issuer = UntrustedText::new(done.login.issuer.as_str());
    let at = if done.login.issuer.is_empty() { String::new() } else { format!(" at {}", issuer.truncate(200)) };
    session.console.say(format_args!("{} {}{at}", paint(GOOD, "Logged in:"), paint(NAME, account_label(&key))));
    if let Some(scope) = scope {
        say("for:", &UntrustedText::new(scope).truncate(400).to_string());
    }
    let ends = expires.map(|at| format!("ends {}", ExpiryText(unix_time(at))));
    let renewed = if renewable { "renewed automatically" } else { "not renewable" };
    say("token:", &ends.into_iter().chain([renewed.to_owned()]).collect::<Vec<_>>().join(", "));
    say("stored in:", done.place);
    if let Ok(tools) = done.tools {
        let (tools, server) = (CountText(*tools, "tool"), login_arguments(done.entry.name.as_str(), done.spec));
        say("there:", &format!("{tools}; wharf tools {server} lists them"));
    }
    Ok(())
}

/// Runs blocking work on a blocking thread.
///
/// # Errors
///
/// Fails if no thread can be started or if the work panics.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    wharf_threads::run_blocking(work).await.map_err(Failure::other)
}

/// Returns the vault of this session.
///
/// # Errors
///
/// Fails if there is no directory to store logins in.
pub fn vault(session: &CommandSession) -> Result<Arc<wharf_terminal::accounts::LazyVault>, Failure> {
    let nowhere = || Failure::usage("no directory to store logins in").with_hint("set HOME or XDG_CONFIG_HOME");
    session.accounts.vault().cloned().ok_or_else(nowhere)
}
