//! Warnings about risky server definitions from untrusted sources.
//!
//! Warnings are hints only. They do not block a server, and a definition without warnings is not necessarily safe. They
//! point out common ways to hide one program behind another.

use std::collections::BTreeSet;

use wharf_spec::UntrustedText;

use crate::expand::{TemplatePart, parse_template};
use crate::{
    HttpDefinition, OauthDefinition, ServerDefinition, SourcedValue, StartDirectory, StdioDefinition,
    TransportDefinition,
};

/// Programs, and their options that run inline code or another program. A single-letter option also matches in a group
/// of letters, as in `-lc`.
const EVALUATORS: [(&[&str], &[&str]); 21] = [
    (&["sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "csh", "tcsh"], &["-c", "--command", "--init-command"]),
    (&["python", "pypy", "jython", "ipython"], &["-c"]),
    (&["node", "nodejs", "bun", "electron"], &["-e", "-p", "-r", "--eval", "--print", "--require", "--import"]),
    (&["deno"], &["eval"]),
    (&["ruby", "jruby", "perl"], &["-e", "-E"]),
    (&["php"], &["-r", "-B", "-R", "-E", "--run"]),
    (&["lua", "luajit", "Rscript", "R", "groovy", "osascript", "ghc", "clojure", "clj", "bb"], &["-e", "--eval"]),
    (&["julia", "elixir", "iex"], &["-e", "-E", "--eval", "--print"]),
    (&["erl"], &["-eval", "-s", "-run"]),
    (&["pwsh", "powershell"], &["-c", "-e", "-command", "-encodedcommand", "-ec", "-enc"]),
    (&["cmd"], &["/c", "/k", "/C", "/K"]),
    (&["npx", "pnpx"], &["-c", "--call", "--shell"]),
    (&["npm", "pnpm", "yarn"], &["-c", "--call", "--shell-mode"]),
    (
        &["docker", "podman", "nerdctl"],
        &["--entrypoint", "--privileged", "--pid", "--device", "-v", "--volume", "--mount"],
    ),
    (&["env"], &["-S", "--split-string"]),
    (&["su", "script", "flock", "watch"], &["-c", "--command"]),
    (&["find"], &["-exec", "-execdir", "-ok", "-okdir"]),
    (&["git"], &["-c", "--exec-path", "--config-env"]),
    (&["vim", "vi", "nvim", "ex", "emacs"], &["-c", "-S", "--cmd", "--eval", "-l"]),
    (&["tar", "bsdtar"], &["--checkpoint-action", "--to-command", "-I", "--use-compress-program"]),
    (&["java", "gdb", "lldb"], &["-ex", "-o", "--eval-command", "-javaagent", "-XX:OnError"]),
];

/// Commands that fetch and run a package, with the subcommands before the package name.
const FETCHERS: [&[&str]; 9] = [
    &["npx"],
    &["pnpx"],
    &["bunx"],
    &["uvx"],
    &["npm", "exec"],
    &["pnpm", "dlx"],
    &["yarn", "dlx"],
    &["pipx", "run"],
    &["uv", "tool", "run"],
];
/// Options of these commands that take a value.
const OPTIONS_WITH_VALUE: [&str; 10] =
    ["-p", "--package", "--from", "--with", "--python", "--registry", "--index-url", "-c", "--call", "--spec"];
/// Options with the package as their value.
const PACKAGE_OPTIONS: [&str; 4] = ["-p", "--package", "--from", "--spec"];

/// Variables that make programs load or run other code, in addition to those of the dynamic loader.
const LOADER_VARIABLES: [&str; 14] = [
    "PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "BASH_ENV",
    "ENV",
    "PERL5OPT",
    "PERL5LIB",
    "RUBYOPT",
    "RUBYLIB",
    "JAVA_TOOL_OPTIONS",
    "GIT_SSH_COMMAND",
];

/// Warning for an entry with `${project}` whose server starts there.
const PROJECT_CWD_WARNING: &str =
    "runs in the project directory, and programs may run code from their working directory";
/// Warning for an entry with `${project}` whose server starts elsewhere.
const PROJECT_PATH_WARNING: &str = "receives the path of the project directory, and programs may run code from there";

/// Returns the warnings for a server, one line each, escaped. `from_file` has the names of the variables in its env
/// file.
pub(super) fn collect_warnings(described: &ServerDefinition, from_file: &[String]) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut given = BTreeSet::new();
    match &described.reach {
        TransportDefinition::Stdio(stdio) => {
            warnings.extend(command_warnings(stdio, from_file));
            warnings.extend(project_warning(described, stdio).map(str::to_owned));
            given.extend(stdio.env_vars.iter().map(|name| name.value.clone()));
            if described.expands {
                given.extend(stdio_texts(stdio).flat_map(referenced_variables));
            }
        }
        TransportDefinition::Http(http) => {
            warnings.extend(http_warnings(http));
            let words: Vec<&str> = http.headers_command.iter().map(|word| word.value.as_str()).collect();
            if !words.is_empty() {
                warnings.push("runs a program on this machine to make headers".to_owned());
                warnings.extend(evaluator_warnings(&words));
                warnings.extend(unpinned_package_warnings(&words));
            }
            if described.expands {
                given.extend(http_texts(http).flat_map(referenced_variables));
            }
        }
    }
    warnings.extend(given.iter().map(|name| format!("receives your {}", UntrustedText::new(name.as_str()))));
    if described.trust {
        warnings.push("its tools run without asking".to_owned());
    }
    warnings
}

/// Returns the warning for an entry with `${project}`, depending on where the server starts.
fn project_warning(described: &ServerDefinition, stdio: &StdioDefinition) -> Option<&'static str> {
    let starts_there = match &stdio.cwd {
        Some(cwd) => parse_template(&cwd.value).contains(&TemplatePart::Project),
        None => matches!(described.site.start, StartDirectory::Project(_)),
    };
    let warning = if starts_there { PROJECT_CWD_WARNING } else { PROJECT_PATH_WARNING };
    described.refers_to_project().then_some(warning)
}

