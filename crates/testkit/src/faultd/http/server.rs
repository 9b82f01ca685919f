//! State shared by requests: sessions, stored data, and the decision at which request the fault occurs.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value;

use super::channel::SseChannel;
use super::resume::ResumeReplay;
use super::sse_fault::SseFault;
use super::{ConnectionFault, FaultRepeat, HttpFault, HttpFaultAction, RequestStage};
use crate::faultd::frame::ClientMessage;
use crate::faultd::options::{FaultOptions, FaultPhase, ServerEra};
use crate::faultd::server::lock_ignoring_poison;

pub struct HttpFaultServer {
    pub options: FaultOptions,
    pub fault: HttpFault,
    pub address: SocketAddr,
    /// Address of another listener of this process; the target of forbidden redirects.
    pub elsewhere: SocketAddr,
    pub speaks: Mutex<ServedEras>,
    /// Sessions by id.
    pub sessions: Mutex<HashMap<String, FaultSession>>,
    /// Open HTTP+SSE streams by session.
    pub channels: Mutex<HashMap<String, SseChannel>>,
    /// Replays of resumed streams by stream name.
    pub replays: Mutex<HashMap<String, ResumeReplay>>,
    /// Announcements to all listeners, by method. Entries are never removed.
    pub news: Mutex<Vec<&'static str>>,
    /// Data that a fault stores about a request, for its retry.
    pub notes: Mutex<HashMap<String, String>>,
    cancelled: Mutex<HashSet<String>>,
    struck: AtomicBool,
    opened: AtomicBool,
    called: AtomicBool,
    numbers: AtomicU64,
}

/// The eras currently served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedEras {
    Both,
    Stateless,
    Handshake,
}

pub struct FaultSession {
    pub revision: &'static str,
    /// Set by `notifications/initialized`.
    pub open: bool,
}

impl HttpFaultServer {
    pub fn new(options: FaultOptions, address: SocketAddr, elsewhere: SocketAddr) -> Result<HttpFaultServer, String> {
        let known = HttpFault::find(options.form, &options.case);
        let mut fault = known.ok_or_else(|| format!("unknown case {}", options.case))?;
        if !options.is_first_start() {
            fault = HttpFault::None;
        }
        let speaks = if options.era == ServerEra::Modern { ServedEras::Both } else { ServedEras::Handshake };
        Ok(HttpFaultServer {
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

    /// Returns the action for `message` at `stage`, if the fault is due. Returning an action spends a one-time fault.
    pub fn due_action(
        &self,
        message: &ClientMessage,
        stage: RequestStage,
        authorized: bool,
    ) -> Option<HttpFaultAction> {
        let HttpFault::Strike { act, stage: when, times } = self.fault else { return None };
        let due = when == stage && message.is_request() && self.is_due(message, times);
        let again = match times {
            FaultRepeat::Once => due && self.first_time(),
            FaultRepeat::Always => due,
            FaultRepeat::UntilAuthorized => due && !authorized,
        };
        again.then_some(act)
    }

    /// Reports whether the configured phase is reached. Over HTTP there is no unprompted output: `ready` and `after`
    /// mean the next request.
    pub fn is_due(&self, message: &ClientMessage, times: FaultRepeat) -> bool {
        match self.options.phase {
            FaultPhase::Before => times != FaultRepeat::Once || self.is_opening(message),
            FaultPhase::Ready => self.is_open() && !self.is_opening(message),
            FaultPhase::During => message.is_method("tools/call"),
            FaultPhase::After => self.called.load(Ordering::SeqCst) && !self.is_opening(message),
        }
    }

    fn is_opening(&self, message: &ClientMessage) -> bool {
        message.is_method("initialize")
            || (message.is_method("server/discover") && self.options.era == ServerEra::Modern)
    }

    /// Records a healthy response that is about to be sent.
    pub fn record_delivery(&self, message: &ClientMessage) {
        if self.is_opening(message) {
            self.opened.store(true, Ordering::SeqCst);
        }
        if message.is_method("tools/call") {
            self.called.store(true, Ordering::SeqCst);
        }
    }

    /// Reports whether an opening request has been answered.
    pub fn is_open(&self) -> bool {
        self.opened.load(Ordering::SeqCst)
    }

    /// Returns true on the first call only.
    pub fn first_time(&self) -> bool {
        !self.struck.swap(true, Ordering::SeqCst)
    }

    /// Returns a unique number, for sessions and streams.
    pub fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::SeqCst)
    }

    pub fn speaks(&self) -> ServedEras {
        *lock_ignoring_poison(&self.speaks)
    }

    pub fn connection_fault(&self) -> Option<ConnectionFault> {
        match self.fault {
            HttpFault::Connection(manners) => Some(manners),
            _ => None,
        }
    }

    /// Returns the HTTP+SSE fault of this server, if any.
    pub fn sse_fault(&self) -> Option<SseFault> {
        match self.fault {
            HttpFault::Channel(flaw) => Some(flaw),
            _ => None,
        }
    }

    pub fn cancel(&self, id: &Value) {
        lock_ignoring_poison(&self.cancelled).insert(id.to_string());
    }

    pub fn is_cancelled(&self, id: &Value) -> bool {
        lock_ignoring_poison(&self.cancelled).contains(&id.to_string())
    }

    /// Creates a session and returns its id.
    pub fn begin_session(&self, revision: &'static str) -> String {
        let id = format!("session-{}", self.next_number());
        lock_ignoring_poison(&self.sessions).insert(id.clone(), FaultSession { revision, open: false });
        id
    }

    /// Announces a notification to all listeners.
    pub fn announce(&self, method: &'static str) {
        lock_ignoring_poison(&self.news).push(method);
    }
}
