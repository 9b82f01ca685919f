//! Converts content blocks to text, for the terminal and the `output` member.

use std::path::PathBuf;

use wharf_wire::{Content, ResourceContents};

use crate::failure::Failure;
use crate::saving::SaveDirectory;

/// Returns the text of all blocks, separated by line breaks. Other content becomes a reference with type and size. The
/// text of an embedded resource follows its reference.
///
/// The result is untrusted: the caller must escape it before printing.
pub fn content_text(blocks: &[Content]) -> String {
    blocks.iter().map(|block| block_text_with_file(block, None)).collect::<Vec<_>>().join("\n")
}

/// Like [`content_text`], but saves binary content and embedded resources if there is a shelf, and adds the path to the
/// reference.
///
/// # Errors
///
/// Fails if a file cannot be written.
pub fn content_text_saving(blocks: &[Content], mut shelf: Option<&mut SaveDirectory>) -> Result<String, Failure> {
    let texts = blocks.iter().map(|block| {
        let file = save_block(block, shelf.as_deref_mut())?;
        Ok(block_text_with_file(block, file))
    });
    Ok(texts.collect::<Result<Vec<_>, Failure>>()?.join("\n"))
}

/// Like [`content_text_saving`], for the contents of resources.
///
/// # Errors
///
/// Fails if a file cannot be written.
pub fn resources_text_saving(
    contents: &[ResourceContents],
    mut shelf: Option<&mut SaveDirectory>,
) -> Result<String, Failure> {
    let texts = contents.iter().map(|contents| {
        let file = save_resource(contents, shelf.as_deref_mut())?;
        Ok(with_file(resource_text(contents), file))
    });
    Ok(texts.collect::<Result<Vec<_>, Failure>>()?.join("\n"))
}

fn save_block(block: &Content, shelf: Option<&mut SaveDirectory>) -> Result<Option<PathBuf>, Failure> {
    let Some(shelf) = shelf else { return Ok(None) };
    match block {
        Content::Image { data, mime_type, .. } | Content::Audio { data, mime_type, .. } => {
            shelf.save(data, Some(mime_type)).map(|path| Some(path.to_owned()))
        }
        Content::Resource { resource, .. } => match &resource.text {
            Some(text) => shelf.save_text(text, resource.mime_type.as_deref()).map(|path| Some(path.to_owned())),
            None => save_resource(resource, Some(shelf)),
        },
        _ => Ok(None),
    }
}

fn save_resource(contents: &ResourceContents, shelf: Option<&mut SaveDirectory>) -> Result<Option<PathBuf>, Failure> {
    match (&contents.blob, shelf) {
        (Some(blob), Some(shelf)) if contents.text.is_none() => {
            shelf.save(blob, contents.mime_type.as_deref()).map(|path| Some(path.to_owned()))
        }
        _ => Ok(None),
    }
}

/// Adds the path of a saved file to a reference.
fn with_file(reference: String, file: Option<PathBuf>) -> String {
    match (file, reference.strip_suffix(']')) {
        (Some(file), Some(open)) => format!("{open}, saved as {}]", file.display()),
        _ => reference,
    }
}

/// Formats a block. The path belongs to the reference, and the text of an embedded resource follows.
fn block_text_with_file(block: &Content, file: Option<PathBuf>) -> String {
    let text = with_file(block_text(block), file);
    match block {
        Content::Resource { resource, .. } => match &resource.text {
            Some(embedded) => format!("{text}\n{embedded}"),
            None => text,
        },
        _ => text,
    }
}

/// Formats a block without the text of an embedded resource.
fn block_text(block: &Content) -> String {
    match block {
        Content::Text { text, .. } => text.clone(),
        Content::Image { data, mime_type, .. } => format!("[image: {mime_type}, {}]", ContentSize(decoded_len(data))),
        Content::Audio { data, mime_type, .. } => format!("[audio: {mime_type}, {}]", ContentSize(decoded_len(data))),
        Content::ResourceLink { uri, mime_type, .. } => format!("[resource link: {uri}{}]", type_suffix(mime_type)),
        Content::Resource { resource, .. } => format!("[resource: {}]", reference(resource)),
        Content::Unknown { kind: Some(kind), raw } => format!("[{kind}: {}]", ContentSize(raw.as_bytes().len())),
        other => format!("[unknown block: {}]", ContentSize(other.raw().as_bytes().len())),
    }
}

/// Returns the text of a resource, or a reference to its binary content.
pub fn resource_text(contents: &ResourceContents) -> String {
    match &contents.text {
        Some(text) => text.clone(),
        None => format!("[binary: {}]", reference(contents)),
    }
}

/// Returns URI, type and size of a resource.
fn reference(contents: &ResourceContents) -> String {
    let size = match (&contents.text, &contents.blob) {
        (Some(text), _) => text.len(),
        (None, blob) => blob.as_deref().map_or(0, decoded_len),
    };
    format!("{}{}, {}", contents.uri, type_suffix(&contents.mime_type), ContentSize(size))
}

fn type_suffix(mime_type: &Option<String>) -> String {
    mime_type.as_ref().map(|kind| format!(", {kind}")).unwrap_or_default()
}

/// Returns the decoded size of a Base64 text.
fn decoded_len(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// Formats a number of bytes.
struct ContentSize(usize);

impl std::fmt::Display for ContentSize {
    #[expect(clippy::cast_precision_loss, reason = "it is rounded to a tenth anyway")]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            1 => f.write_str("1 byte"),
            bytes @ 0..1000 => write!(f, "{bytes} bytes"),
            bytes @ 1000..1_000_000 => write!(f, "{:.1} kB", bytes as f64 / 1e3),
            bytes => write!(f, "{:.1} MB", bytes as f64 / 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_wire::RawJson;

    #[test]
    fn every_block_kind_becomes_text() {
        for (block, expected) in [
            (r#"{"type":"text","text":"a\nb"}"#, "a\nb"),
            (r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#, "[image: image/png, 3 bytes]"),
            (r#"{"type":"audio","data":"AA==","mimeType":"audio/wav"}"#, "[audio: audio/wav, 1 byte]"),
            (r#"{"type":"resource_link","uri":"a:b","mimeType":"x/y"}"#, "[resource link: a:b, x/y]"),
            (r#"{"type":"resource","resource":{"uri":"a:b","text":"four"}}"#, "[resource: a:b, 4 bytes]\nfour"),
            (r#"{"type":"resource","resource":{"uri":"a:b","blob":"AAAA"}}"#, "[resource: a:b, 3 bytes]"),
            (r#"{"type":"hologram"}"#, "[hologram: 19 bytes]"),
            ("7", "[unknown block: 1 byte]"),
        ] {
            assert_eq!(content_text(&[Content::view(RawJson::parse(block).unwrap())]), expected);
        }
        assert_eq!(ContentSize(1500).to_string(), "1.5 kB");
    }
}
