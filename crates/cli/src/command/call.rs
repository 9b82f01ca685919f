//! `wharf call`: calls one tool once.

mod argv;
pub mod find;
mod follow;
mod owner;
mod show;

use std::path::PathBuf;
use std::time::Instant;

use wharf::tools::ToolCaller;
use wharf::{CallOptions, HostError};
use wharf_spec::{ServerEntry, ToolId};
use wharf_wire::{TaskSupport, ToolDefinition};

use crate::tool_selector::{SelectedTool, select_tool};
use wharf_terminal::call_arguments::{InputSchema, ToolHelp, TypedArgument, TypedWords, compose, example, read_object};
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::one_shot_host::{OneShotHost, OneShotOptions, StartMode};
use wharf_terminal::servers::{ServerArg, configured_names, printable_word};
use wharf_terminal::services::{OfferedServices, ServiceArgs, warn_of_logs};
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::stdin;
use wharf_terminal::table::wrap;

use follow::{PreparedCall, TaskMode};
use show::{FinishedCall, show};

pub use argv::separate_options;
#[cfg(feature = "demo")]
pub use follow::progress_text;

/// Call a tool
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "wharf call [OPTIONS] [SERVER] <TOOL> [ARGUMENT]...\n       \
                      wharf call --stdio <COMMAND> <TOOL> [ARGUMENT]...\n       \
                      wharf call --url <URL> <TOOL> [ARGUMENT]...",
    after_help = "\
The server may be left out if only one has the tool. Server and tool may also be written as one word: server.tool, server/tool, server:tool, server__tool, \
mcp__server__tool, or any alias that `wharf tools --json` lists. Instead of a server name you can give a URL, or \
FILE:NAME for an entry of a configuration file.

Arguments:
  name=value    text, number, boolean or JSON, as the tool's
                schema demands
  name:value    the same
  --name value  the same; --name alone is true for a boolean
  name:=JSON    JSON, sent unchanged
  name=@FILE    the content of a text file
  --args JSON   a whole object, also --params
  --args -      an object from stdin; - alone does the same
  'tool(a: 1)'  a call expression; name=value overrides it

After the tool's name, --name is an argument of the tool, unless wharf has an option of that name. To pass such \
an argument to the tool, write name=value, or put it after --. Arguments are checked before anything is sent. \
`wharf call SERVER TOOL --help` lists the arguments of a tool.

A tool may ask for input before it returns: you are prompted at a terminal, and --answer answers in advance.

Examples:
  wharf call git log --max-count 3
  wharf call git.log max_count=3 --json
  wharf call https://example.org/mcp search query=\"tides\"
  wharf call echo text=hello --stdio \"wharf demo-server\"
  wharf call 'add(a: 1, b: 2)' --stdio \"wharf demo-server\"
  echo '{\"text\":\"from a pipe\"}' \\
      | wharf call echo - --stdio \"wharf demo-server\"
  wharf call book_berth --answer email=ada@harbour.example \\
      --answer nights=3 --stdio \"wharf demo-server\"
  wharf call unload_ship containers=9 --task \\
      --stdio \"wharf demo-server\""
)]
pub struct CallArgs {
    /// Server (unless given by --stdio or --url), tool, and the tool's arguments
    #[arg(value_name = "WORD", required = true)]
    words: Vec<String>,
    /// Tool arguments as a JSON object; - reads stdin
    #[arg(long, visible_alias = "params", value_name = "JSON|-")]
    args: Option<String>,
    /// Request a task and wait for it without a time limit; Ctrl-C cancels it
    #[arg(long)]
    task: bool,
    /// Save images, audio, embedded resources and other binary content to this directory
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    save: Option<PathBuf>,
    #[command(flatten)]
    services: ServiceArgs,
    #[command(flatten)]
    server: ServerArg,
    #[command(flatten)]
    pub common: CommonArgs,
}

pub async fn run(args: &CallArgs, session: &CommandSession) -> CommandResult {
    let names = if args.server.is_given() { Vec::new() } else { configured_names(session)? };
    let selected = select_tool(&args.words, &names, args.server.is_given())?;
    let wants_help = selected.rest.iter().any(|word| matches!(word.as_str(), "--help" | "-h"));
    if wants_help {
        return print_tool_help(args, session, &selected).await;
    }
    let (object, typed) = read_arguments(args, &selected, session).await?;
    let offer = args.services.prepare(session)?;
    let with = OneShotOptions::for_call(offer.services.clone().tasks(), StartMode::AtOnce);
    let (hosted, entry) = start_server(args, session, &selected, with).await?;
    CallCommand { args, session, hosted, selected: &selected, entry: &entry }.execute(object, typed, offer).await
}

/// Starts a host with the server of the call, or with the server that has a tool given alone.
async fn start_server<'a>(
    args: &CallArgs,
    session: &'a CommandSession,
    selected: &SelectedTool<'_>,
    with: OneShotOptions,
) -> Result<(OneShotHost<'a>, ServerEntry), Failure> {
    if selected.is_alone {
        return owner::start_owner(session, selected.tool, with).await;
    }
    let entry = args.server.resolve(session, selected.server).await?;
    Ok((OneShotHost::start(session, vec![entry.clone()], with).await?, entry))
}

