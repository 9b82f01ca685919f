//! The servers of one run: thirty-two of them, each kind apt to be left behind in its own way.

use std::path::{Path, PathBuf};

use wharf_testkit::oracle::MarkedProcess;

/// Servers of each kind.
const OF_EACH: usize = 8;
/// Servers in all: plain, wrapped, with daemons, deaf.
pub const SERVERS: usize = 4 * OF_EACH;
/// Their processes: wrapped ones are two, and those with daemons three.
pub const PROCESSES: usize = OF_EACH * (1 + 2 + 3 + 1);

/// The servers' command lines, to be split on white space.
pub fn commands() -> Vec<String> {
    let program = std::env::current_exe().unwrap();
    let faultd = format!("{} faultd stdio", program.display());
    let shell = format!("sh {} {faultd} ok", wrapper().display());
    let mut commands = Vec::new();
    for number in 0..OF_EACH {
        commands.push(format!("{faultd} ok"));
        // Behind a shell, and behind a wrapper whose server does not even leave when its input ends.
        commands.push(if number % 2 == 0 { shell.clone() } else { format!("{faultd} S40-wait --phase before") });
        commands.push(format!("{faultd} S41 --phase before"));
        commands.push(format!("{faultd} S38 --phase before"));
    }
    commands
}

/// A script that runs a command and stays around it.
fn wrapper() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ends-wrapper.sh");
    std::fs::write(&path, "\"$@\"\ntrue\n").unwrap();
    path
}

/// What is missing from a fleet that should be complete.
pub fn missing(found: &[MarkedProcess]) -> Option<String> {
    let daemons = |role: Role| found.iter().filter(|process| role_of(&process.cmdline) == role).count();
    let complete = found.len() == PROCESSES
        && daemons(Role::OwnSession) == OF_EACH
        && daemons(Role::DoubleForked) == OF_EACH
        && daemons(Role::Deaf) == OF_EACH;
    (!complete).then(|| format!("{} of {PROCESSES} processes: {}", found.len(), census(found)))
}

/// What a process is in its fleet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Plain,
    Wrapper,
    Wrapped,
    WithDaemons,
    OwnSession,
    DoubleForked,
    Deaf,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Plain => "plain servers",
            Role::Wrapper => "wrappers",
            Role::Wrapped => "wrapped servers that ignore the end of their input",
            Role::WithDaemons => "servers with daemons",
            Role::OwnSession => "grandchildren in sessions of their own",
            Role::DoubleForked => "double-forked grandchildren",
            Role::Deaf => "servers deaf to SIGTERM",
        }
    }
}

/// Tells by the command line; a plain server behind a shell looks like any other.
pub fn role_of(command: &str) -> Role {
    let marks = [
        ("kin sleep-apart", Role::OwnSession),
        ("kin ", Role::DoubleForked),
        ("ends-wrapper.sh", Role::Wrapper),
        ("S40-wait", Role::Wrapper),
        ("--linger", Role::Wrapped),
        ("S41", Role::WithDaemons),
        ("S38", Role::Deaf),
    ];
    marks.iter().find(|(mark, _)| command.contains(mark)).map_or(Role::Plain, |(_, role)| *role)
}

/// How many there are of each role, in words.
pub fn census(processes: &[MarkedProcess]) -> String {
    let mut roles: Vec<Role> = processes.iter().map(|process| role_of(&process.cmdline)).collect();
    roles.sort_unstable();
    let groups = roles.chunk_by(|left, right| left == right);
    groups.map(|group| format!("{} {}", group.len(), group[0].as_str())).collect::<Vec<_>>().join(", ")
}
