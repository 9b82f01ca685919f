//! Carries out what a supervisor decides: starts, dials, closes, watches the clock. Decides nothing itself.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use wharf_client::{CallOptions, Connection, Gone};

use super::phase::Phase;
use super::step::{Effect, Event, Moment, Supervisor};
use super::{Open, Standing, State};
use crate::attend::attend;
use crate::context::Context;
use crate::login::SeeingTo;
use crate::server::{Server, Word};
use crate::trouble::Trouble;

/// How long calls of a server that is taken off have to end by themselves.
const DRAIN: Duration = Duration::from_secs(5);

/// How long a server may take to say that it is there.
const CHECK: Duration = Duration::from_secs(10);

/// Everything one supervisor's task owns.
pub(crate) struct Keeper {
    pub context: Arc<Context>,
    pub server: Arc<Server>,
    pub supervisor: Supervisor<Attempt, Open>,
    pub words: mpsc::UnboundedReceiver<Word>,
    pub standing: watch::Sender<Standing>,
    pub closing: Closing,
    /// Whether the server said that it is there.
    pub check: Option<Check>,
    /// Whoever sees to it that somebody logs in, until the server is there or nobody wants it to be.
    pub login: Option<SeeingTo>,
}

/// A question whether the server is there. Dropped, it is withdrawn.
pub(crate) struct Check(JoinHandle<Result<(), Trouble>>);

impl Drop for Check {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Connections on their way out. A new one is begun when none is left, since both may want the same file or port.
#[derive(Default)]
pub(crate) struct Closing {
    tasks: JoinSet<()>,
    left: watch::Sender<usize>,
}

impl Closing {
    /// Closes a connection, once what is to come first has.
    fn close(&mut self, connection: Connection, first: impl Future<Output = ()> + Send + 'static) {
        self.left.send_modify(|left| *left += 1);
        let left = self.left.clone();
        self.tasks.spawn(async move {
            first.await;
            connection.close().await;
            left.send_modify(|left| *left -= 1);
        });
    }
}

/// An attempt to connect. Dropped, it is given up, and whatever it has begun is ended.
pub(crate) struct Attempt {
    task: JoinHandle<Result<Connection, Trouble>>,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Keeps one server connected until nobody can command it any more, then takes it off.
pub(crate) async fn supervise(mut keeper: Keeper) {
    while let Some(event) = keeper.next().await {
        let obeyed = matches!(event, Event::Command(_));
        let effects = keeper.supervisor.step(event, moment());
        keeper.perform(effects);
        if obeyed {
            keeper.server.obeyed.send_modify(|obeyed| *obeyed += 1);
        }
    }
    keeper.finish().await;
}

/// Now, by both clocks.
pub(crate) fn moment() -> Moment {
    Moment { at: Instant::now(), date: SystemTime::now() }
}

impl Keeper {
    /// Takes the first step. Before anybody sees the server: one that is about to connect is not at rest.
    pub fn begin(&mut self) {
        let effects = self.supervisor.begin(moment());
        self.perform(effects);
    }

    /// Says what happened; what to do about it is decided by `step`.
    async fn next(&mut self) -> Option<Event<Open>> {
        let Self { context, server, supervisor, words, closing, check, .. } = self;
        let due = supervisor.due(server.usage.activity(), Instant::now());
        let epoch = supervisor.epoch();
        tokio::select! {
            word = words.recv() => match word {
                Some(Word::Do(command)) => Some(Event::Command(command)),
                Some(Word::TurnedAway { epoch, error }) => {
                    Some(Event::TurnedAway { epoch, trouble: Arc::new(Trouble::TurnedAway(error)) })
                }
                Some(Word::WantsMore(error)) => {
                    context.see_to_scope(server, &error);
                    Some(Event::Due(server.usage.activity()))
                }
                Some(Word::Leave) | None => None,
            },
            () = server.wanted.notified() => Some(Event::Wanted),
            change = changed(supervisor.phase_mut()) => Some(match change {
                Change::Attempted(outcome) => met(context, server, epoch, outcome),
                Change::Lost(gone) => Event::Lost { epoch, trouble: Arc::new(Trouble::Lost(gone)) },
            }),
            trouble = checked(check) => Some(match trouble {
                Some(trouble) => Event::Lost { epoch, trouble },
                None => Event::Due(server.usage.activity()),
            }),
            () = at(due) => Some(Event::Due(server.usage.activity())),
            // Only so that what is done with is not kept.
            Some(_) = closing.tasks.join_next() => Some(Event::Due(server.usage.activity())),
        }
    }

