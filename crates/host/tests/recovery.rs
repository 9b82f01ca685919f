//! Real processes, lost under the calls they were to answer: every call ends, and the server comes back by itself.
//!
//! The same binary is the tests, the server (`faultd …`) and, executed once more by the client itself, the guard.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test runner prints, starts servers and may panic"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use tokio::task::JoinSet;
use wharf::spec::{
    BackoffSettings, EnvValue, Environment, Fingerprint, LaunchCheck, LaunchRefusal, ReconnectPolicy, ServerEntry,
    ServerName, ServerSpec, StdioSpec, ToolId,
};
use wharf::{CallError, CallOptions, Event, EventDelivery, Host, HostError, RawJson, ServerState};
use wharf_testkit::faultd;
use wharf_testkit::oracle::{self, Ledger};

/// Calls under way when their server is lost.
const CALLS: usize = 200;
/// Far sooner than any of those calls would run out of time, and far later than any machine needs.
const SOON: Duration = Duration::from_secs(10);

fn main() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("faultd") {
        faultd::run(arguments)
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(lost("server killed", |scene| vec![scene.server()]));
    runtime.block_on(lost("guard killed", |_| oracle::children_of(own_pid())));
    runtime.block_on(lost("both killed", |scene| [vec![scene.server()], oracle::children_of(own_pid())].concat()));
    runtime.block_on(a_crash_loop_is_given_up_and_calls_err_at_once());
    runtime.block_on(an_approval_is_compared_before_every_start());
    println!("recovery: all passed");
}

/// What is killed under its calls comes back: each call ends once, none of them is made twice, the next one is answered.
async fn lost(case: &str, victims: fn(&Scene) -> Vec<i32>) {
    let scene = Scene::open("ok", BackoffSettings::default()).await;
    let calls = scene.under_way().await;
    let killed = Instant::now();
    for victim in victims(&scene) {
        match kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL) {
            // The end of the first victim may have ended the second.
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => panic!("{case}: {error}"),
        }
    }
    let ended = tokio::time::timeout(SOON, calls.join_all()).await.expect(case);
    assert_eq!(ended.len(), CALLS, "{case}");
    for end in &ended {
        assert!(matches!(end, Err(HostError::Call { error: CallError::OutcomeUnknown(_), .. })), "{case}: {end:?}");
    }
    assert_eq!(scene.echo("again").await.unwrap(), "again", "{case}");
    assert!(killed.elapsed() < SOON, "{case}: {:?}", killed.elapsed());
    let status = scene.host.status_of("one").unwrap();
    assert_eq!((status.state, status.restarts), (ServerState::Ready, 1), "{case}");
    let ledger = Ledger::read(&scene.ledger).unwrap();
    assert_eq!(ledger.duplicates(), Vec::<String>::new(), "{case}");
    assert_eq!(scene.arrived(), CALLS, "{case}");
    scene.close(case).await;
}

/// A server that exits whenever it is ready is started only so often.
async fn a_crash_loop_is_given_up_and_calls_err_at_once() {
    let case = "crash loop";
    let backoff = BackoffSettings { attempts: 2, base: Duration::from_millis(1), max: Duration::from_millis(1) };
    let scene = Scene::open("S03", backoff).await;
    let mut events = scene.host.events();
    while scene.host.status_of("one").unwrap().state != ServerState::Failed {
        let told = tokio::time::timeout(SOON, events.next()).await.expect(case);
        assert!(told.is_some(), "{case}: the host is gone");
        if let Some(EventDelivery::Event(told)) = told
            && let Event::State { last_error: Some(error), .. } = told.event
        {
            assert!(error.to_string().contains("exited with code 1"), "{case}: {error}");
        }
    }
    let starts = Ledger::read(&scene.ledger).unwrap().open_count("server/discover");
    assert_eq!(starts, 3, "{case}: once, and two attempts more");
    let asked = Instant::now();
    let refused = scene.echo("anybody").await;
    assert!(matches!(refused, Err(HostError::Unavailable { state: ServerState::Failed, .. })), "{case}: {refused:?}");
    assert!(asked.elapsed() < Duration::from_secs(1), "{case}: {:?}", asked.elapsed());
    scene.close(case).await;
}

