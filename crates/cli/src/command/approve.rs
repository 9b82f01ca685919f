//! `wharf approve` and `wharf revoke`: a project's servers start only after the user has approved them.

use serde::Serialize;
use wharf::ConsentAnswer;
use wharf_config::ConfiguredServer;

use wharf_terminal::approval::{Waiting, approvals, approvals_failed, told, waiting, waits};
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure, FailureKind};
use wharf_terminal::question;
use wharf_terminal::servers::shown_word;
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{NAME, paint};
use wharf_terminal::suggestions::suggestion;
use wharf_terminal::table::wrap_gutter;

/// Minimum length of a digest prefix given with `--digest`.
const MIN_DIGEST_PREFIX: usize = 12;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A project's servers do not start until you approve them. Each definition is shown in full before you are asked.
An approval covers exactly that definition and is checked before every start. You are asked again if an argument or a
variable changes, or the content of the program, of a file among the arguments, of a module run by -m, or of files
that launchers read in the directory (package.json, .npmrc, pyproject.toml). Files loaded by these are not covered.
Your own servers that refer to the project directory (${project}) need one approval per project.

Examples:
  wharf approve
  wharf approve docs
  wharf approve docs --json | jq -r '.items[0].digest'
  wharf approve docs --digest 3f29c1d0a4be      (in a script, after review)")]
pub struct ApproveArgs {
    /// Servers to review; default: all that await approval
    servers: Vec<String>,
    /// Approve without asking if the digest starts with this prefix (12 digits or more)
    #[arg(long, value_name = "HEX")]
    digest: Option<String>,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf revoke docs
  wharf revoke --all")]
pub struct RevokeArgs {
    /// Servers of this project to revoke
    #[arg(required_unless_present = "all")]
    servers: Vec<String>,
    /// Revoke every approval of this project
    #[arg(long, conflicts_with = "servers")]
    all: bool,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Serialize)]
struct ApproveDocument<'a> {
    schema: u32,
    success: bool,
    items: Vec<PendingApprovalDocument<'a>>,
}

#[derive(Serialize)]
struct PendingApprovalDocument<'a> {
    id: &'a str,
    file: String,
    line: u32,
    digest: String,
    what: Vec<String>,
    /// Location of the server definition that this one replaces.
    replaces: Option<String>,
    /// Rules that already allow its tools.
    #[serde(rename = "allowedBy")]
    allowed_by: &'a [String],
    approved: bool,
}

pub async fn run(args: &ApproveArgs, session: &CommandSession) -> CommandResult {
    let waiting = find(args, session)?;
    let mut approved = Vec::new();
    for one in &waiting {
        let agreed = agrees(args, session, one).await;
        if agreed {
            one.approve(&approvals(session)?)?;
        }
        approved.push(agreed);
        tell(session, one, agreed, args.digest.is_some())?;
    }
    if session.console.manner.json {
        let items = waiting.iter().zip(&approved).map(|(one, approved)| item(one, *approved)).collect();
        let success = approved.iter().all(|approved| *approved);
        session.console.document(&ApproveDocument { schema: 1, success, items })?;
    } else if waiting.is_empty() {
        session.console.say("No server awaits approval.");
    }
    if approved.iter().all(|approved| *approved) {
        Ok(CommandEnding::Fine)
    } else {
        Ok(CommandEnding::Told(FailureKind::Denied))
    }
}

pub async fn revoke(args: &RevokeArgs, session: &CommandSession) -> CommandResult {
    let (approvals, project) = (approvals(session)?, &session.configuration.places.project);
    let mut taken = Vec::new();
    if args.all {
        taken = approvals.revoke_where(project, None).map_err(approvals_failed)?;
    }
    for name in &args.servers {
        let revoked = approvals.revoke_where(project, Some(name)).map_err(approvals_failed)?;
        if revoked.is_empty() && !is_of_project(session, name)? {
            let config = session.configuration.config()?;
            let names = config.servers.iter().filter(|server| server.layer.needs_approval());
            let hint = suggestion(name, names.map(|server| server.name.as_str()));
            return Err(Failure::usage(format_args!("the project has no server `{}`", shown_word(name))).hint(hint));
        }
        taken.extend(revoked);
    }
    if session.console.manner.json {
        session.console.document(&serde_json::json!({ "schema": 1, "success": true, "revoked": taken }))?;
    } else if taken.is_empty() {
        session.console.say("No such approval.");
    } else {
        session.console.say(format_args!(
            "No longer approved: {}. Undo: wharf approve {}",
            taken.join(", "),
            taken.join(" ")
        ));
    }
    Ok(CommandEnding::Fine)
}

