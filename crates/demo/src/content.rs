//! Content blocks of tools and prompts, and two small media files.
//!
//! Block types that a revision does not have are replaced by equivalent text.

use serde_json::{Value, json};

use super::revision::DemoRevision;

/// An anchor, 16 by 16 pixels in two colours: a PNG file in base64.
pub const LOGO_PNG: &str = concat!(
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQAQMAAAAlPW0iAAAABlBMVEXr9PoQSG4DB3jyAAAALUlEQVR42mNgYGBg",
    "bmBgcQAhIIORgYH/AYgEIkUOhkIZBkMJBkkDkCBQloEBAHKKBTtZtx1zAAAAAElFTkSuQmCC",
);

/// Eight milliseconds of a sine tone: a WAV file in base64.
const HORN_WAV: &str = concat!(
    "UklGRmQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YUAAAACApsbc5NzGpoBZOSMcIzlZf6bG3OTc",
    "xqaAWTkjHCM5WX+mxtzk3MamgFk5IxwjOVl/psbc5NzGpoBZOSMcIzlZ",
);

pub fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

pub fn logo() -> Value {
    json!({"type": "image", "data": LOGO_PNG, "mimeType": "image/png"})
}

pub fn horn(revision: DemoRevision) -> Value {
    if revision.has_audio() {
        json!({"type": "audio", "data": HORN_WAV, "mimeType": "audio/wav"})
    } else {
        text("(Here a foghorn sounds, in revisions that can carry audio.)")
    }
}

pub fn link(revision: DemoRevision, resource: &Value) -> Value {
    if revision.has_resource_links() {
        let mut link = resource.clone();
        link["type"] = "resource_link".into();
        link
    } else {
        text(format!("See also {}", resource["uri"].as_str().unwrap_or_default()))
    }
}

/// Embeds the contents of a resource.
pub fn embed_resource(contents: &Value) -> Value {
    json!({"type": "resource", "resource": contents})
}

#[cfg(test)]
mod tests {
    use super::{HORN_WAV, LOGO_PNG};

    /// Decodes base64.
    fn decode(text: &str) -> Vec<u8> {
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let sextets = text.trim_end_matches('=').chars();
        let bits: Vec<u8> = sextets
            .map(|letter| alphabet.find(letter).expect("a letter of base64"))
            .flat_map(|sextet| (0..6).rev().map(move |bit| (sextet >> bit & 1) as u8))
            .collect();
        bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |byte, bit| byte << 1 | bit)).collect()
    }

    #[test]
    fn media_files_have_valid_headers() {
        let png = decode(LOGO_PNG);
        assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
        assert_eq!(png[png.len() - 12..], *b"\0\0\0\0IEND\xae\x42\x60\x82");
        let wav = decode(HORN_WAV);
        let length = u32::try_from(wav.len()).unwrap();
        assert_eq!(wav[..4], *b"RIFF");
        assert_eq!(wav[4..8], (length - 8).to_le_bytes());
        assert_eq!(wav[8..16], *b"WAVEfmt ");
    }
}
