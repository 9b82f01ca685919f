//! Credential headers of a request: the token, and the DPoP proof of a bound token.

use url::{Host, Url};
use wharf_net::{CredentialHeaders, HeaderValue, Method, header};

use super::state::ActiveLogin;
use crate::dpop::{DPOP_HEADER, DpopProofInput};
use crate::token::TokenSet;

/// Returns the credential headers, or `None` if there are no usable tokens.
pub(super) fn credential_headers(
    held: &ActiveLogin,
    method: &Method,
    url: &Url,
    nonce: Option<&str>,
    now: u64,
) -> Option<CredentialHeaders> {
    let tokens = held.kept.tokens.as_ref()?;
    let mut headers = vec![(header::AUTHORIZATION, authorization(tokens)?)];
    if tokens.is_bound() {
        let about =
            DpopProofInput { method: method.as_str(), url: url.as_str(), nonce, token: Some(&tokens.access), now };
        headers.push((DPOP_HEADER, held.key.as_ref()?.proof(&about).ok()?));
    }
    Some(CredentialHeaders { headers, serial: held.serial })
}

/// Reports whether there are tokens that a request can carry. A bound token requires its key.
pub(super) fn has_usable_tokens(held: &ActiveLogin) -> bool {
    let is_good = |tokens: &TokenSet| authorization(tokens).is_some() && (held.key.is_some() || !tokens.is_bound());
    held.kept.tokens.as_ref().is_some_and(is_good)
}

fn authorization(tokens: &TokenSet) -> Option<HeaderValue> {
    let scheme = if tokens.is_bound() { "DPoP" } else { "Bearer" };
    let mut value = HeaderValue::try_from(format!("{scheme} {}", tokens.access.reveal())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Reports whether the transport is confidential: https, or the local machine.
pub(super) fn is_confidential(url: &Url) -> bool {
    match (url.scheme(), url.host()) {
        ("https", _) => true,
        ("http", Some(Host::Domain(name))) => name == "localhost" || name.ends_with(".localhost"),
        ("http", Some(Host::Ipv4(address))) => address.is_loopback(),
        ("http", Some(Host::Ipv6(address))) => address.is_loopback(),
        _ => false,
    }
}
