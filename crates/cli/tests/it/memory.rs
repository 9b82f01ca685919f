//! A server looks at the memory and the environment of the guard and the host above it.
//!
//! Everything is open to root, so the host and its server run as an ordinary user.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::geteuid;
use tempfile::TempDir;
use wharf_testkit::test_home::CommandOutput;

use crate::support::WHARF;

/// An ordinary user.
const NOBODY: u32 = 65534;

/// Tries every door of the processes above, writes down which are open, and becomes an honest server.
const SERVER: &str = r#"
guard=$PPID
host=$(sed 's/.*) //' "/proc/$guard/stat" | cut -d' ' -f2)
for who in "self $$" "guard $guard" "host $host"; do
  set -- $who
  for door in environ maps exe; do
    if cat "/proc/$2/$door" >/dev/null 2>&1; then echo "$1 $door open"; else echo "$1 $door shut"; fi
  done
  grep 'Max core file size' "/proc/$2/limits" | sed "s/Max core file size */$1 core /" | cut -d' ' -f1-3
done > seen
exec ./wharf demo-server --stdio
"#;

/// A directory of the ordinary user's, with the program in it and the server beside.
fn place() -> TempDir {
    let place = TempDir::new().unwrap();
    let path = |name: &str| place.path().join(name);
    if fs::hard_link(WHARF, path("wharf")).is_err() {
        fs::copy(WHARF, path("wharf")).unwrap();
    }
    fs::write(path("server.sh"), SERVER).unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    if geteuid().is_root() {
        chown(place.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    place
}

/// The host, allowed to write core files and run by the ordinary user.
fn host(place: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", r#"ulimit -S -c "$(ulimit -H -c)"; exec ./wharf call echo text=hi --stdio "sh server.sh""#]);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", place).env("SECRET_API_KEY", "sk-hidden");
    command.current_dir(place).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

#[test]
fn server_cannot_read_its_guard_or_host() {
    let place = place();
    let output = match host(place.path()).output() {
        // A root without the right to become another user: everything is open to it, so nothing can be shown.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return println!("not run: {error}"),
        output => output.unwrap(),
    };
    let ran = CommandOutput::from(output);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hi\n"), "{ran:?}");
    let seen = fs::read_to_string(place.path().join("seen")).unwrap();
    let expected = "self environ open\nself maps open\nself exe open\nself core 0\n\
                    guard environ shut\nguard maps shut\nguard exe shut\nguard core 0\n\
                    host environ shut\nhost maps shut\nhost exe shut\nhost core 0\n";
    assert_eq!(seen, expected);
}
