//! The key of the argument digests in the audit log.
//!
//! Each state directory has one random key, created on first use. Equal arguments have equal digests in all logs of the
//! directory. Without the key a digest reveals nothing; with log and key, guesses can be verified.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use wharf_store::{Document, DocumentLoadError, DocumentPrivacy, DocumentSaveError, DocumentUpdateError};

const KEY_BYTES: usize = 32;
/// Block size of SHA-256, to which HMAC pads its key (RFC 2104).
const HMAC_BLOCK_BYTES: usize = 64;

/// The key of one state directory.
pub(crate) struct AuditKey([u8; KEY_BYTES]);

/// Errors of reading or creating the key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditKeyError {
    #[error(transparent)]
    Load(#[from] DocumentLoadError),
    #[error(transparent)]
    Save(#[from] DocumentSaveError),
    #[error("cannot generate the audit log key: {0}")]
    Random(getrandom::Error),
    #[error("{} must contain 64 hexadecimal digits (delete the file to generate a new key)", .0.display())]
    Malformed(PathBuf),
}

impl AuditKey {
    /// Reads the key, creating it if it does not exist. If several processes create one at once, all of them use the
    /// first.
    pub fn open(path: &Path) -> Result<Self, AuditKeyError> {
        let document = Document::new(path, DocumentPrivacy::Private).with_limit(1024);
        document
            .update(|old| match old {
                Some(_) => Ok(None),
                None => random_key().map(Some).map_err(AuditKeyError::Random),
            })
            .map_err(|error| match error {
                DocumentUpdateError::Edit(error) => error,
                DocumentUpdateError::Save(error) => error.into(),
            })?;
        let malformed = || AuditKeyError::Malformed(path.to_owned());
        let text = document.load()?.ok_or_else(malformed)?.bytes;
        decode_hex(text.trim_ascii_end()).map(Self).ok_or_else(malformed)
    }

    /// Creates a key that is not stored, for a log without a state directory. Digests are comparable within one run.
    pub fn generate() -> Result<Self, AuditKeyError> {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes).map_err(AuditKeyError::Random)?;
        Ok(Self(bytes))
    }

    /// Returns the HMAC-SHA-256 of the bytes in hexadecimal.
    pub fn digest(&self, bytes: &[u8]) -> String {
        let padded = |pad: u8| {
            let mut block = [pad; HMAC_BLOCK_BYTES];
            block.iter_mut().zip(self.0).for_each(|(byte, key)| *byte ^= key);
            block
        };
        let inner = Sha256::new().chain_update(padded(0x36)).chain_update(bytes).finalize();
        encode_hex(&Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize())
    }
}

fn random_key() -> Result<Vec<u8>, getrandom::Error> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{}\n", encode_hex(&bytes)).into_bytes())
}

fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn decode_hex(text: &[u8]) -> Option<[u8; KEY_BYTES]> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() == 2 * KEY_BYTES && text.is_ascii())?;
    let mut key = [0; KEY_BYTES];
    for (place, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn digests_are_hmac_sha_256() {
        // RFC 4231, test case 1. HMAC pads its 20-byte key with zeros.
        let mut key = [0; KEY_BYTES];
        key[..20].fill(0x0b);
        let expected = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
        assert_eq!(AuditKey(key).digest(b"Hi There"), expected);
    }

    #[test]
    fn key_is_private_random_and_persistent() {
        let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [one, two] = places.each_ref().map(|place| place.path().canonicalize().unwrap().join("audit.key"));
        let digest = |path: &Path| AuditKey::open(path).unwrap().digest(b"{}");
        assert_eq!(digest(&one), digest(&one));
        assert_ne!(digest(&one), digest(&two));
        assert_eq!(std::fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&one, "short").unwrap();
        assert!(matches!(AuditKey::open(&one), Err(AuditKeyError::Malformed(_))));
    }
}
