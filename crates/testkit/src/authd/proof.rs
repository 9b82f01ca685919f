//! Verification of signed JWTs: DPoP proofs (RFC 9449) and client assertions (RFC 7523). ES256 only.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::random::sha256;

/// A parsed JWT with an unverified signature.
pub(super) struct SignedJwt<'a> {
    pub header: Value,
    pub claims: Value,
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> SignedJwt<'a> {
    pub fn read(text: &'a str) -> Option<SignedJwt<'a>> {
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let part = |text| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok();
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        Some(SignedJwt { header: part(header)?, claims: part(claims)?, signed, signature })
    }

    /// Reports whether the signature matches this key, an uncompressed X9.62 point.
    pub fn is_signed_by(&self, point: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        self.header["alg"] == "ES256" && key.verify(self.signed.as_bytes(), &self.signature).is_ok()
    }
}

/// The request a proof must match.
pub(super) struct ProofExpectation<'a> {
    pub method: &'a str,
    pub url: &'a str,
    /// The access token sent with the proof.
    pub token: Option<&'a str>,
    pub nonce: Option<&'a str>,
}

/// A verified proof.
#[derive(Debug)]
pub(super) struct VerifiedProof {
    /// Thumbprint of its key (RFC 7638).
    pub key: String,
    /// Unique id of the proof.
    pub id: String,
}

/// The reason a proof is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProofError {
    Invalid,
    /// The nonce is missing or outdated.
    Nonce,
}

/// Verifies a proof.
pub(super) fn verify_proof(proof: &str, expected: &ProofExpectation<'_>) -> Result<VerifiedProof, ProofError> {
    let statement = SignedJwt::read(proof).ok_or(ProofError::Invalid)?;
    let (header, claims) = (&statement.header, &statement.claims);
    let jwk = &header["jwk"];
    let is_signed = public_point(jwk).is_some_and(|point| statement.is_signed_by(&point));
    let is_about = claims["htm"] == expected.method && claims["htu"] == expected.url && claims["iat"].is_u64();
    let fits_token = expected.token.is_none_or(|token| claims["ath"] == sha256(token));
    let id = claims["jti"].as_str().filter(|id| !id.is_empty()).ok_or(ProofError::Invalid)?;
    if header["typ"] != "dpop+jwt" || jwk.get("d").is_some() || !is_signed || !is_about || !fits_token {
        return Err(ProofError::Invalid);
    }
    if expected.nonce.is_some_and(|nonce| claims["nonce"] != nonce) {
        return Err(ProofError::Nonce);
    }
    Ok(VerifiedProof { key: thumbprint(jwk), id: id.to_owned() })
}

fn public_point(jwk: &Value) -> Option<Vec<u8>> {
    let part = |name: &str| URL_SAFE_NO_PAD.decode(jwk[name].as_str()?).ok().filter(|bytes| bytes.len() == 32);
    let is_ours = jwk["kty"] == "EC" && jwk["crv"] == "P-256";
    is_ours.then_some([vec![4], part("x")?, part("y")?].concat())
}

/// Computes the RFC 7638 thumbprint: required members in lexicographic order without whitespace.
fn thumbprint(jwk: &Value) -> String {
    let members = ["crv", "kty", "x", "y"].map(|name| format!("\"{name}\":{}", jwk[name]));
    sha256(&format!("{{{}}}", members.join(",")))
}