/// Returns warnings about the proxy, extra certificate authorities, and local files that are used or sent.
fn http_warnings(http: &HttpDefinition) -> Vec<String> {
    let mut warnings = Vec::new();
    let shown = |text: &SourcedValue<String>| UntrustedText::new(text.value.as_str()).to_string();
    warnings.extend(http.proxy.iter().map(|proxy| format!("all traffic goes through the proxy `{}`", shown(proxy))));
    warnings.extend(http.ca.iter().map(|file| format!("certificates issued by `{}` are trusted", shown(file))));
    let Some(oauth) = &http.oauth else { return warnings };
    for (file, at) in [("assertion_file", "token_url"), ("id_token_file", "idp_token_url")] {
        let Some(file) = oauth.text(file) else { continue };
        let whom = oauth.text(at).map_or("the authorization server".to_owned(), |url| format!("`{}`", shown(url)));
        warnings.push(format!("sends the content of `{}` to {whom}", shown(file)));
    }
    warnings.extend(oauth.text("private_key_file").map(|file| format!("signs with the key in `{}`", shown(file))));
    warnings
}

fn command_warnings(stdio: &StdioDefinition, from_file: &[String]) -> Vec<String> {
    let words: Vec<&str> = [&stdio.command].into_iter().chain(&stdio.args).map(|word| word.value.as_str()).collect();
    let mut warnings = evaluator_warnings(&words);
    warnings.extend(unpinned_package_warnings(&words));
    let is_loader =
        |name: &str| name.starts_with("LD_") || name.starts_with("DYLD_") || LOADER_VARIABLES.contains(&name);
    let names = stdio.env.iter().map(|(name, _)| name).chain(from_file).map(String::as_str);
    let loaders: BTreeSet<&str> = names.filter(|name| is_loader(name)).collect();
    warnings.extend(
        loaders
            .into_iter()
            .map(|name| format!("`{}` can make the server load or run other code", UntrustedText::new(name))),
    );
    if stdio.inherit_env {
        warnings.push("receives your whole environment".to_owned());
    }
    warnings
}

/// Returns warnings about options that run code. A program may be anywhere in the line, because `env`, `sudo` and
/// `timeout` run the command after them. Only the first program of each kind is inspected: its arguments include those
/// of the others.
fn evaluator_warnings(words: &[&str]) -> Vec<String> {
    let mut found = BTreeSet::new();
    for (programs, options) in EVALUATORS {
        let Some(start) = words.iter().position(|word| programs.contains(&program_name(word))) else { continue };
        let is_one = |argument: &&&str| options.iter().any(|option| is_option(argument, option));
        found.extend(words[start + 1..].iter().find(is_one).map(|option| (words[start], *option)));
    }
    let is_eval = |word: &&&str| **word == "--eval" || word.starts_with("--eval=");
    found.extend(words[1..].iter().filter(is_eval).map(|word| (words[0], *word)));
    let told = |(program, option): (&str, &str)| {
        format!(
            "`{}` of `{}` can run inline code or another program",
            UntrustedText::new(option),
            UntrustedText::new(program)
        )
    };
    found.into_iter().map(told).collect()
}

