//! Tool results: conversion to generic outcomes, truncation and caching.

mod cache;
mod truncate;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use wharf_json::RawJson;
use wharf_tools::{Base64Text, EmbeddedContents, OutcomeBlock, ToolOutcome};
use wharf_wire::{Content, ToolResult};

use crate::catalog::escape_hidden as shown_to_models;

pub(crate) use cache::{ResultCacheKey, ToolResultCache};
pub use truncate::ResultLimits;
pub(crate) use truncate::{truncate, truncate_blocking};

/// Converts a protocol result to a generic tool outcome. Nothing is lost, and bytes are not decoded.
pub(crate) fn to_outcome(result: &ToolResult) -> ToolOutcome {
    let mut outcome = ToolOutcome::new(result.content.iter().map(to_block).collect());
    outcome.data = result.structured.clone();
    outcome.is_error = result.is_error;
    outcome
}

/// Converts a protocol content block to a generic one.
pub(crate) fn to_block(content: &Content) -> OutcomeBlock {
    let raw = content.raw().clone();
    match content {
        Content::Text { text, .. } => OutcomeBlock::Text { text: text.clone(), raw: Some(raw) },
        Content::Image { mime_type, .. } => match bytes_of(&raw) {
            Some(data) => OutcomeBlock::Image { data, mime: mime_type.clone(), raw: Some(raw) },
            None => OutcomeBlock::Other { kind: Some("image".to_owned()), raw },
        },
        Content::Audio { mime_type, .. } => match bytes_of(&raw) {
            Some(data) => OutcomeBlock::Audio { data, mime: mime_type.clone(), raw: Some(raw) },
            None => OutcomeBlock::Other { kind: Some("audio".to_owned()), raw },
        },
        Content::ResourceLink { uri, name, mime_type, .. } => link_block(uri, name.clone(), mime_type.clone(), raw),
        Content::Resource { resource, .. } => {
            let contents = match (&resource.text, blob_of(&raw)) {
                (Some(text), _) => EmbeddedContents::Text(text.clone()),
                (None, Some(blob)) => EmbeddedContents::Bytes(blob),
                (None, None) => EmbeddedContents::Nothing,
            };
            let (uri, mime) = (resource.uri.clone(), resource.mime_type.clone());
            OutcomeBlock::Resource { uri, mime, contents, raw: Some(raw) }
        }
        Content::Unknown { kind, .. } => OutcomeBlock::Other { kind: kind.clone(), raw },
        _ => OutcomeBlock::Other { kind: None, raw },
    }
}

fn link_block(uri: &str, name: Option<String>, mime: Option<String>, raw: RawJson) -> OutcomeBlock {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct LinkDetails {
        description: Option<String>,
        size: Option<f64>,
    }
    let rest: LinkDetails = raw.decode_unbounded().unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is only shown, and saturates")]
    let size = rest.size.filter(|size| *size >= 0.0).map(|size| size as u64);
    OutcomeBlock::Link { uri: uri.to_owned(), name, mime, description: rest.description, size, raw: Some(raw) }
}

/// Returns the `data` of a block, sharing its memory.
fn bytes_of(raw: &RawJson) -> Option<Base64Text> {
    #[derive(Deserialize)]
    struct MediaData<'a> {
        #[serde(borrow)]
        data: &'a RawValue,
    }
    let MediaData { data } = raw.decode_unbounded().ok()?;
    Base64Text::from_json(raw.slice_part(data))
}

/// Returns the `blob` of an embedded resource, sharing its memory.
fn blob_of(raw: &RawJson) -> Option<Base64Text> {
    #[derive(Deserialize)]
    struct EmbeddedBlob<'a> {
        #[serde(borrow)]
        blob: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct EmbeddedResource<'a> {
        #[serde(borrow)]
        resource: EmbeddedBlob<'a>,
    }
    let EmbeddedResource { resource } = raw.decode_unbounded().ok()?;
    Base64Text::from_json(raw.slice_part(resource.blob))
}

/// Escapes hidden and control characters in the texts of an outcome. Raw JSON and structured data are unchanged.
pub(crate) fn escape_hidden_text(mut outcome: ToolOutcome) -> ToolOutcome {
    outcome.blocks.iter_mut().for_each(escape_block);
    outcome
}

