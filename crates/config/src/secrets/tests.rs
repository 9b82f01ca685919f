//! Tests with fake programs on a temporary search path, and a temporary file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use wharf_testkit::test_home::TestHome;

use super::keyring::KeyringKind;
use super::*;

/// A fake `secret-tool` that stores each secret in a file.
const SECRET_TOOL: &str = r#"#!/bin/sh
echo "$@" >>"$STORE/arguments"
case "$1" in
lookup) exec cat "$STORE/$5" 2>/dev/null ;;
store) exec cat >"$STORE/$7" ;;
clear) exec rm "$STORE/$5" ;;
esac
"#;
/// A fake `security`, which reads commands with secrets from its input.
const SECURITY: &str = r#"#!/bin/sh
echo "$@" >>"$STORE/arguments"
case "$1" in
find-generic-password) exec cat "$STORE/$5" 2>/dev/null ;;
delete-generic-password) exec rm "$STORE/$5" ;;
-i) read -r add update s service a account x digits
    test "$add $update $s $service $a $x" = "add-generic-password -U -s wharf -a -X" || exit 2
    octal= ; while [ -n "$digits" ]; do
      rest=${digits#??}; octal="$octal\\$(printf %o "0x${digits%"$rest"}")"; digits=$rest
    done
    printf "$octal" >"$STORE/$account" ;;
esac
"#;

struct SecretTestMachine {
    home: TestHome,
}

impl SecretTestMachine {
    fn new() -> Self {
        let machine = Self { home: TestHome::new() };
        fs::create_dir(machine.path("store")).unwrap();
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path(name)
    }

    /// Puts a program on the search path.
    fn install(&self, name: &str, script: &str) {
        self.home.write_program(Path::new("bin").join(name), script);
    }

    fn environment(&self) -> Environment {
        let path = format!(".:{}:/usr/bin:/bin", self.path("bin").display());
        let env = [("PATH", path), ("STORE", self.path("store").display().to_string())];
        Environment { env: env.map(|(name, value)| (name.into(), value.into())).to_vec(), cwd: self.path("project") }
    }

    fn store(&self) -> SecretStore {
        SecretStore::new(self.path("config/secrets.json"), self.environment())
    }

    fn command(&self, script: &str) -> SecretStore {
        self.store().with_command(["sh", "-c", script, "{name}"].map(str::to_owned).to_vec())
    }
}

fn check(found: Result<ResolvedSecret, SecretError>, value: &str, from: &SecretOrigin) {
    let found = found.unwrap();
    assert_eq!((found.value.reveal(), &found.from), (value, from));
}

#[test]
fn command_runs_without_a_shell() {
    let machine = SecretTestMachine::new();
    machine.install("pass", "#!/bin/sh\nprintf '%s|' \"$#\" \"$@\"\n");
    let words = ["pass", "show", "wharf/{name}", "{name} $(id) `id`"].map(str::to_owned).to_vec();
    let found = machine.store().with_command(words).lookup("a.b");
    check(found, "3|show|wharf/a.b|a.b $(id) `id`|", &SecretOrigin::Command);
}

#[test]
fn one_trailing_newline_is_removed() {
    let machine = SecretTestMachine::new();
    for (script, expected) in [
        ("echo value", "value"),
        ("printf value", "value"),
        ("printf 'value\\r\\n'", "value"),
        ("printf 'value\\n\\n'", "value\n"),
        ("printf ' value '", " value "),
        ("echo $0", "name"),
    ] {
        check(machine.command(script).lookup("name"), expected, &SecretOrigin::Command);
    }
}

#[test]
fn command_failure_is_reported_without_its_output() {
    let machine = SecretTestMachine::new();
    for (script, expected) in [
        ("echo hunter2; printf 'not\\033 here' >&2; exit 3", "`sh` failed (exit status: 3): not\\u{1b} here"),
        ("echo hunter2; exit 1", "`sh` failed (exit status: 1)"),
        ("echo hunter2; kill -9 $$", "`sh` failed (signal: 9 (SIGKILL))"),
        ("true", "the output of `sh` is empty"),
        ("printf 'hunter2\\377'", "the output of `sh` is not UTF-8"),
        ("while :; do echo hunter2 hunter2 hunter2 hunter2; done", "the output of `sh` is longer than 64 KiB"),
    ] {
        let error = machine.command(script).lookup("name").unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(!format!("{error:?} {}", error.fix()).contains("hunter2"), "{error:?}");
    }
    let missing = machine.store().with_command(vec!["no-such-program".to_owned()]).lookup("name").unwrap_err();
    assert_eq!(missing.to_string(), "cannot start `no-such-program`");
    // Relative entries of the search path are skipped.
    fs::copy("/bin/sh", machine.path("local")).unwrap();
    assert!(machine.store().with_command(vec!["local".to_owned()]).lookup("name").is_err());
}

#[test]
fn hanging_command_is_killed() {
    let machine = SecretTestMachine::new();
    for script in ["exec sleep 100", "exec sleep 100 >&- 2>&-"] {
        let command = ["sh", "-c", script].map(str::to_owned);
        let slow = SecretProgram::from_command(&command, "name").with_limit(Duration::from_millis(50));
        assert_eq!(slow.run(&machine.environment()).unwrap_err().to_string(), "`sh` did not finish within 0 s");
    }
}

#[test]
fn secrets_are_stored_in_a_private_file_without_keyring() {
    let machine = SecretTestMachine::new();
    let store = machine.store().without_keyring();
    let place = SecretOrigin::File(machine.path("config/secrets.json"));
    assert_eq!(store.names().unwrap(), [""; 0]);
    assert!(!store.remove("b").unwrap());
    assert!(!store.file().exists());
    assert_eq!(store.lookup("b").unwrap_err().to_string(), "secret `b` not found");
    for (name, value) in [("b", "2"), ("a", "1"), ("b", "3\n")] {
        assert_eq!(store.set(name, &Secret::new(value)).unwrap(), place);
    }
    check(store.lookup("b"), "3\n", &place);
    assert_eq!(store.names().unwrap(), ["a", "b"]);
    let expected = "{\n  \"schema\": 1,\n  \"secrets\": {\n    \"a\": \"1\",\n    \"b\": \"3\\n\"\n  }\n}\n";
    assert_eq!(fs::read_to_string(store.file()).unwrap(), expected);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(store.file()), mode(&machine.path("config"))), (0o600, 0o700));
    assert!(store.remove("b").unwrap());
    assert_eq!(store.names().unwrap(), ["a"]);
}

