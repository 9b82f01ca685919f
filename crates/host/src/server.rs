//! One server as the host knows it: what everybody but its supervisor holds.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use wharf_client::{CallError, ConnectOptions, Connection, LocalServer, connect_local, connect_to};
use wharf_spec::{Admission, Glob, HttpSpec, ServerName, ServerOrigin, ServerSettings, ServerSpec};

use crate::account::Membership;
use crate::catalog::Filter;
use crate::context::Context;
use crate::error::HostError;
use crate::results::KeptResults;
use crate::stats::Stats;
use crate::supervise::{Command, Keeping, Standing, State};
use crate::trouble::Trouble;
use crate::usage::Usage;
use crate::watching::Watched;

/// Makes a server that lives in this process, once for every connection.
pub type LocalFactory = Arc<dyn Fn() -> Result<Box<dyn LocalServer>, String> + Send + Sync>;

/// How a server is reached.
#[derive(Clone)]
pub(crate) enum Reach {
    /// By starting or dialling it.
    Spec(Box<ServerSpec>),
    /// By making it.
    Local(LocalFactory),
}

/// What a host is told of a server.
#[derive(Clone)]
pub(crate) struct Told {
    pub reach: Reach,
    pub settings: ServerSettings,
    /// What somebody has said about the server that had this place before.
    pub by_hand: Option<Admission>,
}

/// A server of the host. Whoever holds it can command it, wait for it and call it.
pub(crate) struct Server {
    pub name: ServerName,
    /// Tells one server of a name from another that took its place.
    pub generation: u64,
    pub reach: Reach,
    pub kept: ArcSwap<Kept>,
    /// Bounded by how often somebody commands it.
    pub words: mpsc::UnboundedSender<Word>,
    /// How many commands were sent, and how many of them have been obeyed.
    pub sent: Mutex<u64>,
    pub obeyed: watch::Sender<u64>,
    /// What it offers is to be put on the shelf anew, because it is kept in another way.
    pub anew: Notify,
    /// Somebody needs it.
    pub wanted: Notify,
    pub standing: watch::Receiver<Standing>,
    /// The number of the attempt whose tools are on the shelf: what calls wait for.
    pub listed: watch::Sender<u64>,
    /// The number of the attempt of which everything is on the shelf.
    pub listed_all: watch::Sender<u64>,
    pub usage: Usage,
    pub stats: Stats,
    pub watched: Watched,
    pub results: KeptResults,
    pub membership: Membership,
}

/// What a supervisor is told.
#[derive(Debug, Clone)]
pub(crate) enum Word {
    Do(Command),
    /// A call by the connection of this attempt was turned away for want of a login.
    TurnedAway {
        epoch: u64,
        error: CallError,
    },
    /// A call was turned away for want of something that a person can agree to.
    WantsMore(CallError),
    /// Take the server off, and be done.
    Leave,
}

/// How a server is kept, in the form calls need it.
pub(crate) struct Kept {
    /// As it was told.
    told: ServerSettings,
    /// What somebody has said since, which holds until something else is told.
    by_hand: Option<Admission>,
    /// As it is.
    pub settings: ServerSettings,
    pub filter: Filter,
    pub tool_timeouts: Vec<(Glob, Duration)>,
    pub slots: Option<Arc<Semaphore>>,
}

impl Kept {
    pub fn new(told: ServerSettings, by_hand: Option<Admission>) -> Self {
        let mut settings = told.clone();
        if let (Some(admission), true) = (by_hand, told.admission != Admission::Unapproved) {
            settings.admission = admission;
        }
        let filter = Filter::of(&settings);
        let tool_timeouts = settings.tool_timeouts.iter().map(|(glob, time)| (Glob::new(glob), *time)).collect();
        let slots = settings.max_concurrent.map(|most| Arc::new(Semaphore::new(most.max(1))));
        Self { told, by_hand, settings, filter, tool_timeouts, slots }
    }

    /// Whether this is what it was told already.
    pub fn is_told(&self, told: &ServerSettings) -> bool {
        self.told == *told
    }

    /// What somebody has said, for a server of these settings: nothing, where they say something else than before.
    pub fn by_hand(&self, told: &ServerSettings) -> Option<Admission> {
        self.by_hand.filter(|_| told.admission == self.told.admission)
    }

    /// How long a call of this tool may take, where that is said.
    pub fn timeout(&self, tool: &str) -> Option<Duration> {
        let own = self.tool_timeouts.iter().find(|(glob, _)| glob.matches(tool)).map(|(_, time)| *time);
        own.or(self.settings.timeout)
    }

    pub fn keeping(&self) -> Keeping {
        let ServerSettings { admission, lazy, reconnect, health_check, idle_stop, .. } = self.settings;
        Keeping { admission, lazy, reconnect, health_check, idle_stop }
    }
}

