//! Notices about server state changes, each printed once.

use std::collections::HashMap;

use wharf::{Event, EventDelivery, Host, ServerError, ServerState};
use wharf_spec::{ServerName, UntrustedText};

use wharf_terminal::managed_host::{LoadedConfig, ReloadReport};
use wharf_terminal::server_log_notices::ServerLogNotices;
use wharf_terminal::session::CommandSession;
use wharf_terminal::style::{NAME, paint};
use wharf_terminal::table::wrap;

/// Maximum characters shown of an error and of a stderr line.
const MAX_SHOWN_CHARS: usize = 300;

/// Failed servers that the user has been notified about, and the servers' log messages.
#[derive(Default)]
pub struct ServerNotices(HashMap<String, NoticeState>, ServerLogNotices);

/// State of a server's failure notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoticeState {
    /// The failure was announced while the host retries.
    Retrying,
    /// The server was announced as unavailable.
    Announced,
    /// The server's configuration changed after the notice.
    Outdated,
}

impl ServerNotices {
    /// Announces servers that could not be resolved before startup.
    pub fn announce_failures(&mut self, known: &LoadedConfig, session: &CommandSession) {
        for (server, failure) in &known.failures {
            let why = UntrustedText::new(failure.error.message.as_str()).truncate(MAX_SHOWN_CHARS).to_string();
            self.announce_unavailable(server, &why, "wharf validate", session);
        }
    }

    /// Announces the current state of all servers, for events that were missed.
    pub fn announce_current(&mut self, host: &Host, session: &CommandSession) {
        for status in host.status() {
            self.on_state(&status.name, status.state, status.last_error.as_deref(), session);
        }
    }

    /// Handles a configuration reload: servers it changes are announced again.
    pub fn on_reload(&mut self, changes: &ReloadReport, host: &Host, session: &CommandSession) {
        self.mark_outdated(changes);
        // They may have failed already.
        self.announce_current(host, session);
    }

    pub fn on_event(&mut self, delivery: &EventDelivery, host: &Host, session: &CommandSession) {
        let timed = match delivery {
            EventDelivery::Event(timed) => timed,
            // The missed events are unknown.
            EventDelivery::Missed(_) => return self.announce_current(host, session),
        };
        self.1.on_event(&timed.event, &session.console);
        match &timed.event {
            Event::State { server, state, last_error } => self.on_state(server, *state, last_error.as_deref(), session),
            Event::LoggedIn { server } => session.console.say(format_args!("logged in to {}", paint(NAME, server))),
            Event::Warning { server, text } => session.console.log_line(format_args!("{server}: {text}")),
            Event::AuditFailed { text } | Event::NotKept { text } => {
                session.console.warn(UntrustedText::new(text.as_str()))
            }
            _ => {}
        }
    }

    fn on_state(
        &mut self,
        server: &ServerName,
        state: ServerState,
        trouble: Option<&ServerError>,
        session: &CommandSession,
    ) {
        match state {
            ServerState::Reconnecting => self.announce_retry(server.as_str(), trouble, session),
            ServerState::Failed => {
                let why = describe_error(trouble);
                let next = match trouble.is_some_and(ServerError::needs_approval) {
                    true => format!("wharf approve {server}"),
                    false => format!("/mcp reconnect {server}"),
                };
                self.announce_unavailable(server.as_str(), &why, &next, session);
            }
            ServerState::AuthRequired if self.record_notice(server.as_str(), NoticeState::Announced) => {
                session.console.say(format_args!("MCP server `{server}` requires a login: /mcp auth {server}"));
            }
            ServerState::Ready if self.0.remove(server.as_str()).is_some() => {
                session.console.say(format_args!("MCP server `{server}` is ready"));
            }
            _ => {}
        }
    }

    fn announce_unavailable(&mut self, server: &str, why: &str, next: &str, session: &CommandSession) {
        if self.record_notice(server, NoticeState::Announced) {
            let text = format!("MCP server `{server}` unavailable: {why} (try {next})");
            session.console.say(wrap(&text, session.console.stderr_width()));
        }
    }