/// Reads all arguments, from the command line and stdin, before any server starts.
async fn read_arguments(
    args: &CallArgs,
    selected: &SelectedTool<'_>,
    session: &CommandSession,
) -> Result<(Vec<TypedArgument>, TypedWords), Failure> {
    // A `-` after `--name` is that argument's value.
    let is_value =
        |at: usize| at > 0 && selected.rest[at - 1].starts_with("--") && !selected.rest[at - 1].contains('=');
    let is_stdin = |at: usize| selected.rest[at] == "-" && !is_value(at);
    let from_stdin = (0..selected.rest.len()).any(is_stdin);
    let object = match args.args.as_deref() {
        Some(text) if text != "-" => read_object(text.to_owned())?,
        None if !from_stdin => Vec::new(),
        _ => {
            let read = stdin::read_all().await;
            read_object(read.map_err(|error| Failure::usage(format_args!("cannot read stdin: {error}")))?)?
        }
    };
    let words: Vec<String> =
        (0..selected.rest.len()).filter(|at| !is_stdin(*at)).map(|at| selected.rest[at].clone()).collect();
    let typed = TypedWords::read(selected.expression, &words, &session.environment.cwd)?;
    Ok((object, typed))
}

/// A call to a server that is starting.
struct CallCommand<'a> {
    args: &'a CallArgs,
    session: &'a CommandSession,
    hosted: OneShotHost<'a>,
    selected: &'a SelectedTool<'a>,
    entry: &'a ServerEntry,
}

impl CallCommand<'_> {
    async fn execute(
        &self,
        mut given: Vec<TypedArgument>,
        typed: TypedWords,
        mut offer: OfferedServices,
    ) -> CommandResult {
        let Self { args, session, hosted, entry, .. } = self;
        let server = entry.name.as_str();
        let connection = hosted.ready(&entry.name).await?;
        warn_of_logs(session, &offer.services, &connection);
        let tool = find::find_tool(hosted, &entry.name, &connection, self.selected.tool).await?;
        let definition = &tool.definition;
        let schema = definition.input_schema.as_ref().map(InputSchema::decode);
        given.extend(typed.resolve(schema.as_ref(), &session.environment.cwd)?);
        let composed = compose(given, &definition.name, schema.as_ref());
        let composed = composed.map_err(|failure| self.with_example(failure, definition, schema.as_ref()))?;
        composed.warnings.iter().for_each(|warning| session.console.warn(format_args!("{server}: {warning}")));
        let arguments = &composed.arguments;
        let options = CallOptions::default().caller(ToolCaller::person());
        let id = ToolId::new(&entry.name, definition.name.as_str());
        let permit = hosted.host.permit(&id, arguments, options).await;
        let permit = permit.map_err(|error| self.permit_failure(error))?;
        let began = Instant::now();
        let (connection, timeout) = (permit.connection(), permit.timeout());
        let as_task = task_mode(args, definition);
        let calling = PreparedCall { session, connection, tool: &definition.name, arguments, as_task, timeout };
        let answer = offer.run_until_failure(async { Ok(calling.run().await) }).await?;
        let duration = began.elapsed();
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let failure = Failure::from_call_error(connection, error.clone());
                permit.finish(Err(&error));
                return Err(failure);
            }
        };
        permit.finish(Ok(&answer));
        show(
            session,
            &FinishedCall { server, tool: &definition.name, answer: &answer, duration, save: args.save.as_deref() },
        )
    }

    /// Converts the refusal of a call. A command in its hint reaches a server of `--stdio` only by the same option.
    fn permit_failure(&self, error: HostError) -> Failure {
        let is_refused = matches!(error, HostError::Denied(_));
        let failure = self.hosted.failure(&self.entry.name, error);
        match is_refused && self.args.server.is_given() {
            true => failure.with_hint("give the same --stdio or --url there instead of the server's name"),
            false => failure,
        }
    }

    /// Adds an example call to a failure.
    fn with_example(&self, failure: Failure, tool: &ToolDefinition, schema: Option<&InputSchema>) -> Failure {
        let failure = failure.about_server(self.entry.name.as_str());
        match schema {
            Some(schema) => failure
                .with_hint(format_args!("for example: {}", example(&command_prefix(self.selected, tool), schema))),
            None => failure,
        }
    }
}

fn task_mode(args: &CallArgs, tool: &ToolDefinition) -> TaskMode {
    match (args.task, tool.task_support == TaskSupport::Required) {
        (true, _) => TaskMode::Wished,
        (false, true) => TaskMode::Needed,
        (false, false) => TaskMode::IfServerWants,
    }
}

/// Returns the part of the command line that precedes the tool's arguments.
fn command_prefix(selected: &SelectedTool<'_>, tool: &ToolDefinition) -> String {
    let tool = wharf_spec::UntrustedText::new(tool.name.as_str()).truncate(200).to_string();
    match selected.server {
        Some(server) => format!("wharf call {} {tool}", printable_word(server)),
        None => format!("wharf call {tool}"),
    }
}

/// Prints the arguments of a tool. Does not start the server if the catalog of its last run has the tool.
async fn print_tool_help(args: &CallArgs, session: &CommandSession, selected: &SelectedTool<'_>) -> CommandResult {
    let services = args.services.prepare(session)?.services.tasks();
    let with = OneShotOptions::for_call(services, StartMode::WhenNeeded);
    let (hosted, entry) = start_server(args, session, selected, with).await?;
    let tool = match find::find_in_catalog(&hosted, &entry.name, selected.tool) {
        Some(tool) => tool,
        None => {
            let connection = hosted.ready(&entry.name).await?;
            find::find_tool(&hosted, &entry.name, &connection, selected.tool).await?
        }
    };
    let text = ToolHelp { line: &command_prefix(selected, &tool.definition), tool: &tool.definition }.text();
    session.console.print(format_args!("{}\n", wrap(&text, session.console.stdout_width()).trim_end()))?;
    Ok(CommandEnding::Fine)
}
