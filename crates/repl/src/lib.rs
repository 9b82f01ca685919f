//! The REPL: an input line, and all output above it.
//!
//! `ReplSession::next` waits for the next event and `ReplSession::handle` handles it. Slow work runs as a local task, so
//! that input never waits for a server.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod actions;
mod complete;
mod control_requests;
mod input_handling;
mod input_queue;
mod markdown;
mod mention;
mod model_selection;
mod question_desk;
mod recent_results;
mod run_renderer;
mod server_notices;
mod slash;
mod spinner_interval;
mod start;

use std::ops::ControlFlow;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use wharf::{EventDelivery, EventReceiver, Host};
use wharf_agent::{AgentRun, RunEvent};
use wharf_spec::UntrustedText;

use self::input_queue::{ConversationState, InputQueue};
use self::model_selection::ModelSelection;
use self::question_desk::{DeskEvent, QuestionDesk};
use self::run_renderer::RunRenderer;
use self::server_notices::ServerNotices;
use self::slash::ActionResult;
use self::spinner_interval::SpinnerInterval;
use self::start::ModelNames;
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
    renderer: RunRenderer,
    local_tasks: LocalTasks<'a, ActionResult>,
    /// Queued user input and commands that change the conversation.
    input_queue: InputQueue<'a>,
    model_selection: Option<ModelSelection>,
    events: EventReceiver,
    /// Signals changes of the configuration files.
    config_changes: mpsc::Receiver<()>,
    control: Option<ControlSocket>,
    notices: ServerNotices,
    run: Option<AgentRun>,
    spinner: SpinnerInterval,
    /// Number of consecutive run events.
    run_event_streak: u32,
    /// Time at which the next prompt is shown at the latest.
    prompt_due: Option<Instant>,
    /// Time of a Ctrl-C without later input.
    interrupted: Option<Instant>,
    /// Set at end of input.
    input_ended: bool,
    /// Kind of the last failure, for the exit code.
    last_failure: Option<FailureKind>,
}

/// An event of the REPL loop.
enum ReplEvent {
    Typed(EditorInput),
    PromptDue,
    Desk(DeskEvent),
    Run(Option<RunEvent>),
    /// The run has sent its maximum of consecutive events, and no other event is pending.
    StreakEnd,
    Tick,
    TaskDone(ActionResult),
    InputReady(ActionResult),
    ModelSelected(Result<Box<SelectedModel>, Failure>),
    Host(Option<EventDelivery>),
    ConfigChanged,
    ControlRequest(PendingControlRequest),
}

impl<'a> ReplSession<'a> {
    fn host(&self) -> &'a Host {
        &self.managed_host.host
    }

    /// Runs the event loop until the user exits.
    async fn run_loop(&mut self) -> Result<CommandEnding, Failure> {
        loop {
            let event = self.next().await;
            if self.handle(event).await?.is_break() {
                break;
            }
            if self.input_ended && self.is_idle() {
                break;
            }
        }
        self.session.console.clear_status();
        self.print_farewell();
        let run = self.run.take();
        self.chat.shut_down(run, |_| ()).await;
        // A terminal user has seen the failure; a script needs the exit code.
        let exit_kind = self.last_failure.filter(|_| !self.editor.is_terminal());
        Ok(exit_kind.map_or(CommandEnding::Fine, CommandEnding::Reported))
    }

    /// Waits for the next event. [`ReplSession::handle`] handles it.
    async fn next(&mut self) -> ReplEvent {
        // Piped input is handled one line at a time.
        let accepts_input = !self.input_ended && (self.editor.is_terminal() || self.is_idle());
        let due = self.prompt_due;
        let (runs, state) = (self.run.is_some(), self.conversation_state());
        let may_poll_run = self.run_event_streak < MAX_RUN_EVENT_STREAK;
        tokio::select! {
            // Order matters: run events come before the run's questions, up to the streak limit.
            biased;
            typed = self.editor.next(), if accepts_input => ReplEvent::Typed(typed),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => ReplEvent::PromptDue,
            () = self.spinner.next(), if runs => ReplEvent::Tick,
            event = next_run_event(&mut self.run), if may_poll_run => ReplEvent::Run(event),
            event = self.question_desk.next() => ReplEvent::Desk(event),
            done = self.local_tasks.next() => ReplEvent::TaskDone(done),
            selected = ModelSelection::next(&mut self.model_selection) => ReplEvent::ModelSelected(selected),
            done = self.input_queue.next(state) => ReplEvent::InputReady(done),
            event = self.events.next() => ReplEvent::Host(event),
            Some(()) = self.config_changes.recv() => ReplEvent::ConfigChanged,
            request = next_control_request(&mut self.control) => ReplEvent::ControlRequest(request),
            () = std::future::ready(()), if !may_poll_run => ReplEvent::StreakEnd,
        }
    }

    async fn handle(&mut self, event: ReplEvent) -> Result<ControlFlow<()>, Failure> {
        self.run_event_streak = match event {
            ReplEvent::Run(_) => self.run_event_streak + 1,
            // A tick does not end a streak.
            ReplEvent::Tick => self.run_event_streak,
            _ => 0,
        };
        match event {
            ReplEvent::Typed(typed) => return self.on_input(typed).await,
            ReplEvent::PromptDue => self.prompt(),
            ReplEvent::Desk(event) => self.on_desk_event(event),
            ReplEvent::Run(event) => self.on_run_event(event).await?,
            ReplEvent::StreakEnd => {}
            ReplEvent::Tick => self.renderer.tick(),
            ReplEvent::TaskDone(done) | ReplEvent::InputReady(done) => return Ok(self.on_task_done(done).await),
            ReplEvent::ModelSelected(selected) => self.on_model_selected(selected)?,
            ReplEvent::Host(None) => return Ok(ControlFlow::Break(())),
            ReplEvent::Host(Some(event)) => self.notices.on_event(&event, self.host(), self.session),
            ReplEvent::ConfigChanged => self.reload_changed(),
            ReplEvent::ControlRequest(request) => self.on_control_request(request),
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reports whether no work is pending.
    fn is_idle(&self) -> bool {
        self.conversation_state() == ConversationState::Free
            && self.local_tasks.is_empty()
            && self.input_queue.is_empty()
    }

    /// Returns the state of the conversation. During a model selection, messages wait.
    fn conversation_state(&self) -> ConversationState {
        if self.run.is_some() || self.model_selection.is_some() {
            ConversationState::Busy
        } else {
            ConversationState::Free
        }
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
    fn on_desk_event(&mut self, event: DeskEvent) {
        let field = self.question_desk.field();
        self.renderer.set_question_open(field.is_some());
        self.editor.set_question(field);
        if let DeskEvent::Approved(_) = event {
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
