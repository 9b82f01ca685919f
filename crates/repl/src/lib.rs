//! The REPL: one line for a person, and everything that happens above it.
//!
//! What happens is gathered in [`Repl::next`] and decided, an arm each, in [`Repl::handle`]; whatever takes its time is an
//! errand, so that nothing that is typed ever waits for a server.

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
use wharf_agent::{Run, RunEvent};

use self::announce::Announced;
use self::choosing::Choosing;
use self::desk::{Desk, DeskNews};
use self::show::Show;
use self::slash::Done;
use self::start::ModelNames;
use self::ticks::Ticks;
use self::turns::{HeldBy, Turns};
use wharf_terminal::chat::Chat;
use wharf_terminal::chat::models::Chosen;
use wharf_terminal::control::{Control, Order};
use wharf_terminal::editor::{Editor, Typed};
use wharf_terminal::errands::Errands;
use wharf_terminal::failure::{Ending, Failure, Kind};
use wharf_terminal::fleet::Fleet;
use wharf_terminal::session::Session;

pub use start::{Args, run};

/// How long the next prompt waits for a command that was just typed: what it says comes first.
const FIRST_WORDS: Duration = Duration::from_millis(150);

/// Events of a run in a row before somebody else is heard.
const LONGEST_STREAK: u32 = 200;

/// Everything there is while somebody is at it.
struct Repl<'a> {
    session: &'a Session,
    fleet: &'a Fleet<'a>,
    /// For completion.
    model_names: ModelNames,
    editor: Editor,
    desk: Desk<'a>,
    chat: Chat<'a>,
    show: Show,
    errands: Errands<'a, Done>,
    /// What was typed for the conversation, and waits.
    turns: Turns<'a>,
    choosing: Option<Choosing>,
    events: Events,
    /// Says when the files have changed.
    configs: mpsc::Receiver<()>,
    control: Option<Control>,
    announced: Announced,
    run: Option<Run>,
    ticks: Ticks,
    /// Events of the run in a row.
    heard_of_run: u32,
    /// When the next line may be typed at the latest.
    prompt_due: Option<Instant>,
    /// When Ctrl-C was typed, if nothing was since.
    interrupted: Option<Instant>,
    /// No more is typed.
    over: bool,
    /// What last went wrong, for whoever reads the exit code.
    went_wrong: Option<Kind>,
}

/// What happened.
enum News {
    Typed(Typed),
    PromptDue,
    Desk(DeskNews),
    Run(Option<RunEvent>),
    /// The run has talked long enough, and nobody else has anything to say.
    NobodyElse,
    Tick,
    Errand(Done),
    Turn(Done),
    Chosen(Result<Box<Chosen>, Failure>),
    Host(Option<Heard>),
    Configured,
    Ordered(Order),
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    Leave,
}

impl<'a> Repl<'a> {
    fn host(&self) -> &'a Host {
        &self.fleet.host
    }

    /// Goes on until somebody leaves.
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
        // At a terminal everything was seen; a script wants to know.
        let told = self.went_wrong.filter(|_| !self.editor.is_terminal());
        Ok(told.map_or(Ending::Fine, Ending::Told))
    }

    /// Says what happened; deciding what to do about it is `handle`'s.
    async fn next(&mut self) -> News {
        // Through a pipe, one thing is done after the other.
        let listens = !self.over && (self.editor.is_terminal() || self.is_idle());
        let due = self.prompt_due;
        let (runs, holder) = (self.run.is_some(), self.holder());
        let has_patience = self.heard_of_run < LONGEST_STREAK;
        tokio::select! {
            // In this order: what a run has said comes before what it asks, unless it does not stop talking.
            biased;
            typed = self.editor.next(), if listens => News::Typed(typed),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => News::PromptDue,
            () = self.ticks.next(), if runs => News::Tick,
            event = next_of(&mut self.run), if has_patience => News::Run(event),
            news = self.desk.next() => News::Desk(news),
            done = self.errands.next() => News::Errand(done),
            chosen = Choosing::next(&mut self.choosing) => News::Chosen(chosen),
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
            // Time passes for everybody.
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

    /// Time passes; while a person is asked, nothing but the question moves.
    fn tick(&mut self) {
        match self.desk.field() {
            Some(_) => self.session.console.clear(),
            None => self.show.tick(),
        }
    }

    /// Whether nothing is under way.
    fn is_idle(&self) -> bool {
        self.holder() == HeldBy::Nobody && self.errands.is_empty() && self.turns.is_empty()
    }

    /// Who has the conversation. While a model is looked for, what is said waits for it.
    fn holder(&self) -> HeldBy {
        if self.run.is_some() || self.choosing.is_some() { HeldBy::Run } else { HeldBy::Nobody }
    }

    /// Lets the next line be typed.
    fn prompt(&mut self) {
        self.prompt_due = None;
        self.editor.again();
    }

    /// The table may hold another question now.
    fn asked(&mut self, news: DeskNews) {
        self.editor.asks(self.desk.field());
        if let DeskNews::Approved(_) = news {
            self.catch_up();
        }
    }
}

impl Drop for Repl<'_> {
    /// Whichever way it ends, what was said is saved, and servers hear that a run is over, before anything is closed.
    fn drop(&mut self) {
        self.chat.last_word(self.run.take(), |_| ());
    }
}

/// The next event of a run; never, where there is none.
async fn next_of(run: &mut Option<Run>) -> Option<RunEvent> {
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
