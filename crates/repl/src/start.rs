//! Startup of the REPL: the prompt first, then everything else.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::runtime::Handle;
use wharf::{AskPolicy, Asker};
use wharf_agent::SavedConversation;
use wharf_config::{Config, ConfigWatcher, ConfiguredServer};
use wharf_spec::ActivationState;

use super::ReplSession;
use super::complete::{CompletionSource, LocalNameKind, LocalNameSource};
use super::input_queue::InputQueue;
use super::model_selection::SelectionTrigger;
use super::question_desk::QuestionDesk;
use super::run_renderer::RunRenderer;
use super::server_notices::ServerNotices;
use super::slash::{ActionResult, ReplAction};
use super::spinner_interval::SpinnerInterval;
use wharf_terminal::chat::models::ModelCatalog;
use wharf_terminal::chat::{self, ChatSession};
use wharf_terminal::config_context::refers_to_secret;
use wharf_terminal::control::ControlSocket;
use wharf_terminal::editor::{EditorOptions, InputEditor};
use wharf_terminal::failure::{CommandResult, Failure};
use wharf_terminal::local_tasks::LocalTasks;
use wharf_terminal::managed_host::{LoadedConfig, ManagedHost, watch_config_files};
use wharf_terminal::one_shot_host::{ManagedHostOptions, start_managed};
use wharf_terminal::rule_sink::rule_sink;
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{HEADING, NAME, QUIET, paint};

/// Maximum number of conversations offered for completion.
const MAX_SUGGESTED: usize = 20;

/// Arguments of `wharf` without a subcommand.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Conversation")]
pub struct ReplArgs {
    /// Model to use, as `provider/model`
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Resume the last conversation, or the one with this id
    #[arg(long, value_name = "CONVERSATION", num_args = 0..=1, require_equals = true, default_missing_value = "last")]
    resume: Option<String>,
    /// Allow every call without asking; deny rules still apply
    #[arg(long)]
    dangerously_skip_permissions: bool,
    /// Print every message and step on stderr, as with WHARF_DEBUG=1
    #[arg(long, help_heading = "Output")]
    debug: bool,
}

/// Model names for completion: set by the REPL, read on the editor's thread.
#[derive(Clone, Default)]
pub struct ModelNames(Arc<Mutex<Vec<String>>>);

impl ReplArgs {
    /// Reports whether any argument was given.
    pub fn has_any(&self) -> bool {
        self.model.is_some() || self.resume.is_some() || self.dangerously_skip_permissions || self.debug
    }

    /// Returns the options that all commands share.
    pub fn common(&self) -> CommonArgs {
        CommonArgs { debug: self.debug, ..CommonArgs::default() }
    }
}

/// Runs the REPL to its end. The prompt appears first; input typed during startup waits.
pub async fn run(args: &ReplArgs, session: &CommandSession) -> CommandResult {
    let (known_host, model_names) = (Arc::new(OnceLock::new()), ModelNames::default());
    let editor = InputEditor::start(EditorOptions {
        console: session.console.clone(),
        history: session.configuration.state.as_ref().map(|state| state.join("history")),
        completions: Arc::new(CompletionSource {
            host: Arc::clone(&known_host),
            runtime: Handle::current(),
            others: Some(local_name_source(session, model_names.clone())),
        }),
    })?;
    let watch = watch(session).await?;
    let config = session.configuration.config()?;
    let models = ModelCatalog::new(session, config);
    model_names.set(&models);
    let (mut question_desk, asker) = QuestionDesk::new(session);
    let model = models.display_name(args.model.as_deref());
    if model.is_some() {
        // Must precede the creation of the host, which declares its capabilities to servers.
        question_desk.declare_sampling();
    }
    let known = load_without_secrets(session, config).await;
    let host = start_managed(session, &known.entries, host_options(args, session, asker, &editor)).await?;
    // Set only here.
    let _ = known_host.set(host.clone());
    if editor.is_terminal() {
        question_desk.ask_approvals(known.unapproved().cloned().collect(), Arc::clone(&known.config));
    }
    let managed_host = ManagedHost::new(session, host.clone(), known, &[]);
    print_greeting(session, &managed_host, model);
    let mut repl = ReplSession {
        session,
        managed_host: &managed_host,
        model_names,
        renderer: RunRenderer::new(session.console.clone(), Arc::clone(host.registry())),
        editor,
        question_desk,
        chat: ChatSession::new(session, &host),
        local_tasks: LocalTasks::default(),
        input_queue: InputQueue::default(),
        model_selection: None,
        events: host.events(),
        config_changes: watch_config_files(watch),
        control: ControlSocket::open(session),
        notices: ServerNotices::default(),
        run: None,
        spinner: SpinnerInterval::start(),
        run_event_streak: 0,
        prompt_due: None,
        interrupted: None,
        input_ended: false,
        last_failure: None,
    };
    repl.start_session(args).await;
    repl.run_loop().await
}

