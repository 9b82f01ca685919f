//! What an errand leads to.

use std::sync::Arc;

use wharf::HostError;
use wharf_agent::Block;
use wharf_config::{Config, load};

use super::errands::Done;
use super::slash::Wish;
use super::{Next, Repl, announce};
use crate::failure::Failure;
use crate::fleet::Reloaded;
use crate::session::Session;
use crate::style::{NAME, QUIET, paint};

impl<'a> Repl<'a> {
    pub(super) async fn done(&mut self, done: Done) -> Result<Next, Failure> {
        let next = match done {
            Ok(wish) => self.fulfil(wish).await,
            Err(failure) => {
                self.tell(failure);
                Next::GoOn
            }
        };
        if next == Next::GoOn && self.prompt_due.is_some() {
            self.prompt();
        }
        Ok(next)
    }

    async fn fulfil(&mut self, wish: Wish) -> Next {
        match wish {
            Wish::Nothing => {}
            Wish::Leave => return Next::Leave,
            Wish::Clear => self.clear().await,
            Wish::Resume(id) => self.resume(id).await,
            Wish::Model(name) => self.choose(&name).await,
            Wish::Cancel => self.cancel(),
            Wish::Reload => self.reload(),
            Wish::LogIn(server) => self.desk.log_in(self.host(), &server),
            Wish::Say(said) => self.begin(said).await,
        }
        Next::GoOn
    }

    /// Begins a run, or lets it wait for the one under way.
    pub(super) async fn begin(&mut self, said: Vec<Block>) {
        if self.run.is_some() {
            self.queue.push_back(said);
            return self.session.console.say(paint(QUIET, "(it is said once this run is over; Ctrl-C cancels that)"));
        }
        if self.chat.chosen().is_none() {
            match self.models.choose(None).await {
                Ok(chosen) => self.chat.choose(chosen),
                Err(failure) => return self.tell(failure),
            }
        }
        match self.chat.begin(said) {
            Ok(run) => (self.run, self.interrupted) = (Some(run), false),
            Err(failure) => self.tell(failure),
        }
    }

    fn cancel(&mut self) {
        match &mut self.run {
            Some(run) => run.cancel(),
            None => self.session.console.say("nothing is running"),
        }
    }

    async fn clear(&mut self) {
        if self.is_running() {
            return;
        }
        self.chat.clear().await;
        self.session.console.say("a new conversation begins");
    }

    async fn choose(&mut self, name: &str) {
        match self.models.choose(Some(name)).await {
            Ok(chosen) => {
                self.session.console.say(format_args!("the model is {}", paint(NAME, &chosen.name)));
                self.desk.lend(Some(chosen.model.clone()));
                self.chat.choose(chosen);
            }
            Err(failure) => self.tell(failure),
        }
    }

    /// Goes on with another conversation, and with the servers it had.
    pub(super) async fn resume(&mut self, id: Option<String>) {
        if self.is_running() {
            return;
        }
        match self.chat.resume(id).await {
            Ok(going) => {
                let console = &self.session.console;
                going.problems.iter().for_each(|problem| console.warn(problem));
                console.say(format_args!("going on with {} ({} turns)", paint(NAME, &going.id), going.turns));
                for server in going.servers {
                    self.errands.send(bring_back(self.session, self.host(), server));
                }
            }
            Err(failure) => self.tell(failure),
        }
    }

    /// Says so where a run has the conversation.
    fn is_running(&self) -> bool {
        if self.run.is_some() {
            self.session.console.say("a run has the conversation; Ctrl-C or /cancel ends it");
        }
        self.run.is_some()
    }

    /// Looks at the configuration again, because somebody wants it to be looked at.
    pub(super) fn reload(&mut self) {
        self.reload_by(announce::reloaded);
    }

    /// Looks at the configuration again, because it will have changed; that it is followed anyway may have been quicker.
    pub(super) fn catch_up(&mut self) {
        self.reload_by(announce::followed);
    }

    fn reload_by(&mut self, tell: fn(&Session, &Reloaded)) {
        let (session, fleet) = (self.session, self.fleet);
        self.errands.send(async move {
            let config = read(session).await?;
            tell(session, &fleet.reload(config).await);
            Ok(Wish::Nothing)
        });
    }

    /// Takes over a configuration that somebody has just edited.
    pub(super) fn reload_with(&mut self, config: Arc<Config>) {
        let (session, fleet) = (self.session, self.fleet);
        self.errands.send(async move {
            announce::followed(session, &fleet.reload(config).await);
            Ok(Wish::Nothing)
        });
    }
}

/// What is configured now.
pub(super) async fn read(session: &Session) -> Result<Arc<Config>, Failure> {
    let (places, around) = (session.configuration.places.clone(), session.surroundings.clone());
    let read = tokio::task::spawn_blocking(move || load(&places, &around)).await;
    read.map(Arc::new).map_err(Failure::other)
}

/// Connects a server that a conversation had.
async fn bring_back(session: &Session, host: &wharf::Host, server: String) -> Done {
    match host.ready(&server).await {
        Ok(_) => {}
        Err(HostError::UnknownServer { .. }) => {
            session.console.warn(format_args!("the conversation had a server `{server}`, which is not configured now"));
        }
        // How a server fares is announced anyway.
        Err(_) => {}
    }
    Ok(Wish::Nothing)
}
