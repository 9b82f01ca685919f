//! Handling of user input and of run events.

use std::ops::ControlFlow;
use std::time::Duration;

use tokio::time::Instant;
use wharf_agent::{AgentRun, RunEvent};

use super::input_queue::InputKind;
use super::mention::{self, AttachmentBudget};
use super::slash::{self, ActionResult, ChatSummary, CommandContext, ReplAction, run_line};
use super::{PROMPT_DELAY, ReplSession};
use wharf_terminal::chat::ending;
use wharf_terminal::count_text::CountText;
use wharf_terminal::editor::{EditorInput, InputField, LineStart};
use wharf_terminal::failure::{Failure, FailureKind, render_failure};
use wharf_terminal::managed_host::ManagedHost;
use wharf_terminal::question::DialogInput;
use wharf_terminal::style::{QUIET, paint};
use wharf_terminal::table::wrap;

/// Maximum time a message waits for the first server.
const SERVER_START_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum time a line of a script waits for servers: a script cannot repeat its input.
const SCRIPT_START_TIMEOUT: Duration = Duration::from_secs(30);

/// Time within which a second Ctrl-C exits.
const SECOND_INTERRUPT_WINDOW: Duration = Duration::from_secs(5);

impl<'a> ReplSession<'a> {
    pub(super) async fn on_input(&mut self, typed: EditorInput) -> Result<ControlFlow<()>, Failure> {
        let interrupted = self.interrupted.take();
        match (typed, self.question_desk.field()) {
            (EditorInput::Line { text, .. }, Some(field)) if is_command(&text, &field) => self.on_line(&text),
            (EditorInput::Line { text, began: LineStart::After }, Some(_)) => {
                self.answer_question(DialogInput::Line(text))
            }
            (EditorInput::Line { text, began: LineStart::Before }, Some(_)) if is_answer(&text) => {
                self.reject_early_answer()
            }
            (EditorInput::Line { text, .. }, _) => self.on_line(&text),
            (EditorInput::Interrupt, _) => return Ok(self.interrupt(interrupted)),
            (EditorInput::End, Some(_)) => self.answer_question(DialogInput::End),
            (EditorInput::End, None) => return Ok(self.on_end_of_input()),
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Rejects an answer begun before the question was shown.
    fn reject_early_answer(&mut self) {
        self.session.console.say(paint(QUIET, "(typed before the question appeared, please type it again)"));
        self.prompt();
    }

    fn answer_question(&mut self, input: DialogInput) {
        let event = self.question_desk.on_input(input);
        self.on_desk_event(event);
        self.prompt();
    }

    fn on_line(&mut self, text: &str) {
        let text = text.trim();
        match text.strip_prefix('/') {
            _ if text.is_empty() => self.prompt(),
            Some(command) => self.run_command(command.to_owned()),
            None if is_exit_word(text) => self.run_command(text.to_owned()),
            None => self.send_message(text.to_owned()),
        }
    }

    fn run_command(&mut self, line: String) {
        let (kind, context) =
            (slash::input_kind(&line), CommandContext { managed_host: self.managed_host, facts: self.chat_facts() });
        let waits = !self.editor.is_terminal() && slash::needs_servers(&line);
        let future = async move {
            if waits {
                let _ = tokio::time::timeout(SCRIPT_START_TIMEOUT, context.managed_host.wait_until_settled()).await;
            }
            run_line(&line, &context).await
        };
        self.prompt_due = Some(Instant::now() + PROMPT_DELAY);
        match kind {
            Some(kind) => self.enqueue_input(kind, future),
            None => self.local_tasks.push(future),
        }
    }

    fn chat_facts(&self) -> ChatSummary {
        let selecting = || self.model_selection.as_ref().and_then(|selection| selection.model_name.clone());
        ChatSummary {
            model: self.chat.selected_model().map(|selected| selected.name.clone()).or_else(selecting),
            id: self.chat.id().map(str::to_owned),
            turns: self.chat.turns(),
            tokens: self.chat.tokens(),
            context: self.context(),
        }
    }

    /// Returns the context size of the model being selected, or of the current one.
    fn context(&self) -> Option<u64> {
        self.model_selection.as_ref().and_then(|selection| selection.context).or_else(|| self.chat.context())
    }

    /// Sends a message to the agent after resolving its mentions. Waits for servers that are starting, except slow
    /// ones, since the model would not see their tools.
    fn send_message(&mut self, text: String) {
        let (managed_host, budget) = (self.managed_host, AttachmentBudget::for_context(self.context()));
        let limit = if self.editor.is_terminal() { SERVER_START_TIMEOUT } else { SCRIPT_START_TIMEOUT };
        self.enqueue_input(InputKind::Message, async move {
            let _ = tokio::time::timeout(limit, managed_host.wait_for_startup()).await;
            if mentions_pending_server(&text, managed_host) {
                managed_host.wait_for_config().await;
            }
            mention::attach_mentions(&text, &managed_host.host, budget).await.map(ReplAction::SendMessage)
        });
        self.prompt();
    }

    /// Queues input behind earlier input and reports it if it has to wait.
    fn enqueue_input(&mut self, kind: InputKind, future: impl Future<Output = ActionResult> + 'a) {
        if self.run.is_some() || !self.input_queue.is_empty() {
            let words = match kind {
                InputKind::Message => "(queued until the current run finishes; Ctrl-C cancels both)",
                InputKind::Change => "(runs after the current run finishes; Ctrl-C cancels the run)",
            };
            self.session.console.say(paint(QUIET, words));
        }
        self.input_queue.push(kind, future);
    }

    /// Handles Ctrl-C: cancels a run together with its questions and queued messages; otherwise refuses the open
    /// question; otherwise tells how to exit. A second press shortly after exits, except after a refused question.
    fn interrupt(&mut self, before: Option<Instant>) -> ControlFlow<()> {
        if is_second_interrupt(before) {
            return ControlFlow::Break(());
        }
        let refuses = self.run.is_none() && self.question_desk.field().is_some();
        self.interrupted = (!refuses).then(Instant::now);
        if refuses {
            let event = self.question_desk.on_input(DialogInput::End);
            self.on_desk_event(event);
        } else if !self.cancel_run() {
            self.session.console.say("press Ctrl-C again to exit, or use /exit or Ctrl-D");
        }
        self.prompt();
        ControlFlow::Continue(())
    }

    /// Cancels the run and drops queued messages. Returns whether there was anything to cancel.
    pub(super) fn cancel_run(&mut self) -> bool {
        let dropped_messages = self.input_queue.drop_messages() + usize::from(self.withdraw_pending_input());
        if dropped_messages > 0 {
            let messages = CountText(dropped_messages, "queued message");
            self.session.console.say(paint(QUIET, format_args!("({messages} dropped)")));
        }
        self.question_desk.set_run_cancelled(self.run.is_some());
        self.run.iter_mut().for_each(AgentRun::cancel);
        self.run.is_some() || dropped_messages > 0
    }

    /// Handles Ctrl-D or end of input. Piped input lets pending work finish first.
    fn on_end_of_input(&mut self) -> ControlFlow<()> {
        self.input_ended = true;
        if self.editor.is_terminal() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    pub(super) async fn on_run_event(&mut self, event: Option<RunEvent>) -> Result<(), Failure> {
        if let Some(event) = &event {
            self.chat.record_event(event);
            self.renderer.on_event(event)?;
        }
        if let None | Some(RunEvent::Ended(_)) = event {
            self.finish_run(event).await;
        }
        Ok(())
    }

    async fn finish_run(&mut self, event: Option<RunEvent>) {
        if let Some(run) = self.run.take() {
            self.chat.end(run.finish().await);
        }
        let kind = match event {
            Some(RunEvent::Ended(ending)) => ending::ending_failure(&ending).map(|failure| failure.kind),
            _ => Some(FailureKind::Other),
        };
        self.last_failure = kind.or(self.last_failure);
    }

    /// Reports a failure and continues.
    pub(super) fn report_failure(&mut self, failure: Failure) {
        let console = &self.session.console;
        let failure = self.session.with_login_hint(failure);
        self.last_failure = Some(failure.kind);
        console.say(wrap(&render_failure(&failure), console.stderr_width()));
    }
}

/// Reports whether a message mentions a server that the host has not received yet.
fn mentions_pending_server(text: &str, managed_host: &ManagedHost<'_>) -> bool {
    let known = managed_host.loaded_config();
    known
        .config
        .servers
        .iter()
        .any(|server| text.contains(&format!("@{}:", server.name)) && managed_host.is_pending(server))
}

/// Reports whether this Ctrl-C follows an earlier one closely enough to exit.
fn is_second_interrupt(before: Option<Instant>) -> bool {
    before.is_some_and(|before| before.elapsed() < SECOND_INTERRUPT_WINDOW)
}

/// Reports whether a line is a command although a question is open: it must not be a possible answer. If some answers
/// begin with a slash, only a known command qualifies.
fn is_command(text: &str, field: &InputField) -> bool {
    let is_choice = field.choices.iter().any(|choice| choice == text.trim());
    let has_slashes = field.choices.iter().any(|choice| choice.starts_with('/'));
    text.starts_with('/') && !field.choices.is_empty() && !is_choice && (!has_slashes || slash::is_command(text))
}

/// Reports whether a line is a word that exits in other programs. Such a line is not sent to the model.
fn is_exit_word(text: &str) -> bool {
    matches!(text, "quit" | "exit")
}

/// Reports whether a line looks like an answer rather than a message to the agent.
fn is_answer(text: &str) -> bool {
    !text.starts_with('/') && text.split_whitespace().count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_terminal::editor::EchoMode;

    #[tokio::test(start_paused = true)]
    async fn second_ctrl_c_exits_within_the_window() {
        assert!(!is_second_interrupt(None));
        for (later, expected) in [
            (Duration::ZERO, true),
            (SECOND_INTERRUPT_WINDOW / 2, true),
            (SECOND_INTERRUPT_WINDOW, false),
            (SECOND_INTERRUPT_WINDOW * 100, false),
        ] {
            let before = Instant::now();
            tokio::time::advance(later).await;
            assert_eq!(is_second_interrupt(Some(before)), expected, "{later:?}");
        }
    }

    #[test]
    fn command_is_recognized_unless_it_is_a_possible_answer() {
        for (choices, text, expected) in [
            (&["y", "n"][..], "/mcp", true),
            (&["y", "n"], "/mpc", true),
            (&["y", "n"], "y", false),
            (&[], "/mcp", false),
            (&["/srv", "/home"], "/srv", false),
            (&["/srv", "/home"], "/srv,/home", false),
            (&["/srv", "/home"], "/HOME", false),
            (&["/srv", "/home"], "/mcp", true),
            (&["/help", "/home"], "/help", false),
        ] {
            let choices: Vec<String> = choices.iter().map(|choice| (*choice).to_owned()).collect();
            let field = InputField { echo: EchoMode::Shown, check: None, choices };
            assert_eq!(is_command(text, &field), expected, "{text} of {:?}", field.choices);
        }
    }
}
