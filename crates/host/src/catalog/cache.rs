//! Cache format of a server's lists, for the time when it is not running: one JSON document.
//!
//! The caller decides about the document's location, writing and deletion.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wharf_json::{InvalidJson, JsonLimits, RawJson};
use wharf_wire::View;

use super::server_lists::{ListFreshness, ListName, ServerLists};

/// Schema version of the document.
const CACHE_SCHEMA_VERSION: u64 = 1;
/// Maximum bytes of a document.
const MAX_CACHE_BYTES: usize = 8 * 1024 * 1024;
/// Bounds of a whole document. Its items have their own bounds as well.
const CACHE_BOUNDS: JsonLimits = JsonLimits { depth: 128, nodes: 4_000_000 };

/// Errors of writing or reading a cached catalog.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogCacheError {
    /// The document has more than 8 MiB.
    #[error("the cached catalog has {0} bytes (maximum {MAX_CACHE_BYTES})")]
    TooLarge(usize),
    /// The document is malformed.
    #[error("the cached catalog is damaged")]
    Damaged(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The document has another schema version, probably a later one.
    #[error("the cached catalog has schema {0}, expected {CACHE_SCHEMA_VERSION}")]
    OtherSchema(u64),
    /// The document belongs to a server with another spec.
    #[error("the cached catalog belongs to another server")]
    OtherIdentity,
    /// The server's lists contain invalid JSON.
    #[error("the server's lists cannot be cached")]
    Unwritable(#[source] InvalidJson),
}

/// Creates the document for a server's lists, byte for byte. `identity` is that of [`super::identity`], `at` the time
/// at which the lists were live.
///
/// # Errors
///
/// Returns an error if the lists are not valid JSON or the document would be too large.
pub fn encode_cache(listed: &ServerLists, identity: &str, at: SystemTime) -> Result<RawJson, CatalogCacheError> {
    #[derive(Serialize)]
    struct CacheDocument<'a> {
        schema: u64,
        identity: &'a str,
        at: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        instructions: Option<&'a str>,
        tools: Vec<&'a RawJson>,
        resources: Vec<&'a RawJson>,
        templates: Vec<&'a RawJson>,
        prompts: Vec<&'a RawJson>,
        #[serde(skip_serializing_if = "<[ListName]>::is_empty")]
        unasked: &'a [ListName],
    }
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let document = CacheDocument {
        schema: CACHE_SCHEMA_VERSION,
        identity,
        at: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        instructions: listed.instructions.as_deref(),
        tools: listed.tools.iter().map(|tool| &tool.raw).collect(),
        resources: listed.resources.iter().map(|resource| &resource.raw).collect(),
        templates: listed.templates.iter().map(|template| &template.raw).collect(),
        prompts: listed.prompts.iter().map(|prompt| &prompt.raw).collect(),
        unasked: &listed.unasked,
    };
    let text = RawJson::from_value(&document).map_err(CatalogCacheError::Unwritable)?;
    if text.as_bytes().len() > MAX_CACHE_BYTES {
        Err(CatalogCacheError::TooLarge(text.as_bytes().len()))
    } else {
        Ok(text)
    }
}

/// Reads the document of a server with this identity. The result shares the document's memory.
///
/// # Errors
///
/// Any error invalidates the whole document: the server is listed again.
pub fn decode_cache(document: impl Into<Bytes>, identity: &str) -> Result<ServerLists, CatalogCacheError> {
    #[derive(Deserialize)]
    struct ParsedCacheDocument<'a> {
        #[serde(borrow)]
        identity: std::borrow::Cow<'a, str>,
        at: u64,
        instructions: Option<String>,
        #[serde(borrow)]
        tools: Vec<&'a RawValue>,
        #[serde(borrow)]
        resources: Vec<&'a RawValue>,
        #[serde(borrow)]
        templates: Vec<&'a RawValue>,
        #[serde(borrow)]
        prompts: Vec<&'a RawValue>,
        #[serde(default)]
        unasked: Vec<ListName>,
    }
    let raw = parse_document(document.into())?;
    let document: ParsedCacheDocument<'_> = raw.decode(&CACHE_BOUNDS).map_err(damaged_error)?;
    if document.identity != identity {
        return Err(CatalogCacheError::OtherIdentity);
    }
    Ok(ServerLists {
        tools: decode_items(&raw, &document.tools)?,
        resources: decode_items(&raw, &document.resources)?,
        templates: decode_items(&raw, &document.templates)?,
        prompts: decode_items(&raw, &document.prompts)?,
        instructions: document.instructions,
        unasked: document.unasked,
        freshness: ListFreshness::Kept { at: time_from_millis(document.at) },
        ..ServerLists::default()
    })
}

fn parse_document(document: Bytes) -> Result<RawJson, CatalogCacheError> {
    #[derive(Deserialize)]
    struct SchemaHeader {
        schema: u64,
    }
    if document.len() > MAX_CACHE_BYTES {
        return Err(CatalogCacheError::TooLarge(document.len()));
    }
    // The document may have been reformatted over many lines.
    let raw = RawJson::parse(document).map_err(damaged_error)?;
    match raw.decode(&CACHE_BOUNDS).map_err(damaged_error)? {
        SchemaHeader { schema: CACHE_SCHEMA_VERSION } => Ok(raw),
        SchemaHeader { schema } => Err(CatalogCacheError::OtherSchema(schema)),
    }
}

