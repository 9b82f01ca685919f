//! The server's state, and the decision at which message its fault occurs.

use std::collections::{HashMap, HashSet};
use std::process::exit;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::frame::{self, ClientMessage};
use super::options::{FaultOptions, FaultPhase, ServerEra};
use super::request_context::RequestServer;
use super::stdout::StdoutWriter;
use super::{FaultOccurrence, FaultTiming, StdioFault};

/// Maximum time a lingering server keeps running, so that a failed test leaves no process forever.
pub const OUTSTAYING: Duration = Duration::from_secs(120);

pub struct StdioFaultServer {
    pub options: FaultOptions,
    pub out: StdoutWriter,
    pub fault: StdioFault,
    pub conversation: Mutex<EraState>,
    /// Held-back lines for late responses, by request id.
    pub late: Mutex<HashMap<String, String>>,
    /// Held-back lines, until enough are collected.
    pub gathered: Mutex<Vec<String>>,
    struck: AtomicBool,
    lingers: AtomicBool,
    cancelled: Mutex<HashSet<String>>,
    cancellation: Condvar,
    asked: Mutex<HashMap<String, ServerRequest>>,
    asks: AtomicU64,
}

/// The era chosen by the client. A dual-era server rejects a later change (measured: Python `mcp` 2.3.0 responds with
/// -32600).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum EraState {
    Undecided,
    Stateless,
    /// `initialize` was answered.
    Opening,
    /// `notifications/initialized` was received.
    Open,
}

/// A request sent by the server.
struct ServerRequest {
    method: &'static str,
    /// Line sent after the client's reply or a timeout.
    then: Option<String>,
}

impl StdioFaultServer {
    pub fn new(mut options: FaultOptions) -> Result<StdioFaultServer, String> {
        let mut fault = StdioFault::find(&options.case).ok_or_else(|| format!("unknown case {}", options.case))?;
        if !options.is_first_start() {
            fault = StdioFault::None;
        }
        if let StdioFault::Intercept { handshake_only: true, .. } = fault
            && options.era == ServerEra::Modern
        {
            options.era = ServerEra::Legacy;
        }
        Ok(StdioFaultServer {
            lingers: AtomicBool::new(options.linger),
            options,
            out: StdoutWriter::default(),
            fault,
            conversation: Mutex::new(EraState::Undecided),
            late: Mutex::default(),
            gathered: Mutex::default(),
            struck: AtomicBool::new(false),
            cancelled: Mutex::default(),
            cancellation: Condvar::new(),
            asked: Mutex::default(),
            asks: AtomicU64::new(0),
        })
    }

    /// Applies a fault that is due at startup.
    pub fn begin(self: &Arc<Self>) {
        if let StdioFault::Strike { act, timing: FaultTiming::AtStart } = self.fault
            && self.options.phase == FaultPhase::Before
            && self.first_time()
        {
            act(self, &FaultOccurrence::at_start());
        }
    }

    /// Reports whether the response to `message` is affected by the fault. Returning true spends a one-time fault.
    pub fn is_fault_due(&self, message: &ClientMessage) -> bool {
        let StdioFault::Strike { timing, .. } = self.fault else { return false };
        let due = match self.options.phase {
            FaultPhase::Before => timing == FaultTiming::Always || self.is_opening(message),
            FaultPhase::During => message.is_method("tools/call"),
            FaultPhase::Ready | FaultPhase::After => false,
        };
        due && (timing == FaultTiming::Always || self.first_time())
    }

    /// Records a healthy response that was sent, and applies the fault that follows it.
    pub fn on_delivered(self: &Arc<Self>, message: &ClientMessage, line: &str) {
        if message.is_method("server/discover") && line.contains(r#""result":"#) {
            *lock_ignoring_poison(&self.conversation) = EraState::Stateless;
            self.on_ready(message.id(), line);
        }
        if message.is_method("tools/call") && self.options.phase == FaultPhase::After {
            self.apply_when_idle(message.id(), line);
        }
    }

