//! `wharf prompt`.

use std::fmt::Write as _;

use serde::Serialize;
use wharf_client::{CallOptions, Connection};
use wharf_spec::{Shown, Untrusted};
use wharf_wire::{PromptArgument, PromptDefinition, PromptResult, Raw};

use crate::call_arguments::{Given, Value, read_words};
use crate::content::text_view;
use crate::denied::refuse_denied;
use crate::failure::{Ending, Failure, Outcome};
use crate::nearest::{quoted, suggestion};
use crate::servers::{OneServer, connect_one};
use crate::services::ServiceArgs;
use crate::session::{Common, Session};
use crate::style::{HEADING, paint};

/// The most of an argument's description that is repeated.
const LONGEST: usize = 300;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf prompt harbour welcome name=Ada
  wharf prompt welcome name=Ada --stdio \"wharf demo-server\"
  wharf prompt review code=@main.rs language=Rust --json --stdio \"wharf demo-server\"")]
pub struct Args {
    /// The server, unless --stdio or --url gives it, the prompt's name, and its arguments: name=value or name=@FILE
    #[arg(value_name = "SERVER> <NAME> [NAME=VALUE", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    services: ServiceArgs,
    #[command(flatten)]
    server: OneServer,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Serialize)]
struct PromptDocument<'a> {
    schema: u32,
    server: &'a str,
    prompt: &'a str,
    description: Option<&'a str>,
    messages: &'a Raw,
}

pub async fn run(args: &Args, session: &Session) -> Outcome {
    let (server, words) = args.server.first_of(&args.words);
    let Some((name, arguments)) = words.split_first() else {
        return Err(Failure::usage("no prompt was named").hint("`wharf prompts SERVER` shows what there is"));
    };
    let given = read_words(arguments, &session.surroundings.cwd)?;
    let arguments = given.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let server = args.server.resolve(session, server).await?;
    refuse_denied(session, &server, "GetMcpPrompt", &serde_json::json!({ "name": name }))?;
    let mut offer = args.services.offer(session)?;
    let connection = connect_one(session, &server, &offer.services).await?;
    let listing = connection.list_prompts().await.map_err(|error| Failure::calling(&connection, error))?;
    check(name, &arguments, &listing.items).map_err(|failure| failure.about(server.name.as_str()))?;
    let expanded = offer.during(expand(&connection, name, &arguments)).await?;
    if session.console.manner.json {
        session.console.document(&PromptDocument {
            schema: 1,
            server: server.name.as_str(),
            prompt: name,
            description: expanded.description.as_deref(),
            messages: &expanded.messages_raw,
        })?;
    } else {
        session.console.print(shown(&expanded))?;
    }
    Ok(Ending::Fine)
}

/// Arguments of prompts are texts.
pub fn text(given: Given) -> Result<(String, String), Failure> {
    match given.value {
        Value::Text(text) => Ok((given.name, text)),
        Value::Json(_) | Value::Member(_) => {
            Err(Failure::usage(format_args!("`{}` must be a text: prompts take nothing else", given.name))
                .hint(format_args!("write {}=value", given.name)))
        }
    }
}

/// What is wrong by name, before anything is sent.
pub fn check(name: &str, given: &[(String, String)], prompts: &[PromptDefinition]) -> Result<(), Failure> {
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
        let names = prompts.iter().map(|prompt| prompt.name.as_str());
        return Err(Failure::usage(format_args!("there is no prompt `{name}`")).hint(suggestion(name, names)));
    };
    let is_missing =
        |argument: &&PromptArgument| argument.required && !given.iter().any(|(known, _)| *known == argument.name);
    let missing: Vec<&PromptArgument> = prompt.arguments.iter().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|argument| argument.name.as_str()).collect();
    let all: Vec<&str> = prompt.arguments.iter().map(|argument| argument.name.as_str()).collect();
    let failure = Failure::usage(format_args!("the prompt `{name}` needs {}", quoted(&names)));
    let described = |argument: &&PromptArgument| {
        argument.description.as_ref().map(|about| format!("`{}`: {}", argument.name, Shown::line(about, LONGEST)))
    };
    let failure = missing.iter().filter_map(described).fold(failure, Failure::hint);
    Err(failure.hint(format_args!("it takes: {}", quoted(&all))))
}

pub async fn expand(
    connection: &Connection,
    name: &str,
    arguments: &[(String, String)],
) -> Result<PromptResult, Failure> {
    let expanded = connection.get_prompt(name, arguments, CallOptions::default()).await;
    expanded.map_err(|error| Failure::calling(connection, error))
}

fn shown(expanded: &PromptResult) -> String {
    let mut text = String::new();
    for (number, message) in expanded.messages.iter().enumerate() {
        let gap = if number == 0 { "" } else { "\n" };
        let role = Untrusted::new(message.role.as_str()).to_string();
        let said = text_view(std::slice::from_ref(&message.content));
        let _ = writeln!(text, "{gap}{}\n{}", paint(HEADING, role + ":"), Untrusted::new(said.trim_end()).block());
    }
    text
}
