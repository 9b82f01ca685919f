//! Device authorization grant (RFC 8628).

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until};
use wharf_spec::{Secret, UntrustedText};

use super::{GrantRequest, missing_endpoint};
use crate::auth_http::{check_url, display_url};
use crate::browser::{BrowserVisit, DeviceCodePage, VisitError};
use crate::error::{LoginError, TokenError};
use crate::login::AuthServerContext;
use crate::token::{TokenSet, successful_members};

const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Default polling interval, and its increment on `slow_down`.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Minimum and maximum polling interval in seconds.
const POLL_INTERVAL_RANGE: (u64, u64) = (1, 60);
/// Default and maximum lifetime of a code in seconds.
const CODE_LIFETIME: (u64, u64) = (600, 1800);
/// Maximum length of a user code in characters.
const MAX_USER_CODE_CHARS: usize = 64;
/// Maximum length of a device code in bytes.
const MAX_DEVICE_CODE_BYTES: usize = 16 << 10;

/// Shows a code, and polls until the user has entered it. Dropping the future stops the polling.
pub(crate) async fn request_with_device_code(
    attempt: &AuthServerContext<'_>,
    grant_request: &GrantRequest<'_>,
    visit: Box<dyn BrowserVisit>,
) -> Result<TokenSet, LoginError> {
    let begun = start_device_login(attempt, grant_request).await?;
    visit.show_code(&begun.page)?;
    let mut rhythm = PollSchedule::new(begun.interval, begun.page.lasts);
    loop {
        rhythm.wait().await?;
        let device_code = ("device_code", begun.device_code.reveal());
        match grant_request.request_tokens(attempt, vec![("grant_type", DEVICE_CODE), device_code]).await {
            Err(LoginError::Token(error)) => rhythm.on_error(error)?,
            other => return other,
        }
    }
}

/// A started device login.
struct PendingDeviceLogin {
    device_code: Secret,
    page: DeviceCodePage,
    interval: Duration,
}

async fn start_device_login(
    attempt: &AuthServerContext<'_>,
    grant_request: &GrantRequest<'_>,
) -> Result<PendingDeviceLogin, LoginError> {
    let endpoint = grant_request.server.device_authorization_endpoint.as_deref();
    let endpoint = endpoint.ok_or_else(|| missing_endpoint("device_authorization_endpoint"))?;
    let scope = grant_request.scope.map(|scope| ("scope", scope));
    let request = grant_request.token_request(attempt, endpoint, scope.into_iter().collect());
    let answer = request.send(attempt).await?;
    let said = successful_members(&answer).map_err(|error| request.redact_error(error, &answer))?;
    parse_device_response(said, attempt.server)
}

fn parse_device_response(said: &Map<String, Value>, server: &str) -> Result<PendingDeviceLogin, LoginError> {
    let text = |name: &str| said.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let lacks = |name: &str| TokenError::Unclear(format!("the response has no valid `{name}`"));
    let device_code = text("device_code").filter(|code| code.len() <= MAX_DEVICE_CODE_BYTES);
    let code = text("user_code").filter(|code| code.chars().count() <= MAX_USER_CODE_CHARS);
    // The older name, used by Google.
    let url = text("verification_uri").or_else(|| text("verification_url")).ok_or_else(|| lacks("verification_uri"))?;
    check_url(url).map_err(|flaw| LoginError::Unsafe(format!("`{}`: {flaw}", display_url(url))))?;
    let seconds = |name: &str| said.get(name).and_then(Value::as_u64).filter(|seconds| *seconds > 0);
    let page = DeviceCodePage {
        url: url.to_owned(),
        complete_url: text("verification_uri_complete").filter(|url| check_url(url).is_ok()).map(str::to_owned),
        code: UntrustedText::new(code.ok_or_else(|| lacks("user_code"))?).to_string(),
        server: server.to_owned(),
        lasts: seconds("expires_in").unwrap_or(CODE_LIFETIME.0).min(CODE_LIFETIME.1),
    };
    let interval = seconds("interval").map_or(DEFAULT_POLL_INTERVAL, |wait| {
        Duration::from_secs(wait.clamp(POLL_INTERVAL_RANGE.0, POLL_INTERVAL_RANGE.1))
    });
    Ok(PendingDeviceLogin {
        device_code: Secret::new(device_code.ok_or_else(|| lacks("device_code"))?),
        page,
        interval,
    })
}

/// Polling schedule until the code expires. Uses the monotonic clock.
struct PollSchedule {
    interval: Duration,
    end: Instant,
    lasts: u64,
}

impl PollSchedule {
    fn new(interval: Duration, lasts: u64) -> Self {
        Self { interval, end: Instant::now() + Duration::from_secs(lasts), lasts }
    }

    /// Waits until the next poll, or fails if the code expires first.
    async fn wait(&self) -> Result<(), LoginError> {
        let next = Instant::now() + self.interval;
        sleep_until(next.min(self.end)).await;
        if next > self.end { Err(self.expired_error()) } else { Ok(()) }
    }

