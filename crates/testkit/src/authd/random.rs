//! Random words and digests.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// So many random bytes in hexadecimal.
pub(super) fn hex(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    aws_lc_rs::rand::fill(&mut random).expect("the system has random bytes");
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The SHA-256 of a text, as PKCE and DPoP write it.
pub(super) fn sha256(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
}