#[test]
fn secrets_are_stored_in_a_working_keyring() {
    for (kind, program, script) in
        [(KeyringKind::SecretTool, "secret-tool", SECRET_TOOL), (KeyringKind::Security, "security", SECURITY)]
    {
        let machine = SecretTestMachine::new();
        let plain = machine.store().without_keyring();
        let file = SecretOrigin::File(machine.path("config/secrets.json"));
        plain.set("old", &Secret::new("kept")).unwrap();
        machine.install(program, script);
        let store = SecretStore { keyring: Keyring::detect_kind(kind, &machine.environment()), ..plain };
        check(store.lookup("old"), "kept", &file);
        assert_eq!(store.set("old", &Secret::new("hunter2 'x'")).unwrap(), SecretOrigin::Keyring);
        check(store.lookup("old"), "hunter2 'x'", &SecretOrigin::Keyring);
        assert_eq!(store.names().unwrap(), ["old"]);
        assert!(!fs::read_to_string(store.file()).unwrap().contains("kept"), "{program}");
        assert!(!fs::read_to_string(machine.path("store/arguments")).unwrap().contains("hunter2"), "{program}");
        assert!(store.remove("old").unwrap());
        assert!(matches!(store.lookup("old"), Err(SecretError::Unknown { keyring: None, .. })), "{program}");
        assert_eq!(store.names().unwrap(), [""; 0]);
    }
}

#[test]
fn failing_keyring_falls_back_to_the_file() {
    let machine = SecretTestMachine::new();
    machine.install("secret-tool", "#!/bin/sh\ncat >/dev/null; echo no bus >&2; exit 1\n");
    let keyring = Keyring::detect_kind(KeyringKind::SecretTool, &machine.environment());
    let store = SecretStore { keyring, ..machine.store() };
    assert_eq!(store.lookup("a").unwrap_err().to_string(), "secret `a` not found (keyring error: no bus)");
    let file = SecretOrigin::File(machine.path("config/secrets.json"));
    assert_eq!(store.set("a", &Secret::new("1")).unwrap(), file);
    check(store.lookup("a"), "1", &file);
    assert!(store.remove("a").unwrap());
}

