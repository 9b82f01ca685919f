//! Random strings and digests.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Returns random bytes in hexadecimal.
pub(super) fn random_hex(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    aws_lc_rs::rand::fill(&mut random).expect("the system has random bytes");
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the SHA-256 of a text in unpadded base64url, as in PKCE and DPoP.
pub(super) fn sha256(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
}
