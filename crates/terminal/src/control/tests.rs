use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;

use tokio::net::UnixStream;
use tokio::task::JoinSet;
use wharf_spec::Environment;

use super::lines::{MAX_LINE_BYTES, SocketLines};
use super::*;
use crate::failure::FailureKind;

fn identity(pid: u32, directory: &str) -> ProcessIdentity {
    let (version, configuration) = ("0".to_owned(), "usual".to_owned());
    ProcessIdentity { pid, directory: directory.to_owned(), version, configuration }
}

/// A temporary socket directory with helpers to open and find sockets.
struct SocketFixture {
    directory: tempfile::TempDir,
}

impl SocketFixture {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    fn open(&self, pid: u32, directory: &str) -> ControlSocket {
        let (control, serving) = ControlSocket::open_in(&self.path(), identity(pid, directory)).unwrap();
        tokio::spawn(serving);
        control
    }

    async fn find(&self, directory: &str) -> Option<RunningWharf> {
        RunningWharf::find_in(&self.path(), &identity(0, directory)).await
    }

    /// Sets the modification time far in the past.
    fn make_older(&self, name: &str) {
        use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
        let time = Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 };
        let times = Timestamps { last_access: time, last_modification: time };
        utimensat(CWD, self.path().join(name), &times, AtFlags::empty()).unwrap();
    }

    fn names(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.path()).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    }
}

#[tokio::test]
async fn request_reaches_the_host_owner_and_reply_returns() {
    let quay = SocketFixture::new();
    let mut control = quay.open(7, "/here");
    let mut remote = quay.find("/here").await.unwrap();
    assert_eq!(remote.pid, 7);
    let answering = async {
        for expected in [ControlRequest::List, ControlRequest::One("git".to_owned()), ControlRequest::Reload] {
            let request = control.next().await;
            assert_eq!(request.request, expected);
            request.succeed(json!({"items": [1]}));
        }
        control.next().await.fail(&Failure::usage("there is no run").with_hint("begin one"));
        drop(control.next().await);
    };
    let asking = async {
        for (method, params) in [("mcp.list", json!({})), ("mcp.get", json!({"id": "git"})), ("mcp.reload", json!({}))]
        {
            assert_eq!(remote.call(method, params).await.unwrap(), json!({"items": [1]}), "{method}");
        }
        let refused = remote.call("run.cancel", json!({})).await.unwrap_err();
        assert_eq!((refused.kind, refused.error.message.as_str()), (FailureKind::Usage, "there is no run"));
        assert_eq!(refused.hints, ["begin one"]);
        let dropped = remote.call("run.cancel", json!({})).await.unwrap_err();
        assert_eq!(dropped.error.message, "the request timed out or the host is shutting down");
    };
    tokio::join!(answering, asking);
}

/// Cancelling a run may end the program before the reply is sent.
#[tokio::test]
async fn pending_replies_are_flushed_after_close() {
    let quay = SocketFixture::new();
    let (mut control, serving) = ControlSocket::open_in(&quay.path(), identity(7, "/here")).unwrap();
    let serving = tokio::spawn(serving);
    let mut remote = quay.find("/here").await.unwrap();
    let answering = async {
        control.next().await.succeed(json!({"cancelled": true}));
        drop(control);
        serving.await.unwrap();
    };
    let ((), answer) = tokio::join!(answering, remote.call("run.cancel", json!({})));
    assert_eq!(answer.unwrap(), json!({"cancelled": true}));
}

#[tokio::test]
async fn socket_is_private_and_removed_on_drop() {
    let quay = SocketFixture::new();
    let control = quay.open(7, "/here");
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(quay.path()), mode(quay.path().join("7.sock"))), (0o700, 0o600));
    drop(control);
    assert_eq!(quay.names(), [""; 0]);
    assert!(quay.find("/here").await.is_none());
    std::fs::set_permissions(quay.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let refused = ControlSocket::open_in(&quay.path(), identity(7, "/here")).err().unwrap();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
}

#[tokio::test]
async fn newest_process_of_the_same_directory_is_found() {
    let quay = SocketFixture::new();
    let _elsewhere = quay.open(1, "/elsewhere");
    assert!(quay.find("/here").await.is_none());
    let _older = quay.open(2, "/here");
    let newer = quay.open(3, "/here");
    quay.make_older("2.sock");
    assert_eq!(quay.find("/here").await.unwrap().pid, 3);
    drop(newer);
    assert_eq!(quay.find("/here").await.unwrap().pid, 2);
    let other = ProcessIdentity { configuration: "other".to_owned(), ..identity(0, "/here") };
    assert!(RunningWharf::find_in(&quay.path(), &other).await.is_none());
}

