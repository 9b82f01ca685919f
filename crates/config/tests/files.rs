//! What may be wrong with a file, its directory or the disk when it is edited: the cases C05 to C20 of the catalogue of
//! faults that are about files. C08 and C10 at their full size are in `torture`.
//!
//! Modes mean nothing to root, so some cases are tried by a process of an ordinary user: this test binary again, told to
//! run [`entry`] alone, with its errand in the environment.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use wharf_config::edit::{ConfigChange, ConfigFile, EditError, EditRefusal, remove_server, set_server};
use wharf_spec::ServerName;
use wharf_store::{DocumentLoadError, DocumentSaveError};

/// Holds the errand: what to do, the umask, the largest file and a path, each on a line.
const ERRAND: &str = "WHARF_CONFIG_ERRAND";
/// An ordinary user.
const NOBODY: u32 = 65534;
const OLD: &str = "{\n  // mine\n  \"mcpServers\": {\"a\": {\"command\": \"a\"}}\n}\n";

fn entry_of(command: &str) -> Map<String, Value> {
    json!({"command": command}).as_object().unwrap().clone()
}

fn edit(file: &ConfigFile, server: &str) -> Result<ConfigChange, EditError> {
    file.edit(|text| set_server(text, &ServerName::new(server).unwrap(), &entry_of(server)))
}

fn edit_at(path: &Path) -> Result<ConfigChange, EditError> {
    edit(&ConfigFile::for_user(path), "b")
}

/// What came of an edit, in a few words.
fn told(outcome: Result<ConfigChange, EditError>) -> String {
    match outcome {
        Ok(change) => format!("{change:?}"),
        Err(EditError::Store(DocumentSaveError::Load(DocumentLoadError::Unsafe(found)))) => {
            format!("unsafe: {}", found.flaw)
        }
        Err(EditError::Store(DocumentSaveError::Load(DocumentLoadError::NotAFile { .. }))) => "not a file".to_owned(),
        Err(EditError::Store(DocumentSaveError::Io { source, .. })) => format!("{:?}", source.kind()),
        Err(error) => error.to_string(),
    }
}

#[test]
#[ignore = "the life of the processes that the other tests start"]
fn entry() {
    #[expect(clippy::disallowed_methods, reason = "this is the whole of another process")]
    let errand = std::env::var(ERRAND).unwrap();
    let [what, umask, largest, path] = errand.lines().collect::<Vec<_>>().try_into().unwrap();
    rustix::process::umask(Mode::from_raw_mode(u32::from_str_radix(umask, 8).unwrap()));
    let current = Some(largest.parse().unwrap());
    setrlimit(Resource::Fsize, Rlimit { current, ..getrlimit(Resource::Fsize) }).unwrap();
    let path = Path::new(path);
    let outcome = match what {
        "user" => edit_at(path),
        "project" => edit(&ConfigFile::for_project(path, path.parent().unwrap()), "b"),
        _ => panic!("{what}"),
    };
    println!("outcome={}", told(outcome));
}

/// A process that edits a file.
struct Editor {
    what: &'static str,
    umask: &'static str,
    /// What a file may weigh; the rest of the disk is full.
    largest: u64,
    is_ordinary: bool,
}

const EDITOR: Editor = Editor { what: "user", umask: "022", largest: 1 << 40, is_ordinary: false };
const ORDINARY: Editor = Editor { is_ordinary: true, ..EDITOR };

impl Editor {
    fn edit(&self, path: &Path) -> String {
        let Self { what, umask, largest, .. } = self;
        let mut command = self.command();
        command.args(["entry", "--exact", "--ignored", "--nocapture"]).stdin(Stdio::null());
        let output = command.env(ERRAND, format!("{what}\n{umask}\n{largest}\n{}", path.display())).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let outcome = text.lines().find_map(|line| line.split_once("outcome=")).map(|(_, outcome)| outcome.to_owned());
        outcome.unwrap_or_else(|| panic!("{:?} {text} {}", output.status, String::from_utf8_lossy(&output.stderr)))
    }

