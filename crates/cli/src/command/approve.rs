//! `wharf approve` and `wharf revoke`: a project's servers start only after the user has approved them.

mod tool;

use std::time::Duration;

use serde::Serialize;
use wharf::ConsentAnswer;
use wharf_config::ConfiguredServer;

use wharf_terminal::approval::{
    Waiting, approvals_failed, awaits_approval, decision_line, open_approvals, pending_approvals,
};
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure, FailureKind};
use wharf_terminal::question;
use wharf_terminal::servers::printable_word;
use wharf_terminal::session::{CommandSession, CommonArgs, JsonArgs, parse_timeout};
use wharf_terminal::style::{NAME, paint};
use wharf_terminal::suggestions::suggestion;
use wharf_terminal::table::wrap_gutter;

/// Minimum length of a digest prefix given with `--digest`.
const MIN_DIGEST_PREFIX: usize = 12;

/// Review and approve the project's servers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A project's servers do not start until you approve them. Each definition is shown in full before you are asked. \
An approval covers exactly that definition and is checked before every start. You are asked again if an argument \
or a variable changes, or the content of the program, of a file among the arguments, of a module run by -m, or \
of files that launchers read in the directory (package.json, .npmrc, pyproject.toml). Files loaded by these are \
not covered. Your own servers that refer to the project directory (${project}) need one approval per project.

A tool whose definition changed since it was approved is not called without a prompt. With --tool the change is \
shown line by line and the new definition is approved.

Examples:
  wharf approve
  wharf approve docs
  wharf approve docs --json | jq -r '.items[0].digest'
  wharf approve docs --digest 3f29c1d0a4be
  wharf approve --tool docs.search")]
pub struct ApproveArgs {
    /// Servers to review; default: all that await approval
    servers: Vec<String>,
    /// Review the changed definition of a tool instead, given as SERVER.TOOL
    #[arg(long, value_name = "SERVER.TOOL", conflicts_with = "servers")]
    tool: Option<String>,
    /// Approve without asking if the digest starts with this prefix (12 digits or more)
    #[arg(long, value_name = "HEX")]
    digest: Option<String>,
    /// With --tool: timeout for the server's startup and for each response, e.g. 30, 250ms
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, requires = "tool")]
    timeout: Option<Duration>,
    #[command(flatten)]
    output: JsonArgs,
}

impl ApproveArgs {
    pub fn common(&self) -> CommonArgs {
        CommonArgs { timeout: self.timeout, ..self.output.common() }
    }
}

/// Revoke an approval
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
    pub output: JsonArgs,
}

#[derive(Serialize)]
struct ApproveDocument<'a> {
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
    if let Some(word) = &args.tool {
        return tool::run(word, args, session).await;
    }
    let waiting = find_pending(args, session)?;
    let mut approved = Vec::new();
    for one in &waiting {
        let agreed = confirm_approval(args, session, one).await;
        if agreed {
            one.approve(&open_approvals(session)?)?;
        }
        approved.push(agreed);
        report_decision(session, one, agreed, args.digest.is_some())?;
    }
    if session.console.mode.json {
        let items = waiting.iter().zip(&approved).map(|(one, approved)| document(one, *approved)).collect();
        let success = approved.iter().all(|approved| *approved);
        session.console.print_document(success, &ApproveDocument { success, items })?;
    } else if waiting.is_empty() {
        session.console.say("No server awaits approval.");
    }
    if approved.iter().all(|approved| *approved) {
        Ok(CommandEnding::Fine)
    } else {
        Ok(CommandEnding::Reported(FailureKind::Denied))
    }
}

pub async fn revoke(args: &RevokeArgs, session: &CommandSession) -> CommandResult {
    let (approvals, project) = (open_approvals(session)?, &session.configuration.places.project);
    let mut taken = Vec::new();
    if args.all {
        taken = approvals.revoke_matching(project, None).map_err(approvals_failed)?;
    }
    for name in &args.servers {
        let revoked = approvals.revoke_matching(project, Some(name)).map_err(approvals_failed)?;
        if revoked.is_empty() && !is_project_server(session, name)? {
            let config = session.configuration.config()?;
            let names = config.servers.iter().filter(|server| server.layer.needs_approval());
            let hint = suggestion(name, names.map(|server| server.name.as_str()));
            return Err(
                Failure::usage(format_args!("no project server named `{}`", printable_word(name))).with_hint(hint)
            );
        }
        taken.extend(revoked);
    }
    if session.console.mode.json {
        session.console.print_document(true, &serde_json::json!({ "success": true, "revoked": taken }))?;
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

fn is_project_server(session: &CommandSession, name: &str) -> Result<bool, Failure> {
    let config = session.configuration.config()?;
    let mut all = config.servers.iter().chain(&config.beside);
    Ok(all.any(|server| server.layer.needs_approval() && server.name.as_str() == name))
}

/// Returns the servers that await approval, restricted to the named ones if any are named.
fn find_pending(args: &ApproveArgs, session: &CommandSession) -> Result<Vec<Waiting>, Failure> {
    let config = session.configuration.config()?;
    let all = || config.servers.iter().chain(&config.beside);
    for name in &args.servers {
        let mut named = all().filter(|server| server.name.as_str() == name).peekable();
        if named.peek().is_none() {
            session.configuration.find(name)?;
        }
        if let Some(problem) =
            named.clone().filter(|server| awaits_approval(server)).find_map(|server| server.described.as_ref().err())
        {
            return Err(wharf_terminal::config_context::server_problems_failure(name, problem));
        }
        if !named.any(awaits_approval) {
            session.console.say(format_args!("{} needs no approval.", paint(NAME, name)));
        }
    }
    let wanted = |server: &&ConfiguredServer| {
        args.servers.is_empty() || args.servers.iter().any(|name| server.name.as_str() == name)
    };
    let project = &session.configuration.places.project;
    let found = pending_approvals(all().filter(wanted), &open_approvals(session)?, project, &session.environment)?;
    Ok(found.into_iter().map(|one| one.with_effects(config)).collect())
}

async fn confirm_approval(args: &ApproveArgs, session: &CommandSession, one: &Waiting) -> bool {
    if let Some(digest) = &args.digest {
        return matches_digest(digest, one.what.digest());
    }
    if session.console.mode.json || !question::has_terminal() {
        return false;
    }
    let prompt = question::approval_prompt(one.server.name.as_str());
    question::confirm(&session.console, &one.review_text(), &prompt).await
}

/// Reports whether a text is a sufficiently long prefix of the digest.
fn matches_digest(prefix: &str, digest: impl ToString) -> bool {
    let prefix = prefix.to_lowercase();
    prefix.len() >= MIN_DIGEST_PREFIX && digest.to_string().starts_with(&prefix)
}

fn report_decision(session: &CommandSession, one: &Waiting, agreed: bool, is_by_digest: bool) -> Result<(), Failure> {
    if session.console.mode.json {
        return Ok(());
    }
    let name = &one.server.name;
    if agreed || question::has_terminal() && !is_by_digest {
        session.console.say(decision_line(name, if agreed { ConsentAnswer::Given } else { ConsentAnswer::Refused }));
    } else {
        let shown = wrap_gutter(&one.review_text(), session.console.stderr_width());
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

fn document(one: &Waiting, approved: bool) -> PendingApprovalDocument<'_> {
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
