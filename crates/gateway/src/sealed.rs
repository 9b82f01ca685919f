//! Strings that clients hold for the gateway. They can be read, and are valid, only here.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Maximum length of a sealed string that is opened.
const MAX_SEALED_CHARS: usize = 128 * 1024;

/// The key of one gateway process. Strings of an earlier process cannot be opened.
pub(crate) struct SealingKey(Option<LessSafeKey>);

impl SealingKey {
    /// Creates a random key. Without randomness the key seals nothing.
    pub fn random() -> Self {
        let mut bytes = [0; 32];
        let key = rand::fill(&mut bytes).and_then(|()| UnboundKey::new(&AES_256_GCM, &bytes));
        Self(key.ok().map(LessSafeKey::new))
    }

    /// Seals `content`. It can be opened with the same `binding` only.
    pub fn seal(&self, binding: &[u8], content: &[u8]) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        let mut text = content.to_vec();
        let key = self.0.as_ref()?;
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(binding), &mut text).ok()?;
        let mut sealed = nonce.to_vec();
        sealed.append(&mut text);
        Some(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens a sealed string. `None` if it was sealed elsewhere, for another binding, or changed since.
    pub fn open(&self, binding: &[u8], sealed: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(Some(sealed).filter(|sealed| sealed.len() <= MAX_SEALED_CHARS)?).ok()?;
        let (nonce, text) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.0.as_ref()?.open_in_place(nonce, Aad::from(binding), &mut text).ok()?;
        Some(opened.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_string_opens_with_its_key_and_binding_only() {
        let (key, other) = (SealingKey::random(), SealingKey::random());
        let sealed = key.seal(b"ada", b"content").unwrap();
        assert_eq!(key.open(b"ada", &sealed).unwrap(), b"content");
        assert!(key.open(b"bob", &sealed).is_none());
        assert!(other.open(b"ada", &sealed).is_none());
        assert_ne!(key.seal(b"ada", b"content").unwrap(), sealed, "no two are alike");
        assert!(!sealed.contains("content"));
    }

    #[test]
    fn changed_string_does_not_open() {
        let key = SealingKey::random();
        let sealed = key.seal(b"", b"content").unwrap();
        for index in 0..sealed.len() - 1 {
            let mut changed = sealed.clone().into_bytes();
            changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
            assert!(key.open(b"", &String::from_utf8(changed).unwrap()).is_none(), "{index}");
        }
        for nonsense in ["", "A", "not base64!", &"A".repeat(16), &"A".repeat(MAX_SEALED_CHARS + 1)] {
            assert!(key.open(b"", nonsense).is_none());
        }
    }
}
