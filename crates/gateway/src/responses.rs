//! Builds messages to clients around raw results.

use std::borrow::Cow;

use bytes::{BufMut as _, Bytes, BytesMut};
use memchr::memmem;
use serde_json::{Value, json};
use wharf::RawJson;
use wharf::wire::{Era, JsonLimits, RpcError, object_members};
use wharf_serve::OutgoingMessage;

use crate::catalog_view::EntryPage;

/// Returns the response with a result. `id` is raw.
pub(crate) fn result_response(id: &[u8], result: &RawJson, era: Era) -> OutgoingMessage {
    let result = result.as_bytes();
    let mut text = BytesMut::with_capacity(result.len() + id.len() + 80);
    text.put_slice(br#"{"jsonrpc":"2.0","id":"#);
    text.put_slice(id);
    text.put_slice(br#","result":"#);
    match era {
        Era::Stateless if !has_result_type(result) => put_with_result_type(&mut text, result),
        _ => text.put_slice(result),
    }
    text.put_u8(b'}');
    OutgoingMessage::response(text.freeze())
}

/// Reports whether a result says itself that it is complete, as those of stateless servers do.
fn has_result_type(result: &[u8]) -> bool {
    let raw = || RawJson::new_unchecked(Bytes::copy_from_slice(result));
    let names_it = || {
        let raw = raw();
        object_members(&raw, &JsonLimits::default()).is_ok_and(|all| all.iter().any(|(key, _)| key == "resultType"))
    };
    // Results of other servers are not decoded.
    memmem::find(result, b"\"resultType\"").is_some() && names_it()
}

/// Adds the member that every result of a stateless revision has.
fn put_with_result_type(text: &mut BytesMut, result: &[u8]) {
    let inside = result.trim_ascii_start().strip_prefix(b"{").unwrap_or(b"}");
    text.put_slice(br#"{"resultType":"complete""#);
    if inside.trim_ascii_start().first() != Some(&b'}') {
        text.put_u8(b',');
    }
    text.put_slice(inside);
}

/// Returns the response with an error. `id` is raw.
pub(crate) fn error_response(id: &[u8], error: &RpcError) -> OutgoingMessage {
    let mut text = BytesMut::new();
    text.put_slice(br#"{"jsonrpc":"2.0","id":"#);
    text.put_slice(id);
    text.put_slice(format!(r#","error":{{"code":{},"message":{}"#, error.code, json!(error.message)).as_bytes());
    if let Some(data) = &error.data {
        text.put_slice(b",\"data\":");
        text.put_slice(data.as_bytes());
    }
    text.put_slice(b"}}");
    OutgoingMessage::error(text.freeze(), error.code)
}

/// Returns the result of a list request.
pub(crate) fn list_result(member: &str, page: &EntryPage<'_>, era: Era) -> RawJson {
    let mut text = format!("{{\"{member}\":[").into_bytes();
    for (index, entry) in page.entries.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(entry);
    }
    text.push(b']');
    if let Some(cursor) = &page.next_cursor {
        text.extend_from_slice(format!(",\"nextCursor\":{}", json!(cursor)).as_bytes());
    }
    if era == Era::Stateless {
        // The lists of many servers, for this client alone: no other promise can be made.
        text.extend_from_slice(br#","ttlMs":0,"cacheScope":"private""#);
    }
    text.push(b'}');
    RawJson::new_unchecked(text)
}

/// Returns a tool's result without structured content that the handshake revisions do not allow. Its text stays.
pub(crate) fn for_handshake_client(result: RawJson) -> RawJson {
    if memmem::find(result.as_bytes(), b"\"structuredContent\"").is_none() {
        return result;
    }
    let Ok(members) = object_members(&result, &JsonLimits::default()) else { return result };
    let is_allowed = |(key, value): &&(Cow<'_, str>, RawJson)| key != "structuredContent" || value.is_object();
    if members.iter().all(|member| is_allowed(&member)) {
        return result.clone();
    }
    let allowed = members.iter().filter(is_allowed).map(|(key, value)| format!("{}:{}", json!(key), value.as_str()));
    RawJson::new_unchecked(format!("{{{}}}", allowed.collect::<Vec<_>>().join(",")))
}

/// Returns the result of a read without the cache hint of a stateless server, which the handshake revisions do not have.
pub(crate) fn without_cache_hint(result: RawJson) -> RawJson {
    const HINTS: [&str; 3] = ["ttlMs", "cacheScope", "resultType"];
    if HINTS.iter().all(|hint| memmem::find(result.as_bytes(), hint.as_bytes()).is_none()) {
        return result;
    }
    let Ok(members) = object_members(&result, &JsonLimits::default()) else { return result };
    let kept = members.iter().filter(|(key, _)| !HINTS.contains(&&**key));
    let kept = kept.map(|(key, value)| format!("{}:{}", json!(key), value.as_str()));
    RawJson::new_unchecked(format!("{{{}}}", kept.collect::<Vec<_>>().join(",")))
}

/// Returns the result of a read with the cache hint that stateless clients expect, unless the server gives one.
pub(crate) fn with_cache_hint(result: RawJson) -> RawJson {
    let members = object_members(&result, &JsonLimits::default()).unwrap_or_default();
    let has = |name: &str| members.iter().any(|(key, _)| key == name);
    let is_final = !members.iter().any(|(key, value)| key == "resultType" && value.as_str() == "\"input_required\"");
    if has("ttlMs") || !is_final {
        return result.clone();
    }
    let text = result.as_str().trim();
    let inside = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default().trim();
    let comma = if inside.is_empty() { "" } else { "," };
    RawJson::new_unchecked(format!(r#"{{{inside}{comma}"ttlMs":0,"cacheScope":"private"}}"#))
}

/// Returns a notification.
pub(crate) fn notification(method: &str, params: &Value) -> OutgoingMessage {
    OutgoingMessage::unsolicited(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(result: &str, era: Era, expected: &str) {
        let sent = result_response(b"7", &RawJson::new_unchecked(result.to_owned()), era);
        assert_eq!(sent.text, format!(r#"{{"jsonrpc":"2.0","id":7,"result":{expected}}}"#));
    }

    #[test]
    fn result_type_is_added_for_stateless_clients_only() {
        check(r#"{"content":[]}"#, Era::Handshake, r#"{"content":[]}"#);
        check(r#"{"content":[]}"#, Era::Stateless, r#"{"resultType":"complete","content":[]}"#);
        check("{ }", Era::Stateless, r#"{"resultType":"complete" }"#);
        let named = r#"{"content":[],"resultType":"complete"}"#;
        check(named, Era::Stateless, named);
        let nested = r#"{"structuredContent":{"resultType":"x"}}"#;
        check(nested, Era::Stateless, r#"{"resultType":"complete","structuredContent":{"resultType":"x"}}"#);
    }

    #[test]
    fn structured_content_of_a_handshake_client_is_an_object() {
        let check = |result: &str, expected: &str| {
            assert_eq!(for_handshake_client(RawJson::new_unchecked(result.to_owned())).as_str(), expected);
        };
        let object = r#"{"content":[],"structuredContent":{"a":1e400}}"#;
        check(object, object);
        check(r#"{"content":[1],"structuredContent":[1],"x":1e400}"#, r#"{"content":[1],"x":1e400}"#);
        let nested = r#"{"content":[{"structuredContent":7}]}"#;
        check(nested, nested);
    }

    #[test]
    fn read_without_a_cache_hint_is_not_cached() {
        let check = |result: &str, expected: &str| {
            assert_eq!(with_cache_hint(RawJson::new_unchecked(result.to_owned())).as_str(), expected);
        };
        check(r#"{"contents":[]}"#, r#"{"contents":[],"ttlMs":0,"cacheScope":"private"}"#);
        let hinted = r#"{"contents":[],"ttlMs":5,"cacheScope":"public"}"#;
        check(hinted, hinted);
        let asking = r#"{"resultType":"input_required","requestState":"s"}"#;
        check(asking, asking);
    }

    #[test]
    fn handshake_client_gets_no_cache_hint() {
        let check = |result: &str, expected: &str| {
            assert_eq!(without_cache_hint(RawJson::new_unchecked(result.to_owned())).as_str(), expected);
        };
        let hinted = r#"{"resultType":"complete","contents":[{"ttlMs":1e400}],"ttlMs":5,"cacheScope":"public"}"#;
        check(hinted, r#"{"contents":[{"ttlMs":1e400}]}"#);
        check(r#"{ "contents":[] }"#, r#"{ "contents":[] }"#);
    }

    #[test]
    fn error_keeps_code_and_data() {
        let error = RpcError { code: -5, message: "a\"b".into(), data: Some(RawJson::new_unchecked("{\"x\":1e400}")) };
        let sent = error_response(b"\"q\"", &error);
        let text = r#"{"jsonrpc":"2.0","id":"q","error":{"code":-5,"message":"a\"b","data":{"x":1e400}}}"#;
        assert_eq!((sent.text.as_ref(), sent.error_code), (text.as_bytes(), Some(-5)));
    }
}