#[test]
fn stale_keyring_value_does_not_override_the_file() {
    let machine = SecretTestMachine::new();
    machine.install("secret-tool", SECRET_TOOL);
    let store = |machine: &SecretTestMachine| SecretStore {
        keyring: Keyring::detect_kind(KeyringKind::SecretTool, &machine.environment()),
        ..machine.store()
    };
    assert_eq!(store(&machine).set("a", &Secret::new("old")).unwrap(), SecretOrigin::Keyring);
    let fails = "#!/bin/sh\nif [ \"$1\" = lookup ]; then echo old; else echo locked >&2; exit 1; fi\n";
    machine.install("secret-tool", fails);
    let file = SecretOrigin::File(machine.path("config/secrets.json"));
    assert!(store(&machine).remove("a").unwrap_err().to_string().ends_with("locked"));
    assert_eq!(store(&machine).names().unwrap(), ["a"]);
    assert_eq!(store(&machine).set("a", &Secret::new("new")).unwrap(), file);
    check(store(&machine).lookup("a"), "new", &file);
    assert!(matches!(store(&machine).remove("a"), Err(SecretError::Failed { .. })));
    check(store(&machine).lookup("a"), "new", &file);
    machine.install("secret-tool", SECRET_TOOL);
    assert!(store(&machine).remove("a").unwrap());
    assert!(matches!(store(&machine).lookup("a"), Err(SecretError::Unknown { keyring: None, .. })));
}

#[test]
fn programs_inside_the_project_are_not_used() {
    let machine = SecretTestMachine::new();
    machine.install("secret-tool", SECRET_TOOL);
    machine.install("pass", "#!/bin/sh\necho value\n");
    let around = Environment { cwd: machine.home.root().to_owned(), ..machine.environment() };
    assert!(Keyring::detect_kind(KeyringKind::SecretTool, &machine.environment()).is_some());
    assert!(Keyring::detect_kind(KeyringKind::SecretTool, &around).is_none());
    let store = SecretStore::new(machine.path("config/secrets.json"), around);
    for command in ["pass", "./bin/pass", "bin/pass"] {
        let found = store.clone().with_command(vec![command.to_owned()]).lookup("a");
        assert!(matches!(found, Err(SecretError::NotStarted { .. })), "{command}: {found:?}");
    }
    let absolute = machine.path("bin/pass").display().to_string();
    check(store.with_command(vec![absolute]).lookup("a"), "value", &SecretOrigin::Command);
}

#[test]
fn secrets_cannot_be_stored_while_a_command_is_set() {
    let machine = SecretTestMachine::new();
    let store = machine.command("echo 1");
    assert!(matches!(store.set("a", &Secret::new("x")), Err(SecretError::Elsewhere { .. })));
    assert!(matches!(store.remove("a"), Err(SecretError::Elsewhere { .. })));
    assert!(!store.file().exists());
}

#[test]
fn secret_names_are_validated() {
    let machine = SecretTestMachine::new();
    let store = machine.command("echo 1");
    let (longest, too_long) = ("n".repeat(64), "n".repeat(65));
    for good in ["a", "A_b.c-9", &longest] {
        assert!(store.lookup(good).is_ok(), "{good}");
    }
    for bad in ["", "a b", "a/b", "ä", "a\n", "$(id)", &too_long] {
        assert!(matches!(store.lookup(bad), Err(SecretError::BadName { .. })), "{bad}");
    }
}

/// C19, and a file that others could read: neither is used, and no error quotes its content.
#[test]
fn c19_invalid_secrets_file_is_not_overwritten() {
    let machine = SecretTestMachine::new();
    let store = machine.store().without_keyring();
    store.set("a", &Secret::new("hunter2")).unwrap();
    let newer = r#"{"schema": 7, "secrets": ["hunter2"]}"#;
    for (text, part) in [
        (newer, "has schema 7"),
        (r#"{"schema": 1, "secrets": "hunter2"}"#, "is not a valid secrets file"),
        ("hunter2", "is not a valid"),
    ] {
        fs::write(store.file(), text).unwrap();
        for error in [store.lookup("a").unwrap_err(), store.set("a", &Secret::new("x")).unwrap_err()] {
            assert!(error.to_string().contains(part), "{error}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
        assert_eq!(fs::read_to_string(store.file()).unwrap(), text);
    }
    fs::set_permissions(store.file(), std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    assert!(store.lookup("a").unwrap_err().fix().starts_with("chmod go-rwx "));
}
