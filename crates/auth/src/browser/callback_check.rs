//! Decision on callback requests, and the response pages. Does no I/O.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;

use super::LoginCallback;

/// The expected callback, and whether it has arrived.
pub(super) struct CallbackCheck {
    /// Path of the callback.
    pub path: String,
    /// Valid `Host` values of this machine. Any other value indicates DNS rebinding.
    pub hosts: Vec<String>,
    /// The `state` that the callback must have.
    pub state: String,
    /// Set by the first accepted callback.
    pub is_taken: AtomicBool,
}

/// Decision on a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CallbackDecision {
    /// The expected callback.
    Welcome(LoginCallback),
    /// Rejected. The login continues.
    Away(StatusCode),
}

impl CallbackCheck {
    /// Checks a request. Of several with the right `state`, only the first is accepted.
    pub fn decide<B>(&self, request: &Request<B>) -> CallbackDecision {
        if request.uri().path() != self.path {
            return CallbackDecision::Away(StatusCode::NOT_FOUND);
        }
        match self.parse_callback(request) {
            None => CallbackDecision::Away(StatusCode::BAD_REQUEST),
            Some(_) if self.is_taken.swap(true, Ordering::AcqRel) => CallbackDecision::Away(StatusCode::CONFLICT),
            Some(returned) => CallbackDecision::Welcome(returned),
        }
    }

    fn parse_callback<B>(&self, request: &Request<B>) -> Option<LoginCallback> {
        let mut hosts = request.headers().get_all(HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok())?;
        let is_ours = hosts.next().is_none() && self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        if request.method() != Method::GET || !is_ours {
            return None;
        }
        LoginCallback::parse_query(request.uri().query()?).filter(|returned| returned.matches_state(&self.state))
    }
}

/// Headers that prevent loading, caching and referrers.
const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_TYPE, "text/html; charset=utf-8"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

const LOGGED_IN: &str = "You are logged in. You can close this page.";
const FAILED: &str = "Login failed. See the terminal for details.";
const ALREADY_FINISHED: &str = "This login has already finished.";
const UNEXPECTED_REQUEST: &str = "Unexpected request: this is not a valid login callback.";

/// Returns the page for a decision. Its text is constant and contains nothing of the request.
pub(super) fn response_page(verdict: &CallbackDecision) -> Response<Full<Bytes>> {
    let (status, text) = match verdict {
        CallbackDecision::Welcome(returned) if returned.error.is_none() => (StatusCode::OK, LOGGED_IN),
        CallbackDecision::Welcome(_) => (StatusCode::OK, FAILED),
        CallbackDecision::Away(StatusCode::CONFLICT) => (StatusCode::CONFLICT, ALREADY_FINISHED),
        CallbackDecision::Away(status) => (*status, UNEXPECTED_REQUEST),
    };
    let body = format!("<!doctype html><html lang=\"en\"><title>Wharf</title><p>{text}</p></html>\n");
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    const STATE: &str = "right";

    fn door() -> CallbackCheck {
        CallbackCheck {
            path: "/callback/x".to_owned(),
            hosts: ["127.0.0.1:7", "localhost:7"].map(str::to_owned).to_vec(),
            state: STATE.to_owned(),
            is_taken: AtomicBool::new(false),
        }
    }

    fn request(line: &str, host: &str) -> Request<()> {
        let (method, target) = line.split_once(' ').unwrap();
        Request::builder().method(method).uri(target).header(HOST, host).body(()).unwrap()
    }

    #[test]
    fn t44_only_the_matching_callback_is_accepted() {
        let door = door();
        for (line, host, status) in [
            ("GET /", "127.0.0.1:7", 404),
            ("GET /callback", "127.0.0.1:7", 404),
            ("GET /callback/x/", "127.0.0.1:7", 404),
            ("GET /favicon.ico", "127.0.0.1:7", 404),
            ("GET /callback/x", "127.0.0.1:7", 400),
            ("GET /callback/x?code=c", "127.0.0.1:7", 400),
            ("GET /callback/x?code=c&state=", "127.0.0.1:7", 400),
            ("GET /callback/x?code=c&state=wrong", "127.0.0.1:7", 400),
            ("GET /callback/x?code=c&state=right&state=right", "127.0.0.1:7", 400),
            ("GET /callback/x?state=right", "127.0.0.1:7", 400),
            ("GET /callback/x?error=access_denied", "127.0.0.1:7", 400),
            ("GET /callback/x?error=access_denied&state=wrong", "127.0.0.1:7", 400),
            ("POST /callback/x?code=c&state=right", "127.0.0.1:7", 400),
            ("HEAD /callback/x?code=c&state=right", "127.0.0.1:7", 400),
            ("GET /callback/x?code=c&state=right", "127.0.0.1:8", 400),
            ("GET /callback/x?code=c&state=right", "evil.example:7", 400),
            ("GET /callback/x?code=c&state=right", "127.0.0.1", 400),
            ("GET /callback/x?code=c&state=right", "", 400),
        ] {
            let verdict = door.decide(&request(line, host));
            assert_eq!(verdict, CallbackDecision::Away(StatusCode::from_u16(status).unwrap()), "{line} at {host}");
        }
        let right = request("GET /callback/x?code=c&state=right&iss=https://i", "LocalHost:7");
        let CallbackDecision::Welcome(returned) = door.decide(&right) else { panic!("it was turned away") };
        assert_eq!((returned.code.as_deref(), returned.iss.as_deref()), (Some("c"), Some("https://i")));
        assert_eq!(door.decide(&right), CallbackDecision::Away(StatusCode::CONFLICT));
    }

    #[tokio::test]
    async fn t44_response_pages_echo_and_load_nothing() {
        let hostile = "GET /callback/x?error=%3Cscript%3E&error_description=%3Cscript%3E&state=right";
        for verdict in [
            door().decide(&request(hostile, "localhost:7")),
            door().decide(&request("GET /<script>".replace(['<', '>'], "%3C").as_str(), "localhost:7")),
            CallbackDecision::Away(StatusCode::CONFLICT),
        ] {
            let response = response_page(&verdict);
            let headers = response.headers().clone();
            assert!(HEADERS.iter().all(|(name, value)| headers[name] == *value));
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert!(!std::str::from_utf8(&body).unwrap().contains("script"), "{verdict:?}");
        }
    }
}
