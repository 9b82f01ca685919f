//! Resources, prompts and completions.

use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, Icon, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, Prompt, PromptArgument,
    PromptMessage, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference, Resource,
    ResourceContents, ResourceTemplate, Role,
};
use serde_json::Value;

use crate::input_tools::{request_name, submitted_value};
use crate::tools::paginate;
use crate::{PageRequest, invalid_params};

pub const COUNTER: &str = "note://counter";
const HELLO: &str = "note://hello";
const SEALED: &str = "note://sealed";
const PORT: &str = "port://";
const NAMES: [&str; 3] = ["Ada", "Alan", "Grace"];
const PORTS: [&str; 3] = ["genoa", "ghent", "riga"];
/// Cache lifetime of responses, in milliseconds.
const CACHE_TTL_MS: u64 = 60_000;

pub fn icon() -> Icon {
    Icon::new("data:image/svg+xml;base64,PHN2Zy8+").with_mime_type("image/svg+xml").with_sizes(vec!["any".into()])
}

/// Lists the resources, one per page.
pub fn resources(page: PageRequest) -> Result<ListResourcesResult, ErrorData> {
    let note = |uri, name| Resource::new(uri, name).with_mime_type("text/plain").with_icons(vec![icon()]);
    let notes = vec![note(HELLO, "hello"), note(COUNTER, "counter"), note(SEALED, "sealed")];
    let (items, next) = paginate(notes, page, 1)?;
    let mut list = ListResourcesResult::with_all_items(items);
    list.next_cursor = next;
    Ok(list.with_ttl_ms(CACHE_TTL_MS).with_cache_scope(CacheScope::Private))
}

pub fn templates() -> ListResourceTemplatesResult {
    let port = ResourceTemplate::new("port://{name}", "port").with_mime_type("text/plain");
    ListResourceTemplatesResult::with_all_items(vec![port])
}

pub fn read(request: &ReadResourceRequestParams, counter: u64) -> Result<ReadResourceResponse, ErrorData> {
    let uri = request.uri.as_str();
    let text = match uri {
        HELLO => "Hello from the quay.".to_owned(),
        COUNTER => counter.to_string(),
        SEALED => match submitted_value(request.input_responses.as_ref(), "name") {
            Some(name) => format!("For the eyes of {name}."),
            None => return Ok(request_name().into()),
        },
        _ => match uri.strip_prefix(PORT) {
            Some(name) => format!("The port of {name}."),
            None => return Err(ErrorData::resource_not_found(format!("no resource {uri}"), None)),
        },
    };
    let contents = ResourceContents::text(text, uri).with_mime_type("text/plain");
    Ok(ReadResourceResult::new(vec![contents]).with_ttl_ms(0).with_cache_scope(CacheScope::Private).into())
}

pub fn prompts() -> ListPromptsResult {
    let name = PromptArgument::new("name").with_description("Whom to greet.").with_required(true);
    let greet = Prompt::new("greet", Some("Greets somebody."), Some(vec![name])).with_icons(vec![icon()]);
    let introduce = Prompt::new("introduce", Some("Asks whom to introduce."), None);
    ListPromptsResult::with_all_items(vec![greet, introduce])
        .with_ttl_ms(CACHE_TTL_MS)
        .with_cache_scope(CacheScope::Public)
}

pub fn prompt(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let argument = || request.arguments.as_ref().and_then(|arguments| arguments.get("name")).and_then(Value::as_str);
    let text = match (request.name.as_str(), submitted_value(request.input_responses.as_ref(), "name")) {
        ("greet", _) => {
            let name = argument().ok_or_else(|| invalid_params("name must be a string".to_owned()))?;
            format!("Please greet {name}.")
        }
        ("introduce", Some(name)) => format!("Please introduce {name}."),
        ("introduce", None) => return Ok(request_name().into()),
        (other, _) => return Err(invalid_params(format!("no prompt {other}"))),
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
}

pub fn complete(request: &CompleteRequestParams) -> CompleteResult {
    let words = match request.r#ref {
        Reference::Prompt(_) => NAMES,
        _ => PORTS,
    };
    let start = request.argument.value.to_lowercase();
    let matching = words.into_iter().filter(|word| word.to_lowercase().starts_with(&start));
    let values = CompletionInfo::with_all_values(matching.map(str::to_owned).collect());
    CompleteResult::new(values.expect("three words are not too many"))
}