#[tokio::test]
async fn stale_sockets_are_removed() {
    let quay = SocketFixture::new();
    let control = quay.open(7, "/here");
    // Bound and closed without removal, as after a SIGKILL.
    drop(std::os::unix::net::UnixListener::bind(quay.path().join("8.sock")).unwrap());
    std::fs::write(quay.path().join("notes.txt"), "").unwrap();
    assert!(quay.find("/here").await.is_some());
    let mut names = quay.names();
    names.sort();
    assert_eq!(names, ["7.sock", "notes.txt"]);
    drop(control);
    drop(std::os::unix::net::UnixListener::bind(quay.path().join("9.sock")).unwrap());
    let _again = quay.open(9, "/here");
    assert_eq!(quay.find("/here").await.unwrap().pid, 9);
}

/// Sends bytes and returns the error code of the response, or `None` without a response.
async fn error_code_for(quay: &SocketFixture, bytes: Vec<u8>) -> Option<i64> {
    let mut lines = SocketLines::new(UnixStream::connect(quay.path().join("7.sock")).await.unwrap());
    // The server may stop reading early.
    let _ = lines.send(bytes).await;
    let line = lines.next().await.ok()??;
    message::decode_response(&line).unwrap().err().map(|fault| fault.code)
}

#[tokio::test]
async fn invalid_requests_are_rejected() {
    let quay = SocketFixture::new();
    let _control = quay.open(7, "/here");
    for (text, expected) in [
        ("nonsense \u{1b}[31m", -32700),
        ("[1, 2]", -32600),
        (r#"{"id": 1, "method": "hello"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "method": "hello"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "mcp.rm"}"#, -32601),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "mcp.get", "params": [1]}"#, -32602),
    ] {
        assert_eq!(error_code_for(&quay, text.as_bytes().to_vec()).await, Some(expected), "{text}");
    }
    assert_eq!(error_code_for(&quay, vec![0xff, 0x00]).await, Some(-32700));
    // Rejected while reading; unread bytes may prevent the response from arriving.
    let oversized = error_code_for(&quay, vec![b' '; MAX_LINE_BYTES + (64 << 10)]).await;
    assert!(matches!(oversized, Some(-32600) | None), "{oversized:?}");
    assert!(quay.find("/here").await.is_some());
}

#[tokio::test]
async fn concurrent_clients_are_served() {
    let quay = SocketFixture::new();
    let mut control = quay.open(7, "/here");
    let mut callers = JoinSet::new();
    for _ in 0..20 {
        let path = quay.path();
        callers.spawn(async move {
            let mut remote = RunningWharf::find_in(&path, &identity(0, "/here")).await.unwrap();
            remote.call("mcp.list", json!({})).await.unwrap()
        });
    }
    let answering = async {
        for count in 0..20 {
            control.next().await.succeed(json!(count));
        }
    };
    let asking = async {
        let mut answers = Vec::new();
        while let Some(answer) = callers.join_next().await {
            answers.push(answer.unwrap().as_u64().unwrap());
        }
        answers.sort_unstable();
        answers
    };
    let ((), answers) = tokio::join!(answering, asking);
    assert_eq!(answers, (0..20).collect::<Vec<_>>());
}

#[test]
fn socket_directory_is_runtime_or_state_directory() {
    let login = tempfile::tempdir().unwrap();
    let state = PathBuf::from("/state/wharf");
    let found = |runtime: &str| {
        let env = vec![("XDG_RUNTIME_DIR".into(), runtime.into())];
        sockets::socket_directory(&Environment { env, ..Environment::default() }, Some(&state)).unwrap()
    };
    let own = login.path().to_str().unwrap();
    assert_eq!(found(own), login.path().join("wharf"));
    for other in ["", "run", "/nowhere/at/all"] {
        assert_eq!(found(other), state.join("run"), "{other}");
    }
    std::fs::set_permissions(own, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(found(own), state.join("run"));
    assert_eq!(sockets::socket_directory(&Environment::default(), None), None);
}