    fn command(&self) -> Command {
        if self.is_ordinary && geteuid().is_root() {
            // Not by its path, which may lead through directories of root's.
            let mut command = Command::new("/proc/self/exe");
            command.uid(NOBODY).gid(NOBODY);
            return command;
        }
        // Ignored, the signal leaves the error that a full disk would give.
        let mut command = Command::new("sh");
        command.args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#]).arg(std::env::current_exe().unwrap());
        command
    }
}

/// A directory that belongs to whoever runs the ordinary editor, with a file in it.
struct Scratch(TempDir);

impl Scratch {
    fn new() -> Self {
        let scratch = Self(TempDir::new().unwrap());
        fs::write(scratch.path("config.json"), OLD).unwrap();
        scratch.own("");
        scratch.own("config.json");
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        let folder = self.0.path().canonicalize().unwrap();
        if name.is_empty() { folder } else { folder.join(name) }
    }

    /// Gives a file to the ordinary user.
    fn own(&self, name: &str) {
        if geteuid().is_root() {
            chown(self.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().mode() & 0o7777
    }

    fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), Permissions::from_mode(mode)).unwrap();
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The file is as it was, and nothing stands beside it.
    fn check_untouched(&self) {
        assert_eq!((self.text("config.json").as_str(), self.names()), (OLD, vec!["config.json".to_owned()]));
    }
}

#[test]
fn c05_bom_and_line_endings_are_preserved_utf16_rejected() {
    let scratch = Scratch::new();
    let path = scratch.path("config.json");
    fs::write(&path, format!("\u{feff}{}", OLD.replace('\n', "\r\n"))).unwrap();
    assert_eq!(edit_at(&path).unwrap(), ConfigChange::Added);
    let text = scratch.text("config.json");
    assert!(text.starts_with("\u{feff}{\r\n  // mine\r\n"), "{text:?}");
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    for (order, what) in [(u16::to_le_bytes as fn(u16) -> [u8; 2], "UTF-16"), (u16::to_be_bytes, "UTF-16")] {
        for start in ["\u{feff}", ""] {
            let bytes: Vec<u8> = format!("{start}{OLD}").encode_utf16().flat_map(order).collect();
            check_refused(&path, &bytes, what);
        }
    }
    check_refused(&path, b"{\"a\": \"\xff\"}", "another encoding");
}

fn check_refused(path: &Path, bytes: &[u8], expected: &str) {
    fs::write(path, bytes).unwrap();
    match edit_at(path).unwrap_err() {
        EditError::Refused { refusal: refusal @ EditRefusal::NotText { what }, .. } => {
            assert_eq!((what, refusal.fix()), (expected, "save the file as UTF-8"));
        }
        error => panic!("{error}"),
    }
    assert_eq!(fs::read(path).unwrap(), bytes);
}

#[test]
fn c01_c02_c19_invalid_file_is_reported_and_unmodified() {
    for (text, told) in [
        ("{\n  \"mcpServers\": {,}\n}", ":2:18: cannot be parsed: unexpected token in object"),
        ("{\"mcpServers\": {\"a\": {},\n \"a\": {}}}", ":2:2: `a` occurs twice, first at 1:17"),
        ("{\"version\": 2, \"mcp\": {\"servers\": {}}}", ":1:2: has `version: 2`, but this version supports only 1"),
        ("{\n\"schema\": 2}", ":2:1: has `schema: 2`, but this version supports only 1"),
    ] {
        let scratch = Scratch::new();
        fs::write(scratch.path("config.json"), text).unwrap();
        let error = edit_at(&scratch.path("config.json")).unwrap_err();
        assert_eq!(error.to_string(), format!("{}{told}", scratch.path("config.json").display()));
        assert_eq!((scratch.text("config.json").as_str(), scratch.names().len()), (text, 1));
    }
    let scratch = Scratch::new();
    let error = edit_at(&scratch.path("servers.yaml")).unwrap_err();
    assert!(error.to_string().ends_with("servers.yaml:1:1: is YAML, which Wharf can read but not edit"), "{error}");
    scratch.check_untouched();
}