    fn perform(&mut self, effects: Vec<Effect<Open>>) {
        for effect in effects {
            match effect {
                Effect::Connect(_) => self.connect(),
                Effect::Close(open) => self.close(open),
                Effect::Check(_) => self.ask_whether_there(),
            }
        }
        self.publish();
    }

    fn connect(&mut self) {
        let (context, server) = (Arc::clone(&self.context), Arc::clone(&self.server));
        let mut left = self.closing.left.subscribe();
        let task = tokio::spawn(async move {
            // Fails only when nothing can be left.
            let _ = left.wait_for(|left| *left == 0).await;
            server.reach(&context).await
        });
        self.supervisor.hold(Attempt { task });
    }

    fn close(&mut self, open: Open) {
        self.check = None;
        // One call was turned away; others may be under way that were let in before.
        let drains = self.supervisor.state() == State::AuthRequired;
        let server = Arc::clone(&self.server);
        self.closing.close(open.leave(), async move {
            if drains {
                let _ = tokio::time::timeout(DRAIN, server.usage.unused()).await;
            }
        });
    }

    fn ask_whether_there(&mut self) {
        let Phase::Ready { open, .. } = self.supervisor.phase() else { return };
        // Asked again before its time is up, a server that never answers would have time for ever.
        if self.check.is_some() {
            return;
        }
        let connection = open.connection.clone();
        self.check = Some(Check(tokio::spawn(async move {
            match connection.ping(CallOptions::default().timeout(CHECK)).await {
                Err(error) if error.needs_login() => Err(Trouble::TurnedAway(error)),
                // Whoever refuses is there.
                Err(error) if !error.is_refusal() => Err(Trouble::Silent(error.to_string())),
                _ => Ok(()),
            }
        })));
    }

    /// Tells everybody where the server stands, and takes its tools from the shelf where it offers none.
    fn publish(&mut self) {
        let standing = Standing::of(&self.supervisor);
        let before = self.standing.send_replace(standing.clone());
        if !standing.offers_tools() {
            self.context.withdraw(&self.server);
        }
        match standing.state {
            State::AuthRequired if before.state == State::AuthRequired => {}
            // They are at the page, or about to be.
            State::AuthRequired if self.login.as_ref().is_some_and(SeeingTo::is_asking) => {}
            State::AuthRequired => self.login = self.context.see_to_login(&self.server, &standing),
            State::Connecting | State::Reconnecting | State::Failed => {}
            State::Ready | State::Disabled | State::Unapproved | State::Idle | State::Disconnected => self.login = None,
        }
        // One that has been replaced says nothing more under the name of the other.
        if before.state != standing.state && !self.context.is_replaced(&self.server) {
            self.context.tell_state(&self.server, &standing);
        }
    }

    /// Takes the server off: no new calls, a moment for those under way, then the end.
    async fn finish(mut self) {
        let phase = self.supervisor.end(moment());
        self.publish();
        self.context.end_polling(&self.server);
        self.context.end_watching(&self.server);
        if let Some(open) = phase {
            let connection = open.leave();
            if !self.context.is_closing() {
                let _ = tokio::time::timeout(DRAIN, self.server.usage.unused()).await;
            }
            connection.close().await;
        }
        while self.closing.tasks.join_next().await.is_some() {}
    }
}

/// What a phase waits for by itself.
enum Change {
    Attempted(Result<Connection, Trouble>),
    Lost(Arc<Gone>),
}

/// What becomes of the attempt or the connection that the phase holds; never, where it holds neither.
async fn changed(phase: &mut Phase<Attempt, Open>) -> Change {
    match phase {
        Phase::Connecting { task: Some(attempt) } => Change::Attempted(match (&mut attempt.task).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Trouble::NotMade("the attempt broke off".to_owned())),
        }),
        Phase::Ready { open, .. } => Change::Lost(open.connection.gone().await),
        _ => pending().await,
    }
}

fn met(context: &Arc<Context>, server: &Arc<Server>, epoch: u64, outcome: Result<Connection, Trouble>) -> Event<Open> {
    match outcome {
        Ok(connection) => {
            let attendant = attend(Arc::clone(context), Arc::clone(server), connection.clone(), epoch);
            Event::Connected { epoch, open: Open::new(connection, tokio::spawn(attendant)) }
        }
        Err(trouble) => Event::NotConnected { epoch, trouble: Arc::new(trouble) },
    }
}

/// Why the server is taken not to be there, if it is; never, while nobody has asked.
async fn checked(check: &mut Option<Check>) -> Option<Arc<Trouble>> {
    let Some(asked) = check else { return pending().await };
    let outcome = (&mut asked.0).await;
    *check = None;
    match outcome {
        Ok(Err(trouble)) => Some(Arc::new(trouble)),
        _ => None,
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => pending().await,
    }
}
