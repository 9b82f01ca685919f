//! Agent runs against a scripted model API that validates requests as strictly as the real ones, in each format.

mod cancellation;
mod completion;
mod overload;
mod permission;
mod sub_agents;

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use url::Url;
use wharf_json::RawJson;
use wharf_net::{Net, NetOptions};
use wharf_spec::{Fingerprint, Secret};
use wharf_testkit::modeld::{Answer, Modeld, Say, Script};
use wharf_tools::{
    AllowAllGate, BoxFuture, CallProgress, ProgressSink, Tool, ToolDescription, ToolError, ToolInvocation, ToolOutcome,
    ToolSource,
};

use super::*;
use crate::conversation::{ConversationTurn, ResultBlock};
use crate::provider::{ApiFormat, ModelProvider};
use crate::repair::find_defect;
use crate::run::RunEnding;

const FORMATS: [ApiFormat; 3] = [ApiFormat::Anthropic, ApiFormat::ChatCompletions, ApiFormat::Responses];

type ToolCallResult = Result<ToolOutcome, ToolError>;

/// A tool implemented by a closure.
struct ClosureTool<F> {
    description: Arc<ToolDescription>,
    act: F,
}

impl<F: Fn(ToolInvocation) -> BoxFuture<'static, ToolCallResult> + Send + Sync> Tool for ClosureTool<F> {
    fn description(&self) -> &Arc<ToolDescription> {
        &self.description
    }

    fn call(&self, call: ToolInvocation) -> BoxFuture<'_, ToolCallResult> {
        (self.act)(call)
    }
}

/// A scripted model API and a registry of tools.
struct AgentFixture {
    modeld: Modeld,
    registry: Arc<Registry>,
}

impl AgentFixture {
    fn new(script: Script) -> Self {
        let registry = Arc::new(Registry::new(Arc::new(AllowAllGate)));
        Self { modeld: Modeld::start(script).unwrap(), registry }
    }

    fn with_responses(turns: impl IntoIterator<Item = Answer>) -> Self {
        Self::new(Script::from_turns(turns))
    }

    fn tool<T>(&self, name: &str, act: impl Fn(ToolInvocation) -> T + Send + Sync + 'static)
    where
        T: Future<Output = ToolCallResult> + Send + 'static,
    {
        self.tool_of(None, name, act);
    }

    /// Registers a tool of a provider.
    fn tool_of<T>(&self, provider: Option<&str>, name: &str, act: impl Fn(ToolInvocation) -> T + Send + Sync + 'static)
    where
        T: Future<Output = ToolCallResult> + Send + 'static,
    {
        let schema = RawJson::new_unchecked(r#"{"type":"object"}"#);
        let mut description = ToolDescription::new(name, "A tool.", schema);
        description.source = provider.map(|provider| ToolSource {
            provider: provider.into(),
            name: name.into(),
            fingerprint: Fingerprint([0; 32]),
        });
        let description = Arc::new(description);
        let act = move |call| -> BoxFuture<'static, ToolCallResult> { Box::pin(act(call)) };
        self.registry.register(Arc::new(ClosureTool { description, act }));
    }

    /// Registers a tool that returns its text argument.
    fn echo(&self) {
        self.tool("echo", async |call| {
            let arguments: Value = serde_json::from_str(call.arguments.as_str()).unwrap();
            Ok(ToolOutcome::from_text(arguments["text"].as_str().unwrap_or_default()))
        });
    }

    async fn model(&self, format: ApiFormat) -> Model {
        let base_url = Url::parse(&self.modeld.url()).unwrap();
        let (key, model) = (Some(Secret::new("k-1")), "small".to_owned());
        let provider = ModelProvider { format, base_url, key, model, max_tokens: 8192, headers: Vec::new() };
        Model::new(provider, Net::open(&NetOptions::default()).await.unwrap()).unwrap()
    }

    async fn agent(&self, format: ApiFormat) -> Agent {
        self.agent_within(format, AgentLimits::default()).await
    }

    async fn agent_within(&self, format: ApiFormat, limits: AgentLimits) -> Agent {
        Agent::new(self.model(format).await, self.registry.clone(), limits).with_effort(Some(ReasoningEffort::Low))
    }

    /// Runs to the end and returns the events and the conversation.
    async fn run_to_end(
        &self,
        agent: &Agent,
        conversation: Conversation,
        user_input: &str,
    ) -> (Vec<RunEvent>, Conversation) {
        let mut run = agent.start_run(conversation, vec![TurnBlock::Text(user_input.into())]);
        let events = collect_events(&mut run).await;
        let conversation = run.finish().await;
        assert_eq!(find_defect(&conversation), None);
        (events, conversation)
    }

    /// Checks that the API fixture accepts a continuation of the conversation.
    async fn check_continuation(&self, agent: &Agent, conversation: Conversation) {
        let refused = self.modeld.refusals().len();
        self.modeld.push_answer(Answer::text("still here"));
        let (events, conversation) = self.run_to_end(agent, conversation, "go on").await;
        assert_eq!(run_ending(&events), Some(&RunEnding::Done), "{:?}", self.modeld.refusals());
        assert_eq!(self.modeld.refusals().len(), refused);
        assert_eq!(last_words(&conversation), "still here");
    }
}

async fn collect_events(run: &mut AgentRun) -> Vec<RunEvent> {
    let mut events = Vec::new();
    while let Some(event) = run.next_event().await {
        events.push(event);
    }
    events
}

fn run_ending(events: &[RunEvent]) -> Option<&RunEnding> {
    match events.last() {
        Some(RunEvent::Ended(ending)) => Some(ending),
        _ => None,
    }
}

fn last_words(conversation: &Conversation) -> &str {
    match conversation.turns.last().and_then(|turn| turn.blocks.last()) {
        Some(TurnBlock::Text(text)) => text,
        _ => "",
    }
}

/// Returns the texts of the results in a conversation, in order. Errors begin with `!`.
fn results(conversation: &Conversation) -> Vec<String> {
    let blocks = conversation.turns.iter().flat_map(|turn| &turn.blocks);
    let text = |block: &TurnBlock| match block {
        TurnBlock::ToolResult { content, is_error, .. } => match &content[0] {
            ResultBlock::Text(text) => Some(format!("{}{text}", if *is_error { "!" } else { "" })),
            ResultBlock::Image { .. } => None,
        },
        _ => None,
    };
    blocks.filter_map(text).collect()
}

/// A response with reasoning and parallel `echo` calls of these texts.
fn echo_response(texts: &[&str]) -> Answer {
    let thinking = Answer::default().with_block(Say::Thinking("let me see".into()));
    texts.iter().fold(thinking, |answer, text| answer.with_block(Say::call("echo", json!({ "text": text }))))
}

/// A counter that tasks can wait on.
#[derive(Clone)]
struct WaitableCounter(Arc<Semaphore>);

impl WaitableCounter {
    fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    fn add(&self) {
        self.0.add_permits(1);
    }

    fn value(&self) -> usize {
        self.0.available_permits()
    }

    async fn wait_for(&self, number: u32) {
        let _permits = self.0.acquire_many(number).await.unwrap();
    }
}

/// Increments a counter and reports progress when dropped.
struct DropReporter(WaitableCounter, Option<ProgressSink>);

impl Drop for DropReporter {
    fn drop(&mut self) {
        self.0.add();
        if let Some(sink) = &self.1 {
            sink(CallProgress { done: 1.0, total: None, message: None });
        }
    }
}
