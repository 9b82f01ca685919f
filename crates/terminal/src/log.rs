//! A `tracing` subscriber that prints library warnings to the console.
//!
//! Prints the message, the fields and the server of an event. Ignores spans.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use wharf_spec::UntrustedText;

use crate::console::Console;

/// Prints warnings and errors, everything up to debug level with `--debug`, and up to info level with `WHARF_DEBUG=info`.
pub struct ConsoleSubscriber(pub Arc<Console>);

impl ConsoleSubscriber {
    fn max_level(&self) -> Level {
        match (self.0.mode.debug, self.0.mode.info) {
            (true, _) => Level::DEBUG,
            (false, true) => Level::INFO,
            (false, false) => Level::WARN,
        }
    }
}

#[derive(Default)]
struct EventFields {
    server: Option<String>,
    message: String,
}

impl Visit for EventFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "server" => self.server = Some(format!("{value:?}")),
            "message" => self.message.insert_str(0, &format!("{value:?}")),
            name => {
                let _ = write!(self.message, " ({name}: {value:?})");
            }
        }
    }
}

impl Subscriber for ConsoleSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Commands report server state themselves.
        metadata.target().starts_with("wharf")
            && (self.0.mode.debug || metadata.target() != "wharf::state")
            && *metadata.level() <= self.max_level()
    }

    fn event(&self, event: &Event<'_>) {
        let mut words = EventFields::default();
        event.record(&mut words);
        let server = words.server.map(|server| format!("{server}: ")).unwrap_or_default();
        let line = format!("{server}{}", words.message.trim_start());
        match *event.metadata().level() {
            Level::ERROR | Level::WARN => self.0.warn(UntrustedText::new(line)),
            _ => self.0.log_line(UntrustedText::new(line)),
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
