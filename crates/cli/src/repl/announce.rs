//! What happens to servers, told once.

use std::collections::HashSet;

use wharf::{Changes, Event, Heard, Host, State, Trouble};
use wharf_spec::{ServerName, Untrusted};

use crate::configured::told;
use crate::fleet::{Known, Reloaded};
use crate::session::Session;
use crate::style::{NAME, paint};
use crate::table::wrap;

/// Which servers a person knows to be in trouble.
#[derive(Default)]
pub struct Announced(HashSet<String>);

impl Announced {
    /// What is wrong with servers before they were even tried.
    pub fn begin(&mut self, known: &Known, session: &Session) {
        for (server, failure) in &known.failures {
            self.unavailable(server, &failure.error.message, "wharf validate", session);
        }
    }

    /// How servers stand that were quicker than whoever listens.
    pub fn catch_up(&mut self, host: &Host, session: &Session) {
        for status in host.status() {
            self.state(&status.name, status.state, status.last_error.as_deref(), session);
        }
    }

    pub fn heard(&mut self, heard: &Heard, session: &Session) {
        let Heard::Event(told) = heard else { return };
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
                self.unavailable(server.as_str(), &why, &format!("/mcp reconnect {server}"), session);
            }
            State::AuthRequired if self.0.insert(server.to_string()) => {
                session.console.say(format_args!("MCP server `{server}` wants a login; /mcp auth {server}"));
            }
            State::Ready if self.0.remove(server.as_str()) => {
                session.console.say(format_args!("MCP server `{server}` is ready"));
            }
            _ => {}
        }
    }

    fn unavailable(&mut self, server: &str, why: &str, next: &str, session: &Session) {
        if self.0.insert(server.to_owned()) {
            let why = Untrusted::new(why);
            let text = format!("MCP server `{server}` unavailable: {}; {next}", why.shortened(300));
            session.console.say(wrap(&text, session.console.talk_width()));
        }
    }
}

/// Tells what a look at the configuration has changed, if anything.
pub fn followed(session: &Session, reloaded: &Reloaded) {
    let Changes { added, removed, changed, .. } = &reloaded.changes;
    let is_any = [added, removed, changed].iter().any(|list| !list.is_empty());
    if is_any || !reloaded.problems.is_empty() || reloaded.refused.is_some() {
        self::reloaded(session, reloaded);
    }
}

/// Tells what a look at the configuration that somebody asked for has changed.
pub fn reloaded(session: &Session, Reloaded { changes, problems, refused }: &Reloaded) {
    if let Some(rule) = refused {
        session.console.warn(format_args!("the configuration is not taken over: {rule}"));
        return;
    }
    for problem in problems {
        session.console.warn(told(problem));
    }
    session.console.say(format_args!("configuration read again: {}", changed(changes)));
}

/// The changes in words.
fn changed(changes: &Changes) -> String {
    let lists = [("added", &changes.added), ("removed", &changes.removed), ("changed", &changes.changed)];
    let some = lists.into_iter().filter(|(_, list)| !list.is_empty());
    let words: Vec<String> = some
        .map(|(word, list)| format!("{word} {}", list.iter().map(ServerName::as_str).collect::<Vec<_>>().join(", ")))
        .collect();
    if words.is_empty() { "no server is affected".to_owned() } else { words.join("; ") }
}
