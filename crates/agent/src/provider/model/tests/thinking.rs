//! Reasoning tests against an API fixture that validates requests as strictly as the real APIs.

use url::Url;
use wharf_json::RawJson;
use wharf_testkit::modeld::{Answer, Modeld, Say, Script};

use super::*;
use crate::conversation::ResultBlock;
use crate::provider::ReasoningEffort;

/// A model, a conversation with it, and the API fixture.
struct ReasoningFixture {
    modeld: Modeld,
    model: Model,
    conversation: Conversation,
}

impl ReasoningFixture {
    /// Creates a talk with a scripted Anthropic API.
    async fn with_anthropic(model: &str, answers: impl IntoIterator<Item = Answer>) -> Self {
        let modeld = Modeld::start(Script::from_turns(answers)).unwrap();
        let url = modeld.url();
        let model = new_model(ApiFormat::Anthropic, &url, model, NetOptions::default()).await;
        Self { modeld, model, conversation: conversation() }
    }

    /// Creates a talk with OpenAI's own base URL. The scripted API is reached as its HTTP proxy.
    async fn with_openai(model: &str, answers: impl IntoIterator<Item = Answer>) -> Self {
        let modeld = Modeld::start(Script::from_turns(answers)).unwrap();
        let model = openai(&modeld, model).await;
        Self { modeld, model, conversation: conversation() }
    }

    /// Sends a request, adds the response to the conversation, and adds the results of its calls or a further message.
    async fn exchange(&mut self, effort: Option<ReasoningEffort>) {
        let (conversation, tools) = (&self.conversation, Arc::default());
        let request = CompletionRequest { conversation, tools: &tools, tool_choice: ToolChoice::Auto, effort };
        let mut stream = self.model.stream(request).await.unwrap();
        let (mut assistant, mut next) = (Vec::new(), Vec::new());
        while let Some(event) = stream.next().await {
            if let ModelEvent::BlockDone(block) = event.unwrap() {
                next.extend(results(&block));
                assistant.push(block);
            }
        }
        if next.is_empty() {
            next.push(TurnBlock::Text("go on".into()));
        }
        let turns = [(TurnRole::Assistant, assistant), (TurnRole::User, next)];
        self.conversation.turns.extend(turns.map(|(role, blocks)| ConversationTurn { role, blocks }));
    }

    /// Returns the number of reasoning blocks in the last request.
    fn reasoning_blocks_sent(&self) -> usize {
        let body = self.modeld.requests().pop().unwrap().body.to_string();
        body.matches("encrypted_content\":\"").count() + body.matches("\"signature\"").count()
    }
}

async fn openai(modeld: &Modeld, model: &str) -> Model {
    let mut options = NetOptions::default();
    options.proxy = Some(Secret::new(modeld.url()));
    new_model(ApiFormat::Responses, "http://api.openai.com", model, options).await
}

async fn new_model(format: ApiFormat, url: &str, model: &str, options: NetOptions) -> Model {
    let (base_url, key, model) = (Url::parse(url).unwrap(), Some(Secret::new("key-0001")), model.to_owned());
    let provider = ModelProvider { format, base_url, key, model, max_tokens: 8192, headers: Vec::new() };
    Model::new(provider, Net::open(&options).await.unwrap()).unwrap()
}

fn results(block: &TurnBlock) -> Option<TurnBlock> {
    let TurnBlock::ToolCall { id, .. } = block else { return None };
    let content = vec![ResultBlock::Text("a ship".into())];
    Some(TurnBlock::ToolResult { id: id.clone(), content, is_error: false })
}

fn call_with_reasoning() -> Answer {
    Answer::default()
        .with_block(Say::Thinking("hm".into()))
        .with_block(Say::call("look", RawJson::empty_object().as_str().into()))
}

#[tokio::test]
async fn reasoning_is_returned_to_every_model_generation() {
    for model in ["claude-sonnet-5", "claude-opus-4-6", "claude-haiku-4-5", "small"] {
        for effort in [ReasoningEffort::Low, ReasoningEffort::High] {
            let mut fixture =
                ReasoningFixture::with_anthropic(model, [call_with_reasoning(), Answer::text("done")]).await;
            fixture.exchange(Some(effort)).await;
            fixture.exchange(Some(effort)).await;
            assert_eq!((fixture.modeld.refusals(), fixture.reasoning_blocks_sent()), (vec![], 1), "{model}");
        }
    }
}

#[tokio::test]
async fn openai_reasoning_is_returned_without_effort() {
    let mut fixture = ReasoningFixture::with_openai("gpt-5.6", [call_with_reasoning(), Answer::text("done")]).await;
    fixture.exchange(None).await;
    fixture.exchange(None).await;
    assert_eq!((fixture.modeld.refusals(), fixture.reasoning_blocks_sent()), (vec![], 1));
}

#[tokio::test]
async fn unsupported_reasoning_is_requested_only_once() {
    let answers = [Answer::text("one"), Answer::text("two"), Answer::text("three")];
    let mut fixture = ReasoningFixture::with_openai("gpt-4.1", answers).await;
    fixture.exchange(None).await;
    // Clones share the learned state.
    fixture.model = fixture.model.clone();
    fixture.exchange(None).await;
    assert_eq!(fixture.modeld.refusals(), ["Encrypted content is not supported with this model."]);
    assert_eq!(fixture.modeld.requests().len(), 3);
}

#[tokio::test]
async fn reasoning_is_sent_only_to_its_own_model() {
    let answers = [call_with_reasoning(), Answer::text("done"), call_with_reasoning()];
    let mut fixture = ReasoningFixture::with_openai("gpt-5.6", answers).await;
    fixture.exchange(Some(ReasoningEffort::Low)).await;
    let first = std::mem::replace(&mut fixture.model, openai(&fixture.modeld, "gpt-5.7").await);
    fixture.exchange(None).await;
    assert_eq!(fixture.reasoning_blocks_sent(), 0);
    fixture.model = first;
    fixture.exchange(None).await;
    assert_eq!((fixture.modeld.refusals(), fixture.reasoning_blocks_sent()), (vec![], 1));
}
