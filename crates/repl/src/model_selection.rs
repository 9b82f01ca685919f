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
    trigger: SelectionTrigger,
    /// The model's name, if known.
    pub model_name: Option<String>,
    /// The model's context size in tokens, if known.
    pub context: Option<u64>,
    /// Input to send once the model is selected.
    user_input: Option<Vec<TurnBlock>>,
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
    pub async fn next(model_selection: &mut Option<Self>) -> Result<Box<SelectedModel>, Failure> {
        match model_selection {
            Some(model_selection) => model_selection.found.as_mut().await,
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
    pub(super) fn select_model(&mut self, name: Option<String>, trigger: SelectionTrigger) {
        let user_input = self.model_selection.take().and_then(|selection| selection.user_input);
        self.start_selection(name, trigger, user_input);
    }

    /// Starts the selection of the default model and queues input for it.
    pub(super) fn select_model_for(&mut self, user_input: Vec<TurnBlock>) {
        self.start_selection(None, SelectionTrigger::Needed, Some(user_input));
    }

    fn start_selection(&mut self, name: Option<String>, trigger: SelectionTrigger, user_input: Option<Vec<TurnBlock>>) {
        let models = self.models();
        let (model_name, context) = (models.display_name(name.as_deref()), models.context_size(name.as_deref()));
        let found = Box::pin(async move { models.open_model(name.as_deref()).await.map(Box::new) });
        self.model_selection = Some(ModelSelection { found, trigger, model_name, context, user_input });
    }

    /// Withdraws the input queued for the selection. Returns whether there was any.
    pub(super) fn withdraw_pending_input(&mut self) -> bool {
        let user_input = self.model_selection.as_mut().and_then(|selection| selection.user_input.take());
        self.model_selection.take_if(|selection| selection.trigger == SelectionTrigger::Needed);
        user_input.is_some()
    }

    /// Applies the result of a selection.
    pub(super) fn on_model_selected(&mut self, selected: Result<Box<SelectedModel>, Failure>) -> Result<(), Failure> {
        let Some(ModelSelection { trigger, user_input, .. }) = self.model_selection.take() else { return Ok(()) };
        match (selected, trigger) {
            (Ok(selected), _) => {
                if trigger == SelectionTrigger::Asked {
                    self.session.console.say(format_args!("model: {}", paint(NAME, &selected.name)));
                }
                self.question_desk.set_sampling_model(Some(selected.model.clone()));
                self.chat.select_model(*selected);
                user_input.into_iter().for_each(|user_input| self.start_run(user_input));
            }
            (Err(failure), SelectionTrigger::Started) => return Err(failure),
            (Err(_), SelectionTrigger::Usual) => self.question_desk.set_sampling_model(None),
            (Err(failure), SelectionTrigger::Needed) => self.report_failure(failure),
            (Err(failure), SelectionTrigger::Asked) => {
                self.report_failure(failure);
                // The queued input was meant for the previous model.
                user_input.into_iter().for_each(|user_input| self.start_run(user_input));
            }
        }
        Ok(())
    }
}
