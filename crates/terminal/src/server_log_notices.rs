//! Prints the log messages of servers while a host keeps running. `wharf logs` has all of them.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use wharf::Event;
use wharf_spec::ServerName;
use wharf_wire::LogLevel;

use crate::console::Console;
use crate::services::logs::log_line;

/// Maximum lines of one server within [`WINDOW`]. A server controls how much it logs.
const MAX_LINES: u32 = 20;
const WINDOW: Duration = Duration::from_secs(60);

/// Lines printed of each server.
#[derive(Default)]
pub struct ServerLogNotices(HashMap<ServerName, LineWindow>);

struct LineWindow {
    since: Instant,
    lines: u32,
}

impl ServerLogNotices {
    /// Prints a log message of at least level `warning`, or `info` if those are shown. Ignores other events.
    pub fn on_event(&mut self, event: &Event, console: &Console) {
        let Event::Log { server, message, .. } = event else { return };
        let least = if console.mode.shows_info() { LogLevel::Info } else { LogLevel::Warning };
        if message.level < least {
            return;
        }
        match self.count_line(server) {
            lines if lines < MAX_LINES => console.log_line(log_line(server.as_str(), message)),
            MAX_LINES => console.log_line(format_args!("{server} logs more; see `wharf logs {server}`")),
            _ => {}
        }
    }

    /// Counts a line and returns the number of earlier ones in this window.
    fn count_line(&mut self, server: &ServerName) -> u32 {
        let now = Instant::now();
        let window = self.0.entry(server.clone()).or_insert(LineWindow { since: now, lines: 0 });
        if now.duration_since(window.since) >= WINDOW {
            *window = LineWindow { since: now, lines: 0 };
        }
        window.lines = window.lines.saturating_add(1);
        window.lines - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lines_of_a_server_are_limited_per_minute() {
        let (mut notices, server) = (ServerLogNotices::default(), ServerName::new("git").unwrap());
        let counted: Vec<u32> = (0..30).map(|_| notices.count_line(&server)).collect();
        assert_eq!(counted, (0..30).collect::<Vec<_>>());
        assert_eq!(notices.count_line(&ServerName::new("other").unwrap()), 0);
        tokio::time::advance(WINDOW).await;
        assert_eq!(notices.count_line(&server), 0);
    }
}
