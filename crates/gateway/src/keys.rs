//! Keys of clients, stored as digests.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Maximum number of keys.
const MAX_KEYS: usize = 1000;

/// The keys of a gateway. A key is a principal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyTable {
    keys: Vec<ClientKey>,
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientKey {
    /// Name of the key, and of its principal.
    pub name: String,
    /// SHA-256 of the secret, in hexadecimal digits.
    pub digest: String,
    /// Profile of the clients. `None` offers everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// Reason for not adding a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyRefusal {
    /// A key with this name exists.
    NameInUse,
    /// There are too many keys.
    TooMany,
}

impl std::fmt::Display for KeyRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NameInUse => f.write_str("a key with this name exists"),
            Self::TooMany => write!(f, "there are {MAX_KEYS} keys already"),
        }
    }
}

impl std::error::Error for KeyRefusal {}

impl KeyTable {
    /// Returns the keys in the order they were added.
    pub fn keys(&self) -> &[ClientKey] {
        &self.keys
    }

    /// Adds the key with this secret.
    ///
    /// # Errors
    ///
    /// Fails if the name is in use, or there are too many keys.
    pub fn add(&mut self, name: &str, secret: &str, profile: Option<String>) -> Result<(), KeyRefusal> {
        if self.keys.iter().any(|key| key.name == name) {
            return Err(KeyRefusal::NameInUse);
        }
        if self.keys.len() >= MAX_KEYS {
            return Err(KeyRefusal::TooMany);
        }
        self.keys.push(ClientKey { name: name.to_owned(), digest: key_digest(secret), profile });
        Ok(())
    }

    /// Removes a key. Returns it if it existed.
    pub fn revoke(&mut self, name: &str) -> Option<ClientKey> {
        let at = self.keys.iter().position(|key| key.name == name)?;
        Some(self.keys.remove(at))
    }
}

/// Returns the digest by which a secret is stored and found.
pub fn key_digest(secret: &str) -> String {
    Sha256::digest(secret).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_digest_until_they_are_revoked() {
        let mut table = KeyTable::default();
        table.add("ci", "secret", Some("readonly".to_owned())).unwrap();
        assert_eq!(table.add("ci", "other", None), Err(KeyRefusal::NameInUse));
        let text = serde_json::to_string(&table).unwrap();
        assert!(!text.contains("secret"), "{text}");
        let mut read: KeyTable = serde_json::from_str(&text).unwrap();
        assert_eq!(read, table);
        assert_eq!(read.keys()[0].digest, key_digest("secret"));
        assert!(read.revoke("ci").is_some() && read.revoke("ci").is_none() && read.keys().is_empty());
    }
}
