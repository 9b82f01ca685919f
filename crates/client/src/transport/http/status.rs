//! Classification of HTTP error statuses for a call.

use std::time::{Duration, SystemTime};

use wharf_net::{HeaderMap, StatusCode, header};
use wharf_spec::UntrustedText;

use crate::engine::CallEffect;

/// Maximum delay a server may request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The action for an error status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusMeaning {
    /// Log in or request more permissions.
    Login,
    /// The call was not executed. Retry later.
    Later,
    /// The session has expired. The call was not executed.
    SessionExpired,
    /// The server rejected the call.
    Refused,
    /// The call may or may not have been executed.
    Unclear,
}

pub(super) fn classify_status(status: StatusCode, effect: CallEffect, in_session: bool) -> StatusMeaning {
    match status.as_u16() {
        401 | 403 => StatusMeaning::Login,
        404 if in_session => StatusMeaning::SessionExpired,
        429 => StatusMeaning::Later,
        // A gateway that returns 503 may have forwarded the request.
        503 if effect == CallEffect::Reads => StatusMeaning::Later,
        400..=499 => StatusMeaning::Refused,
        _ => StatusMeaning::Unclear,
    }
}

/// Returns the delay from the Retry-After header, in seconds or as a date, up to a maximum.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        // More digits than a number of seconds can have.
        Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => MAX_RETRY_AFTER,
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

/// Returns the server's authentication challenge, escaped.
pub(super) fn challenge(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::WWW_AUTHENTICATE)?;
    Some(UntrustedText::from_bytes(text.as_bytes()).truncate(300).to_string())
}

/// Adds up to 25 % jitter, so that clients do not retry at the same time.
pub(super) fn with_jitter(wait: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or_default();
    wait + wait.mul_f64(f64::from(random % 1000) / 4000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_net::HeaderValue;

    #[test]
    fn retry_after_is_parsed_and_capped() {
        let now = httpdate::parse_http_date("Sun, 15 Nov 2026 12:00:00 GMT").unwrap();
        for (text, expected) in [
            ("0", Some(0)),
            ("7", Some(7)),
            (" 7 ", Some(7)),
            ("1000000000", Some(60)),
            ("99999999999999999999999999", Some(60)),
            ("Sun, 15 Nov 2026 12:00:09 GMT", Some(9)),
            ("Sun, 15 Nov 2026 11:00:00 GMT", Some(0)),
            ("Sun, 15 Nov 2099 11:00:00 GMT", Some(60)),
            ("soon", None),
            ("-1", None),
            ("1.5", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_str(text).unwrap())]);
            assert_eq!(retry_after(&headers, now), expected.map(Duration::from_secs), "{text:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn status_codes_are_classified() {
        use CallEffect::{MayWrite, Reads};
        for (status, effect, in_session, expected) in [
            (401, Reads, false, StatusMeaning::Login),
            (403, MayWrite, true, StatusMeaning::Login),
            (404, MayWrite, true, StatusMeaning::SessionExpired),
            (404, MayWrite, false, StatusMeaning::Refused),
            (413, MayWrite, false, StatusMeaning::Refused),
            (429, MayWrite, false, StatusMeaning::Later),
            (503, Reads, false, StatusMeaning::Later),
            (503, MayWrite, false, StatusMeaning::Unclear),
            (500, Reads, false, StatusMeaning::Unclear),
            (504, MayWrite, true, StatusMeaning::Unclear),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(classify_status(status, effect, in_session), expected, "{status} {effect:?} {in_session}");
        }
    }
}
