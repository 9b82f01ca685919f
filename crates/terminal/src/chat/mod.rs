//! The conversation with a model, shared by the REPL and `wharf run`: model selection, turns and persistence.

pub mod context_notices;
mod conversation_writer;
pub mod ending;
pub mod models;
pub mod recap;
pub mod tool_name;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use wharf::{Host, ServerState, ServerStatus};
use wharf_agent::{
    Agent, AgentEnvironment, AgentRun, Conversation, RunEvent, SavedConversation, SavedConversationError,
    ServerInstructions, SubAgent, TurnBlock, system_prompt,
};

use crate::clock::timestamp;
use crate::display_path::display_path;
use crate::failure::Failure;
use crate::session::CommandSession;
use conversation_writer::ConversationWriter;
use models::SelectedModel;
use recap::Recap;

/// One conversation at a time, with the tools of a host.
pub struct ChatSession<'a> {
    session: &'a CommandSession,
    host: Host,
    chosen: Option<SelectedModel>,
    /// Empty while a run owns the conversation.
    conversation: Conversation,
    turns: usize,
    writer: Option<ConversationWriter>,
    /// Tokens of the last request and its response.
    tokens: u64,
    /// Ids of the pending calls.
    calls: HashSet<String>,
}

/// A resumed conversation.
pub struct ResumedConversation {
    pub id: String,
    pub turns: usize,
    pub recap: Recap,
    /// Servers in use when it was saved.
    pub servers: Vec<String>,
    /// Records that could not be read.
    pub problems: Vec<String>,
}

impl<'a> ChatSession<'a> {
    /// Creates an empty conversation without a model.
    pub fn new(session: &'a CommandSession, host: &Host) -> Self {
        Self {
            session,
            host: host.clone(),
            chosen: None,
            conversation: Conversation::default(),
            turns: 0,
            writer: None,
            tokens: 0,
            calls: HashSet::new(),
        }
    }

    /// Selects the model and registers the sub-agent tool for it.
    pub fn select_model(&mut self, chosen: SelectedModel) {
        let registry = self.host.registry();
        let sub_agent = SubAgent::new(chosen.model.clone(), registry, chosen.limits);
        registry.register(Arc::new(sub_agent.with_effort(chosen.effort)));
        self.chosen = Some(chosen);
    }

    /// Returns the selected model.
    pub fn selected_model(&self) -> Option<&SelectedModel> {
        self.chosen.as_ref()
    }

    /// Returns the id of the saved conversation, once saving has started.
    pub fn id(&self) -> Option<&str> {
        self.writer.as_ref().map(ConversationWriter::id)
    }

    pub fn turns(&self) -> usize {
        self.turns
    }

    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the context size of the selected model in tokens.
    pub fn context(&self) -> Option<u64> {
        self.chosen.as_ref().map(|chosen| chosen.limits.context)
    }

    /// Starts a run with the user's input. The run owns the conversation until [`end`](Self::end).
    pub fn start_run(&mut self, user_input: Vec<TurnBlock>) -> Result<AgentRun, Failure> {
        let chosen = self.chosen.clone().ok_or_else(|| Failure::usage("no model is selected"))?;
        self.start_saving();
        let mut conversation = std::mem::take(&mut self.conversation);
        conversation.system = Some(self.build_system_prompt());
        let agent = Agent::new(chosen.model, Arc::clone(self.host.registry()), chosen.limits);
        Ok(agent.with_effort(chosen.effort).start_run(conversation, user_input))
    }

