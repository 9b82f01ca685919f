//! Validation of the result of `resources/read`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::Digest;
use wharf_wire::{ReadResult, ResourceContents, Sha256, SkillFile};

use super::{MAX_SKILL_BYTES, SkillError};

/// A file of a skill. Untrusted, whether verified by a digest or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillContent {
    /// Content of the file.
    pub bytes: Vec<u8>,
    /// Type of the file according to the server.
    pub mime_type: Option<String>,
}

/// Returns the one file in a result after verification. `room` is its maximum size.
pub(super) fn verify_single_content(
    uri: &str,
    answer: ReadResult,
    promise: Option<&SkillFile>,
    room: u64,
) -> Result<SkillContent, SkillError> {
    let [content] = <[ResourceContents; 1]>::try_from(answer.contents)
        .map_err(|contents| SkillError::content(uri, &format!("expected one content item, got {}", contents.len())))?;
    if content.uri != uri {
        return Err(SkillError::content(uri, &format!("result is for `{}` instead", content.uri)));
    }
    let mime_type = content.mime_type.clone();
    let bytes = match (content.text, content.blob) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(blob)) => decode_blob(uri, &blob, promise, room)?,
        _ => return Err(SkillError::content(uri, "must have either text or blob")),
    };
    match promise {
        Some(promise) => verify(promise, &bytes)?,
        None if bytes.len() as u64 > room => return Err(SkillError::TooLarge { limit: MAX_SKILL_BYTES }),
        None => {}
    }
    Ok(SkillContent { bytes, mime_type })
}

/// Decodes base64, unless the result would exceed `room`.
fn decode_blob(uri: &str, blob: &str, promise: Option<&SkillFile>, room: u64) -> Result<Vec<u8>, SkillError> {
    let least = (blob.len() as u64 / 4 * 3).saturating_sub(2);
    if least > room {
        return Err(match promise {
            Some(promise) => size_mismatch(promise, &format!("at least {least}")),
            None => SkillError::TooLarge { limit: MAX_SKILL_BYTES },
        });
    }
    STANDARD.decode(blob).map_err(|error| SkillError::content(uri, &error.to_string()))
}

/// Compares the size first, because it is cheaper. Both size and digest must match (SEP-2640, verification on read).
fn verify(promise: &SkillFile, bytes: &[u8]) -> Result<(), SkillError> {
    if bytes.len() as u64 != promise.size {
        return Err(size_mismatch(promise, &bytes.len().to_string()));
    }
    let found = Sha256(sha2::Sha256::digest(bytes).into());
    if found != promise.digest {
        let (expected, found) = (promise.digest.to_string(), found.to_string());
        return Err(SkillError::mismatch(&promise.uri, "digest", &expected, &found));
    }
    Ok(())
}

fn size_mismatch(promise: &SkillFile, found: &str) -> SkillError {
    SkillError::mismatch(&promise.uri, "size", &promise.size.to_string(), found)
}
