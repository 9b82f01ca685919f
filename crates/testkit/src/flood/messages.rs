//! Messages of the flood server.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::FloodKind;

/// Just below the limit of 8 MiB per message.
const LARGE_TEXT_BYTES: usize = 8_300_000;
/// A listing within its limits: pages, tools per page, and bytes per tool; 3.6 MB of the 4 MiB.
const PAGES: usize = 3;
const ITEMS_PER_PAGE: usize = 60;
const DESCRIPTION_BYTES: usize = 20_000;

/// Returns the response to a request; `None` for other messages.
pub fn answer(kind: FloodKind, message: &Value, revision: &str) -> Option<String> {
    let id = &message["id"];
    let method = message["method"].as_str()?;
    if id.is_null() {
        return None;
    }
    let cursor = message["params"]["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let result = match method {
        "initialize" => initialize_result(kind, revision),
        "tools/list" if kind.includes(FloodKind::Lists) => full_page("tools", cursor),
        "tools/list" => r#"{"tools":[{"name":"flood","inputSchema":{"type":"object"}}]}"#.to_owned(),
        "prompts/list" if kind.includes(FloodKind::Lists) => full_page("prompts", cursor),
        "prompts/list" => r#"{"prompts":[]}"#.to_owned(),
        "resources/list" if kind.includes(FloodKind::Lists) => endless_page("resources", "uri", cursor),
        "resources/list" => r#"{"resources":[]}"#.to_owned(),
        "resources/templates/list" if kind.includes(FloodKind::Lists) => {
            endless_page("resourceTemplates", "uriTemplate", cursor)
        }
        "resources/templates/list" => r#"{"resourceTemplates":[]}"#.to_owned(),
        "tools/call" => return Some(call(kind, id)),
        "ping" | "logging/setLevel" | "resources/subscribe" => "{}".to_owned(),
        _ => return Some(error(id, -32601, "no such method")),
    };
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}

fn initialize_result(kind: FloodKind, revision: &str) -> String {
    let instructions = if kind.includes(FloodKind::Lists) { "i".repeat(900_000) } else { String::new() };
    json!({
        "protocolVersion": revision,
        "capabilities": {
            "tools": { "listChanged": true },
            "resources": { "listChanged": true, "subscribe": true },
            "prompts": { "listChanged": true },
            "logging": {},
        },
        "serverInfo": { "name": "flood", "version": "1" },
        "instructions": instructions,
    })
    .to_string()
}

/// Returns one of a few pages that together stay within the limits of a listing.
fn full_page(list: &str, page: usize) -> String {
    let description = "word ".repeat(DESCRIPTION_BYTES / 5);
    let items: Vec<String> = (0..ITEMS_PER_PAGE)
        .map(|item| {
            let name = if page + item == 0 { "flood".to_owned() } else { format!("t{page}_{item}") };
            format!(r#"{{"name":"{name}","description":"{description}","inputSchema":{{"type":"object"}}}}"#)
        })
        .collect();
    let next = if page + 1 < PAGES { format!(r#","nextCursor":"{}""#, page + 1) } else { String::new() };
    format!(r#"{{"{list}":[{}]{next}}}"#, items.join(","))
}

/// Returns a page of 7.4 MB with a next cursor, without end.
fn endless_page(list: &str, key: &str, page: usize) -> String {
    let description = "y".repeat(100_000);
    let items: Vec<String> = (0..74)
        .map(|item| format!(r#"{{"name":"r","{key}":"x:{page}/{item}","description":"{description}"}}"#))
        .collect();
    format!(r#"{{"{list}":[{}],"nextCursor":"{}"}}"#, items.join(","), page + 1)
}

fn call(kind: FloodKind, id: &Value) -> String {
    let is_odd = id.as_u64().is_some_and(|id| id % 2 == 1);
    if kind == FloodKind::Errors || (kind == FloodKind::All && is_odd) {
        return error(id, -32000, large(is_odd));
    }
    let text = if kind.includes(FloodKind::Results) { large(is_odd) } else { "ok" };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
}

/// Returns a large JSON text: plain, or characters that are escaped for a model.
fn large(is_hidden: bool) -> &'static str {
    static TEXTS: OnceLock<[String; 2]> = OnceLock::new();
    let texts = TEXTS.get_or_init(|| {
        let line = "a line of text\\n";
        [line.repeat(LARGE_TEXT_BYTES / line.len()), "\u{200b}x".repeat(LARGE_TEXT_BYTES / 4)]
    });
    &texts[usize::from(is_hidden)]
}

fn error(id: &Value, code: i32, message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#)
}

/// Returns one round of unprompted messages.
pub fn unprompted_messages(kind: FloodKind) -> Vec<String> {
    let notification = |method: &str, params: String| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#)
    };
    let changed =
        ["tools", "prompts", "resources"].map(|list| notification(&format!("{list}/list_changed"), "{}".into()));
    let mut remarks = Vec::new();
    if kind.includes(FloodKind::Lists) {
        remarks.extend(changed.clone());
    }
    if kind.includes(FloodKind::Notifications) {
        let log =
            |bytes: usize| notification("message", format!(r#"{{"level":"error","data":"{}"}}"#, "l".repeat(bytes)));
        let progress = format!(r#"{{"progressToken":1,"progress":1,"message":"{}"}}"#, "p".repeat(1_000_000));
        remarks.extend((0..20).map(|_| log(60_000)));
        remarks.push(log(4_000_000));
        remarks.extend(
            (0..20).map(|n| notification("resources/updated", format!(r#"{{"uri":"x:{n}/{}"}}"#, "u".repeat(8_000)))),
        );
        remarks.push(notification("progress", progress));
        remarks.extend((0..200).map(|_| log(10)));
        remarks.extend(changed);
        remarks.push(notification("unheard/of", format!(r#"{{"x":"{}"}}"#, large(false))));
    }
    if kind.includes(FloodKind::Errors) {
        remarks.push(error(&Value::Null, -32000, &"e".repeat(1_000_000)));
        remarks.push(error(&Value::from(999_999_999), -32000, large(false)));
    }
    remarks
}
