//! The REPL: an input line, and all output above it.
//!
//! `ReplSession::next` waits for the next event and `ReplSession::handle` handles it. Slow work runs as a local task, so
//! that input never waits for a server.

mod actions;
pub mod complete;
mod control_requests;
mod input_handling;
pub mod markdown;
pub mod mention;
mod model_selection;
pub mod question_desk;
mod recent_results;
mod run_renderer;
mod server_notices;
pub mod slash;
mod spinner_interval;
mod start;
mod turn_queue;

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use wharf::{EventDelivery, EventReceiver, Host};
use wharf_agent::{AgentRun, RunEvent};
use wharf_spec::UntrustedText;

use self::model_selection::ModelSelection;
use self::question_desk::{DeskEvent, QuestionDesk};
use self::run_renderer::RunRenderer;
use self::server_notices::ServerNotices;
use self::slash::ActionResult;
use self::spinner_interval::SpinnerInterval;
use self::start::ModelNames;
use self::turn_queue::{ConversationHolder, TurnQueue};
use wharf_terminal::chat::ChatSession;
use wharf_terminal::chat::models::SelectedModel;
use wharf_terminal::control::{ControlSocket, PendingControlRequest};
use wharf_terminal::editor::{EditorInput, InputEditor};
use wharf_terminal::failure::{CommandEnding, Failure, FailureKind};
use wharf_terminal::local_tasks::LocalTasks;
use wharf_terminal::managed_host::ManagedHost;
use wharf_terminal::session::CommandSession;

pub use start::{ReplArgs, run};

/// Maximum delay of the next prompt after a command, so that short output appears before the prompt.
const PROMPT_DELAY: Duration = Duration::from_millis(150);

/// Maximum consecutive run events before other events are handled.
const MAX_RUN_EVENT_STREAK: u32 = 200;

/// State of one interactive session.
struct ReplSession<'a> {
    session: &'a CommandSession,
    managed_host: &'a ManagedHost<'a>,
    /// Model names for completion.
    model_names: ModelNames,
    editor: InputEditor,
    question_desk: QuestionDesk<'a>,
    chat: ChatSession<'a>,
    show: RunRenderer,
    local_tasks: LocalTasks<'a, ActionResult>,
    /// Queued user input and commands that change the conversation.
    turns: TurnQueue<'a>,
    choosing: Option<ModelSelection>,
    events: EventReceiver,
    /// Signals changes of the configuration files.
    configs: mpsc::Receiver<()>,
    control: Option<ControlSocket>,
    announced: ServerNotices,
    run: Option<AgentRun>,
    ticks: SpinnerInterval,
    /// Number of consecutive run events.
    heard_of_run: u32,
    /// Time at which the next prompt is shown at the latest.
    prompt_due: Option<Instant>,
    /// Time of a Ctrl-C without later input.
    interrupted: Option<Instant>,
    /// Set at end of input.
    over: bool,
    /// Kind of the last failure, for the exit code.
    went_wrong: Option<FailureKind>,
}

/// An event of the REPL loop.
enum ReplEvent {
    Typed(EditorInput),
    PromptDue,
    Desk(DeskEvent),
    Run(Option<RunEvent>),
    /// The run has sent its maximum of consecutive events, and no other event is pending.
    NobodyElse,
    Tick,
    Errand(ActionResult),
    Turn(ActionResult),
    Chosen(Result<Box<SelectedModel>, Failure>),
    Host(Option<EventDelivery>),
    Configured,
    Ordered(PendingControlRequest),
}

/// Decision to continue or exit the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoopControl {
    GoOn,
    Leave,
}