fn is_of_project(session: &CommandSession, name: &str) -> Result<bool, Failure> {
    let config = session.configuration.config()?;
    let mut all = config.servers.iter().chain(&config.beside);
    Ok(all.any(|server| server.layer.needs_approval() && server.name.as_str() == name))
}

/// Returns the servers that await approval, restricted to the named ones if any are named.
fn find(args: &ApproveArgs, session: &CommandSession) -> Result<Vec<Waiting>, Failure> {
    let config = session.configuration.config()?;
    let all = || config.servers.iter().chain(&config.beside);
    for name in &args.servers {
        let mut named = all().filter(|server| server.name.as_str() == name).peekable();
        if named.peek().is_none() {
            session.configuration.find(name)?;
        }
        if let Some(problem) =
            named.clone().filter(|server| waits(server)).find_map(|server| server.described.as_ref().err())
        {
            return Err(wharf_terminal::config_context::problems_of(name, problem));
        }
        if !named.any(waits) {
            session.console.say(format_args!("{} needs no approval.", paint(NAME, name)));
        }
    }
    let wanted = |server: &&ConfiguredServer| {
        args.servers.is_empty() || args.servers.iter().any(|name| server.name.as_str() == name)
    };
    let project = &session.configuration.places.project;
    let found = waiting(all().filter(wanted), &approvals(session)?, project, &session.surroundings)?;
    Ok(found.into_iter().map(|one| one.among(config)).collect())
}

async fn agrees(args: &ApproveArgs, session: &CommandSession, one: &Waiting) -> bool {
    if let Some(digest) = &args.digest {
        let digest = digest.to_lowercase();
        return digest.len() >= MIN_DIGEST_PREFIX && one.what.digest().to_string().starts_with(&digest);
    }
    if session.console.manner.json || !question::is_somebody_there() {
        return false;
    }
    let prompt = question::approval_prompt(one.server.name.as_str());
    question::confirm(&session.console, &one.shown(), &prompt).await
}

fn tell(session: &CommandSession, one: &Waiting, agreed: bool, is_by_digest: bool) -> Result<(), Failure> {
    if session.console.manner.json {
        return Ok(());
    }
    let name = &one.server.name;
    if agreed || question::is_somebody_there() && !is_by_digest {
        session.console.say(told(name, if agreed { ConsentAnswer::Given } else { ConsentAnswer::Refused }));
    } else {
        let shown = wrap_gutter(&one.shown(), session.console.talk_width());
        session.console.print(format_args!("{shown}\n"))?;
        let digest = one.what.digest().to_string();
        let why = if is_by_digest { "the digest does not match" } else { "no terminal to prompt on" };
        session.console.say(format_args!(
            "{name} is not approved: {why}. Run this command in a terminal, or approve the version above with\n  \
             wharf approve {name} --digest {}",
            &digest[..MIN_DIGEST_PREFIX + 4]
        ));
    }
    Ok(())
}

fn item(one: &Waiting, approved: bool) -> PendingApprovalDocument<'_> {
    PendingApprovalDocument {
        id: one.server.name.as_str(),
        file: one.server.place.file.display().to_string(),
        line: one.server.place.at.line,
        digest: one.what.digest().to_string(),
        what: one.what.lines(),
        replaces: one.effects.replaces.as_ref().map(ToString::to_string),
        allowed_by: &one.effects.allowed_by,
        approved,
    }
}
