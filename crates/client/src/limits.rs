//! Every bound and delay in one value, so that tests can scale them.

use std::time::Duration;

use wharf_wire::JsonLimits;

use crate::budget::ByteBudget;

/// The resource limits and timeouts of one connection.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum bytes of one message, in either direction.
    pub max_message: usize,
    /// Maximum bytes of a request from the server.
    pub max_server_request: usize,
    /// Maximum bytes of an error's data, of a log message and of the server's description of itself. Anything larger is
    /// left out.
    pub max_server_text: usize,
    /// Maximum bytes of large messages and results of one server in memory at once.
    pub memory_budget: usize,
    /// The same over all servers: connections created with clones of these limits share it.
    pub memory_budget_in_all: ByteBudget,
    /// Maximum bytes of an oversized message that are skipped in search of its id, before the link is closed.
    pub max_skipped: usize,
    /// Maximum bytes in the write queue before new calls are refused.
    pub queued: usize,
    /// Maximum calls in flight at once.
    pub in_flight: usize,
    /// Structural bounds of decoded JSON.
    pub bounds: JsonLimits,
    /// Maximum bytes of one stderr line. Longer lines are cut.
    pub stderr_line: usize,
    /// Maximum bytes of stderr held in memory.
    pub stderr_kept: usize,
    /// Maximum pages of one list.
    pub pages: usize,
    /// Maximum items of one list.
    pub items: usize,
    /// Maximum bytes of one list item. A larger item is withheld.
    pub item: usize,
    /// Maximum bytes of one list, over all its pages.
    pub list: usize,
    /// Maximum bytes of all lists of one server in memory at once, including lists that are being replaced.
    pub lists: usize,
    /// The same over all servers: connections created with clones of these limits share it.
    pub lists_in_all: ByteBudget,
    /// Maximum bytes of a cursor.
    pub cursor: usize,
    /// Timeout for the probe for the stateless era, after which a local server is asked to initialize too.
    pub probe: Duration,
    /// The same, from the time at which a local server has read the probe.
    pub probe_response: Duration,
    /// Timeout for the server to become ready.
    pub startup: Duration,
    /// Timeout of a call without a response or progress.
    pub call_timeout: Duration,
    /// Timeout of a call regardless of progress.
    pub call_total_timeout: Duration,
    /// Timeout for the user to answer a request from the server. The timeouts of its calls may be paused for as long.
    pub ask_timeout: Duration,
    /// Maximum prompts to the user per minute and server. More are declined without prompting.
    pub asks_per_minute: usize,
    /// Maximum input-required rounds of one call.
    pub rounds: usize,
    /// Maximum input requests in one round.
    pub round_questions: usize,
    /// Maximum bytes of the request state the server wants back with the inputs.
    pub round_state: usize,
    /// Delay before the first attempt to reopen a subscription. It doubles with each attempt.
    pub listen_again: Duration,
    /// Poll interval for a task if the server does not specify one.
    pub task_poll: Duration,
    /// Time a handler of an in-process server may block its thread before the thread is replaced.
    pub local_stall: Duration,
    /// Maximum concurrent HTTP requests. Each may use its own connection.
    pub exchanges: usize,
    /// Timeout for DNS resolution, connecting and the TLS handshake.
    pub dial: Duration,
    /// Timeout for the response headers of a stream.
    pub headers: Duration,
    /// Timeout for the endpoint event of a 2024-11-05 stream.
    pub endpoint: Duration,
    /// Delay before a request is sent again: one that was not delivered, that the server rejected unexecuted, that only
    /// reads, or that belongs to the handshake. After 429 and 503 it is the minimum, and doubles with each retry unless
    /// the server specifies a delay.
    pub send_again: Duration,
    /// Delay before a stream is resumed if the server does not specify one.
    pub resume: Duration,
    /// Time to remember that a server speaks an older transport.
    pub transport_cache_ttl: Duration,
    /// Timeout for the server to read its input while data is waiting to be written.
    pub write_stall: Duration,
    /// Time to wait for the exit status after the server's output has ended.
    pub exit_wait: Duration,
    /// Time to read remaining output after the server's process has ended or the server has closed its input.
    pub drain: Duration,
    /// Time between closing stdin and SIGTERM.
    pub stop_grace: Duration,
    /// Time between SIGTERM and SIGKILL.
    pub term_grace: Duration,
    /// Time between SIGTERM and SIGKILL once the host is gone.
    pub orphan_grace: Duration,
    /// Accepts an id echoed as `"7"` or `7.0`.
    pub lenient_ids: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message: 8 << 20,
            max_server_request: 1 << 20,
            max_server_text: 64 << 10,
            memory_budget: 16 << 20,
            memory_budget_in_all: ByteBudget::new(32 << 20),
            max_skipped: 256 << 20,
            queued: 32 << 20,
            in_flight: 16_384,
            bounds: JsonLimits::default(),
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
            probe_response: Duration::from_secs(2),
            startup: Duration::from_secs(60),
            call_timeout: Duration::from_secs(30),
            call_total_timeout: Duration::from_secs(300),
            ask_timeout: Duration::from_secs(600),
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
            transport_cache_ttl: Duration::from_secs(3600),
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

/// Maximum of [`Limits::set_message`].
const MAX_MESSAGE_BYTES: usize = 256 << 20;

impl Limits {
    /// Sets the maximum bytes of one message, at most 256 MiB. A message above the usual memory bounds gets bounds of
    /// its own that hold two such messages.
    pub fn set_message(&mut self, bytes: usize) {
        self.max_message = bytes.clamp(1, MAX_MESSAGE_BYTES);
        if 2 * self.max_message > self.memory_budget {
            self.memory_budget = 2 * self.max_message;
            self.memory_budget_in_all = ByteBudget::new(self.memory_budget);
            self.max_skipped = self.max_skipped.max(self.memory_budget);
            self.queued = self.queued.max(self.memory_budget);
        }
    }

    /// Sets the grace periods for a command that runs once: 500 ms each.
    #[must_use]
    pub fn one_shot(mut self) -> Self {
        self.stop_grace = Duration::from_millis(500);
        self.term_grace = Duration::from_millis(500);
        self
    }

    /// Divides the timeouts and delays by a factor, for tests. `local_stall`, `probe_response` and
    /// `transport_cache_ttl` stay as they are.
    #[must_use]
    pub fn with_delays_divided(mut self, factor: u32) -> Self {
        for delay in [
            &mut self.probe,
            &mut self.startup,
            &mut self.call_timeout,
            &mut self.call_total_timeout,
            &mut self.ask_timeout,
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
