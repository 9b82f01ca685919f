//! `wharf call`: one tool, once.

mod follow;

use std::time::{Duration, Instant};

use serde::Serialize;
use wharf_client::{CallError, Connection, Listing};
use wharf_spec::Untrusted;
use wharf_wire::{Raw, TaskSupport, ToolDefinition, ToolResult};

use crate::call_arguments::{Given, Schema, compose, read_object, read_words};
use crate::clock::millis;
use crate::content::text_view;
use crate::failure::{Ending, Failure, Kind, Outcome, Told};
use crate::nearest::suggestion;
use crate::servers::{OneServer, connect_one};
use crate::services::ServiceArgs;
use crate::session::{Common, Session};
use crate::stdin;

use follow::{AsTask, Calling};

pub use follow::progress_text;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Arguments:
  name=value     a text, number, boolean or JSON, as the tool's schema wants it
  name:=JSON     JSON, sent as it is
  name=@FILE     the text of a file
  --args JSON    a whole object; name=value goes before what it says

A tool may ask you something before it answers: at a terminal you are asked, and --answer answers beforehand.

Examples:
  wharf call echo text=\"hello there\" --stdio \"wharf demo-server\"
  wharf call add a=1 b=2 --json --stdio \"wharf demo-server\"
  wharf call json_response 'list:=[1,2]' note=@notes.txt --stdio \"wharf demo-server\"
  echo '{\"text\":\"from a pipe\"}' | wharf call echo --args - --stdio \"wharf demo-server\"
  wharf call book_berth --answer email=ada@harbour.example --answer nights=3 --stdio \"wharf demo-server\"
  wharf call unload_ship containers=9 --task --stdio \"wharf demo-server\"")]
pub struct Args {
    /// The tool's name
    tool: String,
    /// Its arguments: name=value, name:=JSON or name=@FILE
    #[arg(value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// Its arguments as a JSON object; - reads it from stdin
    #[arg(long, value_name = "JSON|-")]
    args: Option<String>,
    /// Have the server make a task of it, and stay with it however long it takes; Ctrl-C cancels it
    #[arg(long)]
    task: bool,
    #[command(flatten)]
    services: ServiceArgs,
    #[command(flatten)]
    server: OneServer,
    #[command(flatten)]
    pub common: Common,
}

/// The document of a call.
#[derive(Serialize)]
struct CallDocument<'a> {
    schema: u32,
    success: bool,
    output: &'a str,
    data: Option<&'a Raw>,
    error: Option<Told<'a>>,
    content: &'a Raw,
    server: &'a str,
    tool: &'a str,
    duration_ms: u64,
}

pub async fn run(args: &Args, session: &Session) -> Outcome {
    let given = read(args, session).await?;
    let server = args.server.resolve(&session.surroundings, &session.console)?;
    let mut offer = args.services.offer(session)?;
    let services = offer.services.clone().tasks();
    let connection = connect_one(session, &server, &services).await?;
    let known = look_up(session, &connection, &args.tool).await?;
    let arguments =
        compose(given, &args.tool, known.schema.as_ref()).map_err(|failure| failure.about(&connection.facts().name))?;
    let as_task = match (args.task, known.only_as_task) {
        (true, _) => AsTask::Wished,
        (false, true) => AsTask::Needed,
        (false, false) => AsTask::IfServerWants,
    };
    let began = Instant::now();
    let calling = Calling { session, connection: &connection, tool: &args.tool, arguments: &arguments, as_task };
    let answer = offer.during(calling.settle()).await?;
    show(session, &Answered { server: &server.name, tool: &args.tool, answer: &answer, took: began.elapsed() })
}

/// Everything that was typed or piped in, before any server is started.
async fn read(args: &Args, session: &Session) -> Result<Vec<Given>, Failure> {
    let mut given = match args.args.as_deref() {
        None => Vec::new(),
        Some("-") => {
            let read = stdin::read_all().await;
            read_object(read.map_err(|error| Failure::usage(format_args!("stdin cannot be read: {error}")))?)?
        }
        Some(text) => read_object(text.to_owned())?,
    };
    given.extend(read_words(&args.arguments, &session.surroundings.cwd)?);
    Ok(given)
}

