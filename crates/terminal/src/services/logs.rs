//! Prints a server's log messages.

use std::sync::Arc;

use wharf_client::{LogSink, RequestSource};
use wharf_spec::UntrustedText;
use wharf_wire::LogMessage;

use crate::console::Console;
use crate::style::{NAME, QUIET, paint};

/// Maximum characters of a message and of a logger name.
const MAX_MESSAGE_LEN: usize = 1_000;
const MAX_LOGGER_LEN: usize = 80;

/// Prints each message on one line, with the server and the level.
pub struct ConsoleLogSink(pub Arc<Console>);

impl LogSink for ConsoleLogSink {
    fn log(&self, source: RequestSource<'_>, message: LogMessage) {
        self.0.log_line(log_line(source.server, &message));
    }
}

/// Formats a message as one line, with the server and the level.
pub fn log_line(server: &str, message: &LogMessage) -> String {
    let logger =
        message.logger.as_deref().map(|logger| format!(" {}", UntrustedText::new(logger).truncate(MAX_LOGGER_LEN)));
    // Most servers log strings, which are shown without quotes.
    let text: Option<String> = message.data.decode_unbounded().ok();
    let text = UntrustedText::new(text.as_deref().unwrap_or(message.data.as_str()));
    let head = paint(QUIET, format!("{}{}:", message.level, logger.unwrap_or_default()));
    format!("{} · {head} {}", paint(NAME, UntrustedText::new(server)), text.truncate(MAX_MESSAGE_LEN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_wire::{JsonLimits, RawJson, View as _};

    #[track_caller]
    fn check(message: &'static str, expected: &str) {
        let message = LogMessage::from_raw(RawJson::parse(message).unwrap(), &JsonLimits::default()).unwrap();
        assert_eq!(anstream::adapter::strip_str(&log_line("demo", &message)).to_string(), expected);
    }

    #[test]
    fn log_message_is_one_escaped_line() {
        check(r#"{"level":"info","data":"a\nb\u001b[2J"}"#, r"demo · info: a\nb\u{1b}[2J");
        check(r#"{"level":"error","logger":"db\r","data":{"code":7}}"#, r#"demo · error db\r: {"code":7}"#);
        let long = format!(r#"{{"level":"debug","data":"{}"}}"#, "x".repeat(5_000));
        let message = LogMessage::from_raw(RawJson::parse(long).unwrap(), &JsonLimits::default()).unwrap();
        assert!(log_line("demo", &message).chars().count() < MAX_MESSAGE_LEN + 100);
    }
}
