//! Tool definitions.

use rmcp::ErrorData;
use rmcp::model::{CacheScope, JsonObject, ListToolsResult, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::{PageRequest, catalog, invalid_params};

/// Number of tools per page.
const PAGE_SIZE: usize = 5;

/// Returns a page of tools, with tools added since the start at the end.
pub fn list(page: PageRequest, grown: u64) -> Result<ListToolsResult, ErrorData> {
    let added = (1..=grown).map(|number| tool_without_arguments(&format!("grown_{number}"), "Was not there before."));
    let (items, next) = paginate(all().into_iter().chain(added).collect(), page, PAGE_SIZE)?;
    let mut list = ListToolsResult::with_all_items(items);
    list.next_cursor = next;
    Ok(list.with_ttl_ms(60_000).with_cache_scope(CacheScope::Public))
}

/// Returns a page of a list. The cursor is the index of the first item.
pub fn paginate<T>(items: Vec<T>, page: PageRequest, size: usize) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let start = match page.and_then(|page| page.cursor) {
        Some(cursor) => cursor.parse().map_err(|_| invalid_params(format!("no page {cursor}")))?,
        None => 0,
    };
    let next = (start + size < items.len()).then(|| (start + size).to_string());
    Ok((items.into_iter().skip(start).take(size).collect(), next))
}

fn all() -> Vec<Tool> {
    let (string, number) = (json!({"type": "string"}), json!({"type": "number"}));
    let (integer, boolean) = (json!({"type": "integer"}), json!({"type": "boolean"}));
    let brew = json!({"steps": integer, "ask": boolean, "fail": boolean});
    let echo = tool("echo", "Gives back the text.", json!({"text": string}), &["text"]);
    vec![
        echo.with_title("Echo").with_annotations(ToolAnnotations::new().read_only(true)),
        tool("add", "Adds two numbers.", json!({"a": number, "b": number}), &["a", "b"]),
        tool_without_arguments("ask_form", "Asks for a form to be filled in."),
        tool_without_arguments("ask_url", "Asks for a page to be visited."),
        tool_without_arguments("ask_twice", "Asks two things, one after the other."),
        tool_without_arguments("ask_all", "Asks for a form, the model and the roots at once."),
        tool("ask_model", "Asks the model, which may have a tool.", json!({"tools": boolean}), &[]),
        tool_without_arguments("show_roots", "Lists the roots of the client."),
        tool_without_arguments("shed", "Asks the client to come back, and nothing else."),
        tool("log", "Logs a message.", json!({"level": string, "message": string}), &["level", "message"]),
        tool("slow", "Takes its time.", json!({"steps": integer, "wait_ms": integer}), &["steps"]),
        tool_without_arguments("touch", "Changes the counter."),
        tool_without_arguments("grow", "Adds a tool."),
        tool_without_arguments("end_listen", "Ends the subscriptions."),
        tool("brew", "Makes tea, as a task for a client that knows them.", brew.clone(), &[]),
        tool("brew_later", "Makes tea, as a task only.", brew, &[]),
    ]
}

fn tool_without_arguments(name: &str, description: &str) -> Tool {
    tool(name, description, json!({}), &[])
}

fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> Tool {
    let schema = JsonObject::from_iter([
        ("type".to_owned(), "object".into()),
        ("properties".to_owned(), properties),
        ("required".to_owned(), required.into()),
    ]);
    Tool::new(name.to_owned(), description.to_owned(), schema).with_icons(vec![catalog::icon()])
}