impl ReplSession<'_> {
    async fn start_session(&mut self, args: &ReplArgs) {
        self.notices.announce_failures(&self.managed_host.loaded_config(), self.session);
        self.notices.announce_current(self.host(), self.session);
        self.local_tasks.push(start_remaining_servers(self.managed_host));
        let why = if args.model.is_some() { SelectionTrigger::Started } else { SelectionTrigger::Usual };
        self.select_model(args.model.clone(), why);
        if let Some(id) = &args.resume {
            self.resume_conversation(Some(id.clone()).filter(|id| id != "last")).await;
        }
    }
}

async fn watch(session: &CommandSession) -> Result<ConfigWatcher, Failure> {
    let reader = session.configuration.reader.clone();
    wharf_threads::run_blocking(|| ConfigWatcher::new(reader)).await.map_err(Failure::other)
}

/// Returns the source of completion names that do not come from a server.
fn local_name_source(session: &CommandSession, models: ModelNames) -> LocalNameSource {
    let conversations = chat::conversations_directory(session);
    Arc::new(move |kind| match kind {
        LocalNameKind::Models => models.read(),
        LocalNameKind::Conversations => {
            let directory = conversations.as_deref();
            let saved = directory.and_then(|directory| SavedConversation::list(directory, MAX_SUGGESTED).ok());
            saved.unwrap_or_default().into_iter().map(|saved| saved.id).collect()
        }
    })
}

/// Returns the host options. Without a terminal the host has no asker and no rule sink.
fn host_options(
    args: &ReplArgs,
    session: &CommandSession,
    asker: Arc<dyn Asker>,
    editor: &InputEditor,
) -> ManagedHostOptions {
    ManagedHostOptions {
        asker: editor.is_terminal().then_some(asker),
        when_asked: if args.dangerously_skip_permissions { AskPolicy::Allow } else { AskPolicy::Ask },
        sink: editor.is_terminal().then(|| rule_sink(session)),
        has_agent: true,
        allowed: None,
        environment: None,
    }
}

/// Loads the servers that need no secret lookup. The other servers start later, so that a slow secret program delays
/// only its own server.
async fn load_without_secrets(session: &CommandSession, config: &Arc<Config>) -> LoadedConfig {
    let mut at_once = Config::clone(config);
    at_once.servers.retain(|server| !refers_to_secret(server));
    LoadedConfig { config: Arc::clone(config), ..LoadedConfig::resolve(session, Arc::new(at_once), &[]).await }
}

/// Starts the servers that need a secret lookup.
async fn start_remaining_servers(managed_host: &ManagedHost<'_>) -> ActionResult {
    if managed_host.loaded_config().config.servers.iter().any(refers_to_secret) {
        managed_host.reapply_config().await;
    }
    Ok(ReplAction::Started)
}

/// Prints the greeting: the version, the number of servers, the model and the help command.
fn print_greeting(session: &CommandSession, managed_host: &ManagedHost<'_>, model: Option<String>) {
    if !session.console.shows_status() {
        return;
    }
    let is_on = |server: &&ConfiguredServer| server.activation() == ActivationState::Enabled;
    let servers = match managed_host.loaded_config().config.servers.iter().filter(is_on).count() {
        0 => "no servers".to_owned(),
        1 => "1 server".to_owned(),
        count => format!("{count} servers"),
    };
    let model = model.unwrap_or_else(|| "no model (see /model)".to_owned());
    let (name, model, help) = (paint(HEADING, "wharf"), paint(NAME, model), paint(QUIET, "/help"));
    session.console.say(format_args!("{name} {} · {servers} · {model} · {help}", env!("CARGO_PKG_VERSION")));
}

impl ModelNames {
    /// Replaces the names.
    pub fn set(&self, models: &ModelCatalog) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = models.names();
    }

    fn read(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
