//! What happens to servers, told once.

use std::collections::HashMap;

use wharf::{Event, Heard, Host, State, Trouble};
use wharf_spec::{ServerName, Untrusted};

use wharf_terminal::fleet::{Known, Reloaded};
use wharf_terminal::session::Session;
use wharf_terminal::style::{NAME, paint};
use wharf_terminal::table::wrap;

/// Which servers are in trouble, as far as a person was told.
#[derive(Default)]
pub struct Announced(HashMap<String, Heeded>);

/// What a person knows of a server's trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heeded {
    Told,
    /// The server is another one since, and so is its trouble.
    Outdated,
}

impl Announced {
    /// What is wrong with servers before they were even tried.
    pub fn begin(&mut self, known: &Known, session: &Session) {
        for (server, failure) in &known.failures {
            self.unavailable(server, &failure.error.message, "wharf validate", session);
        }
    }

    /// How servers stand, for whoever was not quick enough to hear of it.
    pub fn catch_up(&mut self, host: &Host, session: &Session) {
        for status in host.status() {
            self.state(&status.name, status.state, status.last_error.as_deref(), session);
        }
    }

    /// The configuration is another one: what was told of servers that it changes is told again.
    pub fn changed(&mut self, changes: &Reloaded, host: &Host, session: &Session) {
        self.outdate(changes);
        // They may have failed already.
        self.catch_up(host, session);
    }

    pub fn heard(&mut self, heard: &Heard, host: &Host, session: &Session) {
        let told = match heard {
            Heard::Event(told) => told,
            // Nobody knows what it was about.
            Heard::Missed(_) => return self.catch_up(host, session),
        };
        match &told.event {
            Event::State { server, state, trouble } => self.state(server, *state, trouble.as_deref(), session),
            Event::LoggedIn { server } => session.console.say(format_args!("logged in at {}", paint(NAME, server))),
            Event::Warning { server, text } => session.console.aside(format_args!("{server}: {text}")),
            Event::AuditFailed { text } | Event::NotKept { text } => {
                session.console.warn(Untrusted::new(text.as_str()))
            }
            _ => {}
        }
    }

    fn state(&mut self, server: &ServerName, state: State, trouble: Option<&Trouble>, session: &Session) {
        match state {
            State::Failed => {
                let why = trouble.map(ToString::to_string).unwrap_or_else(|| "it failed".to_owned());
                let next = match trouble.is_some_and(Trouble::needs_approval) {
                    true => format!("wharf approve {server}"),
                    false => format!("/mcp reconnect {server}"),
                };
                self.unavailable(server.as_str(), &why, &next, session);
            }
            State::AuthRequired if self.is_news(server.as_str()) => {
                session.console.say(format_args!("MCP server `{server}` wants a login; /mcp auth {server}"));
            }
            State::Ready if self.0.remove(server.as_str()).is_some() => {
                session.console.say(format_args!("MCP server `{server}` is ready"));
            }
            _ => {}
        }
    }

    fn unavailable(&mut self, server: &str, why: &str, next: &str, session: &Session) {
        if self.is_news(server) {
            let why = Untrusted::new(why);
            let text = format!("MCP server `{server}` unavailable: {}; {next}", why.shortened(300));
            session.console.say(wrap(&text, session.console.talk_width()));
        }
    }

    fn outdate(&mut self, changes: &Reloaded) {
        self.0.retain(|server, _| !changes.removed.contains(server));
        for server in changes.added.iter().chain(&changes.changed) {
            self.0.entry(server.clone()).and_modify(|heeded| *heeded = Heeded::Outdated);
        }
    }

    /// Whether nobody was told of this trouble yet; from now on they were.
    fn is_news(&mut self, server: &str) -> bool {
        self.0.insert(server.to_owned(), Heeded::Told) != Some(Heeded::Told)
    }
}

/// Tells what a look at the configuration has changed, if anything.
pub fn followed(session: &Session, reloaded: &Reloaded) {
    if reloaded.is_any() {
        tell(session, reloaded, &reloaded.news);
    }
}

/// Tells what a look at the configuration that somebody asked for has changed, and all that is wrong with it.
pub fn reloaded(session: &Session, reloaded: &Reloaded) {
    tell(session, reloaded, &reloaded.problems);
}

fn tell(session: &Session, reloaded: &Reloaded, problems: &[String]) {
    for problem in problems {
        session.console.warn(Untrusted::new(problem.as_str()));
    }
    session.console.say(format_args!("configuration read again: {}", reloaded.words()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slash::perform;
    use crate::slash::stage::play;

    const OFF: &str = r#"{"mcpServers": {"off": {"command": "/nowhere/at/all", "enabled": false}}}"#;

    #[test]
    fn what_was_not_heard_is_caught_up_with() {
        play(OFF, Host::builder, async |post| {
            let (host, session) = (&post.fleet.host, post.fleet.session);
            perform("mcp enable off", post).await.unwrap();
            host.settled().await;
            let mut announced = Announced::default();
            announced.heard(&Heard::Missed(3), host, session);
            assert!(!announced.is_news("off"));
        });
    }

    #[test]
    fn a_server_that_is_another_one_is_told_of_again() {
        let (name, mut announced) = (vec!["off".to_owned()], Announced::default());
        let edited = Reloaded { changed: name.clone(), ..Reloaded::default() };
        let removed = Reloaded { removed: name, ..Reloaded::default() };
        for changes in [&edited, &removed] {
            assert!(announced.is_news("off"));
            assert!(!announced.is_news("off"));
            announced.outdate(changes);
        }
        // Nobody has heard of trouble that there never was.
        announced.outdate(&edited);
        assert!(announced.0.is_empty());
    }
}
