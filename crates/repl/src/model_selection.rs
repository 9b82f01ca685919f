//! Model selection. It runs in the background because a key lookup may run a program.

use std::pin::Pin;

use wharf_agent::TurnBlock;

use super::ReplSession;
use wharf_terminal::chat::models::{ModelCatalog, SelectedModel};
use wharf_terminal::failure::Failure;
use wharf_terminal::style::{NAME, paint};

/// A model selection in progress. Dropping it abandons the selection.
pub struct ModelSelection {
    found: Pin<Box<dyn Future<Output = Result<Box<SelectedModel>, Failure>>>>,
    why: SelectionTrigger,
    /// The model's name, if known.
    pub called: Option<String>,
    /// The model's context size in tokens, if known.
    pub context: Option<u64>,
    /// Input to send once the model is selected.
    said: Option<Vec<TurnBlock>>,
}

/// Trigger of a model selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectionTrigger {
    /// The model was named at program start. A failure ends the program.
    Started,
    /// The default model at program start. A failure is reported when the user first sends a message.
    Usual,
    /// The user named the model in the session.
    Asked,
    /// The user sent a message and no model is selected.
    Needed,
}

impl ModelSelection {
    /// Waits for the result of the selection. Never resolves if none is in progress. Cancel-safe.
    pub async fn next(choosing: &mut Option<Self>) -> Result<Box<SelectedModel>, Failure> {
        match choosing {
            Some(choosing) => choosing.found.as_mut().await,
            None => std::future::pending().await,
        }
    }
}

impl ReplSession<'_> {
    /// Returns the models of the current configuration.
    pub(super) fn models(&self) -> ModelCatalog {
        ModelCatalog::new(self.session, &self.managed_host.loaded_config().config)
    }

    /// Starts a model selection that replaces one in progress and takes over its pending input.
    pub(super) fn select_model(&mut self, name: Option<String>, why: SelectionTrigger) {
        let said = self.choosing.take().and_then(|choosing| choosing.said);
        self.start_selection(name, why, said);
    }

    /// Starts the selection of the default model and queues input for it.
    pub(super) fn select_model_for(&mut self, said: Vec<TurnBlock>) {
        self.start_selection(None, SelectionTrigger::Needed, Some(said));
    }

    fn start_selection(&mut self, name: Option<String>, why: SelectionTrigger, said: Option<Vec<TurnBlock>>) {
        let models = self.models();
        let (called, context) = (models.display_name(name.as_deref()), models.context_size(name.as_deref()));
        let found = Box::pin(async move { models.open_model(name.as_deref()).await.map(Box::new) });
        self.choosing = Some(ModelSelection { found, why, called, context, said });
    }

    /// Withdraws the input queued for the selection. Returns whether there was any.
    pub(super) fn withdraw_pending_input(&mut self) -> bool {
        let said = self.choosing.as_mut().and_then(|choosing| choosing.said.take());
        self.choosing.take_if(|choosing| choosing.why == SelectionTrigger::Needed);
        said.is_some()
    }

    /// Applies the result of a selection.
    pub(super) fn on_model_selected(&mut self, chosen: Result<Box<SelectedModel>, Failure>) -> Result<(), Failure> {
        let Some(ModelSelection { why, said, .. }) = self.choosing.take() else { return Ok(()) };
        match (chosen, why) {
            (Ok(chosen), _) => {
                if why == SelectionTrigger::Asked {
                    self.session.console.say(format_args!("model: {}", paint(NAME, &chosen.name)));
                }
                self.question_desk.lend_model(Some(chosen.model.clone()));
                self.chat.select_model(*chosen);
                said.into_iter().for_each(|said| self.start_run(said));
            }
            (Err(failure), SelectionTrigger::Started) => return Err(failure),
            (Err(_), SelectionTrigger::Usual) => self.question_desk.lend_model(None),
            (Err(failure), SelectionTrigger::Needed) => self.report_failure(failure),
            (Err(failure), SelectionTrigger::Asked) => {
                self.report_failure(failure);
                // The queued input was meant for the previous model.
                said.into_iter().for_each(|said| self.start_run(said));
            }
        }
        Ok(())
    }
}
