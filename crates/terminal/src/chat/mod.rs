//! The conversation with a model, as the REPL and `wharf run` hold it: which model, what was said, where it is kept.

pub mod ended;
mod keeper;
pub mod models;
pub mod room;
pub mod tool_name;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use wharf::{Host, ServerStatus, State};
use wharf_agent::{
    Agent, Block, Conversation, Instructions, Run, RunEvent, SavedConversation, SavedError, SubAgent, Surrounding,
    system_prompt,
};

use crate::clock::timestamp;
use crate::failure::Failure;
use crate::session::Session;
use crate::shown_path::shown_path;
use keeper::Keeper;
use models::Chosen;

/// One conversation at a time, over the tools of a host.
pub struct Chat<'a> {
    session: &'a Session,
    host: Host,
    chosen: Option<Chosen>,
    /// Away while a run has it.
    conversation: Conversation,
    turns: usize,
    keeper: Option<Keeper>,
    /// Tokens of the last request and its answer.
    tokens: u64,
}

/// A conversation that is gone on with.
pub struct GoingOn {
    pub id: String,
    pub turns: usize,
    /// The servers it had.
    pub servers: Vec<String>,
    /// What could not be read.
    pub problems: Vec<String>,
}

impl<'a> Chat<'a> {
    /// A conversation in which nothing was said, with nobody.
    pub fn new(session: &'a Session, host: &Host) -> Self {
        Self {
            session,
            host: host.clone(),
            chosen: None,
            conversation: Conversation::default(),
            turns: 0,
            keeper: None,
            tokens: 0,
        }
    }

    /// Goes on with this model.
    pub fn choose(&mut self, chosen: Chosen) {
        let registry = self.host.registry();
        let sub_agent = SubAgent::new(chosen.model.clone(), registry, chosen.limits);
        registry.register(Arc::new(sub_agent.with_effort(chosen.effort)));
        self.chosen = Some(chosen);
    }

    /// The model in use.
    pub fn chosen(&self) -> Option<&Chosen> {
        self.chosen.as_ref()
    }

    /// The name it is saved under, once something was said.
    pub fn id(&self) -> Option<&str> {
        self.keeper.as_ref().map(Keeper::id)
    }

    pub fn turns(&self) -> usize {
        self.turns
    }

    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Tokens that fit into the context of the model in use.
    pub fn context(&self) -> Option<u64> {
        self.chosen.as_ref().map(|chosen| chosen.limits.context)
    }

    /// Begins a run with what the person says. Until it is [over](Self::end), the run has the conversation.
    pub fn begin(&mut self, said: Vec<Block>) -> Result<Run, Failure> {
        let chosen = self.chosen.clone().ok_or_else(|| Failure::usage("there is no model to talk to"))?;
        self.keep();
        let mut conversation = std::mem::take(&mut self.conversation);
        conversation.system = Some(self.system());
        let agent = Agent::new(chosen.model, Arc::clone(self.host.registry()), chosen.limits);
        Ok(agent.with_effort(chosen.effort).start(conversation, said))
    }

