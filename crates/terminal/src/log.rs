//! A `tracing` subscriber that prints library warnings to the console.
//!
//! Prints the message and the fields of an event, after the server and the call that it is about. These come from the
//! event or from the spans around it, which are recorded only with `--debug`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{Debug, Display, Formatter, Result, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use wharf_spec::UntrustedText;

use crate::console::Console;

thread_local! {
    /// Spans that this thread has entered, the innermost last.
    static ENTERED: RefCell<Vec<Id>> = const { RefCell::new(Vec::new()) };
}

/// Prints warnings and errors, everything up to debug level with `--debug`, and up to info level with `WHARF_DEBUG=info`.
pub struct ConsoleSubscriber {
    console: Arc<Console>,
    spans: Mutex<HashMap<Id, OpenSpan>>,
    last_id: AtomicU64,
}

/// A span, as long as there are handles to it.
struct OpenSpan {
    context: LogContext,
    handles: usize,
}

/// The server and the call that a line is about.
#[derive(Clone, Default)]
struct LogContext {
    server: Option<String>,
    method: Option<String>,
    tool: Option<String>,
    call_id: Option<String>,
}

impl LogContext {
    /// Stores a field that belongs to the context of a span. Ignores other fields.
    fn set(&mut self, name: &str, value: String) {
        match name {
            "server" => self.server = Some(value),
            "method" => self.method = Some(value),
            "tool" => self.tool = Some(value),
            "id" => self.call_id = Some(value),
            _ => {}
        }
    }
}

impl Visit for LogContext {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.set(field.name(), format!("{value:?}"));
    }
}

/// Writes `harbour [echo 7]: `, as far as it is known.
impl Display for LogContext {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let call = [self.tool.as_ref().or(self.method.as_ref()), self.call_id.as_ref()];
        let call: Vec<&str> = call.into_iter().flatten().map(String::as_str).collect();
        let call = if call.is_empty() { String::new() } else { format!("[{}]", call.join(" ")) };
        let about: Vec<&str> =
            self.server.as_deref().into_iter().chain([&*call]).filter(|part| !part.is_empty()).collect();
        if about.is_empty() { Ok(()) } else { write!(f, "{}: ", about.join(" ")) }
    }
}

/// Message and fields of an event. The server replaces that of the spans.
struct EventFields {
    context: LogContext,
    message: String,
}

impl Visit for EventFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "server" => self.context.server = Some(format!("{value:?}")),
            "message" => self.message.insert_str(0, &format!("{value:?}")),
            name => {
                let _ = write!(self.message, " ({name}: {value:?})");
            }
        }
    }
}

impl ConsoleSubscriber {
    pub fn new(console: Arc<Console>) -> Self {
        Self { console, spans: Mutex::default(), last_id: AtomicU64::new(0) }
    }

    fn max_level(&self) -> Level {
        match (self.console.mode.debug, self.console.mode.info) {
            (true, _) => Level::DEBUG,
            (false, true) => Level::INFO,
            (false, false) => Level::WARN,
        }
    }

    fn spans(&self) -> MutexGuard<'_, HashMap<Id, OpenSpan>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the context of a span, or of the span that this thread is in.
    fn context(&self, parent: Option<&Id>) -> LogContext {
        let id = parent.cloned().or_else(|| ENTERED.with_borrow(|entered| entered.last().cloned()));
        id.and_then(|id| Some(self.spans().get(&id)?.context.clone())).unwrap_or_default()
    }
}

impl Subscriber for ConsoleSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Commands report server state themselves.
        metadata.target().starts_with("wharf")
            && (self.console.mode.debug || metadata.target() != "wharf::state")
            && *metadata.level() <= self.max_level()
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = EventFields { context: self.context(event.parent()), message: String::new() };
        event.record(&mut fields);
        let line = UntrustedText::new(format!("{}{}", fields.context, fields.message.trim_start()));
        match *event.metadata().level() {
            Level::ERROR | Level::WARN => self.console.warn(line),
            _ => self.console.log_line(line),
        }
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = Id::from_u64(self.last_id.fetch_add(1, Ordering::Relaxed) + 1);
        let mut context = self.context(attributes.parent());
        attributes.record(&mut context);
        self.spans().insert(id.clone(), OpenSpan { context, handles: 1 });
        id
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        if let Some(span) = self.spans().get_mut(id) {
            values.record(&mut span.context);
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(id.clone()));
    }

    fn exit(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| {
            if let Some(at) = entered.iter().rposition(|known| known == id) {
                entered.remove(at);
            }
        });
    }

    fn clone_span(&self, id: &Id) -> Id {
        if let Some(span) = self.spans().get_mut(id) {
            span.handles += 1;
        }
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut spans = self.spans();
        let Some(span) = spans.get_mut(&id) else { return false };
        span.handles -= 1;
        let is_last = span.handles == 0;
        if is_last {
            spans.remove(&id);
        }
        is_last
    }
}

#[cfg(test)]
mod tests {
    use anstream::ColorChoice;
    use tracing::{debug, debug_span};

    use super::*;
    use crate::console::{LineOverlay, OutputMode};

    /// Records the lines.
    #[derive(Default)]
    struct RecordingOverlay(Mutex<Vec<String>>);

    impl LineOverlay for RecordingOverlay {
        fn print(&self, _: String) {}

        fn log_line(&self, text: String) {
            self.0.lock().unwrap().push(text);
        }

        fn set_status(&self, _: Option<String>) {}
    }

    /// Runs a function with the subscriber. Returns the lines of `--debug`.
    fn lines(run: impl FnOnce(&ConsoleSubscriber)) -> Vec<String> {
        let mode = OutputMode { json: false, debug: true, info: false, color: ColorChoice::Never };
        let console = Arc::new(Console::new(mode).with_terminal());
        let overlay = Arc::new(RecordingOverlay::default());
        console.attach_overlay(overlay.clone());
        let subscriber = Arc::new(ConsoleSubscriber::new(console));
        tracing::subscriber::with_default(subscriber.clone(), || run(&subscriber));
        std::mem::take(&mut *overlay.0.lock().unwrap())
    }

    #[test]
    fn lines_of_concurrent_calls_name_their_call() {
        let lines = lines(|_| {
            let call =
                |tool| debug_span!(target: "wharf", "call", server = "harbour", tool, id = tracing::field::Empty);
            let (first, second) = (call("echo"), call("slow"));
            for (span, id) in [(&first, 7_u64), (&second, 8)] {
                span.record("id", id);
                span.in_scope(|| debug!(target: "wharf", "sent"));
            }
            second.in_scope(|| {
                debug!(target: "wharf", bytes = 3, "received");
                debug!(target: "wharf", parent: &first, "received");
            });
            debug!(target: "wharf", server = "quay", "idle");
        });
        let expected = [
            "harbour [echo 7]: sent",
            "harbour [slow 8]: sent",
            "harbour [slow 8]: received (bytes: 3)",
            "harbour [echo 7]: received",
            "quay: idle",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn inner_span_keeps_the_server_of_the_outer_one_and_closed_spans_are_forgotten() {
        let lines = lines(|subscriber| {
            let connection = debug_span!(target: "wharf", "connection", server = "harbour\u{1b}");
            let call = connection.in_scope(|| debug_span!(target: "wharf", "call", method = "resources/read"));
            drop(connection.clone());
            drop(connection);
            call.in_scope(|| debug!(target: "wharf", "sent"));
            assert_eq!(subscriber.spans().len(), 1);
            drop(call);
            assert!(subscriber.spans().is_empty());
        });
        assert_eq!(lines, [r"harbour\u{1b} [resources/read]: sent"]);
    }
}
