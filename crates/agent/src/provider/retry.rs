//! Retry policy. Pure: the clock and the seed are parameters.

use std::time::{Duration, SystemTime};

use wharf_net::{HeaderMap, SendError, header};

use super::error::ModelError;

/// Maximum retries of one request.
const MAX_RETRIES: u32 = 5;
/// Initial backoff before jitter, and maximum backoff.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// Maximum `Retry-After` delay. A longer one ends the retries.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Upper bound of a parsed delay.
const MAX_PARSED_DELAY: Duration = Duration::from_secs(365 * 24 * 3600);

/// Retry state of one request.
#[derive(Debug)]
pub(super) struct RetryPolicy {
    retries: u32,
    dice: u64,
}

impl RetryPolicy {
    pub fn new(seed: u64) -> Self {
        Self { retries: 0, dice: seed | 1 }
    }

    /// Returns the delay before the next attempt, or `None` if the request must not be retried.
    pub fn next_delay(&mut self, error: &ModelError) -> Option<Duration> {
        // An API that cannot be connected to, or sends no data for minutes, does not recover by a retry.
        let passes = !matches!(error, ModelError::Silent(_)) && !is_connect_failure(error) && error.is_retryable();
        if !passes || self.retries == MAX_RETRIES {
            return None;
        }
        self.retries += 1;
        match error.retry_after() {
            Some(asked) => Some(asked).filter(|asked| *asked <= MAX_RETRY_AFTER),
            None => Some(self.add_jitter(INITIAL_BACKOFF.saturating_mul(1 << (self.retries - 1)).min(MAX_BACKOFF))),
        }
    }

    /// Adds jitter: returns between half of the delay and the full delay, so that clients do not retry simultaneously.
    fn add_jitter(&mut self, wait: Duration) -> Duration {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        let half = wait / 2;
        half + half * u32::try_from(self.dice % 1000).unwrap_or(0) / 1000
    }
}

fn is_connect_failure(error: &ModelError) -> bool {
    matches!(error, ModelError::Send(error) if !matches!(error, SendError::Broken(_)))
}

/// Parses a `Retry-After` header, in seconds or as a date.
pub(super) fn parse_retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.parse().map_or(MAX_PARSED_DELAY, Duration::from_secs).min(MAX_PARSED_DELAY));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default().min(MAX_PARSED_DELAY))
}

#[cfg(test)]
mod tests {
    use wharf_net::HeaderValue;
    use wharf_spec::Redactor;

    use super::*;
    use crate::provider::api_error::{ApiErrorMessage, UnredactedError};

    fn rejection(status: u16, body: &str, retry_after: Option<u64>) -> ModelError {
        ModelError::Refused { status, message: error_message(body), retry_after: retry_after.map(Duration::from_secs) }
    }

    fn error_message(body: &str) -> ApiErrorMessage {
        UnredactedError::from_body(body.as_bytes()).redact(&Redactor::default())
    }

    #[test]
    fn retry_delays_double_with_jitter_and_end() {
        for seed in 1..500u64 {
            let mut retries = RetryPolicy::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let error = rejection(529, "", None);
            let waits: Vec<Duration> = std::iter::from_fn(|| retries.next_delay(&error)).collect();
            assert_eq!(waits.len(), 5);
            for (wait, most) in waits.iter().zip([500, 1000, 2000, 4000, 8000]) {
                assert!((most / 2..=most).contains(&wait.as_millis()), "{wait:?} of {most}");
            }
        }
    }

    #[test]
    fn only_transient_errors_are_retried() {
        let seconds = |seconds| Some(Some(Duration::from_secs(seconds)));
        let overloaded = r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        for (error, expected) in [
            (rejection(429, "", Some(7)), seconds(7)),
            (rejection(429, "", Some(0)), seconds(0)),
            (rejection(503, "", Some(60)), seconds(60)),
            (rejection(503, "", Some(61)), None),
            (rejection(429, r#"{"error":{"code":"insufficient_quota"}}"#, None), None),
            (rejection(400, "", Some(1)), None),
            (rejection(404, "", None), None),
            (rejection(500, "", None), Some(None)),
            (rejection(500, r#"{"error":"the request exceeds the available context size"}"#, None), None),
            (ModelError::Failed(error_message(overloaded)), Some(None)),
            (ModelError::Failed(ApiErrorMessage::default()), None),
            (ModelError::Send(SendError::Refused("no".into())), None),
            (ModelError::Send(SendError::Broken("reset".into())), Some(None)),
            (ModelError::Incomplete, Some(None)),
            (ModelError::Silent(Duration::from_secs(1)), None),
        ] {
            let wait = RetryPolicy::new(7).next_delay(&error);
            assert_eq!(wait.is_some(), expected.is_some(), "{error:?}");
            if let Some(Some(exactly)) = expected {
                assert_eq!(wait, Some(exactly), "{error:?}");
            }
        }
    }

    #[test]
    fn retry_after_is_parsed_as_seconds_or_date() {
        let now = httpdate::parse_http_date("Sun, 15 Nov 2026 12:00:00 GMT").unwrap();
        for (text, expected) in [
            ("0", Some(0)),
            (" 12 ", Some(12)),
            ("99999999999999999999999999", Some(MAX_PARSED_DELAY.as_secs())),
            ("Sun, 15 Nov 2026 12:00:30 GMT", Some(30)),
            ("Sun, 15 Nov 2026 11:00:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_str(text).unwrap())]);
            assert_eq!(parse_retry_after(&headers, now), expected.map(Duration::from_secs), "{text}");
        }
        assert_eq!(parse_retry_after(&HeaderMap::new(), now), None);
    }
}
