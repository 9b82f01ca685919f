//! Reading what a token endpoint says: nothing in it is believed further than it is needed.

use serde_json::{Map, Value};
use wharf_spec::{Secret, Untrusted};

use super::Tokens;
use crate::error::TokenError;
use crate::fetch::Fetched;

/// Bytes of a token.
const MOST_TOKEN: usize = 64 << 10;
/// Bytes of a scope.
const MOST_SCOPE: usize = 16 << 10;
/// Characters of what is said about an error.
const MOST_SAID: usize = 200;
/// Characters of an error's code.
const MOST_CODE: usize = 64;
/// Seconds; no token is taken to last longer.
const YEAR: f64 = 365.0 * 86_400.0;

/// Reads tokens from an answer to what was asked at that time, in Unix milliseconds. What it leaves out is as it was
/// before, where there was something before (O04).
pub(crate) fn read(answer: &Fetched, asked_at: u64, before: Option<&Tokens>) -> Result<Tokens, TokenError> {
    let said = succeeded(answer)?;
    let lacks = |what: &str| TokenError::Unclear(format!("its answer has no {what} that can be used"));
    let access = said.get("access_token").and_then(token).ok_or_else(|| lacks("`access_token`"))?;
    let token_type = match given(said, "token_type") {
        Some(value) => value.as_str().filter(|name| is_known(name)),
        None => before.map(|before| before.token_type.as_str()),
    };
    let token_type = token_type.ok_or_else(|| lacks("`token_type`"))?.to_owned();
    let refresh = match given(said, "refresh_token") {
        // The one before is spent, whatever this one is: to show it again would look like theft (RFC 9700, 4.14.2).
        Some(value) => refresh_token(value),
        None => before.and_then(|before| before.refresh.clone()),
    };
    let lasts = said.get("expires_in").and_then(milliseconds);
    let expires_at = lasts.map(|lasts| asked_at.saturating_add(lasts));
    let scope = said.get("scope").and_then(Value::as_str).filter(|scope| is_scope(scope)).map(str::to_owned);
    let scope = scope.or_else(|| before?.scope.clone());
    Ok(Tokens { access, refresh, expires_at, token_type, scope })
}

/// The members of an answer that says yes.
pub(crate) fn succeeded(answer: &Fetched) -> Result<&Map<String, Value>, TokenError> {
    let said = answer.json.as_ref().and_then(Value::as_object);
    match said {
        // Some say no with 200.
        Some(said) if answer.status.is_success() && !said.contains_key("error") => Ok(said),
        _ => Err(refusal(answer)),
    }
}

/// What an answer says that does not say yes (RFC 6749, 5.2). `invalid_grant` ends a login, so it has to come as the
/// standard has it; and whoever is overloaded or broken has not refused.
pub(crate) fn refusal(answer: &Fetched) -> TokenError {
    let status = answer.status;
    let text = |name: &str| answer.json.as_ref()?.get(name)?.as_str().filter(|text| !text.is_empty());
    let code = text("error").filter(|_| !status.is_server_error() && status.as_u16() != 429);
    match code.filter(|code| *code != "invalid_grant" || matches!(status.as_u16(), 400 | 401)) {
        Some(code) => TokenError::Refused {
            code: Untrusted::new(code).shortened(MOST_CODE).to_string(),
            description: text("error_description").map(|said| Untrusted::new(said).shortened(MOST_SAID).to_string()),
            status: status.as_u16(),
        },
        None => TokenError::Unclear(format!("it answered {}", status.as_u16())),
    }
}

/// A member that says something.
fn given<'a>(said: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    said.get(name).filter(|value| !value.is_null() && value.as_str() != Some(""))
}

/// A refresh token goes into a form, and may have blanks in it (RFC 6749, A.17).
fn refresh_token(value: &Value) -> Option<Secret> {
    let text = value.as_str()?;
    let fits = text.len() <= MOST_TOKEN && text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    fits.then(|| Secret::new(text))
}

/// A token goes into a header as it is.
fn token(value: &Value) -> Option<Secret> {
    let text = value.as_str()?;
    let fits = !text.is_empty() && text.len() <= MOST_TOKEN && text.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| Secret::new(text))
}

fn is_known(token_type: &str) -> bool {
    ["Bearer", "DPoP"].iter().any(|known| known.eq_ignore_ascii_case(token_type))
}

/// How long a token lasts. Nothing where that makes no sense: such a token is used until it is refused (O17).
fn milliseconds(value: &Value) -> Option<u64> {
    let seconds = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    let sensible = seconds.is_finite() && seconds >= 1.0;
    sensible.then(|| (seconds.min(YEAR) * 1000.0) as u64)
}

fn is_scope(text: &str) -> bool {
    let known = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    !text.trim().is_empty() && text.len() <= MOST_SCOPE && text.bytes().all(known)
}