    /// Takes note of what happens in the run.
    pub fn heard(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Turn(turn) => {
                self.turns += 1;
                self.keeper.iter().for_each(|keeper| keeper.turn(turn.clone(), servers(&self.host)));
            }
            RunEvent::Usage { input, output, .. } => self.tokens = input + output,
            _ => {}
        }
    }

    /// Takes the conversation back from a run that is over.
    pub fn end(&mut self, conversation: Conversation) {
        self.turns = conversation.turns.len();
        self.conversation = conversation;
    }

    /// Begins anew; what was said stays on disk.
    pub async fn clear(&mut self) {
        self.leave().await;
        (self.conversation, self.turns, self.tokens) = (Conversation::default(), 0, 0);
    }

    /// Goes on with the conversation of a name, or with the last one.
    pub async fn resume(&mut self, id: Option<String>) -> Result<GoingOn, Failure> {
        let directory = directory(self.session).ok_or_else(|| Failure::usage("there is no place for conversations"))?;
        let read = move || SavedConversation::resume(&directory, id.as_deref());
        let resumed = tokio::task::spawn_blocking(read).await.map_err(Failure::other)?;
        let resumed = resumed.map_err(|error| match error {
            SavedError::Busy(id) if Some(id.as_str()) == self.id() => {
                Failure::usage("that is the conversation you are in")
            }
            error => Failure::usage(error),
        })?;
        // Only now: where there is nothing to go on with, this one goes on.
        self.leave().await;
        let going = GoingOn {
            id: resumed.saved.id().to_owned(),
            turns: resumed.conversation.turns.len(),
            servers: resumed.servers,
            problems: resumed.problems,
        };
        (self.conversation, self.turns) = (resumed.conversation, going.turns);
        self.keeper = Some(Keeper::of(resumed.saved, self.session.console.clone()));
        Ok(going)
    }

    /// Waits until everything that was said is on disk.
    pub async fn leave(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            keeper.finish().await;
        }
    }

    /// Leaves without waiting: a run that is still there is cancelled, and what it says until its end is shown and saved
    /// before anything is closed, if that does not take long.
    pub fn last_word(&mut self, run: Option<Run>, show: impl FnMut(&RunEvent) + Send + 'static) {
        let farewell = self.farewell(run, show);
        self.session.last_word(farewell);
    }

    /// Leaves in order: cancels a run that is still there, and is over when everything is saved.
    pub fn farewell<S>(&mut self, run: Option<Run>, mut show: S) -> impl Future<Output = ()> + Send + use<S>
    where
        S: FnMut(&RunEvent) + Send + 'static,
    {
        let (keeper, host) = (self.keeper.take(), self.host.clone());
        async move {
            if let Some(mut run) = run {
                run.cancel();
                while let Some(event) = run.next().await {
                    if let (RunEvent::Turn(turn), Some(keeper)) = (&event, &keeper) {
                        keeper.turn(turn.clone(), servers(&host));
                    }
                    show(&event);
                }
            }
            if let Some(keeper) = keeper {
                keeper.finish().await;
            }
        }
    }

    /// Begins to save, where there is a place for it.
    fn keep(&mut self) {
        if self.keeper.is_some() {
            return;
        }
        let Some(directory) = directory(self.session) else { return };
        match SavedConversation::begin(&directory) {
            Ok(saved) => self.keeper = Some(Keeper::of(saved, self.session.console.clone())),
            Err(error) => self.session.console.warn(format_args!("the conversation is not saved: {error}")),
        }
    }

    fn system(&self) -> String {
        let around = &self.session.surroundings;
        let day = timestamp(SystemTime::now()).chars().take(10).collect();
        let surrounding = Surrounding { directory: shown_path(&around.cwd, around), day };
        system_prompt(&surrounding, &self.instructions())
    }

    /// What servers that are connected would like the model to know.
    fn instructions(&self) -> Vec<Instructions> {
        let told = |status: ServerStatus| {
            let text = status.connected?.instructions.filter(|text| !text.trim().is_empty())?;
            Some(Instructions { from: status.name.to_string(), text })
        };
        self.host.status().into_iter().filter_map(told).collect()
    }
}

/// The servers that are in use now. One that waits to be used for the first time is not.
fn servers(host: &Host) -> Vec<String> {
    let is_used = |status: &ServerStatus| match status.state {
        State::Ready => true,
        State::Idle => status.last_connected_at.is_some(),
        _ => false,
    };
    host.status().into_iter().filter(is_used).map(|status| status.name.to_string()).collect()
}

/// Where conversations are kept.
pub fn directory(session: &Session) -> Option<PathBuf> {
    session.configuration.state.as_ref().map(|state| state.join("conversations"))
}
