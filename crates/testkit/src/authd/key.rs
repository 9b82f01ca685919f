//! Signing keys of clients that authenticate by key.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// A private key for ES256.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    pem: String,
}

impl SigningKey {
    /// Generates a key.
    #[expect(clippy::new_without_default, reason = "no two are the same")]
    pub fn new() -> SigningKey {
        let key = rcgen::KeyPair::generate().expect("the system has random bytes");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key.serialize_der());
        SigningKey { pair: pair.expect("rcgen makes keys of P-256"), pem: key.serialize_pem() }
    }

    /// Returns the private key: PKCS #8 in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the public key as a JWK.
    pub fn jwk(&self) -> Value {
        let point = self.point();
        let [x, y] = [&point[1..33], &point[33..]].map(|half| URL_SAFE_NO_PAD.encode(half));
        json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y })
    }

    /// Returns the public key as an uncompressed X9.62 point.
    pub(super) fn point(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }
}
