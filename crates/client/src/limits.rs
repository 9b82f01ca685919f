//! Every bound and every delay, in one value, so that tests can scale them.

use std::time::Duration;

use wharf_wire::Bounds;

use crate::budget::ByteBudget;

/// What one connection may take, hold and wait for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes in one message, either way.
    pub message: usize,
    /// Bytes of a request that a server makes.
    pub request: usize,
    /// Bytes of an error's data, of a log message and of what a server says of itself; more is left out.
    pub remark: usize,
    /// Bytes of large messages and results that one server may have in memory at once.
    pub held: usize,
    /// The same over all servers: connections made with clones of these limits share it.
    pub held_in_all: ByteBudget,
    /// Bytes of an oversized message that are read and thrown away in search of its id, before the link is given up.
    pub discard: usize,
    /// Bytes waiting to be written before new calls are refused.
    pub queued: usize,
    /// Calls in flight at once.
    pub in_flight: usize,
    /// Structure of whatever is decoded.
    pub bounds: Bounds,
    /// Bytes of one stderr line; longer ones are cut.
    pub stderr_line: usize,
    /// Bytes of stderr kept.
    pub stderr_kept: usize,
    /// Pages of one list.
    pub pages: usize,
    /// Items of one list.
    pub items: usize,
    /// Bytes of one item of a list; a larger one is withheld.
    pub item: usize,
    /// Bytes of one list, over all its pages.
    pub list: usize,
    /// Bytes of all lists of one server that are in memory at once, those that newer ones replace included.
    pub lists: usize,
    /// The same over all servers: connections made with clones of these limits share it.
    pub lists_in_all: ByteBudget,
    /// Bytes of a cursor.
    pub cursor: usize,
    /// How long the probe for the stateless era may go unanswered.
    pub probe: Duration,
    /// How long a server may take to get ready.
    pub startup: Duration,
    /// How long a call may go without an answer or progress.
    pub call: Duration,
    /// How long a call may take at most, whatever progress it reports.
    pub call_max: Duration,
    /// How long a person may think about what a server asks; as long the clocks of its calls may stand.
    pub ask: Duration,
    /// Questions a server may put to a person in a minute; more are declined unasked.
    pub asks_per_minute: usize,
    /// How often a call may be answered with another question.
    pub rounds: usize,
    /// Questions in one round.
    pub round_questions: usize,
    /// Bytes of what a server wants back with the answers.
    pub round_state: usize,
    /// How long to wait before opening a subscription again, the first time; then twice that, and so on.
    pub listen_again: Duration,
    /// How often to ask after a task whose server does not say.
    pub task_poll: Duration,
    /// How long a handler of a server in this process may keep its thread from everything else.
    pub local_stall: Duration,
    /// Requests under way over HTTP at once: each may take a connection of its own.
    pub exchanges: usize,
    /// How long resolving, dialling and agreeing on encryption may take.
    pub dial: Duration,
    /// How long a server may take to begin to answer a request for a stream.
    pub headers: Duration,
    /// How long a stream of 2024-11-05 may take to say where messages are to be posted.
    pub endpoint: Duration,
    /// How long to wait before a request that nobody took is made again, the first time.
    pub send_again: Duration,
    /// How long to wait before a stream is taken up again whose server does not say.
    pub resume: Duration,
    /// How long it is remembered that a server speaks an older form.
    pub verdict: Duration,
    /// How long a server may leave its input unread while something waits to be written.
    pub write_stall: Duration,
    /// How long a server whose output has ended gets to tell its exit status.
    pub exit_wait: Duration,
    /// How long output is still read after the server's own process has ended.
    pub drain: Duration,
    /// What a server gets between the end of its input and SIGTERM.
    pub stop_grace: Duration,
    /// What it gets between SIGTERM and SIGKILL.
    pub term_grace: Duration,
    /// What it gets between SIGTERM and SIGKILL once its host is gone.
    pub orphan_grace: Duration,
    /// Accepts an id echoed as `"7"` or `7.0`.
    pub lenient_ids: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 8 << 20,
            request: 1 << 20,
            remark: 64 << 10,
            held: 16 << 20,
            held_in_all: ByteBudget::new(32 << 20),
            discard: 256 << 20,
            queued: 32 << 20,
            in_flight: 16_384,
            bounds: Bounds::default(),
            stderr_line: 64 << 10,
            stderr_kept: 256 << 10,
            pages: 100,
            items: 2_048,
            item: 256 << 10,
            list: 4 << 20,
            lists: 8 << 20,
            lists_in_all: ByteBudget::new(16 << 20),
            cursor: 64 << 10,
            probe: Duration::from_secs(10),
            startup: Duration::from_secs(60),
            call: Duration::from_secs(30),
            call_max: Duration::from_secs(300),
            ask: Duration::from_secs(600),
            asks_per_minute: 30,
            rounds: 8,
            round_questions: 16,
            round_state: 64 << 10,
            listen_again: Duration::from_millis(250),
            task_poll: Duration::from_secs(1),
            local_stall: Duration::from_millis(500),
            exchanges: 256,
            dial: Duration::from_secs(10),
            headers: Duration::from_secs(15),
            endpoint: Duration::from_secs(10),
            send_again: Duration::from_millis(250),
            resume: Duration::from_secs(1),
            verdict: Duration::from_secs(3600),
            write_stall: Duration::from_secs(10),
            exit_wait: Duration::from_millis(500),
            drain: Duration::from_secs(1),
            stop_grace: Duration::from_secs(2),
            term_grace: Duration::from_secs(3),
            orphan_grace: Duration::from_millis(500),
            lenient_ids: true,
        }
    }
}

impl Limits {
    /// The graces of a command that runs once and leaves: half a second each.
    #[must_use]
    pub fn one_shot(mut self) -> Self {
        self.stop_grace = Duration::from_millis(500);
        self.term_grace = Duration::from_millis(500);
        self
    }

    /// Divides every delay, for tests.
    #[must_use]
    pub fn hurried(mut self, factor: u32) -> Self {
        for delay in [
            &mut self.probe,
            &mut self.startup,
            &mut self.call,
            &mut self.call_max,
            &mut self.ask,
            &mut self.listen_again,
            &mut self.task_poll,
            &mut self.dial,
            &mut self.headers,
            &mut self.endpoint,
            &mut self.send_again,
            &mut self.resume,
            &mut self.write_stall,
            &mut self.exit_wait,
            &mut self.drain,
            &mut self.stop_grace,
            &mut self.term_grace,
            &mut self.orphan_grace,
        ] {
            *delay /= factor;
        }
        self
    }
}
