//! Tests with concurrent processes and with processes killed while writing.
//!
//! Each child process is this test binary, running only [`entry`], with its task in an environment variable.

use std::convert::Infallible;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::scratch_dir::{ScratchDir, names};
use crate::*;

/// Environment variable with the task: name, path and number, one per line.
const TASK_VARIABLE: &str = "WHARF_STORE_ERRAND";
const PROCESSES: u64 = 16;
const OPTIONS: JournalOptions = JournalOptions { max_bytes: 20_000, keep_files: 1000 };

#[test]
#[ignore = "the life of the processes that the other tests start"]
fn entry() {
    #[expect(clippy::disallowed_methods, reason = "this is the whole of another process")]
    let errand = std::env::var(TASK_VARIABLE).unwrap();
    let [name, path, number] = errand.lines().collect::<Vec<_>>().try_into().unwrap();
    let (path, number) = (Path::new(path), number.parse().unwrap());
    match name {
        "count" => (0..number).for_each(|_| count(&document(path))),
        "rewrite" => (0..number).for_each(|round| rewrite(path, round)),
        "cut" => cut(path, number),
        "append" => (0..number).for_each(|step| append(&Journal::open(path, OPTIONS).unwrap(), step)),
        "spill" => spill(path, number),
        "starve" => starve(path),
        "umask" => umask(path),
        _ => panic!("{name}"),
    }
}

