//! Ids, waiters, deadlines: the part of a connection that knows neither pipes nor methods.
//!
//! A call is a slot in a table and a few bytes handed to the link; there is no task, no channel and no timer per
//! call. The link's own task brings what arrives ([`Engine::deliver`]) and the passing of time ([`Engine::expire`]).
//!
//! Correlate first, judge later: an answer whose id can be found always ends its call, if only with an error that says
//! what is wrong with it.

mod call;
mod errands;
mod excerpt;
mod inbound;
mod link;
#[cfg(test)]
mod model;
mod pool;
mod table;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use wharf_spec::Untrusted;
use wharf_wire::{Progress, Raw, Revision, TooComplex};

use crate::budget::ServerBudget;
use crate::counters::{Count, Tally};
use crate::error::{CallError, Gone, GoneCause, TimeLimit};
use crate::limits::Limits;
use crate::options::ProgressSink;
use crate::tap::{Direction, Onlooker};

pub(crate) use call::Call;
use errands::Errands;
pub(crate) use errands::{Errand, Refusal};
pub(crate) use inbound::{Channel, Heard};
pub(crate) use link::{Effect, Label, Left, Link, Message, NotTaken, Ticket};
use pool::Pool;
use table::{Expired, Table, Waiting};

/// How much of a puzzling line is worth showing.
const EXCERPT: usize = 120;

/// What a server answered, raw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The `result`, byte for byte.
    pub result: Raw,
    /// Whether that is the end of it.
    pub kind: ResultKind,
}

/// What kind of result it is; before the stateless era there is only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultKind {
    /// The result.
    Complete,
    /// The server wants something first.
    InputRequired,
    /// The server goes on by itself, and can be asked how far it is.
    Task,
}

/// What the engine must ask about the protocol, without knowing any method by name.
pub(crate) trait Dialect: Send + Sync {
    /// A request from the server.
    fn request(&self, method: &str, params: Option<Raw>) -> Reply;
    /// A notification from the server, and what of it concerns the calls.
    fn notification(&self, method: &str, params: Option<Raw>) -> Notice;
    /// The message that withdraws a call.
    fn cancellation(&self, id: u64, reason: &str) -> String;
    /// What a `resultType` means, or that it means nothing.
    fn result_kind(&self, result_type: Option<&str>) -> Option<ResultKind>;
    /// Whether several messages may come as one array.
    fn accepts_batches(&self) -> bool;
    /// What was agreed on, once it was.
    fn revision(&self) -> Option<Revision>;
    /// The server has begun anew and knows nothing of what it was told before.
    fn begun_anew(&self, engine: &Arc<Engine>);
    /// The server may have said something that did not arrive.
    fn have_missed(&self);
}

/// What a notification means for the calls in flight.
pub(crate) enum Notice {
    /// Nothing.
    None,
    /// A call has got on.
    Progress(Progress),
    /// The server ends one of our calls by itself; its id.
    Ended(u64),
    /// The server takes one of its own requests back; its id as text.
    TakenBack(String),
    /// It belongs to nothing that is there.
    Stray,
}

/// What to do about a server's request.
pub(crate) enum Reply {
    Result(Raw),
    Refused(Refusal),
    /// Answered when that is done.
    Later(Errand),
    /// Not answered on the wire: a server of the stateless era may not ask.
    Unwanted,
    /// Nothing a server would say.
    Nonsense(Nonsense),
}

/// The peer is no server; what gave it away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nonsense(pub &'static str);

/// One call to be made.
pub(crate) struct Request {
    pub timeout: Duration,
    pub timeout_max: Duration,
    pub progress: Option<ProgressSink>,
    pub effect: Effect,
    pub when_dropped: WhenDropped,
}

/// What a request is about, as its caller says it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Subject<'a> {
    pub method: &'a str,
    pub name: Option<&'a str>,
    pub mirrored: &'a [(String, String)],
}

/// What to tell the server when nobody waits any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenDropped {
    Withdraw,
    /// Nothing: `initialize` may not be withdrawn.
    Forget,
}

/// One connection's calls.
pub(crate) struct Engine {
    me: Weak<Engine>,
    errands: Errands,
    /// Where questions are answered, whichever thread they arrive on.
    runtime: Option<Handle>,
    lost: Notify,
    /// Nanoseconds that the clocks have stood.
    stood: AtomicU64,
    table: Mutex<Table>,
    link: Arc<dyn Link>,
    dialect: Arc<dyn Dialect>,
    onlooker: Onlooker,
    limits: Limits,
    results: Pool,
    /// What this server may have in memory.
    budget: ServerBudget,
    pub tally: Tally,
    /// What may explain an answer that does not come.
    suspicion: Mutex<Option<String>>,
}

