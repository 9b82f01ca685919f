//! A request as chat completions have it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wharf_json::{Bounds, Raw};

use crate::conversation::{Block, ResultBlock, Role, Turn};
use crate::provider::definitions::{Compiled, alias};
use crate::provider::{Effort, Offered, Provider, Request, ToolChoice};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: String,
    },
}

/// Text alone is written as such: not every server takes a list.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Called<'a>,
}

/// The arguments are a text that holds JSON.
#[derive(Serialize)]
struct Called<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Raw,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Choice<'a> {
    Word(&'static str),
    Tool { r#type: &'static str, function: Named<'a> },
}

#[derive(Serialize)]
struct Named<'a> {
    name: Cow<'a, str>,
}

/// A thought as it was kept, in the member it came in.
#[derive(Default, Deserialize)]
struct Thought<'a> {
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
}

/// Writes a request.
pub(in crate::provider) fn body(
    provider: &Provider,
    request: &Request<'_>,
    tools: &Compiled,
) -> Result<Vec<u8>, serde_json::Error> {
    let source = provider.source();
    let system = request.conversation.system.as_deref().filter(|text| !text.is_empty());
    let mut messages: Vec<Message<'_>> = system.map(|content| Message::System { content }).into_iter().collect();
    for turn in &request.conversation.turns {
        match turn.role {
            Role::User => told(turn, &mut messages),
            Role::Assistant => messages.extend(said(turn, &source)),
        }
    }
    // OpenAI's newer models refuse the old name, and others do not know the new one.
    let limit = Some(provider.max_tokens);
    serde_json::to_vec(&Body {
        model: &provider.model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_tokens: limit.filter(|_| !provider.is_openai()),
        max_completion_tokens: limit.filter(|_| provider.is_openai()),
        messages,
        tools: tools.offered.iter().map(tool).collect(),
        tool_choice: (!tools.offered.is_empty()).then(|| choice(request.tool_choice)),
        reasoning_effort: request.effort.map(Effort::name),
    })
}

/// What the user said: results first, right behind their calls; then their pictures, which a result cannot hold; then
/// the rest.
fn told<'a>(turn: &'a Turn, messages: &mut Vec<Message<'a>>) {
    let mut parts = Vec::new();
    for block in &turn.blocks {
        if let Block::ToolResult { id, content, is_error } = block {
            messages.push(Message::Tool { tool_call_id: id, content: result_text(content, *is_error) });
            parts.extend(pictures(id, content));
        }
    }
    parts.extend(turn.blocks.iter().filter_map(part));
    match parts.as_slice() {
        [] => {}
        &[Part::Text { text: Cow::Borrowed(text) }] => messages.push(Message::User { content: Content::Text(text) }),
        _ => messages.push(Message::User { content: Content::Parts(parts) }),
    }
}

/// The text of a result. The format has no mark for a failure, so that the text says so.
pub(in crate::provider) fn result_text(content: &[ResultBlock], is_error: bool) -> String {
    let texts = content.iter().map(|block| match block {
        ResultBlock::Text(text) => text.as_str(),
        ResultBlock::Image { .. } => "[a picture, shown below]",
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if is_error { format!("The tool failed: {text}") } else { text }
}

/// The pictures of a result, behind a text that says whose they are.
fn pictures<'a>(id: &str, content: &'a [ResultBlock]) -> Vec<Part<'a>> {
    let images = content.iter().filter_map(|block| match block {
        ResultBlock::Image { media_type, data } => Some(picture(media_type, data)),
        ResultBlock::Text(_) => None,
    });
    let images: Vec<Part<'a>> = images.collect();
    let text = Part::Text { text: Cow::Owned(format!("Pictures of the result of the call {id}:")) };
    let heading = (!images.is_empty()).then_some(text);
    heading.into_iter().chain(images).collect()
}

fn part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Text(text) if !text.is_empty() => Some(Part::Text { text: Cow::Borrowed(text) }),
        Block::Image { media_type, data } => Some(picture(media_type, data)),
        _ => None,
    }
}

fn picture<'a>(media_type: &str, data: &str) -> Part<'a> {
    Part::ImageUrl { image_url: ImageUrl { url: format!("data:{media_type};base64,{data}") } }
}

/// What the model said. Its thoughts go back only beside calls: there some servers want them, and elsewhere some refuse
/// them (DeepSeek does both).
fn said<'a>(turn: &'a Turn, source: &str) -> Option<Message<'a>> {
    let mut texts: Vec<&str> = Vec::new();
    let mut tool_calls = Vec::new();
    let mut thought = Thought::default();
    for block in &turn.blocks {
        match block {
            Block::Text(text) => texts.push(text),
            Block::ToolCall { id, name, arguments, .. } => {
                let function = Called { name: alias(name), arguments: arguments.get() };
                tool_calls.push(Call { id, r#type: "function", function });
            }
            Block::Thinking { provider, raw } if provider == source => {
                thought = raw.decode(&Bounds::default()).unwrap_or_default();
            }
            _ => {}
        }
    }
    if tool_calls.is_empty() {
        thought = Thought::default();
    }
    let content = Some(texts.concat()).filter(|text| !text.is_empty());
    let Thought { reasoning_content, reasoning } = thought;
    (content.is_some() || !tool_calls.is_empty()).then_some(Message::Assistant {
        content,
        reasoning_content,
        reasoning,
        tool_calls,
    })
}

fn tool(offered: &Offered) -> Tool<'_> {
    let Offered { alias, description, schema } = offered;
    Tool { r#type: "function", function: Function { name: alias, description, parameters: schema } }
}

fn choice(choice: ToolChoice<'_>) -> Choice<'_> {
    match choice {
        ToolChoice::Auto => Choice::Word("auto"),
        ToolChoice::Never => Choice::Word("none"),
        ToolChoice::Any => Choice::Word("required"),
        ToolChoice::Tool(name) => Choice::Tool { r#type: "function", function: Named { name: alias(name) } },
    }
}