fn decode_items<T: View>(raw: &RawJson, items: &[&RawValue]) -> Result<Vec<T>, CatalogCacheError> {
    let view = |item: &&RawValue| T::from_raw(raw.slice_part(item), &JsonLimits::default()).map_err(damaged_error);
    items.iter().map(view).collect()
}

fn damaged_error(error: impl std::error::Error + Send + Sync + 'static) -> CatalogCacheError {
    CatalogCacheError::Damaged(error.into())
}

/// Returns the time, or the Unix epoch if it overflows the clock.
fn time_from_millis(milliseconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds)).unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wharf_wire::{PromptDefinition, Resource, ResourceTemplate};

    use super::*;
    use crate::catalog::fixture::{lists_with_tools, tool};

    const AT: Duration = Duration::from_millis(1_700_000_000_123);

    fn sample() -> ServerLists {
        let raw = |text: &str| RawJson::parse(text.to_owned()).unwrap();
        let bounds = &JsonLimits::default();
        ServerLists {
            tools: vec![
                tool(r#"{ "z":12345678901234567890123, "name":"b","inputSchema":{ "x" : 1.0 } }"#),
                tool(r#"{"name":"a"}"#),
            ],
            resources: vec![Resource::from_raw(raw(r#"{"uri":"file:///x","own":[ ]}"#), bounds).unwrap()],
            templates: vec![ResourceTemplate::from_raw(raw(r#"{"uriTemplate":"file:///{x}"}"#), bounds).unwrap()],
            prompts: vec![PromptDefinition::from_raw(raw(r#"{"name":"p"}"#), bounds).unwrap()],
            instructions: Some("Be \"kind\".".to_owned()),
            ..ServerLists::default()
        }
    }

    fn document() -> RawJson {
        encode_cache(&sample(), "me", SystemTime::UNIX_EPOCH + AT).unwrap()
    }

    fn decode_sample(document: impl Into<Bytes>) -> Result<ServerLists, String> {
        decode_cache(document, "me").map_err(|error| error.to_string())
    }

    #[test]
    fn cached_lists_round_trip_byte_for_byte() {
        let found = decode_sample(document().as_bytes().to_vec()).unwrap();
        let raws = |listed: &ServerLists| {
            let tools = listed.tools.iter().map(|tool| tool.raw.clone());
            let resources = listed.resources.iter().map(|resource| resource.raw.clone());
            let templates = listed.templates.iter().map(|template| template.raw.clone());
            let all =
                tools.chain(resources).chain(templates).chain(listed.prompts.iter().map(|prompt| prompt.raw.clone()));
            all.map(|raw| raw.as_str().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(raws(&found), raws(&sample()));
        assert_eq!(found.instructions, sample().instructions);
        assert_eq!(found.unasked, [], "where nothing is said, everything was asked for");
        assert_eq!(found.freshness, ListFreshness::Kept { at: SystemTime::UNIX_EPOCH + AT });
        let spread = document().as_str().replacen(",", ",\n", 40);
        assert!(decode_sample(spread).unwrap().tools.iter().all(|tool| !tool.raw.as_str().contains('\n')));
        assert!(document().as_str().starts_with(r#"{"schema":1,"identity":"me","at":1700000000123,"#));
    }

    #[test]
    fn unrequested_lists_are_not_cached_as_empty() {
        let unasked = vec![ListName::Resources, ListName::Templates, ListName::Prompts];
        let tools_only = ServerLists { unasked: unasked.clone(), ..lists_with_tools(&["a"]) };
        let document = encode_cache(&tools_only, "me", SystemTime::UNIX_EPOCH).unwrap();
        assert!(
            document.as_str().ends_with(r#""unasked":["resources","templates","prompts"]}"#),
            "{}",
            document.as_str()
        );
        assert_eq!(decode_sample(document.as_bytes().to_vec()).unwrap().unasked, unasked);
    }

    #[test]
    fn invalid_cache_documents_are_rejected() {
        let text = document().as_str().to_owned();
        for (document, expected) in [
            (String::new(), "the cached catalog is damaged"),
            ("[]".to_owned(), "the cached catalog is damaged"),
            (text[..text.len() - 1].to_owned(), "the cached catalog is damaged"),
            (text.replace(r#""name":"p""#, r#""name":7"#), "the cached catalog is damaged"),
            (text.replace(r#""schema":1"#, r#""schema":2"#), "the cached catalog has schema 2, expected 1"),
            (text.replace(r#""identity":"me""#, r#""identity":"you""#), "the cached catalog belongs to another server"),
            (" ".repeat(MAX_CACHE_BYTES + 1), "the cached catalog has 8388609 bytes (maximum 8388608)"),
        ] {
            let shown = &document[..document.len().min(100)];
            assert_eq!(decode_sample(document.clone()).err().as_deref(), Some(expected), "{shown}");
        }
        let mut large = lists_with_tools(&["a"]);
        large.instructions = Some("x".repeat(MAX_CACHE_BYTES));
        assert!(matches!(encode_cache(&large, "me", SystemTime::UNIX_EPOCH), Err(CatalogCacheError::TooLarge(_))));
    }

    proptest! {
        #[test]
        fn damaged_cache_never_panics(at in 0..400usize, byte in any::<u8>(), cut in 0..400usize) {
            let mut text = document().as_bytes().to_vec();
            let last = text.len() - 1;
            text[at.min(last)] = byte;
            text.truncate(text.len() - cut.min(last) / 8);
            let _ = decode_sample(text);
        }
    }
}