impl Reach {
    /// Whether both lead to the same server. What is made here is never the same: nobody can tell.
    pub fn is_same(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Spec(one), Self::Spec(other)) if one == other)
    }

    /// How it is dialled, where it is.
    pub fn http(&self) -> Option<&HttpSpec> {
        let Self::Spec(spec) = self else { return None };
        match &**spec {
            ServerSpec::Http(spec) => Some(spec),
            ServerSpec::Stdio(_) => None,
        }
    }

    /// How it is spoken to, in a word.
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Local(_) => "in-process",
            Self::Spec(spec) => match &**spec {
                ServerSpec::Stdio(_) => "stdio",
                ServerSpec::Http(http) if http.form == wharf_spec::HttpForm::Sse => "sse",
                ServerSpec::Http(_) => "http",
            },
        }
    }
}

impl Server {
    /// Returns where it is defined.
    pub fn origin(&self) -> ServerOrigin {
        self.kept.load().settings.origin.clone()
    }

    /// Starts, dials or makes the server, and agrees with it on a revision.
    ///
    /// Dropped while it waits, whatever it has begun is ended.
    pub async fn reach(&self, context: &Context) -> Result<Connection, Trouble> {
        self.note_login(context).await;
        let options = self.connect_options(context);
        let connected = match &self.reach {
            Reach::Spec(spec) => connect_to(spec, options).await,
            Reach::Local(make) => connect_local(make().map_err(Trouble::NotMade)?, options).await,
        };
        connected.map_err(|error| Trouble::NotConnected(Arc::new(error)))
    }

    fn connect_options(&self, context: &Context) -> ConnectOptions {
        let mut options = context.connect_options(self);
        let settings = &self.kept.load().settings;
        if let Some(time) = settings.startup_timeout {
            options.limits.startup = time;
        }
        if let Some(time) = settings.timeout {
            options.limits.call = time;
            options.limits.call_max = options.limits.call_max.max(time);
        }
        options
    }

    /// Tells the supervisor to do something; what is given is for [`Server::has_obeyed`].
    pub fn command(&self, command: Command) -> u64 {
        // Locked while it is sent: commands are obeyed in the order of their numbers.
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        *sent += 1;
        // Fails only when the server is being taken off, and then it does not matter.
        let _ = self.words.send(Word::Do(command));
        *sent
    }

    /// Tells the supervisor of a call that was turned away for want of a login, or of something it has to cover.
    pub fn turned_away(&self, epoch: u64, error: &CallError) {
        if error.needs_login() {
            let _ = self.words.send(Word::TurnedAway { epoch, error: error.clone() });
        } else if error.needs_scope().is_some() {
            let _ = self.words.send(Word::WantsMore(error.clone()));
        }
    }

    /// Tells the supervisor to take the server off for good.
    pub fn leave(&self) {
        let _ = self.words.send(Word::Leave);
    }

    /// Keeps the server in another way from now on.
    pub fn keep(&self, told: ServerSettings) -> u64 {
        let by_hand = self.kept.load().by_hand(&told);
        self.keep_as(told, by_hand)
    }

    /// Switches the server on or off until it is told something else.
    pub fn admit(&self, admission: Admission) -> u64 {
        self.keep_as(self.kept.load().told.clone(), Some(admission))
    }

    fn keep_as(&self, told: ServerSettings, by_hand: Option<Admission>) -> u64 {
        let before = self.kept.load();
        let mut kept = Kept::new(told, by_hand);
        if kept.settings.max_concurrent == before.settings.max_concurrent {
            // Calls under way count for those to come.
            kept.slots = before.slots.clone();
        }
        let keeping = kept.keeping();
        self.kept.store(Arc::new(kept));
        self.command(Command::Keep(keeping))
    }

    /// Waits until the supervisor has done so many things.
    pub async fn has_obeyed(&self, number: u64) {
        let mut obeyed = self.obeyed.subscribe();
        let mut standing = self.standing.clone();
        loop {
            if *obeyed.borrow_and_update() >= number {
                return;
            }
            tokio::select! {
                _ = obeyed.changed() => {}
                // The supervisor is gone.
                changed = standing.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Waits for the attempt under way, if there is one, and says whether the server is ready.
    pub async fn attempted(&self) -> Result<(), HostError> {
        let mut standing = self.standing.clone();
        let found = standing.wait_for(|standing| standing.state != State::Connecting).await;
        let standing = found.map_err(|_| HostError::Closed)?.clone();
        if standing.state == State::Ready { Ok(()) } else { Err(self.unavailable(&standing)) }
    }

    /// Waits until nothing more is to be expected of the server by itself, and its lists have been read.
    pub async fn settled(&self) {
        let mut standing = self.standing.clone();
        let mut listed = self.listed_all.subscribe();
        loop {
            let (settled, learned) = {
                let standing = standing.borrow_and_update();
                let learned = *listed.borrow_and_update() >= standing.epoch;
                (standing.state.is_settled(), learned || standing.state != State::Ready)
            };
            if settled && learned {
                return;
            }
            tokio::select! {
                changed = standing.changed() => if changed.is_err() { return },
                _ = listed.changed() => {}
            }
        }
    }
}
