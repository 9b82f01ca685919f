//! Resolves the program's path, environment and working directory.
//!
//! Pure except for file system lookups. The command is never passed to a shell. Only a short list of the host's
//! environment variables and those named by the entry are passed on.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use wharf_spec::{EnvValue, Environment, LaunchCheck, ProgramError, StdioSpec, find_program, trusted_path};

use crate::error::ConnectCause;
use wharf_guard::StartRequest;

/// Variables every server gets.
const INHERITED_VARIABLES: [&str; 21] = [
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
    // Set by `wharf serve`, so that one that would serve itself notices.
    "WHARF_SERVED",
];

/// Variables that make a program load code: passed on only if the entry itself names them.
const CODE_LOADING_VARIABLES: [&str; 11] = [
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

/// A resolved server, which can be started any number of times.
#[derive(Debug, Clone)]
pub(crate) struct PreparedCommand {
    pub program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    pub launch_check: Option<LaunchCheck>,
}

impl PreparedCommand {
    /// Creates the request for one start, with a random mark that identifies its processes.
    pub fn start_request(&self, grace: Duration) -> StartRequest {
        let mut random = [0; 16];
        // Without randomness the mark is weaker, but the start still works.
        let _ = getrandom::fill(&mut random);
        StartRequest {
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
pub(crate) fn prepare(spec: &StdioSpec, surroundings: &Environment) -> Result<PreparedCommand, ConnectCause> {
    let cwd = spec.cwd.as_ref().map_or_else(|| surroundings.cwd.clone(), |cwd| surroundings.cwd.join(cwd));
    match std::fs::metadata(&cwd) {
        Ok(data) if data.is_dir() => {}
        Ok(_) => return Err(ConnectCause::NoSuchDirectory { cwd, error: io::ErrorKind::NotADirectory.into() }),
        Err(error) => return Err(ConnectCause::NoSuchDirectory { cwd, error }),
    }
    let env = environment(spec, surroundings);
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone()).unwrap_or_default();
    let program = find_program(&spec.program, &path, &cwd, surroundings).map_err(|error| program_error(spec, error))?;
    Ok(PreparedCommand { program, args: spec.args.clone(), env, cwd, launch_check: spec.launch_check.clone() })
}

fn program_error(spec: &StdioSpec, error: ProgramError) -> ConnectCause {
    match error {
        ProgramError::NotFound { searched } => {
            ConnectCause::CommandNotFound { program: PathBuf::from(&spec.program), searched }
        }
        ProgramError::NotExecutable { file, error } => ConnectCause::NotExecutable { program: file, error },
    }
}

fn environment(spec: &StdioSpec, surroundings: &Environment) -> Vec<(OsString, OsString)> {
    let crosses = |name: &str| {
        if spec.inherit_env { !is_loader(name) } else { INHERITED_VARIABLES.contains(&name) || name.starts_with("LC_") }
    };
    let inherited = surroundings.env.iter().filter(|(name, _)| crosses(&name.to_string_lossy()));
    let mut env: Vec<(OsString, OsString)> =
        inherited.map(|(name, value)| (name.clone(), inherited_value(name, value, spec, surroundings))).collect();
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

/// Returns the inherited value of a variable: a search path without the project's entries, a proxy without its
/// credentials. If the entry names the variable, it gets the whole value. If it inherits everything, it gets the whole
/// value of all but the search path.
fn inherited_value(name: &OsStr, value: &OsStr, spec: &StdioSpec, surroundings: &Environment) -> OsString {
    match name.to_str() {
        Some("PATH") => trusted_path(value, surroundings),
        Some(name) if is_proxy(name) && !spec.inherit_env => without_credentials(value),
        _ => value.to_owned(),
    }
}

fn is_proxy(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.ends_with("_PROXY") && name != "NO_PROXY"
}

/// Removes user name and password from a proxy's address. An address that is not UTF-8 becomes empty.
fn without_credentials(proxy: &OsStr) -> OsString {
    let Some(text) = proxy.to_str() else { return OsString::new() };
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let Some(at) = rest[..end].rfind('@') else { return proxy.to_owned() };
    let separator = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{separator}{}", &rest[at + 1..]).into()
}

fn is_loader(name: &str) -> bool {
    name.starts_with("LD_") || name.starts_with("DYLD_") || CODE_LOADING_VARIABLES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(env: &[(&str, &str)]) -> Environment {
        let env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Environment { env, cwd: "/".into() }
    }

    fn names(prepared: &[(OsString, OsString)]) -> Vec<String> {
        let mut names: Vec<String> =
            prepared.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect();
        names.sort();
        names
    }

    #[test]
    fn environment_is_an_allow_list_unless_inherited() {
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
    fn proxy_credentials_are_removed_unless_requested() {
        let host = around(&[
            ("HTTPS_PROXY", "http://me:hush@proxy.example:3128/"),
            ("http_proxy", "me:hu@sh@proxy.example:3128"),
            ("ALL_PROXY", "socks5://proxy.example"),
            ("NO_PROXY", "a@b,localhost"),
        ]);
        let mut spec = StdioSpec { program: "sh".into(), ..StdioSpec::default() };
        assert_eq!(
            names(&environment(&spec, &host)),
            [
                "ALL_PROXY=socks5://proxy.example",
                "HTTPS_PROXY=http://proxy.example:3128/",
                "NO_PROXY=a@b,localhost",
                "http_proxy=proxy.example:3128",
            ]
        );
        spec.env = vec![("HTTPS_PROXY".into(), EnvValue::Inherit)];
        assert!(
            names(&environment(&spec, &host)).contains(&"HTTPS_PROXY=http://me:hush@proxy.example:3128/".to_owned())
        );
    }

    #[test]
    fn inherited_path_excludes_project_directories() {
        let mut host = around(&[("PATH", "bin:/repo/bin:/usr/bin"), ("HOME", "/home/u")]);
        host.cwd = "/repo".into();
        let mut spec = StdioSpec { program: "sh".into(), ..StdioSpec::default() };
        for inherit_env in [false, true] {
            spec.inherit_env = inherit_env;
            assert!(names(&environment(&spec, &host)).contains(&"PATH=/usr/bin".to_owned()), "{inherit_env}");
        }
        spec.env = vec![("PATH".into(), EnvValue::Plain("/repo/bin".into()))];
        assert!(names(&environment(&spec, &host)).contains(&"PATH=/repo/bin".to_owned()));
    }
}
