//! `wharf release`: makes a withheld tool usable after a review of its definition.

use std::sync::Arc;

use serde::Serialize;
use wharf::catalog::CatalogTool;
use wharf_client::ClientServices;
use wharf_wire::RawJson;

use super::call::find;
use crate::tool_selector::select_tool;
use wharf_terminal::definition_review::{quarantine_text, release_command};
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure, FailureKind};
use wharf_terminal::one_shot_host::{OneShotHost, OneShotOptions, StartMode};
use wharf_terminal::question;
use wharf_terminal::servers::{ServerArg, configured_names};
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{GOOD, paint};
use wharf_terminal::table::wrap_gutter;

/// Review a withheld tool and release it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A tool is withheld if its definition seems to give orders to the model. `wharf tools --withheld` lists such tools. \
This command shows the reason and the whole definition before it asks. A release holds for exactly this definition \
of a server as it is defined in one file: a changed definition is withheld again.

Examples:
  wharf release files write_file
  wharf release files.write_file --yes
  wharf release files write_file --json | jq .definition")]
pub struct ReleaseArgs {
    /// Server (unless given by --stdio or --url), and tool
    #[arg(value_name = "SERVER> <TOOL", required = true, num_args = 1..=2)]
    words: Vec<String>,
    /// Release without asking
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    server: ServerArg,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Serialize)]
struct ReleaseDocument<'a> {
    success: bool,
    server: &'a str,
    tool: &'a str,
    /// The reason for withholding the tool. `null` if it is not withheld.
    reason: Option<&'a str>,
    digest: String,
    definition: &'a RawJson,
    released: bool,
}

pub async fn run(args: &ReleaseArgs, session: &CommandSession) -> CommandResult {
    let names = if args.server.is_given() { Vec::new() } else { configured_names(session)? };
    let selected = select_tool(&args.words, &names, args.server.is_given())?;
    let entry = args.server.resolve(session, selected.server).await?;
    let with = OneShotOptions::for_call(ClientServices::default(), StartMode::AtOnce);
    let hosted = OneShotHost::start(session, vec![entry.clone()], with).await?;
    hosted.require_state_dir()?;
    let connection = hosted.ready(&entry.name).await?;
    let tool = find::find_tool(&hosted, &entry.name, &connection, selected.tool).await?;
    let released = match tool.quarantine() {
        None => false,
        Some(_) => confirm_release(args, session, &tool).await,
    };
    if released {
        let release = hosted.host.release(&tool.id, tool.fingerprint).await;
        release.map_err(|error| hosted.failure(&entry.name, error))?;
    }
    report(args, session, &tool, released)
}

async fn confirm_release(args: &ReleaseArgs, session: &CommandSession, tool: &Arc<CatalogTool>) -> bool {
    let review = quarantine_text(tool);
    if !args.yes && !session.console.mode.json && question::has_terminal() {
        return question::confirm(&session.console, &review, "Release it, exactly as shown? [y/N] ").await;
    }
    if !session.console.mode.json {
        session.console.say(wrap_gutter(&review, session.console.stderr_width()));
    }
    args.yes
}

fn report(args: &ReleaseArgs, session: &CommandSession, tool: &CatalogTool, released: bool) -> CommandResult {
    let is_withheld = tool.quarantine().is_some();
    let is_usable = released || !is_withheld;
    let command = if args.server.is_given() {
        "the same command and --yes".to_owned()
    } else {
        format!("`{} --yes`", release_command(&tool.id))
    };
    if session.console.mode.json {
        let document = ReleaseDocument {
            success: is_usable,
            server: tool.id.server.as_str(),
            tool: &tool.id.tool,
            reason: tool.quarantine(),
            digest: tool.fingerprint.to_string(),
            definition: &tool.definition.raw,
            released,
        };
        session.console.print_document(is_usable, &document)?;
    } else if released {
        session.console.say(format_args!(
            "{} {}. A running wharf uses it after its next start.",
            paint(GOOD, "Released"),
            tool.id
        ));
    } else if !is_withheld {
        session.console.say(format_args!("{} is not withheld.", tool.id));
    } else if question::has_terminal() {
        session.console.say(format_args!("{} stays withheld.", tool.id));
    } else {
        let why = Failure::new(FailureKind::Denied, "not released: no terminal to prompt on");
        return Err(why.about_server(tool.id.server.as_str()).with_hint(format_args!(
            "run this command in a terminal, or release the definition above with {command}"
        )));
    }
    Ok(if is_usable { CommandEnding::Fine } else { CommandEnding::Reported(FailureKind::Denied) })
}
