//! The REPL: an input line, and all output above it.
//!
//! [`ReplSession::next`] waits for the next event and [`ReplSession::handle`] handles it. Slow work runs as a local task, so that
//! input never waits for a server.

mod announce;
mod choosing;
pub mod complete;
pub mod desk;
mod line;
pub mod markdown;
pub mod mention;
mod orders;
mod show;
pub mod slash;
mod start;
mod ticks;
mod turns;
mod wishes;

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use wharf::{Events, Heard, Host};
use wharf_agent::{AgentRun, RunEvent};

use self::announce::Announced;
use self::choosing::ModelSelection;
use self::desk::{Desk, DeskEvent};
use self::show::Show;
use self::slash::Done;
use self::start::ModelNames;
use self::ticks::SpinnerInterval;
use self::turns::{ConversationHolder, Turns};
use wharf_terminal::chat::Chat;
use wharf_terminal::chat::models::Chosen;
use wharf_terminal::control::{Control, Order};
use wharf_terminal::editor::{Editor, Typed};
use wharf_terminal::errands::Errands;
use wharf_terminal::failure::{Ending, Failure, Kind};
use wharf_terminal::fleet::ManagedHost;
use wharf_terminal::session::Session;

pub use start::{Args, run};

/// Maximum delay of the next prompt after a command, so that short output appears before the prompt.
const FIRST_WORDS: Duration = Duration::from_millis(150);

/// Maximum consecutive run events before other events are handled.
const LONGEST_STREAK: u32 = 200;

/// State of one interactive session.
struct ReplSession<'a> {
    session: &'a Session,
    fleet: &'a ManagedHost<'a>,
    /// Model names for completion.
    model_names: ModelNames,
    editor: Editor,
    desk: Desk<'a>,
    chat: Chat<'a>,
    show: Show,
    errands: Errands<'a, Done>,
    /// Queued user input and commands that change the conversation.
    turns: Turns<'a>,
    choosing: Option<ModelSelection>,
    events: Events,
    /// Signals changes of the configuration files.
    configs: mpsc::Receiver<()>,
    control: Option<Control>,
    announced: Announced,
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
    went_wrong: Option<Kind>,
}

/// An event of the REPL loop.
enum News {
    Typed(Typed),
    PromptDue,
    Desk(DeskEvent),
    Run(Option<RunEvent>),
    /// The run has sent its maximum of consecutive events, and no other event is pending.
    NobodyElse,
    Tick,
    Errand(Done),
    Turn(Done),
    Chosen(Result<Box<Chosen>, Failure>),
    Host(Option<Heard>),
    Configured,
    Ordered(Order),
}

/// Decision to continue or exit the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    Leave,
}

impl<'a> ReplSession<'a> {
    fn host(&self) -> &'a Host {
        &self.fleet.host
    }

    /// Runs the event loop until the user exits.
    async fn live(&mut self) -> Result<Ending, Failure> {
        loop {
            let news = self.next().await;
            if self.handle(news).await? == Next::Leave {
                break;
            }
            if self.over && self.is_idle() {
                break;
            }
        }
        self.session.console.clear();
        let run = self.run.take();
        self.chat.farewell(run, |_| ()).await;
        // A terminal user has seen the failure; a script needs the exit code.
        let told = self.went_wrong.filter(|_| !self.editor.is_terminal());
        Ok(told.map_or(Ending::Fine, Ending::Told))
    }

    /// Waits for the next event. [`ReplSession::handle`] handles it.
    async fn next(&mut self) -> News {
        // Piped input is handled one line at a time.
        let listens = !self.over && (self.editor.is_terminal() || self.is_idle());
        let due = self.prompt_due;
        let (runs, holder) = (self.run.is_some(), self.holder());
        let has_patience = self.heard_of_run < LONGEST_STREAK;
        tokio::select! {
            // Order matters: run events come before the run's questions, up to the streak limit.
            biased;
            typed = self.editor.next(), if listens => News::Typed(typed),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => News::PromptDue,
            () = self.ticks.next(), if runs => News::Tick,
            event = next_of(&mut self.run), if has_patience => News::Run(event),
            news = self.desk.next() => News::Desk(news),
            done = self.errands.next() => News::Errand(done),
            chosen = ModelSelection::next(&mut self.choosing) => News::Chosen(chosen),
            done = self.turns.next(holder) => News::Turn(done),
            heard = self.events.next() => News::Host(heard),
            Some(()) = self.configs.recv() => News::Configured,
            order = ordered(&mut self.control) => News::Ordered(order),
            () = std::future::ready(()), if !has_patience => News::NobodyElse,
        }
    }

    async fn handle(&mut self, news: News) -> Result<Next, Failure> {
        self.heard_of_run = match news {
            News::Run(_) => self.heard_of_run + 1,
            // A tick does not end a streak.
            News::Tick => self.heard_of_run,
            _ => 0,
        };
        match news {
            News::Typed(typed) => return self.typed(typed).await,
            News::PromptDue => self.prompt(),
            News::Desk(news) => self.asked(news),
            News::Run(event) => self.ran(event).await?,
            News::NobodyElse => {}
            News::Tick => self.tick(),
            News::Errand(done) | News::Turn(done) => return Ok(self.done(done).await),
            News::Chosen(chosen) => self.chosen(chosen)?,
            News::Host(None) => return Ok(Next::Leave),
            News::Host(Some(heard)) => self.announced.heard(&heard, self.host(), self.session),
            News::Configured => self.catch_up(),
            News::Ordered(order) => self.ordered(order),
        }
        Ok(Next::GoOn)
    }

    /// Updates the status line, or clears it while a question is open.
    fn tick(&mut self) {
        match self.desk.field() {
            Some(_) => self.session.console.clear(),
            None => self.show.tick(),
        }
    }

    /// Reports whether no work is pending.
    fn is_idle(&self) -> bool {
        self.holder() == ConversationHolder::Nobody && self.errands.is_empty() && self.turns.is_empty()
    }

    /// Returns the current holder of the conversation. During a model selection, messages wait.
    fn holder(&self) -> ConversationHolder {
        if self.run.is_some() || self.choosing.is_some() { ConversationHolder::Run } else { ConversationHolder::Nobody }
    }

    /// Allows the next line to be typed.
    fn prompt(&mut self) {
        self.prompt_due = None;
        self.editor.again();
    }

    /// Updates the editor after a change of the open question.
    fn asked(&mut self, news: DeskEvent) {
        self.editor.asks(self.desk.field());
        if let DeskEvent::Approved(_) = news {
            self.catch_up();
        }
    }
}

impl Drop for ReplSession<'_> {
    /// On every exit path, the conversation is saved and the run is cancelled before the servers are closed.
    fn drop(&mut self) {
        self.chat.last_word(self.run.take(), |_| ());
    }
}

/// Waits for the next event of the run. Never resolves without a run.
async fn next_of(run: &mut Option<AgentRun>) -> Option<RunEvent> {
    match run {
        Some(run) => run.next().await,
        None => std::future::pending().await,
    }
}

async fn ordered(control: &mut Option<Control>) -> Order {
    match control {
        Some(control) => control.next().await,
        None => std::future::pending().await,
    }
}
