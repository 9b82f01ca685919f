//! What the requests share: sessions, what is kept for later, and the decision when the fault is due.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value;

use super::channel::Channel;
use super::flaw::Flaw;
use super::resume::Replay;
use super::{Act, Fault, Manners, Stage, Times};
use crate::faultd::frame::Message;
use crate::faultd::options::{Era, Options, Phase};
use crate::faultd::server::locked;

pub struct HttpServer {
    pub options: Options,
    pub fault: Fault,
    pub address: SocketAddr,
    /// A listener of our own that no client has any business with.
    pub elsewhere: SocketAddr,
    pub speaks: Mutex<Speaks>,
    /// By their ids.
    pub sessions: Mutex<HashMap<String, Session>>,
    /// The open streams of HTTP+SSE, by their session.
    pub channels: Mutex<HashMap<String, Channel>>,
    /// What a resumed stream is to hear, by the stream's name.
    pub replays: Mutex<HashMap<String, Replay>>,
    /// Notifications for everybody who listens, by their methods. None is ever taken away.
    pub news: Mutex<Vec<&'static str>>,
    /// What a fault remembers of a request, for when it comes again.
    pub notes: Mutex<HashMap<String, String>>,
    cancelled: Mutex<HashSet<String>>,
    struck: AtomicBool,
    opened: AtomicBool,
    called: AtomicBool,
    numbers: AtomicU64,
}

/// Which eras are served at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    Both,
    Stateless,
    Handshake,
}

pub struct Session {
    pub revision: &'static str,
    /// `notifications/initialized` came.
    pub open: bool,
}

impl HttpServer {
    pub fn new(options: Options, address: SocketAddr, elsewhere: SocketAddr) -> Result<HttpServer, String> {
        let known = Fault::find(options.form, &options.case);
        let mut fault = known.ok_or_else(|| format!("unknown case {}", options.case))?;
        if !options.is_first_start() {
            fault = Fault::None;
        }
        let speaks = if options.era == Era::Modern { Speaks::Both } else { Speaks::Handshake };
        Ok(HttpServer {
            options,
            fault,
            address,
            elsewhere,
            speaks: Mutex::new(speaks),
            sessions: Mutex::default(),
            channels: Mutex::default(),
            replays: Mutex::default(),
            news: Mutex::default(),
            notes: Mutex::default(),
            cancelled: Mutex::default(),
            struck: AtomicBool::new(false),
            opened: AtomicBool::new(false),
            called: AtomicBool::new(false),
            numbers: AtomicU64::new(1),
        })
    }

    /// What to do to `message` when it has come as far as `stage`. An answer spends a fault that happens once.
    pub fn strike(&self, message: &Message, stage: Stage, authorized: bool) -> Option<Act> {
        let Fault::Strike { act, stage: when, times } = self.fault else { return None };
        let due = when == stage && message.is_request() && self.is_due(message, times);
        let again = match times {
            Times::Once => due && self.first_time(),
            Times::Always => due,
            Times::UntilAuthorized => due && !authorized,
        };
        again.then_some(act)
    }

    /// Whether the phase's moment has come. Over HTTP nothing is unprompted: `ready` and `after` mean the next request.
    pub fn is_due(&self, message: &Message, times: Times) -> bool {
        match self.options.phase {
            Phase::Before => times != Times::Once || self.is_opening(message),
            Phase::Ready => self.is_open() && !self.is_opening(message),
            Phase::During => message.is("tools/call"),
            Phase::After => self.called.load(Ordering::SeqCst) && !self.is_opening(message),
        }
    }

    fn is_opening(&self, message: &Message) -> bool {
        message.is("initialize") || (message.is("server/discover") && self.options.era == Era::Modern)
    }

    /// Notes a healthy answer that is going out.
    pub fn delivered(&self, message: &Message) {
        if self.is_opening(message) {
            self.opened.store(true, Ordering::SeqCst);
        }
        if message.is("tools/call") {
            self.called.store(true, Ordering::SeqCst);
        }
    }

    /// Whether an opening request has been answered.
    pub fn is_open(&self) -> bool {
        self.opened.load(Ordering::SeqCst)
    }

    /// True the first time it is asked.
    pub fn first_time(&self) -> bool {
        !self.struck.swap(true, Ordering::SeqCst)
    }

    /// A number that was not used before, for sessions and streams.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::SeqCst)
    }

    pub fn speaks(&self) -> Speaks {
        *locked(&self.speaks)
    }

    pub fn manners(&self) -> Option<Manners> {
        match self.fault {
            Fault::Connection(manners) => Some(manners),
            _ => None,
        }
    }

    /// The flaw of HTTP+SSE that this server has.
    pub fn flaw(&self) -> Option<Flaw> {
        match self.fault {
            Fault::Channel(flaw) => Some(flaw),
            _ => None,
        }
    }

    pub fn cancel(&self, id: &Value) {
        locked(&self.cancelled).insert(id.to_string());
    }

    pub fn is_cancelled(&self, id: &Value) -> bool {
        locked(&self.cancelled).contains(&id.to_string())
    }

    /// Begins a session, and gives its id.
    pub fn begin_session(&self, revision: &'static str) -> String {
        let id = format!("session-{}", self.number());
        locked(&self.sessions).insert(id.clone(), Session { revision, open: false });
        id
    }

    /// Tells everybody who listens.
    pub fn announce(&self, method: &'static str) {
        locked(&self.news).push(method);
    }
}