    /// Records an event of the run.
    pub fn record_event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::CallBegun { id, .. } => {
                self.calls.insert(id.clone());
            }
            RunEvent::CallEnded { id, report } => {
                self.calls.remove(id);
                // After the last call, the turn with all results follows at once.
                if let (Some(writer), false) = (&self.writer, self.calls.is_empty()) {
                    let (id, content) = (id.clone(), report.content.clone());
                    writer.append_result(TurnBlock::ToolResult { id, content, is_error: report.is_error });
                }
            }
            RunEvent::Turn(turn) => {
                self.turns += 1;
                self.writer.iter().for_each(|writer| writer.append(turn.clone(), servers_in_use(&self.host)));
            }
            RunEvent::Usage { input, output, .. } => self.tokens = input + output,
            _ => {}
        }
    }

    /// Takes the conversation back from a finished run.
    pub fn end(&mut self, conversation: Conversation) {
        self.calls.clear();
        self.turns = conversation.turns.len();
        self.conversation = conversation;
    }

    /// Starts an empty conversation. The old one stays on disk.
    pub async fn clear(&mut self) {
        self.finish_saving().await;
        (self.conversation, self.turns, self.tokens) = (Conversation::default(), 0, 0);
    }

    /// Resumes a conversation by id, or the most recent one.
    pub async fn resume(&mut self, id: Option<String>) -> Result<ResumedConversation, Failure> {
        let directory = conversations_directory(self.session)
            .ok_or_else(|| Failure::usage("conversations are not saved: no state directory"))?;
        let read = move || SavedConversation::resume(&directory, id.as_deref());
        let resumed = wharf_threads::run_blocking(read).await.map_err(Failure::other)?;
        let resumed = resumed.map_err(|error| match error {
            SavedConversationError::Busy(id) if Some(id.as_str()) == self.id() => {
                Failure::usage("that conversation is already open")
            }
            error => Failure::usage(error),
        })?;
        // Only now: if the other conversation cannot be read, the current one continues.
        self.finish_saving().await;
        let summary = ResumedConversation {
            id: resumed.saved.id().to_owned(),
            turns: resumed.conversation.turns.len(),
            recap: Recap::from_conversation(&resumed.conversation),
            servers: resumed.servers,
            problems: resumed.problems,
        };
        (self.conversation, self.turns) = (resumed.conversation, summary.turns);
        self.writer = Some(ConversationWriter::new(resumed.saved, self.session.console.clone()));
        Ok(summary)
    }

    /// Waits until the conversation is on disk.
    pub async fn finish_saving(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.finish().await;
        }
    }

    /// Ends without waiting: registers a shutdown task that cancels the run, and shows and saves its remaining events
    /// within the shutdown timeout.
    pub fn end_on_shutdown(&mut self, run: Option<AgentRun>, show: impl FnMut(&RunEvent) + Send + 'static) {
        let farewell = self.shut_down(run, show);
        self.session.on_shutdown(farewell);
    }

    /// Returns a future that cancels the run, if any, and completes when everything is saved.
    pub fn shut_down<S>(&mut self, run: Option<AgentRun>, mut show: S) -> impl Future<Output = ()> + Send + use<S>
    where
        S: FnMut(&RunEvent) + Send + 'static,
    {
        let (writer, host) = (self.writer.take(), self.host.clone());
        async move {
            if let Some(mut run) = run {
                run.cancel();
                while let Some(event) = run.next_event().await {
                    if let (RunEvent::Turn(turn), Some(writer)) = (&event, &writer) {
                        writer.append(turn.clone(), servers_in_use(&host));
                    }
                    show(&event);
                }
            }
            if let Some(writer) = writer {
                writer.finish().await;
            }
        }
    }

    /// Starts saving if a state directory is available.
    fn start_saving(&mut self) {
        if self.writer.is_some() {
            return;
        }
        let Some(directory) = conversations_directory(self.session) else { return };
        match SavedConversation::create(&directory) {
            Ok(saved) => self.writer = Some(ConversationWriter::new(saved, self.session.console.clone())),
            Err(error) => self.session.console.warn(format_args!("the conversation will not be saved: {error}")),
        }
    }

    fn build_system_prompt(&self) -> String {
        let environment = &self.session.environment;
        let day = timestamp(SystemTime::now()).chars().take(10).collect();
        let surrounding = AgentEnvironment { directory: display_path(&environment.cwd, environment), day };
        system_prompt(&surrounding, &self.instructions())
    }

    /// Returns the instructions of the connected servers.
    fn instructions(&self) -> Vec<ServerInstructions> {
        let describe = |status: ServerStatus| {
            let text = status.connected?.instructions.filter(|text| !text.trim().is_empty())?;
            Some(ServerInstructions { from: status.name.to_string(), text })
        };
        self.host.status().into_iter().filter_map(describe).collect()
    }
}

/// Returns the servers in use. A lazy server that has never connected is not in use.
fn servers_in_use(host: &Host) -> Vec<String> {
    let is_used = |status: &ServerStatus| match status.state {
        ServerState::Ready => true,
        ServerState::Idle => status.last_connected_at.is_some(),
        _ => false,
    };
    host.status().into_iter().filter(is_used).map(|status| status.name.to_string()).collect()
}

/// Returns the directory of saved conversations.
pub fn conversations_directory(session: &CommandSession) -> Option<PathBuf> {
    session.configuration.state.as_ref().map(|state| state.join("conversations"))
}
