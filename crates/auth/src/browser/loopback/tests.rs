use std::sync::Mutex;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;

use super::*;

const STATE: &str = "the-right-state";

/// Opens no page, and signals when it was called.
struct RecordingOpener(Mutex<Option<oneshot::Sender<()>>>);

impl PageOpener for RecordingOpener {
    fn open(&self, page: &LoginPage) -> AuthFuture<Result<(), VisitError>> {
        assert_eq!(page.state, STATE);
        if let Some(opened) = self.0.lock().unwrap().take() {
            let _ = opened.send(());
        }
        Box::pin(async { Ok(()) })
    }
}

fn loopback(port: Option<u16>) -> (LoopbackBrowser, oneshot::Receiver<()>) {
    let (opened, is_open) = oneshot::channel();
    let open = Arc::new(RecordingOpener(Mutex::new(Some(opened))));
    let settings = AuthSettings { callback_port: port, ..AuthSettings::default() };
    (LoopbackBrowser::new(&settings, open), is_open)
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn failing_accept_is_retried_ten_times_a_second() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    // Every accept fails from now on.
    let same = std::os::fd::OwnedFd::from(listener.try_clone().unwrap());
    std::net::TcpStream::from(same).shutdown(std::net::Shutdown::Both).unwrap();
    let (path, hosts, state) = (String::new(), Vec::new(), STATE.to_owned());
    let door = Arc::new(CallbackCheck { path, hosts, state, is_taken: AtomicBool::new(false) });
    let mut serving = pin!(serve(TcpListener::from_std(listener).unwrap(), door, mpsc::channel(1).0));
    let mut times = 0;
    let counted = poll_fn(|context| {
        times += 1;
        if times > 100 { Poll::Ready(()) } else { serving.as_mut().poll(context) }
    });
    assert!(tokio::time::timeout(Duration::from_secs(1), counted).await.is_err(), "it spins");
    assert!(times >= 5, "{times}");
}

fn page() -> LoginPage {
    LoginPage {
        url: "https://as.example/authorize".to_owned(),
        state: STATE.to_owned(),
        server: "demo".to_owned(),
        issuer: "https://as.example".to_owned(),
        scope: None,
    }
}

