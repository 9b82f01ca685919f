//! What is done with what was typed, and with what a run says.

use std::time::Duration;

use tokio::time::Instant;
use wharf_agent::{Ending, RunEvent};

use super::editor::{Began, Field, Typed};
use super::mention::{self, Room};
use super::slash::{ChatFacts, Post, Wish, perform};
use super::{FIRST_WORDS, Next, Repl};
use crate::failure::{Failure, Kind, render};
use crate::question::Heard;
use crate::style::{QUIET, paint};
use crate::table::wrap;

/// How long a message waits for servers that are starting.
const STARTING: Duration = Duration::from_secs(3);

impl<'a> Repl<'a> {
    pub(super) async fn typed(&mut self, typed: Typed) -> Result<Next, Failure> {
        let was_interrupted = std::mem::take(&mut self.interrupted);
        match (typed, self.desk.field()) {
            (Typed::Line { text, .. }, Some(field)) if is_command(&text, &field) => self.line(&text),
            (Typed::Line { text, began: Began::After }, Some(_)) => self.answer(Heard::Line(text)),
            (Typed::Line { text, began: Began::Before }, Some(_)) if is_answer(&text) => self.too_early(),
            (Typed::Line { text, .. }, _) => self.line(&text),
            (Typed::Interrupt, _) => return Ok(self.interrupt(was_interrupted)),
            (Typed::End, Some(_)) => self.answer(Heard::End),
            (Typed::End, None) => return Ok(self.end()),
        }
        Ok(Next::GoOn)
    }

    /// Somebody answered a question they cannot have read.
    fn too_early(&mut self) {
        self.session.console.say(paint(QUIET, "(typed before the question was there: type it again)"));
        self.prompt();
    }

    fn answer(&mut self, heard: Heard) {
        let news = self.desk.hear(heard);
        self.asked(news);
        self.prompt();
    }

    fn line(&mut self, text: &str) {
        let text = text.trim();
        match text.strip_prefix('/') {
            _ if text.is_empty() => self.prompt(),
            Some(command) => self.command(command.to_owned()),
            None => self.say(text.to_owned()),
        }
    }

    fn command(&mut self, line: String) {
        let post = Post { fleet: self.fleet, models: self.models, facts: self.facts() };
        self.errands.send(async move { perform(&line, &post).await });
        self.prompt_due = Some(Instant::now() + FIRST_WORDS);
    }

    fn facts(&self) -> ChatFacts {
        ChatFacts {
            model: self.chat.chosen().map(|chosen| chosen.name.clone()),
            id: self.chat.id().map(str::to_owned),
            turns: self.chat.turns(),
            tokens: self.chat.tokens(),
            context: self.chat.context(),
            running: self.run.is_some(),
        }
    }

    /// Says something to the agent, once what it mentions is read. Servers that are just starting are waited for a
    /// little: the model would not know of their tools.
    fn say(&mut self, text: String) {
        let (host, room) = (self.host(), Room::within(self.chat.context()));
        self.errands.send(async move {
            let _ = tokio::time::timeout(STARTING, host.settled()).await;
            mention::attach(&text, host, room).await.map(Wish::Say)
        });
        self.prompt();
    }

    /// Ctrl-C: a run is cancelled, and with it what it asks; without a run a question is a no; otherwise, and the second
    /// time, it leaves.
    fn interrupt(&mut self, was_interrupted: bool) -> Next {
        if was_interrupted {
            return Next::Leave;
        }
        self.interrupted = true;
        match &mut self.run {
            Some(run) => run.cancel(),
            None if self.desk.field().is_some() => {
                let news = self.desk.hear(Heard::End);
                self.asked(news);
            }
            None => self.session.console.say("Ctrl-C again leaves, and so do /exit and Ctrl-D"),
        }
        self.prompt();
        Next::GoOn
    }

    /// Ctrl-D, or the end of a pipe: what is under way there comes to its end first.
    fn end(&mut self) -> Next {
        self.over = true;
        if self.editor.is_terminal() { Next::Leave } else { Next::GoOn }
    }

    pub(super) async fn ran(&mut self, event: Option<RunEvent>) -> Result<(), Failure> {
        if let Some(event) = &event {
            self.chat.heard(event);
            self.show.event(event)?;
        }
        if let None | Some(RunEvent::Ended(_)) = event {
            self.run_over(event).await;
        }
        Ok(())
    }

    async fn run_over(&mut self, event: Option<RunEvent>) {
        if let Some(run) = self.run.take() {
            self.chat.end(run.finish().await);
        }
        self.worst = match event {
            Some(RunEvent::Ended(Ending::Done)) => None,
            Some(RunEvent::Ended(Ending::Cancelled)) => Some(Kind::Interrupted),
            _ => Some(Kind::Other),
        };
        if let Some(said) = self.queue.pop_front() {
            self.begin(said).await;
        }
    }

    /// Tells of something that went wrong, and goes on.
    pub(super) fn tell(&mut self, failure: Failure) {
        let console = &self.session.console;
        let failure = self.session.in_full(failure);
        self.worst = Some(failure.kind);
        console.say(wrap(&render(&failure), console.talk_width()));
    }
}

/// Whether a line is a command although something is being asked: it has to be no answer that could be meant.
fn is_command(text: &str, field: &Field) -> bool {
    text.starts_with('/') && !field.choices.is_empty() && !field.choices.iter().any(|choice| choice == text.trim())
}

/// Whether a line looks like an answer to a question, and not like something said to the agent.
fn is_answer(text: &str) -> bool {
    !text.starts_with('/') && text.split_whitespace().count() <= 1
}