    /// Announces the first failure of a server that the host retries.
    fn announce_retry(&mut self, server: &str, trouble: Option<&ServerError>, session: &CommandSession) {
        let is_known = matches!(self.0.get(server), Some(NoticeState::Retrying | NoticeState::Announced));
        if trouble.is_some() && !is_known {
            self.record_notice(server, NoticeState::Retrying);
            let text = format!("MCP server `{server}` failed: {}. Retrying", describe_error(trouble));
            session.console.say(wrap(&text, session.console.stderr_width()));
        }
    }

    fn mark_outdated(&mut self, changes: &ReloadReport) {
        self.0.retain(|server, _| !changes.removed.contains(server));
        for server in changes.added.iter().chain(&changes.changed) {
            self.0.entry(server.clone()).and_modify(|heeded| *heeded = NoticeState::Outdated);
        }
    }

    /// Records a notice and reports whether it is new.
    fn record_notice(&mut self, server: &str, state: NoticeState) -> bool {
        self.0.insert(server.to_owned(), state) != Some(state)
    }
}

/// Describes an error with the last line of the server's stderr. Escaped.
fn describe_error(trouble: Option<&ServerError>) -> String {
    let Some(trouble) = trouble else { return "unknown error".to_owned() };
    let why = UntrustedText::new(trouble.to_string()).truncate(MAX_SHOWN_CHARS).to_string();
    let last = trouble.stderr().iter().rev().map(|line| line.trim()).find(|line| !line.is_empty());
    match last.map(|line| UntrustedText::new(line).truncate(MAX_SHOWN_CHARS).to_string()) {
        Some(line) if !why.contains(&line) => format!("{why}; stderr: {line}"),
        _ => why,
    }
}

/// Announces the changes of an automatic configuration reload, if any.
pub fn announce_auto_reload(session: &CommandSession, reloaded: &ReloadReport) {
    if reloaded.has_changes() {
        print_reload(session, reloaded, &reloaded.new_problems);
    }
}

/// Announces the changes of a requested configuration reload and all of its problems.
pub fn announce_reload(session: &CommandSession, reloaded: &ReloadReport) {
    print_reload(session, reloaded, &reloaded.problems);
}

fn print_reload(session: &CommandSession, reloaded: &ReloadReport, problems: &[String]) {
    for problem in problems {
        session.console.warn(UntrustedText::new(problem.as_str()));
    }
    session.console.say(format_args!("configuration reloaded: {}", reloaded.describe()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slash::command_fixture::with_host;
    use crate::slash::run_line;

    const OFF: &str = r#"{"mcpServers": {"off": {"command": "/nowhere/at/all", "enabled": false}}}"#;

    #[test]
    fn missed_events_are_announced_from_status() {
        with_host(OFF, Host::builder, async |context| {
            let (host, session) = (&context.managed_host.host, context.managed_host.session);
            run_line("mcp enable off", context).await.unwrap();
            host.wait_until_settled().await;
            let mut notices = ServerNotices::default();
            notices.on_event(&EventDelivery::Missed(3), host, session);
            // The first attempt has failed; the host may have given up or may be about to retry.
            assert!(matches!(notices.0.get("off"), Some(NoticeState::Announced | NoticeState::Retrying)));
        });
    }

    #[test]
    fn changed_server_is_announced_again() {
        let (name, mut notices) = (vec!["off".to_owned()], ServerNotices::default());
        let edited = ReloadReport { changed: name.clone(), ..ReloadReport::default() };
        let removed = ReloadReport { removed: name, ..ReloadReport::default() };
        for changes in [&edited, &removed] {
            assert!(notices.record_notice("off", NoticeState::Announced));
            assert!(!notices.record_notice("off", NoticeState::Announced));
            notices.mark_outdated(changes);
        }
        // A server that never failed was not announced.
        notices.mark_outdated(&edited);
        assert!(notices.0.is_empty());
    }
}
