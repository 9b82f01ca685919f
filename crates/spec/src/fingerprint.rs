//! Digests of tool definitions and approvals.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A 256-bit digest of a tool definition or an approval, written as 64 hexadecimal digits. The caller chooses the
/// hashed content.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        from_hex(&text).map(Self).ok_or_else(|| D::Error::custom("a fingerprint must have 64 hexadecimal digits"))
    }
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (n, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * n..2 * n + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_is_64_hex_digits() {
        let text = format!("\"{}\"", "0aF9".repeat(16));
        let print: Fingerprint = serde_json::from_str(&text).unwrap();
        assert_eq!(print.0[..2], [0x0a, 0xf9]);
        assert_eq!(serde_json::to_string(&print).unwrap(), text.to_lowercase());
        for bad in ["\"\"", "\"0a\"", &text.replace('F', "g"), &text.replace('0', "+"), &text.replace("0a", "ä"), "7"]
        {
            assert!(serde_json::from_str::<Fingerprint>(bad).is_err(), "{bad}");
        }
    }
}
