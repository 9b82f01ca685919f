//! Actions that follow from commands and background tasks.

use std::sync::Arc;

use wharf_agent::TurnBlock;
use wharf_config::ConfiguredServer;
use wharf_spec::UntrustedText;

use super::model_selection::SelectionTrigger;
use super::slash::{ActionResult, ReplAction};
use super::{LoopControl, ReplSession, server_notices};
use wharf_terminal::failure::{Failure, FailureKind, LOGIN_COMMAND};
use wharf_terminal::managed_host::{ManagedHost, ReloadReport, ReloadTrigger, is_same_definition};
use wharf_terminal::session::CommandSession;
use wharf_terminal::style::{NAME, paint};

impl<'a> ReplSession<'a> {
    pub(super) async fn on_task_done(&mut self, done: ActionResult) -> LoopControl {
        let next = match done {
            Ok(wish) => self.apply_action(wish).await,
            Err(failure) => {
                self.report_failure(failure);
                LoopControl::GoOn
            }
        };
        if next == LoopControl::GoOn && self.prompt_due.is_some() {
            self.prompt();
        }
        next
    }

    async fn apply_action(&mut self, wish: ReplAction) -> LoopControl {
        match wish {
            ReplAction::Nothing => {}
            ReplAction::Leave => return LoopControl::Leave,
            ReplAction::Clear => self.clear().await,
            ReplAction::Resume(id) => self.resume_conversation(id).await,
            ReplAction::Model(name) => self.select_model(Some(name), SelectionTrigger::Asked),
            ReplAction::Cancel => self.cancel(),
            ReplAction::Reload => self.reload(),
            ReplAction::Reloaded(reloaded) => self.on_reloaded(&reloaded),
            ReplAction::Started => self.announced.announce_failures(&self.fleet.loaded_config(), self.session),
            ReplAction::LogIn(server) => self.log_in(&server),
            ReplAction::Say(said) => self.start_run(said),
        }
        LoopControl::GoOn
    }

    /// Starts a run. The conversation is free: messages are queued until it is.
    pub(super) fn start_run(&mut self, said: Vec<TurnBlock>) {
        if self.chat.selected_model().is_none() {
            return self.select_model_for(said);
        }
        match self.chat.start_run(said) {
            Ok(run) => (self.run, self.interrupted) = (Some(run), None),
            Err(failure) => self.report_failure(failure),
        }
    }

    fn cancel(&mut self) {
        if !self.cancel_run() {
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
        let failure = Failure::new(FailureKind::LoginNeeded, "logging in needs a terminal").about_server(server);
        self.report_failure(failure.with_hint(format_args!("run: {LOGIN_COMMAND} {server}")));
    }

    /// Resumes a conversation and reconnects its servers.
    pub(super) async fn resume_conversation(&mut self, id: Option<String>) {
        match self.chat.resume(id).await {
            Ok(going) => {
                let console = &self.session.console;
                going.problems.iter().for_each(|problem| console.warn(problem));
                console.say(format_args!("resumed {} ({} turns)", paint(NAME, &going.id), going.turns));
                for server in going.servers {
                    self.errands.push(reconnect_server(self.fleet, server));
                }
            }
            Err(failure) => self.report_failure(failure),
        }
    }

    /// Handles a configuration reload: updates notices, approval questions and model names.
    fn on_reloaded(&mut self, reloaded: &ReloadReport) {
        self.announced.on_reload(reloaded, self.host(), self.session);
        let known = self.fleet.loaded_config();
        self.desk.withdraw_approvals(|asked| !known.unapproved().any(|server| is_same_definition(server, asked)));
        self.ask_approvals(&reloaded.unapproved);
        self.model_names.set(&self.models());
    }

    /// Reloads the configuration on request.
    pub(super) fn reload(&mut self) {
        self.spawn_reload(ReloadTrigger::Asked, server_notices::announce_reload);
    }

    /// Reloads the configuration after a change. Another reload may already have applied it.
    pub(super) fn reload_changed(&mut self) {
        self.spawn_reload(ReloadTrigger::Noticed, server_notices::announce_auto_reload);
    }

    fn spawn_reload(&mut self, look: ReloadTrigger, tell: fn(&CommandSession, &ReloadReport)) {
        let (session, fleet) = (self.session, self.fleet);
        self.errands.push(async move {
            let reloaded = fleet.reload(look).await?;
            tell(session, &reloaded);
            Ok(ReplAction::Reloaded(reloaded))
        });
    }

    /// Asks for approval of these project servers, at a terminal only.
    fn ask_approvals(&mut self, names: &[String]) {
        if self.editor.is_terminal() && !names.is_empty() {
            let is_named = |server: &&ConfiguredServer| names.iter().any(|name| server.name.as_str() == name);
            let known = self.fleet.loaded_config();
            let servers = known.unapproved().filter(is_named).cloned().collect();
            self.desk.ask_changed_approvals(servers, Arc::clone(&known.config));
        }
    }
}

/// Connects a server of a resumed conversation. The event listener announces the result.
async fn reconnect_server(fleet: &ManagedHost<'_>, server: String) -> ActionResult {
    if fleet.loaded_config().config.server(&server).is_none() {
        let server = UntrustedText::new(server.as_str());
        fleet
            .session
            .console
            .warn(format_args!("the conversation used server `{server}`, which is no longer configured"));
    }
    fleet.wait_for_config().await;
    let _ = fleet.host.wait_until_ready(&server).await;
    Ok(ReplAction::Nothing)
}