impl<'a> ReplSession<'a> {
    fn host(&self) -> &'a Host {
        &self.managed_host.host
    }

    /// Runs the event loop until the user exits.
    async fn run_loop(&mut self) -> Result<CommandEnding, Failure> {
        loop {
            let news = self.next().await;
            if self.handle(news).await? == LoopControl::Leave {
                break;
            }
            if self.over && self.is_idle() {
                break;
            }
        }
        self.session.console.clear_status();
        self.print_farewell();
        let run = self.run.take();
        self.chat.shut_down(run, |_| ()).await;
        // A terminal user has seen the failure; a script needs the exit code.
        let told = self.went_wrong.filter(|_| !self.editor.is_terminal());
        Ok(told.map_or(CommandEnding::Fine, CommandEnding::Reported))
    }

    /// Waits for the next event. [`ReplSession::handle`] handles it.
    async fn next(&mut self) -> ReplEvent {
        // Piped input is handled one line at a time.
        let listens = !self.over && (self.editor.is_terminal() || self.is_idle());
        let due = self.prompt_due;
        let (runs, holder) = (self.run.is_some(), self.conversation_holder());
        let has_patience = self.heard_of_run < MAX_RUN_EVENT_STREAK;
        tokio::select! {
            // Order matters: run events come before the run's questions, up to the streak limit.
            biased;
            typed = self.editor.next(), if listens => ReplEvent::Typed(typed),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => ReplEvent::PromptDue,
            () = self.ticks.next(), if runs => ReplEvent::Tick,
            event = next_run_event(&mut self.run), if has_patience => ReplEvent::Run(event),
            news = self.question_desk.next() => ReplEvent::Desk(news),
            done = self.local_tasks.next() => ReplEvent::Errand(done),
            chosen = ModelSelection::next(&mut self.choosing) => ReplEvent::Chosen(chosen),
            done = self.turns.next(holder) => ReplEvent::Turn(done),
            heard = self.events.next() => ReplEvent::Host(heard),
            Some(()) = self.configs.recv() => ReplEvent::Configured,
            order = next_control_request(&mut self.control) => ReplEvent::Ordered(order),
            () = std::future::ready(()), if !has_patience => ReplEvent::NobodyElse,
        }
    }

    async fn handle(&mut self, news: ReplEvent) -> Result<LoopControl, Failure> {
        self.heard_of_run = match news {
            ReplEvent::Run(_) => self.heard_of_run + 1,
            // A tick does not end a streak.
            ReplEvent::Tick => self.heard_of_run,
            _ => 0,
        };
        match news {
            ReplEvent::Typed(typed) => return self.on_input(typed).await,
            ReplEvent::PromptDue => self.prompt(),
            ReplEvent::Desk(news) => self.on_desk_event(news),
            ReplEvent::Run(event) => self.on_run_event(event).await?,
            ReplEvent::NobodyElse => {}
            ReplEvent::Tick => self.tick(),
            ReplEvent::Errand(done) | ReplEvent::Turn(done) => return Ok(self.on_task_done(done).await),
            ReplEvent::Chosen(chosen) => self.on_model_selected(chosen)?,
            ReplEvent::Host(None) => return Ok(LoopControl::Leave),
            ReplEvent::Host(Some(heard)) => self.announced.on_event(&heard, self.host(), self.session),
            ReplEvent::Configured => self.reload_changed(),
            ReplEvent::Ordered(order) => self.on_control_request(order),
        }
        Ok(LoopControl::GoOn)
    }

    /// Updates the status line, or clears it while a question is open.
    fn tick(&mut self) {
        match self.question_desk.field() {
            Some(_) => self.session.console.clear_status(),
            None => self.show.tick(),
        }
    }

    /// Reports whether no work is pending.
    fn is_idle(&self) -> bool {
        self.conversation_holder() == ConversationHolder::Nobody && self.local_tasks.is_empty() && self.turns.is_empty()
    }

    /// Returns the current holder of the conversation. During a model selection, messages wait.
    fn conversation_holder(&self) -> ConversationHolder {
        if self.run.is_some() || self.choosing.is_some() { ConversationHolder::Run } else { ConversationHolder::Nobody }
    }

    /// Allows the next line to be typed.
    fn prompt(&mut self) {
        self.prompt_due = None;
        self.editor.resume();
    }

    /// Names the saved conversation and the command that resumes it, at a terminal only.
    fn print_farewell(&self) {
        if let Some(id) = self.chat.id().filter(|_| self.editor.is_terminal() && self.chat.turns() > 0) {
            let id = UntrustedText::new(id);
            self.session.console.say(format_args!("conversation {id} is saved; resume it with: wharf --resume={id}"));
        }
    }

    /// Updates the editor and the clocks of calls after a change of the open question.
    fn on_desk_event(&mut self, news: DeskEvent) {
        let field = self.question_desk.field();
        self.show.set_question_open(field.is_some());
        self.editor.set_question(field);
        if let DeskEvent::Approved(_) = news {
            self.reload_changed();
        }
    }
}

impl Drop for ReplSession<'_> {
    /// On every exit path, the conversation is saved and the run is cancelled before the servers are closed.
    fn drop(&mut self) {
        self.chat.end_on_shutdown(self.run.take(), |_| ());
    }
}

/// Waits for the next event of the run. Never resolves without a run.
async fn next_run_event(run: &mut Option<AgentRun>) -> Option<RunEvent> {
    match run {
        Some(run) => run.next_event().await,
        None => std::future::pending().await,
    }
}

async fn next_control_request(control: &mut Option<ControlSocket>) -> PendingControlRequest {
    match control {
        Some(control) => control.next().await,
        None => std::future::pending().await,
    }
}