/// After a crash, by a call and by hand: a server whose approval was withdrawn is not started by anything.
async fn an_approval_is_compared_before_every_start() {
    let case = "approval withdrawn";
    let approved = Arc::new(AtomicBool::new(true));
    let may = Arc::clone(&approved);
    let check = LaunchCheck::new(Fingerprint([7; 32]), move |program| {
        assert!(program.is_some(), "the program is named");
        if may.load(Ordering::SeqCst) { Ok(()) } else { Err(LaunchRefusal::NotApproved) }
    });
    let scene = Scene::open_checked("ok", BackoffSettings::default(), Some(check)).await;
    let starts = || Ledger::read(&scene.ledger).unwrap().open_count("server/discover");
    assert_eq!(scene.echo("one").await.unwrap(), "one");
    approved.store(false, Ordering::SeqCst);
    let mut events = scene.host.events();
    kill_process(Pid::from_raw(scene.server()).unwrap(), Signal::KILL).unwrap();
    while scene.host.status_of("one").unwrap().state != ServerState::Failed {
        tokio::time::timeout(SOON, events.next()).await.expect(case);
    }
    let error = scene.host.status_of("one").unwrap().last_error.unwrap();
    assert_eq!(error.to_string(), "server not started: not approved", "{case}");
    assert!(scene.echo("two").await.is_err() && scene.host.connect("one").await.is_err(), "{case}");
    assert_eq!(starts(), 1, "{case}");
    approved.store(true, Ordering::SeqCst);
    scene.host.connect("one").await.unwrap();
    assert_eq!((scene.echo("three").await.unwrap().as_str(), starts()), ("three", 2), "{case}");
    scene.close(case).await;
}

/// A host with one server, and what that server writes down.
struct Scene {
    host: Host,
    marker: String,
    ledger: PathBuf,
    /// Removed with the scene.
    _folder: tempfile::TempDir,
}

impl Scene {
    async fn open(fault: &str, backoff: BackoffSettings) -> Self {
        Self::open_checked(fault, backoff, None).await
    }

    async fn open_checked(fault: &str, backoff: BackoffSettings, launch_check: Option<LaunchCheck>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (ledger, marker) = (folder.path().join("ledger"), folder.path().display().to_string());
        let program = std::env::current_exe().unwrap().into();
        let mut spec = StdioSpec { program, launch_check, ..StdioSpec::default() };
        spec.args = ["faultd", "stdio", fault, "--phase", "ready", "--ledger"].map(Into::into).into();
        spec.args.push(ledger.clone().into());
        spec.env.push((oracle::MARKER.into(), EnvValue::Plain(marker.clone().into())));
        let mut entry = ServerEntry::new(name(), ServerSpec::Stdio(spec));
        entry.settings.reconnect = ReconnectPolicy::Backoff(backoff);
        let surroundings = Environment { env: std::env::vars_os().collect(), cwd: folder.path().to_owned() };
        let builder = Host::builder().servers([entry]).gate(Arc::new(wharf::tools::AllowAllGate));
        let host = builder.environment(surroundings).start().await.unwrap();
        Self { host, marker, ledger, _folder: folder }
    }

    /// Makes calls that take longer than anybody waits, and gives them once the server has all of them.
    async fn under_way(&self) -> JoinSet<Result<(), HostError>> {
        let mut calls = JoinSet::new();
        for number in 0..CALLS {
            let (host, tool) = (self.host.clone(), ToolId::new(&name(), "slow"));
            calls.spawn(async move {
                let arguments =
                    RawJson::from_value(&serde_json::json!({ "ms": 600_000, "nonce": format!("n{number}") })).unwrap();
                host.call(&tool, &arguments, CallOptions::default()).await.map(drop)
            });
        }
        let since = Instant::now();
        while self.arrived() < CALLS {
            assert!(since.elapsed() < SOON, "{} calls of {CALLS} have arrived", self.arrived());
            // The server reads in order: its answer means that it has read what came before.
            self.echo("there?").await.unwrap();
        }
        calls
    }

    /// Calls of `slow` that have reached a server.
    fn arrived(&self) -> usize {
        let ledger = Ledger::read(&self.ledger).unwrap();
        ledger.lines.iter().filter(|line| line.starts_with("call slow ")).count()
    }

    async fn echo(&self, text: &str) -> Result<String, HostError> {
        let arguments = RawJson::from_value(&serde_json::json!({ "text": text })).unwrap();
        let reply = self.host.call(&ToolId::new(&name(), "echo"), &arguments, CallOptions::default()).await?;
        Ok(reply.text().unwrap())
    }

    /// The server's process.
    fn server(&self) -> i32 {
        self.host.status_of("one").unwrap().connected.unwrap().pid.unwrap()
    }

    /// Closes the host and looks for what it may have left behind.
    async fn close(self, case: &str) {
        self.host.close().await;
        let gone = oracle::poll_until(SOON, || oracle::marked_processes(&self.marker).is_empty());
        assert!(gone, "{case}: {:?}", oracle::marked_processes(&self.marker));
        assert_eq!(oracle::children_of(own_pid()), Vec::<i32>::new(), "{case}");
        println!("recovery: {case}: ok");
    }
}

fn name() -> ServerName {
    ServerName::new("one").unwrap()
}

fn own_pid() -> i32 {
    std::process::id().cast_signed()
}
