//! What requests carry where somebody says who asks, and what is done when the server is not content: H05, T43.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use url::Url;
use wharf_net::{
    AuthFuture, AuthRecovery, AuthRejection, Authorizer, CredentialHeaders, HeaderMap, HeaderName, HeaderValue,
    HttpResponse, Method, Net, NotAuthorized, RequestCredentials, SendError, StatusCode, header,
};
use wharf_testkit::transport_faults::Endpoint;

use crate::served::{Http1Request, answer, answering};
use crate::{call, open, plain};

/// Carries the token of its serial number and a proof of its own for every try, and renews as often as it is told to.
#[derive(Default)]
struct Script {
    /// How often it renews before it gives up.
    renewals: u64,
    /// It has to look first, and this is what comes of it.
    looks: Option<Result<bool, NotAuthorized>>,
    serial: AtomicU64,
    proofs: AtomicU64,
    refused: Mutex<Vec<(u16, Option<u64>)>>,
    heard: Mutex<Vec<String>>,
}

impl Script {
    fn renewing(renewals: u64) -> Arc<Self> {
        Arc::new(Self { renewals, ..Self::default() })
    }

    fn looking(found: Result<bool, NotAuthorized>) -> Arc<Self> {
        Arc::new(Self { looks: Some(found), ..Self::default() })
    }

    fn carried(&self) -> CredentialHeaders {
        let serial = self.serial.load(Ordering::SeqCst);
        let proof = self.proofs.fetch_add(1, Ordering::SeqCst);
        let value = |text: String| HeaderValue::from_str(&text).unwrap();
        let headers = vec![
            (header::AUTHORIZATION, value(format!("DPoP token-{serial}"))),
            (HeaderName::from_static("dpop"), value(format!("proof-{proof}"))),
        ];
        CredentialHeaders { headers, serial }
    }

    fn refusals(&self) -> Vec<(u16, Option<u64>)> {
        self.refused.lock().unwrap().clone()
    }
}

impl Authorizer for Script {
    fn credentials(&self, _method: &Method, _url: &Url) -> RequestCredentials {
        match self.looks.clone() {
            None => RequestCredentials::Ready(self.carried()),
            Some(found) => {
                let carried = self.carried();
                RequestCredentials::Later(Box::pin(async move { found.map(|known| known.then_some(carried)) }))
            }
        }
    }

    fn on_response(&self, _: StatusCode, headers: &HeaderMap) {
        let nonce = headers.get("dpop-nonce").map(|nonce| nonce.to_str().unwrap().to_owned());
        self.heard.lock().unwrap().extend(nonce);
    }

    fn on_rejection(&self, refusal: AuthRejection) -> AuthFuture<Result<(), NotAuthorized>> {
        self.refused.lock().unwrap().push((refusal.status, refusal.serial));
        let renewed = self.serial.fetch_add(1, Ordering::SeqCst) < self.renewals;
        Box::pin(async move { if renewed { Ok(()) } else { Err(no(AuthRecovery::Login)) } })
    }
}

fn no(remedy: AuthRecovery) -> NotAuthorized {
    NotAuthorized { remedy, reason: "nobody is logged in".to_owned() }
}

/// What a request carried, in the words of [`Script`].
fn token_and_proof(request: &Http1Request) -> Shown {
    let value = |name: &str| {
        request.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    };
    (value("authorization").map(|value| value.replace("DPoP ", "")), value("dpop"))
}

/// A server that writes down what was carried, and answers by it.
fn guarded(judge: impl Fn(Option<&str>, &str) -> Vec<u8> + Send + Sync + 'static) -> (Endpoint, Seen) {
    let seen = Seen::default();
    let ours = seen.clone();
    let endpoint = answering(move |request| {
        let (token, proof) = token_and_proof(request);
        let answer = judge(token.as_deref(), request.path());
        ours.0.lock().unwrap().push((token, proof));
        answer
    });
    (endpoint, seen)
}

/// A token and a proof, as far as they were there.
type Shown = (Option<String>, Option<String>);

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Shown>>>);

impl Seen {
    fn tokens(&self) -> Vec<Option<String>> {
        self.0.lock().unwrap().iter().map(|(token, _)| token.clone()).collect()
    }

    fn proofs(&self) -> Vec<Option<String>> {
        self.0.lock().unwrap().iter().map(|(_, proof)| proof.clone()).collect()
    }
}

fn turned_away(status: u16, nonce: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} No\r\nDPoP-Nonce: {nonce}\r\nContent-Length: 4\r\n\r\nhush").into_bytes()
}