/// Sends bytes to the callback address, and returns the response.
async fn send(redirect_uri: &str, request: &[u8]) -> String {
    let authority = redirect_uri.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap();
    let mut stream = TcpStream::connect(authority).await.unwrap();
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

async fn visit(redirect_uri: &str, query: &str) -> String {
    let (_, rest) = redirect_uri.split_once("://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    send(redirect_uri, format!("GET /{path}?{query} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await
}

/// A common attack without a CVE: a forged callback ends a login or is mistaken for its result.
#[tokio::test]
async fn t44_real_callback_succeeds_after_200_hostile_ones() {
    let (loopback, _is_open) = loopback(None);
    let visit_ready = loopback.prepare().await.unwrap();
    let redirect_uri = visit_ready.redirect_uri().to_owned();
    assert!(redirect_uri.starts_with("http://127.0.0.1:"), "{redirect_uri}");
    assert_eq!(redirect_uri.rsplit('/').next().unwrap().len(), 32);
    let going = tokio::spawn(visit_ready.open_and_wait(page()));
    for number in 0..200 {
        let answer = match number % 5 {
            0 => visit(&redirect_uri, &format!("code=forged&state=wrong{number}")).await,
            1 => visit(&redirect_uri, "code=forged").await,
            2 => visit(&redirect_uri, "error=access_denied&error_description=<script>").await,
            3 => send(&redirect_uri, b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").await,
            _ => send(&redirect_uri, b"\x16\x03\x01 no HTTP at all\r\n\r\n").await,
        };
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 40"), "{number}: {answer}");
        assert!(!going.is_finished() && !answer.contains("script"), "{number}: {answer}");
    }
    let answer = visit(&redirect_uri, &format!("code=real&state={STATE}")).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("You are logged in"), "{answer}");
    assert_eq!(going.await.unwrap().unwrap().code.as_deref(), Some("real"));
    let replay = visit(&redirect_uri, &format!("code=real&state={STATE}")).await;
    assert!(replay.starts_with("HTTP/1.1 409"), "{replay}");
}

/// Opens connections that send no complete request.
async fn crowd(redirect_uri: &str, count: usize, sent: &[u8]) -> Vec<TcpStream> {
    let authority = redirect_uri.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap();
    let mut crowd = Vec::new();
    for _ in 0..count {
        let Ok(mut stream) = TcpStream::connect(authority).await else {
            // The process is out of file descriptors: leave some for the callback.
            crowd.truncate(crowd.len().saturating_sub(100));
            assert!(crowd.len() > 161, "only {} connections", crowd.len());
            return crowd;
        };
        // The connection may already be closed.
        let _ = stream.write_all(sent).await;
        crowd.push(stream);
    }
    crowd
}

#[tokio::test]
async fn idle_connections_do_not_block_the_callback() {
    for (count, sent) in [(161, &b""[..]), (161, b"GET /"), (1000, b"")] {
        let (loopback, _is_open) = loopback(None);
        let ready = loopback.prepare().await.unwrap();
        let redirect_uri = ready.redirect_uri().to_owned();
        let going = tokio::spawn(ready.open_and_wait(page()));
        let crowd = crowd(&redirect_uri, count, sent).await;
        let query = format!("code=real&state={STATE}");
        let answer = tokio::time::timeout(Duration::from_secs(8), visit(&redirect_uri, &query)).await;
        let answer = answer.unwrap_or_else(|_| panic!("{count} connections keep the callback out"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(going.await.unwrap().unwrap().code.as_deref(), Some("real"));
        drop(crowd);
    }
}

#[tokio::test]
async fn t44_error_callback_ends_the_login_without_echo() {
    let (loopback, _is_open) = loopback(None);
    let ready = loopback.prepare().await.unwrap();
    let redirect_uri = ready.redirect_uri().to_owned();
    let going = tokio::spawn(ready.open_and_wait(page()));
    let query = format!("error=access_denied&error_description=%3Cscript%3E&state={STATE}");
    let answer = visit(&redirect_uri, &query).await;
    assert!(answer.contains("Login failed. See the terminal for details") && !answer.contains("script"), "{answer}");
    let returned = going.await.unwrap().unwrap();
    assert_eq!(returned.error.as_deref(), Some("access_denied"));
    assert_eq!(returned.error_description.as_deref(), Some("<script>"));
}

#[tokio::test]
async fn t44_endless_request_head_is_cut_off() {
    let (loopback, _is_open) = loopback(None);
    let ready = loopback.prepare().await.unwrap();
    let redirect_uri = ready.redirect_uri().to_owned();
    let going = tokio::spawn(ready.open_and_wait(page()));
    let endless = format!("GET /{} HTTP/1.1\r\n", "x".repeat(4 * MAX_REQUEST_HEAD_BYTES));
    let answer = send(&redirect_uri, endless.as_bytes()).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    assert!(!going.is_finished());
}

#[tokio::test]
async fn o09_busy_port_falls_back_to_another() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let (loopback, _is_open) = loopback(Some(port));
    let ready = loopback.prepare().await.unwrap();
    assert!(!ready.redirect_uri().contains(&format!(":{port}/")), "{}", ready.redirect_uri());
}

#[tokio::test]
async fn configured_free_port_is_used() {
    // Another process may take the port between the probe and the bind, but not every time.
    for _ in 0..20 {
        let found = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = found.local_addr().unwrap().port();
        drop(found);
        let (loopback, _is_open) = loopback(Some(port));
        if loopback.prepare().await.unwrap().redirect_uri() == format!("http://127.0.0.1:{port}/callback") {
            return;
        }
    }
    panic!("a port that was given is never used");
}

#[test]
fn preregistered_client_has_a_fixed_callback_path() {
    let of = |settings: &AuthSettings| LoopbackBrowser::new(settings, Arc::new(RecordingOpener(Mutex::new(None)))).path;
    let named = |id: &str| AuthSettings { client_id: Some(id.to_owned()), ..AuthSettings::default() };
    let described = AuthSettings { client_metadata_url: Some("https://c/".to_owned()), ..AuthSettings::default() };
    assert_eq!(of(&AuthSettings::default()), CallbackPath::Random);
    assert_eq!((of(&named("c")), of(&described)), (CallbackPath::Fixed, CallbackPath::Fixed));
}

#[tokio::test(start_paused = true)]
async fn o08_o20_login_without_callback_times_out() {
    let (loopback, is_open) = loopback(None);
    let began = Instant::now();
    let ready = loopback.prepare().await.unwrap();
    assert_eq!(ready.open_and_wait(page()).await, Err(VisitError::TooLate(300)));
    assert_eq!(began.elapsed().as_secs(), 300);
    assert!(is_open.await.is_ok(), "the page was never shown");
}

#[tokio::test]
async fn o08_declined_login_closes_the_port() {
    struct DecliningOpener;
    impl PageOpener for DecliningOpener {
        fn open(&self, _: &LoginPage) -> AuthFuture<Result<(), VisitError>> {
            Box::pin(async { Err(VisitError::Declined) })
        }
    }
    let loopback = LoopbackBrowser::new(&AuthSettings::default(), Arc::new(DecliningOpener));
    let ready = loopback.prepare().await.unwrap();
    let authority = ready.redirect_uri().strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    assert_eq!(ready.open_and_wait(page()).await, Err(VisitError::Declined));
    // After a decline the port is closed, possibly after the task has been polled.
    while TcpStream::connect(&authority).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

/// Prompts a user that never answers.
struct HangingOpener;

impl PageOpener for HangingOpener {
    fn open(&self, _: &LoginPage) -> AuthFuture<Result<(), VisitError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn callback_before_the_opener_returns_is_accepted() {
    let loopback = LoopbackBrowser::new(&AuthSettings::default(), Arc::new(HangingOpener));
    let ready = loopback.prepare().await.unwrap();
    let redirect_uri = ready.redirect_uri().to_owned();
    let going = tokio::spawn(ready.open_and_wait(page()));
    let answer = visit(&redirect_uri, &format!("code=real&state={STATE}")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(going.await.unwrap().unwrap().code.as_deref(), Some("real"));
}

#[tokio::test]
async fn unanswered_opener_times_out() {
    let mut loopback = LoopbackBrowser::new(&AuthSettings::default(), Arc::new(HangingOpener));
    loopback.max_wait = Duration::ZERO;
    let ready = loopback.prepare().await.unwrap();
    assert_eq!(ready.open_and_wait(page()).await.unwrap_err(), VisitError::TooLate(0));
}
