//! `wharf approve --tool`: shows how a tool's definition changed and approves the new one.

use serde::Serialize;
use wharf::ChangedDefinition;
use wharf_client::ClientServices;
use wharf_wire::RawJson;

use super::{ApproveArgs, MIN_DIGEST_PREFIX, matches_digest};
use crate::command::call::find;
use crate::tool_selector::select_tool;
use wharf_terminal::definition_review::{approve_command, change_text, remedy_command};
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure, FailureKind};
use wharf_terminal::one_shot_host::{OneShotHost, OneShotOptions, StartMode};
use wharf_terminal::question;
use wharf_terminal::servers::{configured_names, printable_word, resolve_configured};
use wharf_terminal::session::CommandSession;
use wharf_terminal::style::{GOOD, paint};
use wharf_terminal::table::wrap_gutter;

#[derive(Serialize)]
struct ToolApprovalDocument<'a> {
    success: bool,
    server: &'a str,
    tool: &'a str,
    /// The approved definition. `null` if it did not change or was too long to store.
    before: Option<RawJson>,
    definition: &'a RawJson,
    digest: String,
    changed: bool,
    approved: bool,
}

pub async fn run(word: &str, args: &ApproveArgs, session: &CommandSession) -> CommandResult {
    let names = configured_names(session)?;
    let words = [word.to_owned()];
    let selected = select_tool(&words, &names, false)?;
    let Some(server) = selected.server else {
        return Err(Failure::usage(format_args!("the server of the tool `{}` is missing", printable_word(word)))
            .with_hint("give the tool as SERVER.TOOL; `wharf list` shows the servers"));
    };
    let entry = resolve_configured(session, server).await?;
    let with = OneShotOptions::for_call(ClientServices::default(), StartMode::AtOnce);
    let hosted = OneShotHost::start(session, vec![entry.clone()], with).await?;
    hosted.require_state_dir()?;
    let connection = hosted.ready(&entry.name).await?;
    let tool = find::find_tool(&hosted, &entry.name, &connection, selected.tool).await?;
    let change = hosted.host.changed_definition(&tool.id);
    let approved = match &change {
        None => false,
        Some(change) => confirm(args, session, change).await,
    };
    if approved {
        let shown = change.as_ref().map_or(tool.fingerprint, |change| change.tool.fingerprint);
        let saved = hosted.host.approve_definition(&tool.id, shown).await;
        saved.map_err(|error| hosted.failure(&entry.name, error))?;
    }
    let is_approved = approved || change.is_none();
    if session.console.mode.json {
        let before = change.as_ref().and_then(|change| RawJson::parse(change.approved.to_string()).ok());
        let document = ToolApprovalDocument {
            success: is_approved,
            server: tool.id.server.as_str(),
            tool: &tool.id.tool,
            before,
            definition: &tool.definition.raw,
            digest: tool.fingerprint.to_string(),
            changed: change.is_some(),
            approved,
        };
        session.console.print_document(is_approved, &document)?;
    } else {
        report(args, session, &tool.id, change.as_ref(), approved)?;
        if tool.quarantine().is_some() {
            let release = remedy_command(wharf::Remedy::Release(&tool.id));
            session.console.say(format_args!("{} is withheld as well: {release}.", tool.id));
        }
    }
    Ok(if is_approved { CommandEnding::Fine } else { CommandEnding::Reported(FailureKind::Denied) })
}

async fn confirm(args: &ApproveArgs, session: &CommandSession, change: &ChangedDefinition) -> bool {
    let review = change_text(change);
    if session.console.mode.json {
        return args.digest.as_deref().is_some_and(|digest| matches_digest(digest, &change.tool.fingerprint));
    }
    if let Some(digest) = &args.digest {
        session.console.say(wrap_gutter(&review, session.console.stderr_width()));
        return matches_digest(digest, &change.tool.fingerprint);
    }
    if question::has_terminal() {
        return question::confirm(&session.console, &review, "Approve the new definition? [y/N] ").await;
    }
    session.console.say(wrap_gutter(&review, session.console.stderr_width()));
    false
}

fn report(
    args: &ApproveArgs,
    session: &CommandSession,
    id: &wharf_spec::ToolId,
    change: Option<&ChangedDefinition>,
    approved: bool,
) -> Result<(), Failure> {
    let Some(change) = change else {
        session
            .console
            .say(format_args!("{id} needs no approval: its definition has not changed since it was approved."));
        return Ok(());
    };
    if approved {
        session
            .console
            .say(format_args!("{} {id}. A running wharf uses it after its next start.", paint(GOOD, "Approved")));
        return Ok(());
    }
    if args.digest.is_none() && question::has_terminal() {
        session.console.say(format_args!("{id} was not approved."));
        return Ok(());
    }
    let why = if args.digest.is_some() { "the digest does not match" } else { "no terminal to prompt on" };
    let digest = change.tool.fingerprint.to_string();
    Err(Failure::new(FailureKind::Denied, format_args!("not approved: {why}"))
        .about_server(id.server.as_str())
        .with_hint(format_args!(
            "run this command in a terminal, or approve the definition above with `{} --digest {}`",
            approve_command(id),
            &digest[..MIN_DIGEST_PREFIX + 4]
        )))
}