fn welcome() -> Vec<u8> {
    answer("Content-Length: 2\r\n", b"{}")
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

async fn authorized(script: &Arc<Script>, server: &Endpoint) -> Net {
    open().await.with_authorizer(script.clone(), &Url::parse(&plain(server.address())).unwrap())
}

async fn send(net: &Net, server: &Endpoint) -> Result<HttpResponse, SendError> {
    net.send(call(&plain(server.address()), "hello")).await
}

/// On one thread, so that the connection is back in the pool before the next request: on several that depends on the
/// scheduler.
#[tokio::test]
async fn request_is_retried_with_renewed_credentials() {
    for status in [401, 403] {
        let (server, seen) =
            guarded(move |token, _| if token == Some("token-2") { welcome() } else { turned_away(status, "n") });
        let script = Script::renewing(5);
        let response = send(&authorized(&script, &server).await, &server).await.unwrap();
        assert_eq!((response.status.as_u16(), response.not_authorized), (200, None), "{status}");
        assert_eq!(script.refusals(), [(status, Some(0)), (status, Some(1))]);
        assert_eq!(seen.tokens(), some(&["token-0", "token-1", "token-2"]));
        assert_eq!(server.connections(), 1, "what turns a request away is read, and the connection kept");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unrecoverable_401_has_reason_and_body() {
    let (server, _) = guarded(|_, _| turned_away(401, "n"));
    let script = Script::renewing(0);
    let mut response = send(&authorized(&script, &server).await, &server).await.unwrap();
    assert_eq!((response.status.as_u16(), response.not_authorized), (401, Some(no(AuthRecovery::Login))));
    assert_eq!(response.body.collect(100).await.unwrap(), "hush");
    assert_eq!((script.refusals().len(), server.requests()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn h05_retries_after_401_are_limited() {
    let (server, _) = guarded(|_, _| turned_away(401, "n"));
    let script = Script::renewing(u64::MAX);
    let response = send(&authorized(&script, &server).await, &server).await.unwrap();
    assert_eq!(response.status, 401);
    assert_eq!(response.not_authorized.unwrap().remedy, AuthRecovery::Reading);
    assert_eq!((script.refusals().len(), server.requests()), (6, 7));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_statuses_trigger_no_renewal() {
    for status in [200, 400, 404, 407, 500, 503] {
        let (server, _) = guarded(move |_, _| turned_away(status, "n"));
        let script = Script::renewing(5);
        let response = send(&authorized(&script, &server).await, &server).await.unwrap();
        assert_eq!((response.status.as_u16(), response.not_authorized), (status, None));
        assert_eq!((script.refusals().len(), server.requests()), (0, 1), "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn t43_other_origin_gets_no_credentials() {
    let (home, _) = guarded(|_, _| welcome());
    let (other, seen) = guarded(|_, _| turned_away(401, "n"));
    let script = Script::renewing(5);
    let response = send(&authorized(&script, &home).await, &other).await.unwrap();
    assert_eq!((response.status.as_u16(), response.not_authorized), (401, None));
    assert_eq!((seen.tokens(), script.refusals().len()), (vec![None], 0));
    assert_eq!(script.proofs.load(Ordering::SeqCst), 0, "the authorizer was asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn t43_redirect_gets_a_new_proof_on_same_origin_only() {
    let (canary, canary_seen) = guarded(|_, _| welcome());
    let elsewhere = plain(canary.address());
    let (server, seen) = guarded(move |_, path| match path {
        "/mcp" => sent_on("/next"),
        "/next" => sent_on(&elsewhere),
        _ => welcome(),
    });
    let script = Script::renewing(5);
    let error = send(&authorized(&script, &server).await, &server).await.err().unwrap();
    assert!(matches!(error, SendError::Redirected { .. }), "{error:?}");
    assert_eq!(seen.proofs(), some(&["proof-0", "proof-1"]));
    assert_eq!((canary_seen.tokens().len(), canary.connections()), (0, 0));
}

fn sent_on(location: &str) -> Vec<u8> {
    format!("HTTP/1.1 307 Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_is_observed_before_the_retry() {
    let (server, _) = guarded(|token, path| match (token, path) {
        (_, "/mcp") => sent_on("/next"),
        (Some("token-1"), _) => welcome(),
        _ => turned_away(401, "first"),
    });
    let script = Script::renewing(5);
    let response = send(&authorized(&script, &server).await, &server).await.unwrap();
    assert_eq!(response.status, 200);
    assert_eq!(*script.heard.lock().unwrap(), ["first"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn credential_lookup_is_awaited() {
    for (known, tokens) in [(true, some(&["token-0"])), (false, vec![None])] {
        let (server, seen) = guarded(|_, _| turned_away(400, "n"));
        let script = Script::looking(Ok(known));
        send(&authorized(&script, &server).await, &server).await.unwrap();
        assert_eq!(seen.tokens(), tokens);
        assert_eq!(
            script.heard.lock().unwrap().len(),
            tokens.iter().flatten().count(),
            "nothing carried, nothing heard"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_credential_lookup_sends_nothing() {
    for (remedy, may_pass) in [(AuthRecovery::Login, false), (AuthRecovery::Waiting, true)] {
        let (server, _) = guarded(|_, _| welcome());
        let script = Script::looking(Err(no(remedy.clone())));
        let error = send(&authorized(&script, &server).await, &server).await.err().unwrap();
        assert_eq!(error, SendError::NotAuthorized(no(remedy)));
        assert_eq!((error.is_certainly_unsent(), error.is_transient(), server.requests()), (true, may_pass, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_request_is_not_certainly_unsent() {
    let server = Endpoint::start(|mut guest| {
        use std::io::Write as _;
        // It hangs up on whoever comes again.
        if matches!(crate::served::receive(&mut guest), Ok(Some(_))) {
            let _ = guest.write_all(&turned_away(401, "n"));
            let _ = crate::served::receive(&mut guest);
        }
    });
    let server = server.unwrap();
    let script = Script::renewing(5);
    let error = send(&authorized(&script, &server).await, &server).await.err().unwrap();
    assert!(!error.is_certainly_unsent(), "{error:?}");
}
