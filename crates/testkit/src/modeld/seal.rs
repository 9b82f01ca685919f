//! Seals on thinking, by which it is recognised: the signature of one format, the encrypted content of the other.
//!
//! They depend on the text only, so that a conversation can continue at another [`Modeld`](super::Modeld).

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Returns the signature of a text.
pub(super) fn signature(text: &str) -> String {
    STANDARD.encode(digest(&SHA256, format!("modeld seals {text}").as_bytes()))
}

/// Returns the simulated encryption of a text, with its signature.
pub(super) fn encrypt(text: &str) -> String {
    format!("{}.{}", STANDARD.encode(text), signature(text))
}

/// Returns the text passed to [`encrypt`], if it is unmodified.
pub(super) fn decrypt(sealed: &str) -> Option<String> {
    let (content, seal) = sealed.split_once('.')?;
    let text = String::from_utf8(STANDARD.decode(content).ok()?).ok()?;
    (signature(&text) == seal).then_some(text)
}
