//! Validation of token endpoint responses.

use serde_json::{Map, Value};
use wharf_spec::{Secret, UntrustedText};

use super::TokenSet;
use crate::auth_http::FetchedResponse;
use crate::error::TokenError;

/// Maximum length of a token in bytes.
const MAX_TOKEN_BYTES: usize = 64 << 10;
/// Maximum length of a scope in bytes.
const MAX_SCOPE_BYTES: usize = 16 << 10;
/// Maximum length of a quoted error description in characters.
const MAX_DESCRIPTION_CHARS: usize = 200;
/// Maximum length of an error code in characters.
const MAX_ERROR_CODE_CHARS: usize = 64;
/// Maximum lifetime of a token in seconds.
const MAX_LIFETIME_SECS: f64 = 365.0 * 86_400.0;

/// Reads tokens from the response to a request made at `asked_at`, in Unix milliseconds. Missing members are taken from
/// `before` (O04).
pub(crate) fn parse_tokens(
    answer: &FetchedResponse,
    asked_at: u64,
    before: Option<&TokenSet>,
) -> Result<TokenSet, TokenError> {
    let said = successful_members(answer)?;
    let lacks = |what: &str| TokenError::Unclear(format!("the response has no valid {what}"));
    let access = said.get("access_token").and_then(parse_access_token).ok_or_else(|| lacks("`access_token`"))?;
    let token_type = match present_member(said, "token_type") {
        Some(value) => value.as_str().filter(|name| is_known_token_type(name)),
        None => before.map(|before| before.token_type.as_str()),
    };
    let token_type = token_type.ok_or_else(|| lacks("`token_type`"))?.to_owned();
    let refresh = match present_member(said, "refresh_token") {
        // The previous refresh token is spent, even if the new one is unusable. Reuse would look like theft (RFC 9700,
        // 4.14.2).
        Some(value) => parse_refresh_token(value),
        None => before.and_then(|before| before.refresh.clone()),
    };
    let lasts = said.get("expires_in").and_then(parse_lifetime);
    let expires_at = lasts.map(|lasts| asked_at.saturating_add(lasts));
    let scope = said.get("scope").and_then(Value::as_str).filter(|scope| is_valid_scope_text(scope)).map(str::to_owned);
    let scope = scope.or_else(|| before?.scope.clone());
    Ok(TokenSet { access, refresh, expires_at, token_type, scope })
}

/// Returns the members of a successful response.
pub(crate) fn successful_members(answer: &FetchedResponse) -> Result<&Map<String, Value>, TokenError> {
    let said = answer.json.as_ref().and_then(Value::as_object);
    match said {
        // Some servers report errors with status 200.
        Some(said) if answer.status.is_success() && !said.contains_key("error") => Ok(said),
        _ => Err(parse_error(answer)),
    }
}

/// Reads an error response (RFC 6749, 5.2). `invalid_grant` ends a login, so it must come with the standard status.
/// Responses of an overloaded or failing server are not rejections.
pub(crate) fn parse_error(answer: &FetchedResponse) -> TokenError {
    let status = answer.status;
    let text = |name: &str| answer.json.as_ref()?.get(name)?.as_str().filter(|text| !text.is_empty());
    let code = text("error").filter(|_| !status.is_server_error() && status.as_u16() != 429);
    match code.filter(|code| *code != "invalid_grant" || matches!(status.as_u16(), 400 | 401)) {
        Some(code) => TokenError::Refused {
            code: UntrustedText::new(code).truncate(MAX_ERROR_CODE_CHARS).to_string(),
            description: text("error_description")
                .map(|said| UntrustedText::new(said).truncate(MAX_DESCRIPTION_CHARS).to_string()),
            status: status.as_u16(),
        },
        None => TokenError::Unclear(format!("HTTP {}", status.as_u16())),
    }
}

/// Returns a member that is neither null nor empty.
fn present_member<'a>(said: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    said.get(name).filter(|value| !value.is_null() && value.as_str() != Some(""))
}

/// Reads a refresh token. It goes into a form, and may contain spaces (RFC 6749, A.17).
fn parse_refresh_token(value: &Value) -> Option<Secret> {
    let text = value.as_str()?;
    let fits = text.len() <= MAX_TOKEN_BYTES && text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    fits.then(|| Secret::new(text))
}

/// Reads an access token. It goes into a header unchanged.
fn parse_access_token(value: &Value) -> Option<Secret> {
    let text = value.as_str()?;
    let fits = !text.is_empty() && text.len() <= MAX_TOKEN_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| Secret::new(text))
}

fn is_known_token_type(token_type: &str) -> bool {
    ["Bearer", "DPoP"].iter().any(|known| known.eq_ignore_ascii_case(token_type))
}

/// Reads a lifetime in milliseconds. Returns `None` if it is invalid: such a token is used until rejected (O17).
fn parse_lifetime(value: &Value) -> Option<u64> {
    let seconds = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    let sensible = seconds.is_finite() && seconds >= 1.0;
    sensible.then(|| (seconds.min(MAX_LIFETIME_SECS) * 1000.0) as u64)
}

fn is_valid_scope_text(text: &str) -> bool {
    let known = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    !text.trim().is_empty() && text.len() <= MAX_SCOPE_BYTES && text.bytes().all(known)
}
