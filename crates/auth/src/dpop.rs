//! DPoP (RFC 9449): one key per login, one proof per request.

use std::sync::{Mutex, PoisonError};

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;
use wharf_net::{HeaderMap, HeaderName, HeaderValue};
use wharf_spec::Secret;

use crate::error::LoginError;
use crate::jwt::{JwtSigner, base64url, random_token};
use crate::vault::VaultError;

/// Header of the DPoP proof.
pub(crate) const DPOP_HEADER: HeaderName = HeaderName::from_static("dpop");
/// Header of the nonce for the next proof.
const DPOP_NONCE_HEADER: HeaderName = HeaderName::from_static("dpop-nonce");
/// Signature algorithm of the keys, as authorization servers list it.
pub(crate) const DPOP_ALGORITHM: &str = "ES256";
/// Maximum length of a nonce in bytes.
const MAX_NONCE_BYTES: usize = 1 << 10;
/// Maximum number of origins whose nonces are stored. The least recently updated is dropped first.
const MAX_ORIGINS: usize = 16;

/// A key that tokens are bound to.
pub(crate) struct DpopKey {
    signer: JwtSigner,
    public: Value,
    kept: Secret,
}

/// Input of a DPoP proof.
pub(crate) struct DpopProofInput<'a> {
    /// HTTP method of the request.
    pub method: &'a str,
    /// URL of the request, as written.
    pub url: &'a str,
    /// Last nonce received from that origin.
    pub nonce: Option<&'a str>,
    /// Access token of the request. `None` at a token endpoint.
    pub token: Option<&'a Secret>,
    /// Current time in Unix milliseconds.
    pub now: u64,
}

impl DpopKey {
    /// Generates a new key.
    pub fn generate() -> Result<Self, LoginError> {
        let failed = |_| LoginError::Proof("the DPoP key could not be generated".to_owned());
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(failed)?;
        let kept = Secret::new(STANDARD.encode(pair.to_pkcs8v1().map_err(failed)?.as_ref()));
        Ok(Self::from_key_pair(pair, kept))
    }

    /// Loads a stored key.
    pub fn load(kept: &Secret) -> Result<Self, LoginError> {
        let pair = STANDARD.decode(kept.reveal()).ok();
        let pair = pair.and_then(|der| EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).ok());
        let damaged = || VaultError::Damaged { what: "the stored DPoP key is damaged".to_owned() };
        Ok(Self::from_key_pair(pair.ok_or_else(damaged)?, kept.clone()))
    }

    fn from_key_pair(pair: EcdsaKeyPair, kept: Secret) -> Self {
        // Uncompressed point: a marker byte, then 32 bytes per coordinate.
        let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
        let public = json!({"kty": "EC", "crv": "P-256", "x": base64url(x), "y": base64url(y)});
        Self { signer: JwtSigner::es256(pair), public, kept }
    }

    /// Returns the key in its stored form: PKCS #8 in Base64.
    pub fn stored_form(&self) -> &Secret {
        &self.kept
    }

    /// Creates a proof for one request, unique on each call. Marked as sensitive.
    pub fn proof(&self, about: &DpopProofInput<'_>) -> Result<HeaderValue, LoginError> {
        let header = json!({"typ": "dpop+jwt", "jwk": self.public});
        let mut claims = json!({
            "jti": random_token()?,
            "htm": about.method,
            "htu": without_query(about.url),
            "iat": about.now / 1000,
        });
        if let Some(nonce) = about.nonce {
            claims["nonce"] = nonce.into();
        }
        if let Some(token) = about.token {
            claims["ath"] = base64url(Sha256::digest(token.reveal())).into();
        }
        let proof = self.signer.sign(header, &claims)?;
        let mut proof = HeaderValue::try_from(proof).map_err(|error| LoginError::Proof(error.to_string()))?;
        proof.set_sensitive(true);
        Ok(proof)
    }
}

/// Returns a URL without query and fragment, otherwise as written.
fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

/// DPoP nonces by origin. A server and its authorization server use separate instances, as the two may share an origin.
#[derive(Default)]
pub(crate) struct DpopNonces(Mutex<Vec<(String, String)>>);

impl DpopNonces {
    /// Stores the nonce from the headers of a response of this URL. Returns whether the nonce is new.
    pub fn store_from_headers(&self, url: &str, headers: &HeaderMap) -> bool {
        let nonce = headers.get(DPOP_NONCE_HEADER).and_then(|nonce| nonce.to_str().ok());
        let nonce = nonce.filter(|nonce| nonce.len() <= MAX_NONCE_BYTES && is_nonce(nonce));
        let (Some(nonce), Some(place)) = (nonce, origin_of(url)) else { return false };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.iter().position(|(known, _)| *known == place).map(|index| known.remove(index));
        if known.len() == MAX_ORIGINS {
            known.remove(0);
        }
        known.push((place, nonce.to_owned()));
        before.is_none_or(|(_, before)| before != nonce)
    }