    /// Handles an error response. Returns an error if polling cannot succeed. After an unclear response the interval
    /// doubles (RFC 8628, 3.5).
    fn on_error(&mut self, error: TokenError) -> Result<(), LoginError> {
        let TokenError::Refused { code, .. } = &error else {
            self.interval *= 2;
            return Ok(());
        };
        match code.as_str() {
            "authorization_pending" => Ok(()),
            "slow_down" => {
                self.interval += DEFAULT_POLL_INTERVAL;
                Ok(())
            }
            "access_denied" => Err(LoginError::Denied(None)),
            "expired_token" => Err(self.expired_error()),
            _ => Err(error.into()),
        }
    }

    fn expired_error(&self) -> LoginError {
        VisitError::TooLate(self.lasts).into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Simulates responses, one word each. Returns the times of the polls in seconds, and the result.
    async fn poll_with(lasts: u64, answers: &str) -> (Vec<u64>, Result<(), LoginError>) {
        let (begun, mut times, mut answers) = (Instant::now(), Vec::new(), answers.split_whitespace());
        let mut rhythm = PollSchedule::new(DEFAULT_POLL_INTERVAL, lasts);
        loop {
            if let Err(error) = rhythm.wait().await {
                return (times, Err(error));
            }
            times.push(begun.elapsed().as_secs());
            let error = match answers.next().unwrap_or("authorization_pending") {
                "tokens" => return (times, Ok(())),
                "unclear" => TokenError::Unclear("lost".to_owned()),
                code => TokenError::Refused { code: code.to_owned(), description: None, status: 400 },
            };
            if let Err(error) = rhythm.on_error(error) {
                return (times, Err(error));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn polling_respects_interval_and_slow_down() {
        for (answers, times) in [
            ("tokens", vec![5]),
            ("authorization_pending authorization_pending tokens", vec![5, 10, 15]),
            ("slow_down authorization_pending slow_down tokens", vec![5, 15, 25, 40]),
            ("unclear unclear tokens", vec![5, 15, 35]),
        ] {
            let (found, ended) = poll_with(600, answers).await;
            assert_eq!(found, times, "{answers}");
            assert!(ended.is_ok(), "{answers}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn o08_denied_or_expired_device_code_ends_the_login() {
        assert!(matches!(poll_with(600, "access_denied").await.1, Err(LoginError::Denied(None))));
        let ended = poll_with(600, "authorization_pending expired_token tokens").await;
        assert!(matches!(ended, (times, Err(LoginError::Visit(VisitError::TooLate(600)))) if times == [5, 10]));
        let refused = poll_with(600, "invalid_client tokens").await.1;
        assert!(
            matches!(refused, Err(LoginError::Token(TokenError::Refused { code, .. })) if code == "invalid_client")
        );
        let (times, ended) = poll_with(17, "").await;
        assert_eq!(times, [5, 10, 15]);
        assert!(matches!(ended, Err(LoginError::Visit(VisitError::TooLate(17)))));
    }

    #[test]
    fn t49_device_response_is_validated_and_limited() {
        let usual = json!({"device_code": "d", "user_code": "A\u{1b}B", "verification_uri": "https://as/d"});
        let with = |name: &str, value: Value| {
            let mut said = usual.clone();
            said[name] = value;
            parse_device_response(said.as_object().unwrap(), "notes")
        };
        let begun = with("other", json!(1)).unwrap();
        assert_eq!(
            (begun.page.code.as_str(), begun.page.lasts, begun.interval),
            ("A\\u{1b}B", 600, DEFAULT_POLL_INTERVAL)
        );
        for (lasts, expected) in [(json!(60), 60), (json!(-1), 600), (json!(0), 600), (json!(1e300), 600)] {
            assert_eq!(with("expires_in", lasts).unwrap().page.lasts, expected);
        }
        assert_eq!(with("expires_in", json!(u64::MAX)).unwrap().page.lasts, 1800);
        for (interval, expected) in [(json!(1), 1), (json!(0), 5), (json!(u64::MAX), 60), (json!("7"), 5)] {
            assert_eq!(with("interval", interval).unwrap().interval.as_secs(), expected);
        }
        let unsafe_url = with("verification_uri_complete", json!("javascript:x")).unwrap();
        assert_eq!(unsafe_url.page.complete_url, None);
        for (name, value) in [
            ("device_code", json!("")),
            ("device_code", json!("x".repeat(MAX_DEVICE_CODE_BYTES + 1))),
            ("user_code", json!("x".repeat(MAX_USER_CODE_CHARS + 1))),
            ("user_code", json!(7)),
            ("verification_uri", json!("http://example.org/d")),
            ("verification_uri", Value::Null),
        ] {
            assert!(with(name, value).is_err(), "{name}");
        }
    }
}