fn start(through: &[&str], name: &str, path: &Path, number: u64) -> Child {
    let binary = std::env::current_exe().unwrap();
    let mut words = through.iter().map(AsRef::as_ref).chain([binary.as_os_str()]);
    Command::new(words.next().unwrap())
        .args(words)
        .args(["process_tests::entry", "--exact", "--ignored", "--nocapture"])
        .env(TASK_VARIABLE, format!("{name}\n{}\n{number}", path.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Runs one task in several processes concurrently.
fn run_many(processes: u64, name: &str, path: &Path, number: u64) {
    let children: Vec<Child> = (0..processes).map(|_| start(&[], name, path, number)).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

/// Runs an endless task, and kills it some time after it has reported `steps` steps.
fn run_and_kill(name: &str, path: &Path, steps: usize) {
    let mut child = start(&[], name, path, u64::MAX);
    let output = BufReader::new(child.stdout.take().unwrap());
    // Stays open until the kill: a child that cannot write its report exits.
    let mut reports = output.lines().map_while(Result::ok).filter(|line| line.contains("step"));
    assert_eq!(reports.by_ref().take(steps).count(), steps);
    // Not a wait: varies the point at which the child is killed.
    (0..getrandom::u32().unwrap() % 2000).for_each(|_| std::thread::yield_now());
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

fn document(path: &Path) -> Document {
    Document::new(path, DocumentPrivacy::Private).with_lock_timeout(Duration::from_secs(120))
}

fn load(path: &Path) -> Value {
    serde_json::from_slice(&document(path).load().unwrap().unwrap().bytes).unwrap()
}

fn count(document: &Document) {
    let add = |old: Option<&[u8]>| {
        let count = old.map_or(0, |old| serde_json::from_slice::<u64>(old).unwrap());
        Ok::<_, Infallible>(Some((count + 1).to_string().into_bytes()))
    };
    document.update(add).unwrap();
}

#[test]
fn concurrent_processes_lose_no_updates() {
    let scratch = ScratchDir::new();
    run_many(PROCESSES, "count", &scratch.path("count"), 25);
    assert_eq!(load(&scratch.path("count")), json!(PROCESSES * 25));
    assert_eq!(scratch.names(), ["count"]);
}

fn rewrite(path: &Path, round: u64) {
    let fill = "x".repeat(fill(round));
    document(path).write(json!({"round": round, "fill": fill}).to_string().as_bytes()).unwrap();
    println!("step");
}

fn fill(round: u64) -> usize {
    usize::try_from(round % 7 * 20_000).unwrap()
}

#[test]
fn document_is_intact_after_its_writer_is_killed() {
    let scratch = ScratchDir::new();
    let path = scratch.path("document");
    for steps in 1..=24 {
        run_and_kill("rewrite", &path, steps);
        let found = load(&path);
        let round = found["round"].as_u64().unwrap();
        assert!(round + 1 >= steps as u64, "{round} after {steps}");
        assert_eq!(found["fill"].as_str().unwrap().len(), fill(round));
    }
    // The next writer removes the leftovers of the killed ones.
    rewrite(&path, 1);
    assert_eq!(scratch.names(), ["document"]);
}

fn limit(resource: Resource, current: Option<u64>) {
    setrlimit(resource, Rlimit { current, ..getrlimit(resource) }).unwrap();
}

fn cut(path: &Path, bytes: u64) {
    // Avoids a core dump: SIGXFSZ ends this process.
    limit(Resource::Core, Some(0));
    limit(Resource::Fsize, Some(bytes));
    document(path).write(b"0123456789").unwrap();
}

#[test]
fn document_is_intact_after_a_write_cut_at_any_byte() {
    let scratch = ScratchDir::new();
    let path = scratch.path("document");
    for bytes in 0..=10 {
        document(&path).write(b"\"old\"").unwrap();
        let status = start(&[], "cut", &path, bytes).wait_with_output().unwrap().status;
        let content = fs::read_to_string(&path).unwrap();
        match bytes {
            10 => assert_eq!((status.success(), content.as_str()), (true, "0123456789")),
            _ => assert_eq!((status.signal().is_some(), content.as_str()), (true, "\"old\""), "{bytes}"),
        }
    }
    assert_eq!(scratch.names(), ["document"]);
}

fn append(journal: &Journal, step: u64) {
    journal.append(&json!({"step": step, "fill": "x".repeat(usize::try_from(step % 50).unwrap())})).unwrap();
    println!("step");
}

#[test]
fn concurrent_processes_lose_no_journal_entries() {
    let scratch = ScratchDir::new();
    run_many(PROCESSES, "append", &scratch.path("log"), 50);
    let verified = verify_journal(&scratch.path("log")).unwrap();
    assert_eq!((verified.entries, verified.first, verified.torn), (PROCESSES * 50, 0, 0));
    assert!(verified.files > 3);
}

#[test]
fn journal_survives_killed_writers() {
    let scratch = ScratchDir::new();
    let path = scratch.path("log");
    let mut reported = 0;
    for steps in 1..=16 {
        run_and_kill("append", &path, steps * 4);
        reported += steps as u64 * 4;
        append(&Journal::open(&path, OPTIONS).unwrap(), 0);
        reported += 1;
        assert!(verify_journal(&path).unwrap().entries >= reported);
    }
}

fn spill(path: &Path, number: u64) {
    let limits = SpillLimits { total_bytes: 50 << 10, ..SpillLimits::default() };
    let spill = SpillDir::open(path, limits).unwrap();
    for _ in 0..number {
        match spill.write(SpillExtension::Bin, &[0; 1 << 10][..]) {
            Ok(_) | Err(SpillError::Full { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn spill_quota_holds_across_processes() {
    let scratch = ScratchDir::new();
    run_many(8, "spill", &scratch.path("spill"), 20);
    assert_eq!(names(&scratch.path("spill")).len(), 50);
}

/// Simulates a full disk and then an exhausted file table. Both must yield errors and be recoverable.
fn starve(folder: &Path) {
    let document = document(&folder.join("document"));
    let journal = Journal::open(&folder.join("log"), OPTIONS).unwrap();
    let spill = SpillDir::open(&folder.join("spill"), SpillLimits::default()).unwrap();
    let large = "x".repeat(4000);
    for (resource, least) in [(Resource::Fsize, 1000), (Resource::Nofile, 3)] {
        document.write(b"old").unwrap();
        journal.append("old").unwrap();
        let before = getrlimit(resource).current;
        limit(resource, Some(least));
        assert!(matches!(document.write(large.as_bytes()), Err(DocumentSaveError::Io { .. })), "{resource:?}");
        assert!(matches!(journal.append(&large), Err(JournalAppendError::Io { .. })), "{resource:?}");
        assert!(
            matches!(spill.write(SpillExtension::Txt, large.as_bytes()), Err(SpillError::Io { .. })),
            "{resource:?}"
        );
        limit(resource, before);
        assert_eq!(document.load().unwrap().unwrap().bytes, b"old");
        assert_eq!(verify_journal(&folder.join("log")).unwrap().torn, 0);
        assert_eq!(names(&folder.join("spill")).len(), 0);
        document.write(large.as_bytes()).unwrap();
    }
    journal.append(&large).unwrap();
    spill.write(SpillExtension::Txt, large.as_bytes()).unwrap();
    assert_eq!(verify_journal(&folder.join("log")).unwrap().entries, 3);
}

#[test]
fn full_disk_and_file_limit_errors_are_recoverable() {
    let scratch = ScratchDir::new();
    // With SIGXFSZ ignored, the write fails with an error as on a full disk.
    let through = ["sh", "-c", r#"trap "" XFSZ; exec "$0" "$@""#];
    let output = start(&through, "starve", &scratch.path(""), 0).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(scratch.names(), ["document", "log", "log.head", "spill"]);
}

fn umask(folder: &Path) {
    rustix::process::umask(rustix::fs::Mode::empty());
    document(&folder.join("private/tokens")).write(b"x").unwrap();
    Document::new(folder.join("shared"), DocumentPrivacy::Shared).write(b"x").unwrap();
    Journal::open(&folder.join("private/log"), OPTIONS).unwrap().append("x").unwrap();
    let spill = SpillDir::open(&folder.join("spill"), SpillLimits::default()).unwrap();
    let spilled = spill.write(SpillExtension::Txt, &b"x"[..]).unwrap();
    fs::rename(spilled.path, folder.join("spill/file")).unwrap();
}

#[test]
fn private_files_stay_private_under_any_umask() {
    let scratch = ScratchDir::new();
    let output = start(&[], "umask", &scratch.path(""), 0).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    for (name, expected) in [
        ("private", 0o700),
        ("private/tokens", 0o600),
        ("private/log", 0o600),
        ("private/log.head", 0o600),
        ("spill", 0o700),
        ("spill/file", 0o600),
        ("shared", 0o666),
    ] {
        assert_eq!(fs::metadata(scratch.path(name)).unwrap().mode() & 0o7777, expected, "{name}");
    }
}