    /// Returns the nonce for requests to this URL.
    pub fn nonce_for(&self, url: &str) -> Option<String> {
        let place = origin_of(url)?;
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(known, _)| *known == place).map(|(_, nonce)| nonce.clone())
    }
}

/// Character set of RFC 9449, 8.1.
fn is_nonce(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

fn origin_of(url: &str) -> Option<String> {
    Url::parse(url).ok().map(|url| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    const NOW: u64 = 1_700_000_000_999;

    fn about<'a>(url: &'a str, nonce: Option<&'a str>, token: Option<&'a Secret>) -> DpopProofInput<'a> {
        DpopProofInput { method: "POST", url, nonce, token, now: NOW }
    }

    /// Verifies the signature of a proof, and returns its header and claims.
    fn verified(proof: &HeaderValue) -> (Value, Value) {
        let (statement, signature) = proof.to_str().unwrap().rsplit_once('.').unwrap();
        let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
        let json = |text: &str| serde_json::from_slice::<Value>(&bytes(text)).unwrap();
        let (header, claims) = statement.split_once('.').unwrap();
        let (header, claims) = (json(header), json(claims));
        let coordinate = |name: &str| bytes(header["jwk"][name].as_str().unwrap());
        let point = [vec![4], coordinate("x"), coordinate("y")].concat();
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        key.verify(statement.as_bytes(), &bytes(signature)).unwrap();
        (header, claims)
    }

    #[test]
    fn proof_has_the_claims_of_rfc_9449() {
        let key = DpopKey::generate().unwrap();
        let proof = key.proof(&about("http://localhost:1/token?a=b", None, None)).unwrap();
        assert!(proof.is_sensitive());
        let (header, claims) = verified(&proof);
        assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
        let members: Vec<_> = header["jwk"].as_object().unwrap().keys().map(String::as_str).collect();
        assert!(members.len() == 4 && !members.contains(&"d"), "{members:?}");
        assert_eq!(claims["htm"], "POST");
        assert_eq!(claims["htu"], "http://localhost:1/token");
        assert_eq!(claims["iat"], NOW / 1000);
        assert!(claims.get("nonce").is_none() && claims.get("ath").is_none());
    }

    #[test]
    fn proof_contains_token_hash_and_nonce() {
        let key = DpopKey::generate().unwrap();
        // Token and digest are from RFC 9449, 7.1.
        let token = Secret::new("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU");
        let (_, claims) = verified(&key.proof(&about("https://s/mcp", Some("n"), Some(&token))).unwrap());
        assert_eq!(claims["ath"], "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
        assert_eq!(claims["nonce"], "n");
    }

    #[test]
    fn proofs_are_unique_and_stored_key_is_reusable() {
        let key = DpopKey::generate().unwrap();
        let loaded = DpopKey::load(key.stored_form()).unwrap();
        let (one, first) = verified(&key.proof(&about("https://s/", None, None)).unwrap());
        let (two, second) = verified(&loaded.proof(&about("https://s/", None, None)).unwrap());
        assert_eq!(one["jwk"], two["jwk"]);
        assert_ne!(first["jti"], second["jti"]);
        for damaged in ["", "hush", "aHVzaA=="] {
            let error = DpopKey::load(&Secret::new(damaged)).err().expect("no key");
            assert!(matches!(error, LoginError::Vault(VaultError::Damaged { .. })), "{damaged}");
        }
    }

    #[test]
    fn query_and_fragment_are_removed_verbatim() {
        for (url, expected) in [
            ("http://localhost:80", "http://localhost:80"),
            ("https://S/a/../b?c#d", "https://S/a/../b"),
            ("https://s/a#d?c", "https://s/a"),
        ] {
            assert_eq!(without_query(url), expected);
        }
    }

    #[test]
    fn nonces_are_stored_per_origin_within_the_limit() {
        let nonces = DpopNonces::default();
        let says = |nonce: &str| HeaderMap::from_iter([(DPOP_NONCE_HEADER, HeaderValue::try_from(nonce).unwrap())]);
        assert!(nonces.store_from_headers("https://a/token", &says("one")));
        assert!(!nonces.store_from_headers("https://a/other?x", &says("one")));
        assert!(nonces.store_from_headers("https://a/", &says("two")));
        assert!(!nonces.store_from_headers("https://a/", &HeaderMap::new()));
        assert_eq!(nonces.nonce_for("https://a:443/x").as_deref(), Some("two"));
        assert_eq!(nonces.nonce_for("https://a:444/"), None);
        for bad in ["", "a b", "a\"b", "a\\b", &"x".repeat(MAX_NONCE_BYTES + 1)] {
            assert!(!nonces.store_from_headers("https://b/", &says(bad)), "{bad}");
        }
        for n in 0..MAX_ORIGINS {
            nonces.store_from_headers(&format!("https://host{n}/"), &says("n"));
        }
        assert_eq!(nonces.nonce_for("https://a/"), None);
        assert_eq!(nonces.nonce_for("https://host0/").as_deref(), Some("n"));
    }
}
