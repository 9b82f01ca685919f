//! What exactly will run: the program's path, its environment, its directory.
//!
//! Pure but for looking at files. The command is never handed to a shell, and nothing of the host's environment
//! crosses but a short list and what the entry names.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wharf_spec::{EnvValue, StdioSpec, Surroundings};

use crate::error::ConnectCause;
use crate::guard::Errand;

/// Variables every server gets.
const ALWAYS: [&str; 20] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TERM",
    "TMPDIR",
    "TZ",
    "SHELL",
    "LOGNAME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// Variables that make a program load code: handed down only when the entry itself names them.
const LOADERS: [&str; 11] = [
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "RUBYLIB",
    "PERL5OPT",
    "PERL5LIB",
    "BASH_ENV",
    "ENV",
];

/// A server ready to be started, as often as need be.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
}

impl Prepared {
    /// One start of it, marked so that its processes can be told from any other's.
    pub fn errand(&self, grace: Duration) -> Errand {
        let mut random = [0; 16];
        // Without randomness the mark is weaker, and nothing else.
        let _ = getrandom::fill(&mut random);
        Errand {
            program: self.program.clone().into(),
            args: self.args.clone(),
            env: self.env.clone(),
            cwd: self.cwd.clone().into(),
            grace,
            mark: random.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// Finds the program and composes the environment.
pub(crate) fn prepare(spec: &StdioSpec, surroundings: &Surroundings) -> Result<Prepared, ConnectCause> {
    let cwd = spec.cwd.as_ref().map_or_else(|| surroundings.cwd.clone(), |cwd| surroundings.cwd.join(cwd));
    match std::fs::metadata(&cwd) {
        Ok(data) if data.is_dir() => {}
        Ok(_) => return Err(ConnectCause::NoSuchDirectory { cwd, error: io::ErrorKind::NotADirectory.into() }),
        Err(error) => return Err(ConnectCause::NoSuchDirectory { cwd, error }),
    }
    let env = environment(spec, surroundings);
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone()).unwrap_or_default();
    let program = resolve(&spec.program, &path, &cwd, project(surroundings))?;
    Ok(Prepared { program, args: spec.args.clone(), env, cwd })
}

/// The directory whose programs are not trusted by name alone: where we were started, unless that is the home directory
/// or above it, where people keep programs of their own.
fn project(surroundings: &Surroundings) -> Option<&Path> {
    let home = surroundings.var("HOME").map(Path::new);
    let is_home = home.is_some_and(|home| home.starts_with(&surroundings.cwd));
    (!is_home && surroundings.cwd.parent().is_some()).then_some(surroundings.cwd.as_path())
}

fn environment(spec: &StdioSpec, surroundings: &Surroundings) -> Vec<(OsString, OsString)> {
    let crosses = |name: &OsStr| {
        let name = name.to_string_lossy();
        if spec.inherit_env { !is_loader(&name) } else { ALWAYS.contains(&&*name) || name.starts_with("LC_") }
    };
    let mut env: Vec<(OsString, OsString)> =
        surroundings.env.iter().filter(|(name, _)| crosses(name)).cloned().collect();
    for (name, value) in &spec.env {
        env.retain(|(known, _)| known != name);
        let value = match value {
            EnvValue::Plain(value) => Some(value.clone()),
            EnvValue::Secret(secret) => Some(secret.reveal().into()),
            EnvValue::Inherit => {
                surroundings.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            }
        };
        env.extend(value.map(|value| (name.clone(), value)));
    }
    env
}

fn is_loader(name: &str) -> bool {
    name.starts_with("LD_") || name.starts_with("DYLD_") || LOADERS.contains(&name)
}

/// A path is taken as it is, from the server's directory; a name is looked up in the absolute entries of `PATH` that
/// are not inside the project, where anybody could have put it.
fn resolve(program: &OsStr, path: &OsStr, cwd: &Path, project: Option<&Path>) -> Result<PathBuf, ConnectCause> {
    let given = Path::new(program);
    if program.is_empty() {
        return Err(ConnectCause::CommandNotFound { program: PathBuf::new(), searched: Vec::new() });
    }
    if given.components().count() > 1 || given.is_absolute() {
        let file = cwd.join(given);
        return match executable(&file) {
            Ok(()) => Ok(file),
            Err(error) => Err(ConnectCause::NotExecutable { program: file, error }),
        };
    }
    let trusted = |entry: &PathBuf| entry.is_absolute() && !project.is_some_and(|project| entry.starts_with(project));
    let searched: Vec<PathBuf> = std::env::split_paths(path).filter(trusted).collect();
    let mut refused = None;
    for file in searched.iter().map(|entry| entry.join(given)) {
        match executable(&file) {
            Ok(()) => return Ok(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => refused = refused.or(Some((file, error))),
        }
    }
    Err(match refused {
        Some((program, error)) => ConnectCause::NotExecutable { program, error },
        None => ConnectCause::CommandNotFound { program: given.to_owned(), searched },
    })
}

fn executable(file: &Path) -> io::Result<()> {
    let data = std::fs::metadata(file)?;
    if data.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if data.permissions().mode() & 0o111 == 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // Anything else the C library would hand to a shell, which never happens here. A file that cannot be read is left
    // to the kernel's judgement.
    let mut start = [0; 4];
    match std::fs::File::open(file).and_then(|mut file| file.read(&mut start)) {
        Ok(_) if !start.starts_with(b"#!") && start != *b"\x7fELF" => Err(io::Error::from_raw_os_error(libc::ENOEXEC)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(env: &[(&str, &str)]) -> Surroundings {
        let env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Surroundings { env, cwd: "/".into() }
    }

    fn names(prepared: &[(OsString, OsString)]) -> Vec<String> {
        let mut names: Vec<String> =
            prepared.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect();
        names.sort();
        names
    }

    #[test]
    fn secrets_of_the_host_do_not_cross() {
        let host = around(&[
            ("PATH", "/usr/bin"),
            ("LC_ALL", "C"),
            ("AWS_SECRET", "x"),
            ("OPENAI_API_KEY", "x"),
            ("SSH_AUTH_SOCK", "x"),
            ("LD_PRELOAD", "x"),
            ("NODE_OPTIONS", "x"),
            ("GIVEN", "g"),
        ]);
        let mut spec = StdioSpec { program: "sh".into(), ..StdioSpec::default() };
        spec.env = vec![
            ("GIVEN".into(), EnvValue::Inherit),
            ("ABSENT".into(), EnvValue::Inherit),
            ("LC_ALL".into(), EnvValue::Plain("de".into())),
            ("TOKEN".into(), EnvValue::Secret(wharf_spec::Secret::new("t"))),
        ];
        assert_eq!(names(&environment(&spec, &host)), ["GIVEN=g", "LC_ALL=de", "PATH=/usr/bin", "TOKEN=t"]);
        spec.inherit_env = true;
        spec.env.clear();
        let all = names(&environment(&spec, &host));
        assert!(all.contains(&"AWS_SECRET=x".to_owned()));
        assert!(!all.iter().any(|variable| variable.starts_with("LD_PRELOAD") || variable.starts_with("NODE_OPTIONS")));
    }

    #[test]
    fn home_and_what_is_above_it_are_no_project() {
        for (home, cwd, expected) in [
            ("/home/u", "/home/u", None),
            ("/home/u", "/home", None),
            ("/home/u", "/", None),
            ("/home/u", "/home/u/work", Some("/home/u/work")),
            ("/home/u", "/tmp", Some("/tmp")),
        ] {
            let mut host = around(&[("HOME", home)]);
            host.cwd = cwd.into();
            assert_eq!(project(&host), expected.map(Path::new), "{home} {cwd}");
        }
    }

    #[test]
    fn a_name_is_never_found_in_the_project_or_by_a_relative_entry() {
        let project = std::env::temp_dir().join(format!("wharf-resolve-{}", std::process::id()));
        let inside = project.join("bin");
        std::fs::create_dir_all(&inside).unwrap();
        let evil = inside.join("sh");
        std::fs::write(&evil, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::join_paths([Path::new("."), Path::new("bin"), &inside, Path::new("/bin")]).unwrap();
        let found = resolve(OsStr::new("sh"), &path, &project, Some(&project));
        let named = resolve(OsStr::new("bin/sh"), &path, &project, Some(&project));
        let missing = resolve(OsStr::new("no-such-program"), &path, &project, Some(&project));
        let at_home = resolve(OsStr::new("sh"), &path, &project, None);
        std::fs::write(&evil, "echo no shebang\n").unwrap();
        let script = resolve(OsStr::new("bin/sh"), &path, &project, Some(&project));
        std::fs::remove_dir_all(&project).unwrap();
        assert_eq!(found.unwrap(), Path::new("/bin/sh"));
        assert_eq!(named.unwrap(), evil);
        assert_eq!(at_home.unwrap(), evil);
        assert!(
            matches!(script, Err(ConnectCause::NotExecutable { error, .. }) if error.raw_os_error() == Some(libc::ENOEXEC))
        );
        assert!(
            matches!(missing, Err(ConnectCause::CommandNotFound { searched, .. }) if searched == [Path::new("/bin")])
        );
    }
}
