//! Starts a browser: a program with arguments, never a shell.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use wharf_config::find_on_path;
use wharf_spec::Environment;

/// Placeholder for the URL in a `BROWSER` command.
const URL_PLACEHOLDER: &str = "%s";

/// Commands that can open a URL. The first one that starts is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlOpener {
    commands: Vec<Vec<String>>,
    environment: Environment,
}

impl UrlOpener {
    /// Reads the colon-separated commands in `BROWSER`, followed by the desktop's opener.
    pub fn from_environment(environment: &Environment) -> Self {
        let named = environment.var("BROWSER").and_then(|value| value.to_str()).unwrap_or_default();
        let named = named.split(':').filter_map(shlex::split).filter(|words| !words.is_empty());
        let desktop = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        Self { commands: named.chain([vec![desktop.to_owned()]]).collect(), environment: environment.clone() }
    }

    /// Starts a browser without waiting for it. Calls `failed` if the browser exits with an error. Its output is
    /// discarded, and it runs in its own process group, out of reach of Ctrl-C.
    pub fn open(&self, url: &str, failed: impl FnOnce(ExitStatus) + Send + 'static) -> io::Result<()> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for words in &self.commands {
            let (program, arguments) = with_url(words, url);
            let Some(program) = self.resolve_program(program) else { continue };
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            match command.process_group(0).spawn() {
                Ok(mut child) => {
                    let wait = move || {
                        if let Some(status) = child.wait().ok().filter(|status| !status.success()) {
                            failed(status);
                        }
                    };
                    // Without a thread a failure goes unnoticed: the browser has been started.
                    let _ = wharf_threads::start_thread("wharf-browser", wait);
                    return Ok(());
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Resolves a program name. `PATH` entries inside the project are ignored, so that a project cannot supply the
    /// program. A path must be absolute.
    fn resolve_program(&self, program: &str) -> Option<PathBuf> {
        match program.contains('/') {
            true => Some(PathBuf::from(program)).filter(|path| path.is_absolute()),
            false => find_on_path(
                program,
                self.environment.var("PATH").map_or(OsStr::new(""), |path| path),
                &self.environment,
            ),
        }
    }
}

/// Builds the command line. The URL replaces the placeholder or is appended, always within one argument.
fn with_url<'a>(words: &'a [String], url: &str) -> (&'a str, Vec<String>) {
    let (program, rest) = words.split_first().map_or(("", &[][..]), |(program, rest)| (program.as_str(), rest));
    let mut arguments: Vec<String> = rest.iter().map(|word| word.replace(URL_PLACEHOLDER, url)).collect();
    if !rest.iter().any(|word| word.contains(URL_PLACEHOLDER)) {
        arguments.push(url.to_owned());
    }
    (program, arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opener(browser: Option<&str>) -> UrlOpener {
        let env = browser.map(|value| ("BROWSER".into(), value.into()));
        UrlOpener::from_environment(&Environment { env: env.into_iter().collect(), cwd: "/".into() })
    }

    #[test]
    fn url_is_always_one_argument() {
        let url = "https://a.example/$(x)?a=b&c='d'%s";
        for (browser, expected) in [
            (None, vec![vec!["xdg-open", url]]),
            (Some(""), vec![vec!["xdg-open", url]]),
            (Some("lynx"), vec![vec!["lynx", url], vec!["xdg-open", url]]),
            (Some("a --new '%s' x:b"), vec![vec!["a", "--new", url, "x"], vec!["b", url], vec!["xdg-open", url]]),
        ] {
            let opener = opener(browser);
            let lines: Vec<Vec<String>> = opener
                .commands
                .iter()
                .map(|words| {
                    let (program, arguments) = with_url(words, url);
                    std::iter::once(program.to_owned()).chain(arguments).collect()
                })
                .collect();
            assert_eq!(lines, expected, "{browser:?}");
        }
    }

    #[test]
    fn missing_program_is_an_error() {
        let opener = opener(Some("/no/such/program:no-such-program:./relative"));
        assert_eq!(opener.open("https://a.example/", drop).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
