//! `wharf call`: one tool, once.

use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::watch;
use wharf_client::{CallError, CallOptions, Connection, Listing};
use wharf_spec::Untrusted;
use wharf_wire::{Progress, Raw, ToolDefinition, ToolResult};

use crate::call_arguments::{Given, Schema, compose, read_object, read_words};
use crate::clock::millis;
use crate::content::text_view;
use crate::failure::{Ending, Failure, Kind, Outcome, Told};
use crate::nearest::suggestion;
use crate::servers::{OneServer, connect_one};
use crate::session::{Common, Session};
use crate::stdin;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Arguments:
  name=value     a text, number, boolean or JSON, as the tool's schema wants it
  name:=JSON     JSON, sent as it is
  name=@FILE     the text of a file
  --args JSON    a whole object; name=value goes before what it says

Examples:
  wharf call echo text=\"hello there\" --stdio \"wharf demo-server\"
  wharf call add a=1 b=2 --json --stdio \"wharf demo-server\"
  wharf call json_response 'list:=[1,2]' note=@notes.txt --stdio \"wharf demo-server\"
  echo '{\"text\":\"from a pipe\"}' | wharf call echo --args - --stdio \"wharf demo-server\"")]
pub struct Args {
    /// The tool's name
    tool: String,
    /// Its arguments: name=value, name:=JSON or name=@FILE
    #[arg(value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// Its arguments as a JSON object; - reads it from stdin
    #[arg(long, value_name = "JSON|-")]
    args: Option<String>,
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
    let connection = connect_one(session, &server).await?;
    let schema = schema_of(session, &connection, &args.tool).await?;
    let arguments =
        compose(given, &args.tool, schema.as_ref()).map_err(|failure| failure.about(&connection.facts().name))?;
    let began = Instant::now();
    let answer = call(session, &connection, &args.tool, &arguments).await;
    session.console.clear();
    let answer = answer.map_err(|error| Failure::calling(&connection, error))?;
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

/// The schema of a tool that is listed. A list that cannot be had costs the schema and nothing else.
async fn schema_of(session: &Session, connection: &Connection, tool: &str) -> Result<Option<Schema>, Failure> {
    match connection.list_tools().await {
        Ok(listing) => Ok(find(connection, &listing, tool)?.input_schema.as_ref().map(Schema::read)),
        Err(error @ (CallError::Refused(_) | CallError::Protocol(_) | CallError::Listing { .. })) => {
            let server = &connection.facts().name;
            session.console.warn(format_args!("{server}: {error}; arguments go out as they were typed"));
            Ok(None)
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

/// Calls, and shows progress meanwhile. Dropped, it withdraws the call.
async fn call(
    session: &Session,
    connection: &Connection,
    tool: &str,
    arguments: &Raw,
) -> Result<ToolResult, CallError> {
    // Only the last report counts: a server that sends a million of them costs nothing.
    let (report, mut reports) = watch::channel(None);
    let options = CallOptions::default().progress(move |progress| {
        let _ = report.send(Some(progress));
    });
    let answer = connection.call_tool(tool, arguments, options);
    tokio::pin!(answer);
    let head = format!("{} · {}", connection.facts().name, Untrusted::new(tool));
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            Ok(()) = reports.changed() => {
                if let Some(progress) = &*reports.borrow_and_update() {
                    show_progress(session, &head, progress);
                }
            }
        }
    }
}

fn show_progress(session: &Session, head: &str, progress: &Progress) {
    let line = format!("{head}  {}", progress_text(progress));
    if session.console.has_status() {
        session.console.status(&line);
    } else if session.console.manner.debug {
        session.console.say(line);
    }
}

/// `40% message`, or the bare number where the total is not known.
pub fn progress_text(progress: &Progress) -> String {
    let done = match progress.total {
        Some(total) if total > 0.0 => format!("{:.0}%", (progress.progress / total * 100.0).clamp(0.0, 100.0)),
        _ => progress.progress.to_string(),
    };
    let message = progress.message.as_deref().unwrap_or_default();
    format!("{done} {}", Untrusted::new(message).shortened(200)).trim_end().to_owned()
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
