//! How the REPL begins: the prompt first, then everything else.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use wharf::{Asker, Host, WhenAsked};
use wharf_agent::SavedConversation;
use wharf_config::{Approval, Configured, Watch};

use super::Repl;
use super::announce::Announced;
use super::complete::{Completions, Other, Others};
use super::desk::{Desk, rule_sink};
use super::editor::{Editor, EditorOptions};
use super::errands::{Done, Errands};
use super::show::Show;
use super::slash::Wish;
use crate::chat::models::{Chosen, Models};
use crate::chat::{self, Chat};
use crate::control::Control;
use crate::failure::{Failure, Outcome};
use crate::fleet::{Fleet, Known, follow};
use crate::hosting::{Standing, start_standing};
use crate::session::{Common, Session};
use crate::style::{HEADING, NAME, QUIET, paint};

/// How long the first line of a script waits for servers that are starting.
const SETTLING: Duration = Duration::from_secs(30);

/// Conversations that are suggested.
const LISTED: usize = 20;

/// What `wharf` alone takes.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Conversation")]
pub struct Args {
    /// Talk to this model: `provider/model`
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Go on with a conversation: the last one, or the one of this name
    #[arg(long, value_name = "CONVERSATION", num_args = 0..=1, require_equals = true, default_missing_value = "last")]
    resume: Option<String>,
    /// Allow whatever a person would be asked about; what rules deny stays denied
    #[arg(long)]
    dangerously_skip_permissions: bool,
}

impl Args {
    /// Whether any of it was given.
    pub fn is_any(&self) -> bool {
        self.model.is_some() || self.resume.is_some() || self.dangerously_skip_permissions
    }

    pub fn common(&self) -> Common {
        Common::default()
    }
}

/// Runs the REPL to its end. The prompt is there first; whatever is typed meanwhile waits.
pub async fn run(args: &Args, session: &Session) -> Outcome {
    let (known_host, model_names) = (Arc::new(OnceLock::new()), Arc::new(OnceLock::new()));
    let editor = Editor::start(EditorOptions {
        console: session.console.clone(),
        history: session.configuration.state.as_ref().map(|state| state.join("history")),
        completions: Completions {
            host: Arc::clone(&known_host),
            runtime: Handle::current(),
            others: Some(others(session, Arc::clone(&model_names))),
        },
    })?;
    let watch = watch(session).await?;
    let known = Known::resolve(session, session.configuration.config()?.clone(), &[]).await;
    let models = Models::of(session)?;
    let _ = model_names.set(models.names());
    let chosen = chosen(args, &models).await?;
    let (mut desk, asker) = Desk::new(session);
    // Before the host is made, which declares to servers what they may ask for.
    desk.lend(chosen.as_ref().map(|chosen| chosen.model.clone()));
    let host = start_standing(session, &known.entries, standing(args, session, asker, &editor)).await?;
    // Set once, here.
    let _ = known_host.set(host.clone());
    let mut announced = Announced::default();
    announced.begin(&known, session);
    if editor.is_terminal() {
        desk.ask_approvals(unapproved(&known));
    }
    let fleet = Fleet::new(session, host.clone(), known, &[]);
    let mut chat = Chat::new(session, &host);
    chosen.into_iter().for_each(|chosen| chat.choose(chosen));
    greet(session, &fleet, &chat);
    let mut repl = Repl {
        session,
        fleet: &fleet,
        models: &models,
        show: Show::new(session.console.clone(), Arc::clone(host.registry())),
        editor,
        desk,
        chat,
        errands: Errands::default(),
        events: host.events(),
        configs: Some(follow(watch)),
        control: Control::open(session),
        announced,
        run: None,
        heard_of_run: 0,
        queue: VecDeque::new(),
        prompt_due: None,
        interrupted: false,
        over: false,
        worst: None,
    };
    repl.begin_with(args).await;
    repl.live().await
}

impl Repl<'_> {
    async fn begin_with(&mut self, args: &Args) {
        self.announced.catch_up(self.host(), self.session);
        if !self.editor.is_terminal() {
            self.errands.send(settle(self.host()));
        }
        if let Some(id) = &args.resume {
            self.resume(Some(id.clone()).filter(|id| id != "last")).await;
        }
    }
}

async fn watch(session: &Session) -> Result<Watch, Failure> {
    let (places, around) = (session.configuration.places.clone(), session.surroundings.clone());
    tokio::task::spawn_blocking(|| Watch::new(places, around)).await.map_err(Failure::other)
}

/// Names for completion that no server knows.
fn others(session: &Session, models: Arc<OnceLock<Vec<String>>>) -> Others {
    let conversations = chat::directory(session);
    Arc::new(move |kind| match kind {
        Other::Models => models.get().cloned().unwrap_or_default(),
        Other::Conversations => {
            let directory = conversations.as_deref();
            let saved = directory.and_then(|directory| SavedConversation::list(directory, LISTED).ok());
            saved.unwrap_or_default().into_iter().map(|saved| saved.id).collect()
        }
    })
}

/// Whom the host asks: whoever sits at the terminal, or nobody.
fn standing(args: &Args, session: &Session, asker: Arc<dyn Asker>, editor: &Editor) -> Standing {
    Standing {
        asker: editor.is_terminal().then_some(asker),
        when_asked: if args.dangerously_skip_permissions { WhenAsked::Allow } else { WhenAsked::Ask },
        sink: editor.is_terminal().then(|| rule_sink(session)),
    }
}

/// The model to begin with. One that was named has to be there; that there is none is told when somebody talks to it.
async fn chosen(args: &Args, models: &Models) -> Result<Option<Chosen>, Failure> {
    match models.choose(args.model.as_deref()).await {
        Ok(chosen) => Ok(Some(chosen)),
        Err(failure) if args.model.is_some() => Err(failure),
        Err(_) => Ok(None),
    }
}

/// Waits for the servers: a script does not type again.
async fn settle(host: &Host) -> Done {
    let _ = tokio::time::timeout(SETTLING, host.settled()).await;
    Ok(Wish::Nothing)
}

/// The project's servers that nobody has looked at yet.
fn unapproved(known: &Known) -> Vec<Configured> {
    let waits = |server: &&Configured| matches!(server.approval, Approval::Needed | Approval::Changed);
    known.config.servers.iter().chain(&known.config.beside).filter(waits).cloned().collect()
}

/// One line: what this is, what there is, what to type.
fn greet(session: &Session, fleet: &Fleet<'_>, chat: &Chat<'_>) {
    if !session.console.has_status() {
        return;
    }
    let servers = match fleet.known().entries.len() {
        0 => "no servers".to_owned(),
        1 => "1 server".to_owned(),
        count => format!("{count} servers"),
    };
    let model = chat.chosen().map_or("no model: /model says how to set one".to_owned(), |chosen| chosen.name.clone());
    let (name, model, help) = (paint(HEADING, "wharf"), paint(NAME, model), paint(QUIET, "/help"));
    session.console.say(format_args!("{name} {} · {servers} · {model} · {help}", env!("CARGO_PKG_VERSION")));
}