fn escape_block(block: &mut OutcomeBlock) {
    if let OutcomeBlock::Text { text, .. } | OutcomeBlock::Resource { contents: EmbeddedContents::Text(text), .. } =
        block
        && let Cow::Owned(shown) = shown_to_models(text)
    {
        *text = shown;
    }
}

/// Reports whether a result is marked as an error, without decoding it. For statistics, the audit log and the result
/// cache: a nested `isError` member also counts.
pub(crate) fn is_marked_error(result: &RawJson) -> bool {
    const MARK: &[u8] = b"\"isError\"";
    let text = result.as_bytes();
    let mut rest = text;
    while let Some(found) = memchr::memmem::find(rest, MARK) {
        rest = &rest[found + MARK.len()..];
        let value =
            rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b':')).map(|at| &rest[at..]);
        if value.is_some_and(|value| value.starts_with(b"true")) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_wire::{JsonLimits, View as _};

    fn outcome_of_text(text: &str) -> ToolOutcome {
        let raw = RawJson::parse(text.to_owned()).unwrap();
        to_outcome(&ToolResult::from_raw(raw, &JsonLimits::default()).unwrap())
    }

    #[test]
    fn every_content_kind_is_converted() {
        let found = outcome_of_text(
            r#"{"content":[
            {"type":"text","text":"a"},
            {"type":"image","data":"AAAA","mimeType":"image/png"},
            {"type":"audio","data":"AAAA","mimeType":"audio/wav"},
            {"type":"resource_link","uri":"a:b","name":"n","description":"d","size":12},
            {"type":"resource","resource":{"uri":"a:c","blob":"AAAA"}},
            {"type":"resource","resource":{"uri":"a:d","text":"t"}},
            {"type":"hologram","n":12345678901234567890123}
        ],"structuredContent":{"n":12345678901234567890123},"isError":true}"#,
        );
        assert!(found.is_error);
        assert_eq!(found.data.unwrap().as_str(), r#"{"n":12345678901234567890123}"#);
        let [
            OutcomeBlock::Text { .. },
            OutcomeBlock::Image { data, .. },
            OutcomeBlock::Audio { .. },
            OutcomeBlock::Link { size: Some(12), description: Some(_), .. },
            OutcomeBlock::Resource { contents: EmbeddedContents::Bytes(_), .. },
            OutcomeBlock::Resource { contents: EmbeddedContents::Text(_), .. },
            OutcomeBlock::Other { kind: Some(kind), .. },
        ] = &found.blocks[..]
        else {
            panic!("{:?}", found.blocks)
        };
        assert_eq!((data.text(), kind.as_str()), ("AAAA", "hologram"));
    }

    #[test]
    fn hidden_text_is_escaped_for_the_model() {
        let texts = r#"{"content":[{"type":"text","text":"a\u202eb\n👩\u200d🚀"},
            {"type":"resource","resource":{"uri":"a:d","text":"c\u200bd"}}],"structuredContent":"\u202e"}"#;
        let found = escape_hidden_text(outcome_of_text(texts));
        assert!(found.text().starts_with("a\\u{202e}b\n👩\u{200d}🚀\n["), "{}", found.text());
        assert!(found.text().contains("c\\u{200b}d"), "{}", found.text());
        assert_eq!(
            (found.blocks[0].raw(), &found.data),
            (outcome_of_text(texts).blocks[0].raw(), &outcome_of_text(texts).data)
        );
    }

    #[test]
    fn error_flag_is_detected_without_decoding() {
        for (text, expected) in [
            (r#"{"content":[],"isError":true}"#, true),
            (r#"{"isError" : true}"#, true),
            ("{\"isError\"\r\n:\ntrue}", true),
            (r#"{"isError":false}"#, false),
            (r#"{"isError":false,"x":{"isError":true}}"#, true),
            (r#"{"content":[{"type":"text","text":"\"isError\":true"}]}"#, false),
            ("{}", false),
        ] {
            assert_eq!(is_marked_error(&RawJson::parse(text).unwrap()), expected, "{text}");
        }
    }
}