/// What a tool's definition says about calling it. Nothing, where there is no definition.
#[derive(Default)]
struct Known {
    schema: Option<Schema>,
    only_as_task: bool,
}

/// Looks a tool up in the server's list. A list that cannot be had costs what it says and nothing else.
async fn look_up(session: &Session, connection: &Connection, tool: &str) -> Result<Known, Failure> {
    match connection.list_tools().await {
        Ok(listing) => {
            let tool = find(connection, &listing, tool)?;
            let only_as_task = tool.task_support == TaskSupport::Required;
            Ok(Known { schema: tool.input_schema.as_ref().map(Schema::read), only_as_task })
        }
        Err(error @ (CallError::Refused(_) | CallError::Protocol(_) | CallError::Listing { .. })) => {
            let server = &connection.facts().name;
            session.console.warn(format_args!("{server}: {error}; arguments go out as they were typed"));
            Ok(Known::default())
        }
        Err(error) => Err(Failure::calling(connection, error)),
    }
}

fn find<'a>(
    connection: &Connection,
    listing: &'a Listing<ToolDefinition>,
    wanted: &str,
) -> Result<&'a ToolDefinition, Failure> {
    if let Some(tool) = listing.items.iter().find(|tool| tool.name == wanted) {
        return Ok(tool);
    }
    let server = &connection.facts().name;
    if let Some(withheld) = listing.withheld.iter().find(|withheld| withheld.name.as_deref() == Some(wanted)) {
        let reason = &withheld.reason;
        return Err(Failure::usage(format_args!("the tool `{wanted}` is malformed: {reason}")).about(server));
    }
    let names = listing.items.iter().map(|tool| tool.name.as_str());
    Err(Failure::usage(format_args!("there is no tool `{wanted}`")).about(server).hint(suggestion(wanted, names)))
}

/// A call that was answered.
struct Answered<'a> {
    server: &'a str,
    tool: &'a str,
    answer: &'a ToolResult,
    took: Duration,
}

fn show(session: &Session, answered: &Answered<'_>) -> Outcome {
    let Answered { server, tool, answer, took } = answered;
    let output = output_of(answer);
    let failure = answer.is_error.then(|| tool_failure(server, tool, &output));
    if session.console.manner.json {
        let none = Raw::of::<[u8; 0]>(&[]).map_err(Failure::other)?;
        session.console.document(&CallDocument {
            schema: 1,
            success: !answer.is_error,
            output: &output,
            data: answer.structured.as_ref(),
            error: failure.as_ref().map(Failure::told),
            content: answer.content_raw.as_ref().unwrap_or(&none),
            server,
            tool,
            duration_ms: millis(*took),
        })?;
        return Ok(failure.map_or(Ending::Fine, |failure| Ending::Told(failure.kind)));
    }
    let end = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
    session.console.print(format_args!("{}{end}", Untrusted::new(output.as_str()).block()))?;
    match failure {
        None => Ok(Ending::Fine),
        Some(mut failure) => {
            // Its own words stand above, on stdout.
            failure.error.message = format!("the tool `{tool}` answered with an error");
            Err(failure)
        }
    }
}

/// The text of the answer; where there are no blocks, its structured data.
fn output_of(answer: &ToolResult) -> String {
    match &answer.structured {
        Some(data) if answer.content.is_empty() => data.get().to_owned(),
        _ => text_view(&answer.content),
    }
}

fn tool_failure(server: &str, tool: &str, output: &str) -> Failure {
    let message =
        if output.is_empty() { format!("the tool `{tool}` answered with an error") } else { output.to_owned() };
    let mut failure = Failure::other(message).about(server);
    failure.kind = Kind::ToolError;
    failure
}