#[test]
fn no_op_edit_creates_no_files() {
    let scratch = Scratch::new();
    let gone = |path| ConfigFile::for_user(path).edit(|text| remove_server(text, &ServerName::new("b").unwrap()));
    assert_eq!(gone(scratch.path("new/config.json")).unwrap(), ConfigChange::NotThere);
    assert_eq!(gone(scratch.path("config.json")).unwrap(), ConfigChange::NotThere);
    scratch.check_untouched();
}

#[test]
fn c08_concurrent_edits_are_all_applied() {
    let scratch = Scratch::new();
    let path = scratch.path("config.json");
    thread::scope(|scope| {
        for server in ["b", "c", "d", "e"] {
            let file = ConfigFile::for_user(&path);
            scope.spawn(move || assert_eq!(edit(&file, server).unwrap(), ConfigChange::Added));
        }
    });
    let text = scratch.text("config.json");
    assert!(["// mine", "\"a\"", "\"b\"", "\"c\"", "\"d\"", "\"e\""].iter().all(|part| text.contains(part)), "{text}");
}

#[test]
fn c09_concurrent_save_by_an_editor_is_not_overwritten() {
    let scratch = Scratch::new();
    let path = scratch.path("config.json");
    let mut calls = 0;
    let change = ConfigFile::for_user(&path).edit(|text| {
        calls += 1;
        if calls == 1 {
            fs::write(&path, OLD.replace("mine", "saved meanwhile")).unwrap();
        }
        set_server(text, &ServerName::new("b").unwrap(), &entry_of("b"))
    });
    assert_eq!((change.unwrap(), calls), (ConfigChange::Added, 2));
    let text = scratch.text("config.json");
    assert!(text.contains("saved meanwhile") && text.contains("\"b\""), "{text}");
}

#[test]
fn c12_full_disk_preserves_the_old_file() {
    let scratch = Scratch::new();
    for largest in [0, 1, 60] {
        assert_eq!(Editor { largest, ..EDITOR }.edit(&scratch.path("config.json")), "FileTooLarge");
        scratch.check_untouched();
    }
    assert_eq!(EDITOR.edit(&scratch.path("config.json")), "Added");
}

#[test]
fn c13_read_only_file_is_not_modified() {
    let scratch = Scratch::new();
    for (name, mode, back) in [("", 0o555, 0o755), ("config.json", 0o444, 0o644)] {
        scratch.set_mode(name, mode);
        let told = ORDINARY.edit(&scratch.path("config.json"));
        scratch.set_mode(name, back);
        assert!(told == "PermissionDenied" || told.starts_with("cannot lock"), "{name:?}: {told}");
        scratch.check_untouched();
    }
    assert_eq!(ORDINARY.edit(&scratch.path("config.json")), "Added");
}

#[test]
fn c14_symlink_is_preserved_and_its_target_edited() {
    let scratch = Scratch::new();
    symlink("config.json", scratch.path("link.json")).unwrap();
    scratch.set_mode("config.json", 0o640);
    assert_eq!(edit_at(&scratch.path("link.json")).unwrap(), ConfigChange::Added);
    assert!(scratch.text("config.json").contains("\"b\""));
    assert!(fs::symlink_metadata(scratch.path("link.json")).unwrap().is_symlink());
    assert_eq!(scratch.mode("config.json"), 0o640);
}

