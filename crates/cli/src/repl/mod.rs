//! The REPL: one line for a person, and everything that happens above it.
//!
//! What happens is gathered in [`Repl::next`] and decided, an arm each, in [`Repl::handle`]; whatever takes its time is an
//! errand, so that nothing that is typed ever waits for a server.

mod announce;
pub mod complete;
pub mod desk;
pub mod editor;
mod errands;
mod line;
pub mod markdown;
pub mod mention;
mod orders;
pub mod screen;
mod show;
pub mod slash;
mod start;
mod wishes;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use wharf::{Events, Heard, Host};
use wharf_agent::{Block, Run, RunEvent};
use wharf_config::Config;

use self::announce::Announced;
use self::desk::{Desk, DeskNews};
use self::editor::{Editor, Typed};
use self::errands::{Done, Errands};
use self::show::Show;
use crate::chat::Chat;
use crate::chat::models::Models;
use crate::control::{Control, Order};
use crate::failure::{Ending, Failure, Kind};
use crate::fleet::Fleet;
use crate::session::Session;

pub use start::{Args, run};

/// How long the next prompt waits for a command that was just typed: what it says comes first.
const FIRST_WORDS: Duration = Duration::from_millis(150);

/// Events of a run in a row before somebody else is heard.
const LONGEST_STREAK: u32 = 200;

/// Everything there is while somebody is at it.
struct Repl<'a> {
    session: &'a Session,
    fleet: &'a Fleet<'a>,
    models: &'a Models,
    editor: Editor,
    desk: Desk<'a>,
    chat: Chat<'a>,
    show: Show,
    errands: Errands<'a>,
    events: Events,
    configs: Option<mpsc::Receiver<Arc<Config>>>,
    control: Option<Control>,
    announced: Announced,
    run: Option<Run>,
    /// Events of the run in a row.
    heard_of_run: u32,
    /// What was typed during the run.
    queue: VecDeque<Vec<Block>>,
    /// When the next line may be typed at the latest.
    prompt_due: Option<Instant>,
    /// Ctrl-C was the last thing typed.
    interrupted: bool,
    /// No more is typed.
    over: bool,
    /// What the last thing that went wrong was, for whoever reads the exit code.
    worst: Option<Kind>,
}

/// What happened.
enum News {
    Typed(Typed),
    PromptDue,
    Desk(DeskNews),
    Run(Option<RunEvent>),
    Tick,
    Errand(Done),
    Host(Option<Heard>),
    Configured(Arc<Config>),
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
        self.leave().await;
        // At a terminal everything was seen; a script wants to know.
        let told = self.worst.filter(|_| !self.editor.is_terminal());
        Ok(told.map_or(Ending::Fine, Ending::Told))
    }

    /// Says what happened; deciding what to do about it is `handle`'s.
    async fn next(&mut self) -> News {
        // Through a pipe, one thing is done after the other.
        let listens = !self.over && (self.editor.is_terminal() || self.is_idle());
        let due = self.prompt_due;
        let runs = self.run.is_some();
        let has_patience = self.heard_of_run < LONGEST_STREAK;
        tokio::select! {
            // In this order: what a run has said comes before what it asks, unless it does not stop talking.
            biased;
            typed = self.editor.next(), if listens => News::Typed(typed),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => News::PromptDue,
            event = next_of(&mut self.run), if has_patience => News::Run(event),
            news = self.desk.next() => News::Desk(news),
            done = self.errands.next() => News::Errand(done),
            heard = self.events.next() => News::Host(heard),
            Some(config) = changed(&mut self.configs) => News::Configured(config),
            order = ordered(&mut self.control) => News::Ordered(order),
            () = tokio::time::sleep(show::EVERY), if runs => News::Tick,
        }
    }

    async fn handle(&mut self, news: News) -> Result<Next, Failure> {
        self.heard_of_run = if let News::Run(_) = news { self.heard_of_run + 1 } else { 0 };
        match news {
            News::Typed(typed) => return self.typed(typed).await,
            News::PromptDue => self.prompt(),
            News::Desk(news) => self.asked(news),
            News::Run(event) => self.ran(event).await?,
            News::Tick => self.tick(),
            News::Errand(done) => return self.done(done).await,
            News::Host(None) => return Ok(Next::Leave),
            News::Host(Some(heard)) => self.announced.heard(&heard, self.session),
            News::Configured(config) => self.reload_with(config),
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
        self.run.is_none() && self.errands.is_empty() && self.queue.is_empty()
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

    /// Ends what is under way and waits until it is written down.
    async fn leave(&mut self) {
        if let Some(mut run) = self.run.take() {
            run.cancel();
            // Its last turns are worth saving.
            while let Some(event) = run.next().await {
                self.chat.heard(&event);
            }
        }
        self.session.console.clear();
        self.chat.leave().await;
    }
}

/// The next event of a run; never, where there is none.
async fn next_of(run: &mut Option<Run>) -> Option<RunEvent> {
    match run {
        Some(run) => run.next().await,
        None => std::future::pending().await,
    }
}

async fn changed(configs: &mut Option<mpsc::Receiver<Arc<Config>>>) -> Option<Arc<Config>> {
    match configs {
        Some(configs) => configs.recv().await,
        None => std::future::pending().await,
    }
}

async fn ordered(control: &mut Option<Control>) -> Order {
    match control {
        Some(control) => control.next().await,
        None => std::future::pending().await,
    }
}