impl Engine {
    pub fn new(
        onlooker: Onlooker,
        link: Arc<dyn Link>,
        dialect: Arc<dyn Dialect>,
        limits: Limits,
        budget: ServerBudget,
    ) -> Arc<Self> {
        let table = Mutex::new(Table::new(limits.in_flight));
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            errands: Errands::default(),
            runtime: Handle::try_current().ok(),
            lost: Notify::new(),
            stood: AtomicU64::new(0),
            table,
            link,
            dialect,
            tally: Tally::new(onlooker.server.clone()),
            onlooker,
            results: Pool::default(),
            limits,
            budget,
            suspicion: Mutex::default(),
        })
    }

    /// Takes a call in and gives it an id, which its request then carries. Dropped unsent, it leaves no trace.
    pub fn reserve(self: &Arc<Self>, request: Request) -> Result<Reserved, CallError> {
        let now = Instant::now();
        let hard = now + request.timeout_max;
        let waiting = Waiting {
            waker: None,
            since: now,
            idle: request.timeout,
            soft: (now + request.timeout).min(hard),
            hard,
            progress: request.progress,
            reached: None,
            effect: request.effect,
            when_dropped: request.when_dropped,
            // Until the link has said better: it may have left.
            ticket: None,
            patience: self.limits.ask,
            detached: false,
        };
        let (id, earlier) = self.table().insert(waiting)?;
        let effect = request.effect;
        Ok(Reserved { call: Call::new(Arc::clone(self), id), digits: Digits::of(id), earlier, effect })
    }

    /// Sends a reserved call's request, whole and with its line end, and gives what to wait on. Dropping that
    /// withdraws the call.
    pub fn send(&self, reserved: Reserved, subject: Subject<'_>, parts: &[&[u8]]) -> Result<Call, CallError> {
        let Reserved { call, earlier, effect, .. } = reserved;
        let Subject { method, name, mirrored } = subject;
        let label = Label { id: call.id(), effect, method, name, mirrored };
        let message = Message { parts, request: Some(label) };
        let length = message.len();
        let taken = if length > self.limits.message {
            Err(CallError::Invalid(format!("the request has {length} bytes, the limit is {}", self.limits.message)))
        } else {
            self.submit(message).map_err(|refusal| match refusal {
                NotTaken::Full => CallError::Busy,
                NotTaken::Broken => self.lost_by(GoneCause::ClosedInput),
                NotTaken::Closed => self.lost_by(GoneCause::Closed),
                NotTaken::TooDeep(depth) => CallError::TooDeep(depth),
            })
        };
        match taken {
            Ok(ticket) => self.table().sent(call.id(), ticket),
            Err(error) => {
                call.forget();
                return Err(error);
            }
        }
        if earlier {
            self.link.wake();
        }
        Ok(call)
    }

    fn submit(&self, message: Message<'_>) -> Result<Ticket, NotTaken> {
        if self.onlooker.is_there() {
            self.onlooker.see(Direction::Sent, message.parts.concat().trim_ascii_end());
        }
        self.link.submit(message)
    }

    /// Sends a message that gets no answer: a notification, a reply, a cancellation.
    pub fn post(&self, message: &str) {
        let message = Message { parts: &[message.as_bytes(), b"\n"], request: None };
        if self.submit(message) == Err(NotTaken::Full) {
            self.tally.warn(Count::Unsent, "no room to send a notification or a reply");
        }
    }

    /// When the next call runs out of time. Remembers it as what the link's task has set its clock to.
    pub fn next_due(&self) -> Instant {
        self.table().arm()
    }

    /// Ends every call whose time is up, and tells the server that nobody waits any more.
    pub fn expire(&self, now: Instant, wakers: &mut Vec<Waker>) {
        let hint = self.suspicion();
        let expired = self.table().expire(now, hint.as_deref(), wakers);
        for Expired { id, limit, when_dropped, .. } in expired {
            if when_dropped == WhenDropped::Withdraw {
                let reason = match limit {
                    TimeLimit::Idle => "timed out",
                    TimeLimit::Total => "timed out in spite of progress",
                };
                self.withdraw(id, reason);
            } else {
                self.link.abandon(id);
            }
        }
    }

    /// Withdraws every call that waits: the first step of closing.
    pub fn withdraw_all(&self) {
        let ids = self.table().withdrawable();
        for id in ids {
            self.withdraw(id, "the connection is closing");
        }
    }

    /// Lets the server know, in whichever way the link has, that nobody waits for a call any more.
    fn withdraw(&self, id: u64, reason: &str) {
        if !self.link.abandon(id) {
            self.post(&self.dialect.cancellation(id, reason));
        }
    }

    /// Ends every call because the server is gone, and refuses new ones from now on.
    pub fn lose(&self, gone: Gone) {
        self.lose_turned_away(None, gone);
    }

    /// The same, where it is known of one call that the server has turned it away.
    pub fn lose_turned_away(&self, call: Option<u64>, gone: Gone) {
        let (gone, mut wakers) = (self.account(gone), Vec::new());
        {
            let mut table = self.table();
            if let Some(id) = call {
                table.lose(id, &gone, Left::Never, &mut wakers);
            }
            table.close(gone, |ticket| self.link.may_have_left(ticket), &mut wakers);
        }
        wakers.into_iter().for_each(Waker::wake);
        self.errands.abort_all();
        self.lost.notify_waiters();
    }

    /// Ends every call because whatever would have brought the answers is gone. The connection itself goes on.
    pub fn lose_calls(&self, gone: Gone) {
        let mut wakers = Vec::new();
        let gone = self.account(gone);
        self.table().lose_all(&gone, |ticket| self.link.may_have_left(ticket), &mut wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends one call whose answer will not come.
    pub fn lose_call(&self, id: u64, gone: Gone, left: Left) {
        let mut wakers = Vec::new();
        let gone = self.account(gone);
        self.table().lose(id, &gone, left, &mut wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends one call with an error.
    pub fn fail_call(&self, id: u64, error: CallError) {
        let mut wakers = Vec::new();
        self.fail(id, error, &mut wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// How long a call may still wait; nothing once it does not.
    pub fn time_left(&self, id: u64) -> Option<Duration> {
        self.table().time_left(id, Instant::now())
    }

    /// Whether the server is gone for good.
    pub fn is_lost(&self) -> bool {
        self.table().closed_error().is_some()
    }

    /// Resolves when the server is gone, to what a call would end with.
    pub async fn gone(&self) -> CallError {
        loop {
            let lost = self.lost.notified();
            let known = self.table().closed_error();
            match known {
                Some(error) => return error,
                None => lost.await,
            }
        }
    }

    /// What this server may have in memory: for whatever reads its messages.
    pub fn budget(&self) -> &ServerBudget {
        &self.budget
    }

    /// Whom this is with, and what of it is nobody's business.
    pub fn onlooker(&self) -> &Onlooker {
        &self.onlooker
    }

    /// The most recent thing that may explain why an answer does not come.
    pub fn suspicion(&self) -> Option<String> {
        self.suspicion.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes a sentence of ours, in which whatever the server said is [`Engine::excerpt`].
    fn suspect(&self, what: String) {
        *self.suspicion.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }

    /// Some of what the server said, escaped and without its secrets. Our own words are not looked through: a secret
    /// may be an ordinary word.
    fn excerpt(&self, said: &Untrusted) -> String {
        self.onlooker.redactor.redact_cut(&said.shortened(EXCERPT).to_string()).into_owned()
    }

    /// How the server was lost, as everybody may know it.
    fn account(&self, gone: Gone) -> Arc<Gone> {
        let suspicion = self.suspicion().filter(|suspicion| gone.hint.as_ref() == Some(suspicion));
        let mut gone = gone.masked(&self.onlooker.redactor);
        gone.hint = suspicion.or(gone.hint);
        Arc::new(gone)
    }

    /// What a call made now ends with. Between the first sign of the end and its full account, the sign must do.
    fn lost_by(&self, sign: GoneCause) -> CallError {
        let known = self.table().closed_error();
        known.unwrap_or_else(|| {
            CallError::ServerGone(Arc::new(Gone { cause: sign, exit: None, stderr: Vec::new(), hint: None }))
        })
    }

    /// Ends one call with an answer's shortcomings.
    fn fail(&self, id: u64, error: CallError, wakers: &mut Vec<Waker>) -> bool {
        self.table().finish(id, Err(error.masked(&self.onlooker.redactor)), wakers)
    }

    /// Ends one call with a sentence of ours about what came for it.
    fn fail_saying(&self, id: u64, what: String, wakers: &mut Vec<Waker>) -> bool {
        self.table().finish(id, Err(CallError::Protocol(what)), wakers)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<TooComplex> for CallError {
    fn from(bound: TooComplex) -> Self {
        Self::TooComplex(bound)
    }
}

/// A call that has an id and has not been sent.
pub(crate) struct Reserved {
    call: Call,
    digits: Digits,
    /// Its deadline comes before what the link's task has set its clock to.
    earlier: bool,
    effect: Effect,
}

impl Reserved {
    /// The id.
    pub fn number(&self) -> u64 {
        self.call.id()
    }

    /// A copy of the id's text, to be put into the request.
    pub fn id(&self) -> Digits {
        self.digits
    }
}

/// A number as text, without an allocation.
#[derive(Clone, Copy)]
pub(crate) struct Digits {
    bytes: [u8; 20],
    start: usize,
}

impl Digits {
    fn of(mut number: u64) -> Self {
        let mut digits = Self { bytes: [0; 20], start: 20 };
        loop {
            digits.start -= 1;
            digits.bytes[digits.start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return digits;
            }
        }
    }

    pub fn text(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}
