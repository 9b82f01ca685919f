//! Signing of compact JWS (RFC 7515) with a PKCS #8 private key.

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, RsaEncoding, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;
use wharf_spec::{Secret, UntrustedText};

use crate::error::LoginError;

/// Default signature algorithm.
pub(crate) const DEFAULT_ALGORITHM: &str = "ES256";

/// A private key and its signature algorithm.
pub(crate) struct JwtSigner {
    algorithm: &'static str,
    key: JwtSigningKey,
}

enum JwtSigningKey {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair, &'static dyn RsaEncoding),
}

impl JwtSigner {
    /// Reads a key from PEM. Errors never contain parts of the key.
    pub fn from_pem(pem: &Secret, algorithm: Option<&str>) -> Result<Self, LoginError> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.reveal().as_bytes())
            .map_err(|_| client_auth_error("the private key is not PKCS #8 in PEM (`BEGIN PRIVATE KEY`)"))?;
        Self::from_der(der.secret_pkcs8_der(), algorithm.unwrap_or(DEFAULT_ALGORITHM))
    }

    fn from_der(der: &[u8], algorithm: &str) -> Result<Self, LoginError> {
        let ecdsa =
            |curve: &'static EcdsaSigningAlgorithm| EcdsaKeyPair::from_pkcs8(curve, der).map(JwtSigningKey::Ecdsa);
        let rsa =
            |padding: &'static dyn RsaEncoding| RsaKeyPair::from_pkcs8(der).map(|key| JwtSigningKey::Rsa(key, padding));
        let (algorithm, key) = match algorithm {
            "ES256" => ("ES256", ecdsa(&signature::ECDSA_P256_SHA256_FIXED_SIGNING)),
            "ES384" => ("ES384", ecdsa(&signature::ECDSA_P384_SHA384_FIXED_SIGNING)),
            "RS256" => ("RS256", rsa(&signature::RSA_PKCS1_SHA256)),
            "PS256" => ("PS256", rsa(&signature::RSA_PSS_SHA256)),
            "EdDSA" => ("EdDSA", Ed25519KeyPair::from_pkcs8(der).map(JwtSigningKey::Ed25519)),
            other => {
                return Err(client_auth_error(format!(
                    "unsupported signature algorithm `{}`",
                    UntrustedText::new(other).truncate(40)
                )));
            }
        };
        let key = key.map_err(|_| client_auth_error(format!("the private key does not fit {algorithm}")))?;
        Ok(Self { algorithm, key })
    }

    /// Creates an ES256 signer. `pair` must be on the curve P-256.
    pub fn es256(pair: EcdsaKeyPair) -> Self {
        Self { algorithm: DEFAULT_ALGORITHM, key: JwtSigningKey::Ecdsa(pair) }
    }

    /// Signs claims. `header` holds all header members except `alg`.
    pub fn sign(&self, mut header: Value, claims: &Value) -> Result<String, LoginError> {
        header["alg"] = self.algorithm.into();
        let statement = format!("{}.{}", base64url(header.to_string()), base64url(claims.to_string()));
        let signature = self
            .key
            .sign(statement.as_bytes())
            .map_err(|_| client_auth_error("signing with the private key failed"))?;
        Ok(format!("{statement}.{}", base64url(signature)))
    }
}

impl JwtSigningKey {
    fn sign(&self, statement: &[u8]) -> Result<Vec<u8>, Unspecified> {
        match self {
            Self::Ecdsa(pair) => Ok(pair.sign(&SystemRandom::new(), statement)?.as_ref().to_vec()),
            Self::Ed25519(pair) => Ok(pair.sign(statement).as_ref().to_vec()),
            Self::Rsa(pair, padding) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(*padding, &SystemRandom::new(), statement, &mut signature)?;
                Ok(signature)
            }
        }
    }
}

/// Encodes as base64url without padding.
pub(crate) fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns 256 random bits, base64url-encoded.
pub(crate) fn random_token() -> Result<String, LoginError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| client_auth_error(format!("no random numbers from the operating system: {error}")))?;
    Ok(base64url(bytes))
}

fn client_auth_error(why: impl Into<String>) -> LoginError {
    LoginError::Proof(why.into())
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{KeyPair as _, UnparsedPublicKey, VerificationAlgorithm};
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;

    fn pem(der: &[u8]) -> Secret {
        Secret::new(format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der)))
    }

    /// Signs with a key, and verifies the signature with its public key.
    fn check(algorithm: &str, der: &[u8], public: &[u8], verifier: &'static dyn VerificationAlgorithm) {
        let signer = JwtSigner::from_pem(&pem(der), Some(algorithm)).unwrap();
        let jwt = signer.sign(json!({"typ": "JWT", "kid": "k"}), &json!({"iss": "me"})).unwrap();
        let (statement, signature) = jwt.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        UnparsedPublicKey::new(verifier, public).verify(statement.as_bytes(), &signature).expect(algorithm);
        let parts = statement.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).unwrap());
        let parts: Vec<Value> = parts.map(|part| serde_json::from_slice(&part).unwrap()).collect();
        assert_eq!(parts, [json!({"alg": algorithm, "typ": "JWT", "kid": "k"}), json!({"iss": "me"})]);
    }

    fn ecdsa(algorithm: &str, curve: &'static EcdsaSigningAlgorithm, verifier: &'static dyn VerificationAlgorithm) {
        let pair = EcdsaKeyPair::generate(curve).unwrap();
        check(algorithm, pair.to_pkcs8v1().unwrap().as_ref(), pair.public_key().as_ref(), verifier);
    }

    #[test]
    fn signatures_of_every_algorithm_verify() {
        ecdsa("ES256", &signature::ECDSA_P256_SHA256_FIXED_SIGNING, &signature::ECDSA_P256_SHA256_FIXED);
        ecdsa("ES384", &signature::ECDSA_P384_SHA384_FIXED_SIGNING, &signature::ECDSA_P384_SHA384_FIXED);
        let pair = Ed25519KeyPair::generate().unwrap();
        check("EdDSA", pair.to_pkcs8v1().unwrap().as_ref(), pair.public_key().as_ref(), &signature::ED25519);
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
        let public = pair.public_key().as_ref();
        check("RS256", der.as_ref(), public, &signature::RSA_PKCS1_2048_8192_SHA256);
        check("PS256", der.as_ref(), public, &signature::RSA_PSS_2048_8192_SHA256);
    }

    #[test]
    fn t50_unusable_key_is_not_shown_in_the_error() {
        let pair = EcdsaKeyPair::generate(&signature::ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let good = pem(pair.to_pkcs8v1().unwrap().as_ref());
        for (key, algorithm) in [
            (Secret::new("hush"), None),
            (pem(b"hush"), None),
            (good.clone(), Some("ES384")),
            (good.clone(), Some("RS256")),
            (good.clone(), Some("none")),
            (good.clone(), Some("HS256")),
            (Secret::new(good.reveal().replace("PRIVATE", "PUBLIC")), None),
        ] {
            let error = JwtSigner::from_pem(&key, algorithm).err().expect("a key that cannot be used");
            assert!(matches!(&error, LoginError::Proof(said) if !said.contains("hush")), "{algorithm:?}: {error}");
        }
        assert!(JwtSigner::from_pem(&good, None).is_ok());
    }

    #[test]
    fn random_tokens_are_unique() {
        let drawn: std::collections::HashSet<_> = (0..1000).map(|_| random_token().unwrap()).collect();
        assert!(drawn.len() == 1000 && drawn.iter().all(|one| one.len() == 43));
    }
}
