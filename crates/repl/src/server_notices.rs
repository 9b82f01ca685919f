//! Notices about server state changes, each printed once.

use std::collections::HashMap;

use wharf::{Event, EventDelivery, Host, ServerError, ServerState};
use wharf_spec::{ServerName, UntrustedText};

use wharf_terminal::managed_host::{LoadedConfig, ReloadReport};
use wharf_terminal::session::CommandSession;
use wharf_terminal::style::{NAME, paint};
use wharf_terminal::table::wrap;

/// Failed servers that the user has been notified about.
#[derive(Default)]
pub struct ServerNotices(HashMap<String, NoticeState>);

/// State of a server's failure notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoticeState {
    Told,
    /// The server's configuration changed after the notice.
    Outdated,
}

impl ServerNotices {
    /// Announces servers that could not be resolved before startup.
    pub fn announce_failures(&mut self, known: &LoadedConfig, session: &CommandSession) {
        for (server, failure) in &known.failures {
            self.announce_unavailable(server, &failure.error.message, "wharf validate", session);
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

    pub fn on_event(&mut self, heard: &EventDelivery, host: &Host, session: &CommandSession) {
        let told = match heard {
            EventDelivery::Event(told) => told,
            // The missed events are unknown.
            EventDelivery::Missed(_) => return self.announce_current(host, session),
        };
        match &told.event {
            Event::State { server, state, trouble } => self.on_state(server, *state, trouble.as_deref(), session),
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
            ServerState::Failed => {
                let why = trouble.map(ToString::to_string).unwrap_or_else(|| "unknown error".to_owned());
                let next = match trouble.is_some_and(ServerError::needs_approval) {
                    true => format!("wharf approve {server}"),
                    false => format!("/mcp reconnect {server}"),
                };
                self.announce_unavailable(server.as_str(), &why, &next, session);
            }
            ServerState::AuthRequired if self.record_notice(server.as_str()) => {
                session.console.say(format_args!("MCP server `{server}` requires a login: /mcp auth {server}"));
            }
            ServerState::Ready if self.0.remove(server.as_str()).is_some() => {
                session.console.say(format_args!("MCP server `{server}` is ready"));
            }
            _ => {}
        }
    }

    fn announce_unavailable(&mut self, server: &str, why: &str, next: &str, session: &CommandSession) {
        if self.record_notice(server) {
            let why = UntrustedText::new(why);
            let text = format!("MCP server `{server}` unavailable: {} (try {next})", why.truncate(300));
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
    fn record_notice(&mut self, server: &str) -> bool {
        self.0.insert(server.to_owned(), NoticeState::Told) != Some(NoticeState::Told)
    }
}

/// Announces the changes of an automatic configuration reload, if any.
pub fn announce_auto_reload(session: &CommandSession, reloaded: &ReloadReport) {
    if reloaded.has_news() {
        print_reload(session, reloaded, &reloaded.news);
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
        with_host(OFF, Host::builder, async |post| {
            let (host, session) = (&post.fleet.host, post.fleet.session);
            run_line("mcp enable off", post).await.unwrap();
            host.wait_until_settled().await;
            let mut announced = ServerNotices::default();
            announced.on_event(&EventDelivery::Missed(3), host, session);
            assert!(!announced.record_notice("off"));
        });
    }

    #[test]
    fn changed_server_is_announced_again() {
        let (name, mut announced) = (vec!["off".to_owned()], ServerNotices::default());
        let edited = ReloadReport { changed: name.clone(), ..ReloadReport::default() };
        let removed = ReloadReport { removed: name, ..ReloadReport::default() };
        for changes in [&edited, &removed] {
            assert!(announced.record_notice("off"));
            assert!(!announced.record_notice("off"));
            announced.mark_outdated(changes);
        }
        // A server that never failed was not announced.
        announced.mark_outdated(&edited);
        assert!(announced.0.is_empty());
    }
}