/// Returns a program's name without its directory, version and `.exe`.
pub(super) fn program_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    name.trim_end_matches(".exe")
        .trim_end_matches(|character: char| character.is_ascii_digit() || ".-".contains(character))
}

fn is_option(argument: &str, option: &str) -> bool {
    let with_value = || argument.strip_prefix(option).is_some_and(|rest| rest.starts_with(['=', ':']));
    let among_others = || match option.as_bytes() {
        [b'-', letter] if *letter != b'-' => {
            let letters = argument.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
            letters.is_some_and(|letters| {
                // Inline code may follow directly, as in `-cprint()`.
                letters.as_bytes().first() == Some(letter) || letters.len() <= 4 && letters.as_bytes().contains(letter)
            })
        }
        _ => false,
    };
    argument.eq_ignore_ascii_case(option) && option.len() > 2 || argument == option || with_value() || among_others()
}

/// Returns warnings about packages without a fixed version, which may differ on the next run.
fn unpinned_package_warnings(words: &[&str]) -> Vec<String> {
    let mut found = BTreeSet::new();
    for fetcher in FETCHERS {
        let is_it =
            |start: &usize| program_name(words[*start]) == fetcher[0] && words[start + 1..].starts_with(&fetcher[1..]);
        let package = (0..words.len()).find(is_it).and_then(|start| find_package(&words[start + fetcher.len()..]));
        found.extend(package.filter(|package| !is_pinned(package)));
    }
    let told = |package: &str| {
        format!("`{}` is not pinned to a version: the next run may use another", UntrustedText::new(package))
    };
    found.into_iter().map(told).collect()
}

/// Returns the package in the arguments of a fetcher.
fn find_package<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let (option, value) = argument.split_once('=').map_or((*argument, None), |(name, value)| (name, Some(value)));
        match option {
            option if PACKAGE_OPTIONS.contains(&option) => return value.or_else(|| arguments.next().copied()),
            option if OPTIONS_WITH_VALUE.contains(&option) && value.is_none() => drop(arguments.next()),
            option if option.starts_with('-') => {}
            _ => return Some(argument),
        }
    }
    None
}

/// Reports whether a package name has an exact version: `pkg@1.2.3`, `@scope/pkg@1.2.3` or `pkg==1.2.3`.
fn is_pinned(package: &str) -> bool {
    let version = match package.split_once("==") {
        Some((_, version)) => version,
        None => package.get(1..).and_then(|rest| rest.rsplit_once('@')).map_or("", |(_, version)| version),
    };
    let is_plain = |character: char| character.is_ascii_alphanumeric() || ".-+".contains(character);
    version.starts_with(|character: char| character.is_ascii_digit())
        && version.matches('.').count() >= 2
        && version.chars().all(is_plain)
        && !version.split('.').any(|part| part == "x")
}

fn stdio_texts(stdio: &StdioDefinition) -> impl Iterator<Item = &str> {
    let sited = [&stdio.command].into_iter().chain(&stdio.args).chain(&stdio.cwd).chain(&stdio.env_file);
    sited.chain(stdio.env.iter().map(|(_, value)| value)).map(|sited| sited.value.as_str())
}

fn http_texts(http: &HttpDefinition) -> impl Iterator<Item = &str> {
    let oauth = http.oauth.iter().flat_map(OauthDefinition::texts);
    let own = [&http.url]
        .into_iter()
        .chain(&http.headers_command)
        .chain(&http.proxy)
        .chain(&http.ca)
        .chain(&http.client_cert);
    own.chain(http.headers.iter().map(|(_, value)| value)).chain(oauth).map(|sited| sited.value.as_str())
}

/// Returns the variables and secrets of the user that a text refers to.
fn referenced_variables(text: &str) -> impl Iterator<Item = String> {
    parse_template(text).into_iter().filter_map(|part| match part {
        TemplatePart::Variable { name, .. } => Some(name.to_owned()),
        TemplatePart::Secret(name) => Some(format!("secret {name}")),
        // A server with an invalid reference is not started.
        TemplatePart::Text(_) | TemplatePart::Project | TemplatePart::Foreign(_) | TemplatePart::Unclosed => None,
    })
}