    /// Applies a fault that needs an opening but no call.
    pub fn on_ready(self: &Arc<Self>, id: Value, line: &str) {
        let StdioFault::Strike { timing, .. } = self.fault else { return };
        let phase = self.options.phase;
        if phase == FaultPhase::Ready || (phase == FaultPhase::After && timing == FaultTiming::WhenReady) {
            self.apply_when_idle(id, line);
        }
    }

    fn apply_when_idle(self: &Arc<Self>, id: Value, previous: &str) {
        if let StdioFault::Strike { act, .. } = self.fault
            && self.first_time()
        {
            act(self, &FaultOccurrence::idle(id, previous.to_owned()));
        }
    }

    /// Returns true on the first call only.
    pub fn first_time(&self) -> bool {
        !self.struck.swap(true, Ordering::SeqCst)
    }

    fn is_opening(&self, message: &ClientMessage) -> bool {
        message.is_method("initialize")
            || (message.is_method("server/discover") && self.options.era == ServerEra::Modern)
    }

    pub fn record(&self, entry: &str) {
        self.options.record(entry);
    }

    /// Records a cancellation, and sends the held-back late response.
    pub fn cancel(&self, id: &Value) {
        lock_ignoring_poison(&self.cancelled).insert(id.to_string());
        self.cancellation.notify_all();
        if let Some(line) = lock_ignoring_poison(&self.late).remove(&id.to_string()) {
            self.out.line(line);
        }
    }

    /// Waits up to `time`. Returns true as soon as the request is cancelled.
    pub fn cancelled_within(&self, id: &Value, time: Duration) -> bool {
        let key = id.to_string();
        let waited = self
            .cancellation
            .wait_timeout_while(lock_ignoring_poison(&self.cancelled), time, |set| !set.contains(&key));
        waited.is_ok_and(|(set, _)| set.contains(&key))
    }

    /// Sends a request to the client. `then` is sent after the reply, or after a timeout.
    pub fn send_request(self: &Arc<Self>, method: &'static str, params: &Value, then: Option<String>) {
        let id = format!("faultd-{}", self.asks.fetch_add(1, Ordering::SeqCst));
        lock_ignoring_poison(&self.asked).insert(format!("\"{id}\""), ServerRequest { method, then });
        self.out.line(frame::request(&id, method, params));
        let server = Arc::clone(self);
        std::thread::spawn(move || {
            std::thread::sleep(server.options.delay(20_000));
            server.finish_request(&format!("\"{id}\""), "none");
        });
    }

    /// Records the client's reply to a server request.
    pub fn on_reply(&self, message: &ClientMessage) {
        let outcome = message.error.map_or_else(|| "result".to_owned(), |code| code.to_string());
        if !self.finish_request(&message.id().to_string(), &outcome) {
            self.record(&format!("violation reply to {}", message.id()));
        }
    }

    fn finish_request(&self, key: &str, outcome: &str) -> bool {
        let Some(asked) = lock_ignoring_poison(&self.asked).remove(key) else { return false };
        self.record(&format!("reply {} {outcome}", asked.method));
        if let Some(line) = asked.then {
            self.out.line(line);
        }
        true
    }

    /// Keeps the server running after stdin ends.
    pub fn linger(&self) {
        self.lingers.store(true, Ordering::SeqCst);
    }

    /// Exits after stdin has ended, or lingers.
    pub fn leave(&self) -> ! {
        if self.lingers.load(Ordering::SeqCst) {
            linger_until_killed();
        }
        exit(0)
    }
}

impl RequestServer for StdioFaultServer {
    fn options(&self) -> &FaultOptions {
        &self.options
    }

    fn is_stateless(&self) -> bool {
        *lock_ignoring_poison(&self.conversation) == EraState::Stateless
    }

    fn notify(&self, line: String) {
        self.out.line(line);
    }

    fn cancelled_within(&self, id: &Value, time: Duration) -> bool {
        self.cancelled_within(id, time)
    }
}

/// Sleeps until killed, or until the maximum time has passed.
pub fn linger_until_killed() -> ! {
    let since = Instant::now();
    while let Some(left) = OUTSTAYING.checked_sub(since.elapsed()) {
        std::thread::sleep(left);
    }
    exit(3)
}

pub fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
