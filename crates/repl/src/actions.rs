//! Actions that follow from commands and background tasks.

use std::sync::Arc;

use wharf_agent::TurnBlock;
use wharf_config::ConfiguredServer;
use wharf_spec::UntrustedText;

use super::model_selection::SelectionTrigger;
use super::slash::{ActionResult, ReplAction};
use super::{LoopControl, ReplSession, server_notices};
use wharf_terminal::failure::{Failure, FailureKind, LOGIN_COMMAND};
use wharf_terminal::managed_host::{ManagedHost, ReloadReport, ReloadTrigger, is_written_alike};
use wharf_terminal::session::CommandSession;
use wharf_terminal::style::{NAME, paint};

impl<'a> ReplSession<'a> {
    pub(super) async fn done(&mut self, done: ActionResult) -> LoopControl {
        let next = match done {
            Ok(wish) => self.fulfil(wish).await,
            Err(failure) => {
                self.tell(failure);
                LoopControl::GoOn
            }
        };
        if next == LoopControl::GoOn && self.prompt_due.is_some() {
            self.prompt();
        }
        next
    }

    async fn fulfil(&mut self, wish: ReplAction) -> LoopControl {
        match wish {
            ReplAction::Nothing => {}
            ReplAction::Leave => return LoopControl::Leave,
            ReplAction::Clear => self.clear().await,
            ReplAction::Resume(id) => self.resume(id).await,
            ReplAction::Model(name) => self.choose(Some(name), SelectionTrigger::Asked),
            ReplAction::Cancel => self.cancel(),
            ReplAction::Reload => self.reload(),
            ReplAction::Reloaded(reloaded) => self.reloaded(&reloaded),
            ReplAction::Started => self.announced.begin(&self.fleet.known(), self.session),
            ReplAction::LogIn(server) => self.log_in(&server),
            ReplAction::Say(said) => self.begin(said),
        }
        LoopControl::GoOn
    }

    /// Starts a run. The conversation is free: messages are queued until it is.
    pub(super) fn begin(&mut self, said: Vec<TurnBlock>) {
        if self.chat.chosen().is_none() {
            return self.choose_for(said);
        }
        match self.chat.begin(said) {
            Ok(run) => (self.run, self.interrupted) = (Some(run), None),
            Err(failure) => self.tell(failure),
        }
    }

    fn cancel(&mut self) {
        if !self.stop() {
            self.session.console.say("nothing to cancel");
        }
    }

    async fn clear(&mut self) {
        self.chat.clear().await;
        self.session.console.say("started a new conversation");
    }

    /// Logs in, at a terminal only. From a pipe, the next line would be taken as the answer.
    fn log_in(&mut self, server: &str) {
        if self.editor.is_terminal() {
            return self.desk.log_in(self.fleet, server);
        }
        let failure = Failure::of(FailureKind::LoginNeeded, "logging in needs a terminal").about(server);
        self.tell(failure.hint(format_args!("run: {LOGIN_COMMAND} {server}")));
    }

    /// Resumes a conversation and reconnects its servers.
    pub(super) async fn resume(&mut self, id: Option<String>) {
        match self.chat.resume(id).await {
            Ok(going) => {
                let console = &self.session.console;
                going.problems.iter().for_each(|problem| console.warn(problem));
                console.say(format_args!("resumed {} ({} turns)", paint(NAME, &going.id), going.turns));
                for server in going.servers {
                    self.errands.send(bring_back(self.fleet, server));
                }
            }
            Err(failure) => self.tell(failure),
        }
    }

    /// Handles a configuration reload: updates notices, approval questions and model names.
    fn reloaded(&mut self, reloaded: &ReloadReport) {
        self.announced.changed(reloaded, self.host(), self.session);
        let known = self.fleet.known();
        self.desk.withdraw_approvals(|asked| !known.unapproved().any(|server| is_written_alike(server, asked)));
        self.ask_approvals(&reloaded.unapproved);
        self.model_names.set(&self.models());
    }

    /// Reloads the configuration on request.
    pub(super) fn reload(&mut self) {
        self.reload_by(ReloadTrigger::Asked, server_notices::reloaded);
    }

    /// Reloads the configuration after a change. Another reload may already have applied it.
    pub(super) fn catch_up(&mut self) {
        self.reload_by(ReloadTrigger::Noticed, server_notices::followed);
    }

    fn reload_by(&mut self, look: ReloadTrigger, tell: fn(&CommandSession, &ReloadReport)) {
        let (session, fleet) = (self.session, self.fleet);
        self.errands.send(async move {
            let reloaded = fleet.reload(look).await?;
            tell(session, &reloaded);
            Ok(ReplAction::Reloaded(reloaded))
        });
    }

    /// Asks for approval of these project servers, at a terminal only.
    fn ask_approvals(&mut self, names: &[String]) {
        if self.editor.is_terminal() && !names.is_empty() {
            let is_named = |server: &&ConfiguredServer| names.iter().any(|name| server.name.as_str() == name);
            let known = self.fleet.known();
            let servers = known.unapproved().filter(is_named).cloned().collect();
            self.desk.ask_changed_approvals(servers, Arc::clone(&known.config));
        }
    }
}

/// Connects a server of a resumed conversation. The event listener announces the result.
async fn bring_back(fleet: &ManagedHost<'_>, server: String) -> ActionResult {
    if fleet.known().config.server(&server).is_none() {
        let server = UntrustedText::new(server.as_str());
        fleet
            .session
            .console
            .warn(format_args!("the conversation used server `{server}`, which is no longer configured"));
    }
    fleet.caught_up().await;
    let _ = fleet.host.ready(&server).await;
    Ok(ReplAction::Nothing)
}
