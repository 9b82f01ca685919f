//! Handles relative paths in an entry for the user's own configuration, where they would no longer be relative to the
//! current directory.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use wharf_spec::UntrustedText;

use wharf_terminal::config_scope::ConfigScope;
use wharf_terminal::question;
use wharf_terminal::session::CommandSession;
use wharf_terminal::style::{NAME, paint};

/// A `cwd` that starts the server in the current project's directory.
const PROJECT_CWD: &str = "${project}";

/// Programs whose first operand is a package, an image or a subcommand, even if a directory has the same name.
const LAUNCHERS: [&str; 15] = [
    "npx", "pnpx", "bunx", "uvx", "pipx", "npm", "pnpm", "yarn", "bun", "uv", "deno", "cargo", "go", "docker", "podman",
];

/// Adapts relative paths of an entry for the user's own configuration: makes a relative program or directory absolute,
/// and offers to start the server in the project directory if arguments are relative paths.
pub async fn adapt_relative_paths(
    session: &CommandSession,
    scope: ConfigScope,
    name: &str,
    entry: &mut Map<String, Value>,
) {
    if scope != ConfigScope::Global {
        return;
    }
    let here = &session.environment.cwd;
    for key in ["command", "cwd", "envFile"] {
        let Some(Value::String(text)) = entry.get_mut(key) else { continue };
        let is_path = key != "command" || text.contains('/');
        if is_path && !text.starts_with(['/', '$', '~']) {
            *text = here.join(&*text).components().collect::<PathBuf>().display().to_string();
        }
    }
    let found = relative_arguments(entry, here);
    if found.is_empty() || entry.contains_key("cwd") {
        return;
    }
    if offer_project_cwd(session, name, &found).await {
        entry.insert("cwd".to_owned(), PROJECT_CWD.into());
    } else {
        session.console.warn(format_args!(
            "{} starts in a private directory and will not find {} there; use an absolute path, or start it in \
             the project directory: --cwd '{PROJECT_CWD}' (`\"cwd\": \"{PROJECT_CWD}\"`), which needs one approval per project",
            UntrustedText::new(name),
            quoted_list(&found)
        ));
    }
}

async fn offer_project_cwd(session: &CommandSession, name: &str, found: &[String]) -> bool {
    if session.console.mode.json || !question::has_terminal() {
        return false;
    }
    let say = format!("Relative paths among the arguments: {}.", quoted_list(found));
    let prompt = format!(
        "Start {} in the current project's directory (needs one approval per project)? [y/N] ",
        paint(NAME, UntrustedText::new(name))
    );
    question::confirm(&session.console, &say, &prompt).await
}

fn quoted_list(found: &[String]) -> String {
    let shown: Vec<String> = found.iter().map(|path| format!("`{}`", UntrustedText::new(path.as_str()))).collect();
    shown.join(", ")
}

/// Returns the arguments that are relative paths, standalone or as the value of an option.
fn relative_arguments(entry: &Map<String, Value>, here: &Path) -> Vec<String> {
    let arguments = entry.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let arguments: Vec<&str> = arguments.collect();
    let named = launcher_operand(entry, &arguments);
    let value = |argument: &'_ str| match argument.split_once('=') {
        Some((option, value)) if option.starts_with('-') => value.to_owned(),
        _ => argument.to_owned(),
    };
    let is_path = |(position, argument): &(usize, String)| {
        is_relative_path(argument, here) || named != Some(*position) && is_bare_directory(argument, here)
    };
    let values = arguments.iter().map(|argument| value(argument)).enumerate().filter(is_path);
    values.map(|(_, argument)| argument).collect()
}

/// Returns the position of the package or subcommand in the arguments of a launcher.
fn launcher_operand(entry: &Map<String, Value>, arguments: &[&str]) -> Option<usize> {
    let command = Path::new(entry.get("command")?.as_str()?).file_name()?.to_str()?;
    let is_launcher = LAUNCHERS.contains(&command);
    arguments.iter().position(|argument| !argument.starts_with('-')).filter(|_| is_launcher)
}

fn is_relative_path(argument: &str, here: &Path) -> bool {
    let path = Path::new(argument);
    if !may_be_relative(argument) {
        return false;
    }
    let is_spelt = matches!(argument, "." | "..") || argument.starts_with("./") || argument.starts_with("../");
    let looks_like_one = argument.contains('/') || path.extension().is_some();
    is_spelt || looks_like_one && here.join(path).exists()
}

/// Reports whether an argument is the bare name of a directory, such as `data`. The bare name of a file without an
/// extension does not suffice, because many subcommands have one (`run`, `build`).
fn is_bare_directory(argument: &str, here: &Path) -> bool {
    may_be_relative(argument) && !argument.is_empty() && here.join(argument).is_dir()
}

fn may_be_relative(argument: &str) -> bool {
    !Path::new(argument).is_absolute() && !argument.starts_with(['-', '@', '$', '~']) && !argument.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_distinguished_from_other_arguments() {
        let here = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(here.path().join("src/data")).unwrap();
        std::fs::write(here.path().join("server.py"), "").unwrap();
        std::fs::write(here.path().join("run"), "").unwrap();
        let args = [
            ".",
            "./x",
            "..",
            "src/data",
            "server.py",
            "--db=./a.db",
            "src",
            "--root=src",
            // A file without an extension may be a subcommand of the same name.
            "run",
            "data",
            "",
            "--empty=",
            "other.py",
            "/abs",
            "@scope/pkg",
            "-y",
            "https://h/x",
            "${HOME}/x",
            "~/notes",
            "pkg@1.0.0",
        ];
        let entry = serde_json::json!({ "args": args });
        let found = relative_arguments(entry.as_object().unwrap(), here.path());
        assert_eq!(found, [".", "./x", "..", "src/data", "server.py", "./a.db", "src", "src"]);
    }

    #[test]
    fn package_of_launcher_is_not_a_directory() {
        let here = tempfile::tempdir().unwrap();
        std::fs::create_dir(here.path().join("server")).unwrap();
        std::fs::create_dir(here.path().join("data")).unwrap();
        for (command, args, expected) in [
            ("npx", &["-y", "server", "data"][..], &["data"][..]),
            ("/usr/bin/npx", &["-y", "server"], &[]),
            ("npx", &["./server"], &["./server"]),
            ("python3", &["/x.py", "data"], &["data"]),
            ("python3", &["server", "data"], &["server", "data"]),
        ] {
            let entry = serde_json::json!({ "command": command, "args": args });
            assert_eq!(relative_arguments(entry.as_object().unwrap(), here.path()), expected, "{command} {args:?}");
        }
    }
}
