//! Actions that follow from commands and background tasks.

use std::ops::ControlFlow;
use std::sync::Arc;

use wharf_agent::TurnBlock;
use wharf_config::ConfiguredServer;
use wharf_spec::{ActivationState, Fingerprint, ToolId, UntrustedText};

use super::model_selection::SelectionTrigger;
use super::slash::{ActionResult, ReplAction};
use super::{ReplSession, server_notices};
use wharf_terminal::chat::recap::Recap;
use wharf_terminal::definition_review::release_command;
use wharf_terminal::failure::{Failure, FailureKind, LOGIN_COMMAND};
use wharf_terminal::managed_host::{ManagedHost, ReloadReport, ReloadTrigger, is_same_definition};
use wharf_terminal::session::CommandSession;
use wharf_terminal::style::{NAME, QUIET, paint};
use wharf_terminal::table::wrap;

impl<'a> ReplSession<'a> {
    pub(super) async fn on_task_done(&mut self, done: ActionResult) -> ControlFlow<()> {
        let next = match done {
            Ok(action) => self.apply_action(action).await,
            Err(failure) => {
                self.report_failure(failure);
                ControlFlow::Continue(())
            }
        };
        if next.is_continue() && self.prompt_due.is_some() {
            self.prompt();
        }
        next
    }

    async fn apply_action(&mut self, action: ReplAction) -> ControlFlow<()> {
        match action {
            ReplAction::Nothing => {}
            ReplAction::Exit => return ControlFlow::Break(()),
            ReplAction::Clear => self.clear().await,
            ReplAction::Resume(id) => self.resume_conversation(id).await,
            ReplAction::Model(name) => self.select_model(Some(name), SelectionTrigger::Asked),
            ReplAction::Cancel => self.cancel(),
            ReplAction::Reload => self.reload(),
            ReplAction::Reloaded(reloaded) => self.on_reloaded(&reloaded),
            ReplAction::Started => self.notices.announce_failures(&self.managed_host.loaded_config(), self.session),
            ReplAction::ShowResult(number) => self.show_result(number),
            ReplAction::LogIn(server) => self.log_in(&server),
            ReplAction::Release { tool, seen } => self.release(tool, seen),
            ReplAction::SendMessage(blocks) => self.start_run(blocks),
        }
        ControlFlow::Continue(())
    }

    /// Starts a run. The conversation is free: messages are queued until it is.
    pub(super) fn start_run(&mut self, user_input: Vec<TurnBlock>) {
        if self.chat.selected_model().is_none() {
            return self.select_model_for(user_input);
        }
        match self.chat.start_run(user_input) {
            Ok(run) => {
                (self.run, self.interrupted) = (Some(run), None);
                self.question_desk.set_run_cancelled(false);
            }
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

    /// Prints a recent tool result in full.
    fn show_result(&mut self, number: Option<usize>) {
        if let Err(failure) = self.renderer.print_result(number) {
            self.report_failure(failure);
        }
    }

    /// Logs in, at a terminal only. From a pipe, the next line would be taken as the answer.
    fn log_in(&mut self, server: &str) {
        if self.editor.is_terminal() {
            return self.question_desk.log_in(self.managed_host, server);
        }
        let failure = Failure::new(FailureKind::LoginNeeded, "logging in needs a terminal").about_server(server);
        self.report_failure(failure.with_hint(format_args!("run: {LOGIN_COMMAND} {server}")));
    }

    /// Asks whether to release a tool, at a terminal only.
    fn release(&mut self, tool: ToolId, seen: Fingerprint) {
        if self.editor.is_terminal() {
            return self.question_desk.release(self.managed_host, tool, seen);
        }
        let failure = Failure::new(FailureKind::Denied, "releasing a tool needs a terminal");
        let failure = failure.about_server(tool.server.as_str());
        self.report_failure(failure.with_hint(format_args!("run: {} --yes", release_command(&tool))));
    }

    /// Resumes a conversation and reconnects its servers.
    pub(super) async fn resume_conversation(&mut self, id: Option<String>) {
        match self.chat.resume(id).await {
            Ok(resumed) => {
                let console = &self.session.console;
                resumed.problems.iter().for_each(|problem| console.warn(problem));
                console.say(format_args!("resumed {} ({} turns)", paint(NAME, &resumed.id), resumed.turns));
                print_recap(self.session, &resumed.recap);
                for server in resumed.servers {
                    self.local_tasks.push(reconnect_server(self.managed_host, server));
                }
            }
            Err(failure) => self.report_failure(failure),
        }
    }

    /// Handles a configuration reload: updates notices, approval questions and model names.
    fn on_reloaded(&mut self, reloaded: &ReloadReport) {
        self.notices.on_reload(reloaded, self.host(), self.session);
        let known = self.managed_host.loaded_config();
        self.question_desk
            .withdraw_approvals(|asked| !known.unapproved().any(|server| is_same_definition(server, asked)));
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

    fn spawn_reload(&mut self, trigger: ReloadTrigger, print_report: fn(&CommandSession, &ReloadReport)) {
        let (session, managed_host) = (self.session, self.managed_host);
        self.local_tasks.push(async move {
            let reloaded = managed_host.reload(trigger).await?;
            print_report(session, &reloaded);
            Ok(ReplAction::Reloaded(reloaded))
        });
    }

    /// Asks for approval of these project servers, at a terminal only.
    fn ask_approvals(&mut self, names: &[String]) {
        if self.editor.is_terminal() && !names.is_empty() {
            let is_named = |server: &&ConfiguredServer| names.iter().any(|name| server.name.as_str() == name);
            let known = self.managed_host.loaded_config();
            let servers = known.unapproved().filter(is_named).cloned().collect();
            self.question_desk.ask_changed_approvals(servers, Arc::clone(&known.config));
        }
    }
}

/// Prints the last exchange of a resumed conversation.
fn print_recap(session: &CommandSession, recap: &Recap) {
    for (speaker, lines) in [("you:", &recap.user), ("model:", &recap.model)] {
        if !lines.is_empty() {
            let text = wrap(&format!("  {speaker} {}", lines.join("\n    ")), session.console.stderr_width());
            session.console.say(paint(QUIET, text));
        }
    }
}

/// Starts a server of a resumed conversation. The event listener announces the result.
async fn reconnect_server(managed_host: &ManagedHost<'_>, server: String) -> ActionResult {
    let (known, console) = (managed_host.loaded_config(), &managed_host.session.console);
    let shown = UntrustedText::new(server.as_str());
    match known.config.server(&server).map(ConfiguredServer::activation) {
        None => console.warn(format_args!("the conversation used server `{shown}`, which is no longer configured")),
        Some(ActivationState::Disabled) => console.warn(format_args!(
            "the conversation used server `{shown}`, which is disabled: /mcp enable {shown} enables it for this session"
        )),
        Some(_) => {}
    }
    managed_host.wait_for_config().await;
    tokio::select! {
        biased;
        // Its first poll starts an idle server, which continues to start.
        _ = managed_host.host.wait_until_ready(&server) => {}
        () = managed_host.host.wait_for_startup() => {}
    }
    Ok(ReplAction::Nothing)
}