#[test]
fn c14_symlink_to_a_file_of_another_user_is_not_written() {
    if !geteuid().is_root() {
        return; // Nobody else can give a file away.
    }
    let scratch = Scratch::new();
    chown(scratch.path("config.json"), Some(0), Some(0)).unwrap();
    scratch.set_mode("config.json", 0o666);
    symlink("config.json", scratch.path("link.json")).unwrap();
    std::os::unix::fs::lchown(scratch.path("link.json"), Some(NOBODY), Some(NOBODY)).unwrap();
    let expected = format!("unsafe: owned by user 0, expected user {NOBODY}");
    // Neither by the user whose link it is, nor by root on the user's behalf.
    assert_eq!(ORDINARY.edit(&scratch.path("link.json")), expected);
    assert_eq!(EDITOR.edit(&scratch.path("link.json")), expected);
    assert_eq!((scratch.text("config.json").as_str(), scratch.names().len()), (OLD, 2));
}

#[test]
fn c14_project_file_outside_the_project_is_not_edited() {
    let scratch = Scratch::new();
    let project = scratch.path("project");
    fs::create_dir_all(project.join("real")).unwrap();
    fs::write(project.join("real/config.json"), OLD).unwrap();
    symlink("../config.json", project.join("out.json")).unwrap();
    symlink("real/config.json", project.join("in.json")).unwrap();
    symlink("../nothing.json", project.join("dangling.json")).unwrap();
    symlink("..", project.join(".wharf")).unwrap();
    for (name, is_outside) in [
        ("out.json", true),
        ("dangling.json", true),
        (".wharf/config.json", true),
        (".wharf/new.json", true),
        ("in.json", false),
        ("new/config.json", false),
    ] {
        let outcome = edit(&ConfigFile::for_project(project.join(name), &project), "b");
        assert_eq!(matches!(outcome, Err(EditError::Outside { .. })), is_outside, "{name}: {outcome:?}");
    }
    assert_eq!(
        (scratch.text("config.json").as_str(), scratch.names()),
        (OLD, vec!["config.json".to_owned(), "project".to_owned()])
    );
}

#[test]
fn c15_hard_links_and_special_files_are_refused() {
    let scratch = Scratch::new();
    fs::hard_link(scratch.path("config.json"), scratch.path("other.json")).unwrap();
    fs::create_dir(scratch.path("directory")).unwrap();
    assert!(Command::new("mkfifo").arg(scratch.path("pipe")).status().unwrap().success());
    symlink("/dev/zero", scratch.path("device")).unwrap();
    let names = scratch.names();
    for (name, expected) in
        [("config.json", "unsafe: 2 hard links"), ("directory", "not a file"), ("pipe", "not a file")]
    {
        assert_eq!(told(edit_at(&scratch.path(name))), expected, "{name}");
    }
    assert_eq!((scratch.text("config.json").as_str(), scratch.names()), (OLD, names));
}

#[test]
fn c20_file_modes_are_correct_under_any_umask() {
    for (what, umask, name, expected) in [
        ("user", "000", "new/config.json", 0o600),
        ("user", "077", "new/config.json", 0o600),
        ("project", "000", "new.json", 0o666),
        ("project", "077", "new.json", 0o600),
        ("user", "000", "config.json", 0o640),
        ("user", "077", "config.json", 0o640),
    ] {
        let scratch = Scratch::new();
        scratch.set_mode("config.json", 0o640);
        assert_eq!(Editor { what, umask, ..ORDINARY }.edit(&scratch.path(name)), "Added", "{what} {umask} {name}");
        assert_eq!(scratch.mode(name), expected, "{what} {umask} {name}");
        if name.starts_with("new/") {
            assert_eq!(scratch.mode("new"), 0o700, "{umask}");
        }
    }
}

#[test]
fn c20_root_preserves_file_ownership() {
    if !geteuid().is_root() {
        return; // Nobody else can.
    }
    let scratch = Scratch::new();
    scratch.set_mode("config.json", 0o600);
    for name in ["config.json", "new.json"] {
        assert_eq!(EDITOR.edit(&scratch.path(name)), "Added");
        let data = fs::metadata(scratch.path(name)).unwrap();
        assert_eq!((data.uid(), data.gid(), data.mode() & 0o777), (NOBODY, NOBODY, 0o600), "{name}");
        assert_eq!(ORDINARY.edit(&scratch.path(name)), "Unchanged");
    }
}
