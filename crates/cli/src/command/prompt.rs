//! `wharf prompt`.

use std::fmt::Write as _;

use serde::Serialize;
use wharf_spec::UntrustedText;
use wharf_wire::{PromptResult, RawJson};

use wharf_terminal::call_arguments::read_words;
use wharf_terminal::content::content_text;
use wharf_terminal::deny_rules::check_not_denied;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::prompt_text::{check_arguments, expand, text_argument};
use wharf_terminal::servers::{ServerArg, connect_one};
use wharf_terminal::services::ServiceArgs;
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{HEADING, paint};

/// Expand a prompt
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "wharf prompt [OPTIONS] <SERVER> <NAME> [ARGUMENT]...\n       \
                      wharf prompt --stdio <COMMAND> <NAME> [ARGUMENT]...\n       \
                      wharf prompt --url <URL> <NAME> [ARGUMENT]...",
    after_help = "\
Examples:
  wharf prompt harbour welcome name=Ada
  wharf prompt welcome name=Ada --stdio \"wharf demo-server\"
  wharf prompt review code=@main.rs language=Rust --json \\
      --stdio \"wharf demo-server\""
)]
pub struct PromptArgs {
    /// Server (unless given by --stdio or --url), prompt name, and arguments: name=value or name=@FILE
    #[arg(value_name = "WORD", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    services: ServiceArgs,
    #[command(flatten)]
    server: ServerArg,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Serialize)]
struct PromptDocument<'a> {
    server: &'a str,
    prompt: &'a str,
    description: Option<&'a str>,
    messages: &'a RawJson,
}

pub async fn run(args: &PromptArgs, session: &CommandSession) -> CommandResult {
    let (server, words) = args.server.split_server(&args.words);
    let Some((name, arguments)) = words.split_first() else {
        return Err(Failure::usage("no prompt given").with_hint("`wharf prompts SERVER` lists the prompts"));
    };
    let given = read_words(arguments, &session.environment.cwd)?;
    let arguments = given.into_iter().map(text_argument).collect::<Result<Vec<_>, _>>()?;
    let server = args.server.resolve(session, server).await?;
    check_not_denied(session, &server, "GetMcpPrompt", &serde_json::json!({ "name": name }))?;
    let mut offer = args.services.prepare(session)?;
    let connection = connect_one(session, &server, &offer.services).await?;
    let listing = connection.list_prompts().await.map_err(|error| Failure::from_call_error(&connection, error))?;
    check_arguments(name, &arguments, &listing.items).map_err(|failure| failure.about_server(server.name.as_str()))?;
    let expanded = offer.run_until_failure(expand(&connection, name, &arguments)).await?;
    if session.console.mode.json {
        session.console.print_document(
            true,
            &PromptDocument {
                server: server.name.as_str(),
                prompt: name,
                description: expanded.description.as_deref(),
                messages: &expanded.messages_raw,
            },
        )?;
    } else {
        session.console.print(messages_text(&expanded))?;
    }
    Ok(CommandEnding::Fine)
}

fn messages_text(expanded: &PromptResult) -> String {
    let mut text = String::new();
    for (number, message) in expanded.messages.iter().enumerate() {
        let gap = if number == 0 { "" } else { "\n" };
        let role = UntrustedText::new(message.role.as_str()).to_string();
        let message_text = content_text(std::slice::from_ref(&message.content));
        let _ = writeln!(
            text,
            "{gap}{}\n{}",
            paint(HEADING, role + ":"),
            UntrustedText::new(message_text.trim_end()).multiline()
        );
    }
    text
}
