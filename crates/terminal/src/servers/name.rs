//! Derives names for servers given only by a command or URL.

use std::path::Path;

use url::Url;

/// Programs that fetch and run a package.
const RUNNERS: [&str; 8] = ["npx", "bunx", "pnpx", "uvx", "npm", "pnpm", "yarn", "pipx"];
/// Programs that run a file.
const INTERPRETERS: [&str; 11] =
    ["python", "node", "nodejs", "deno", "bun", "ruby", "perl", "tsx", "ts-node", "uv", "java"];
/// Subcommands of these programs that are neither a package nor a file.
const VERBS: [&str; 5] = ["exec", "dlx", "run", "x", "tool"];
/// Options of these programs that take a value.
const OPTIONS_WITH_VALUE: [&str; 9] =
    ["--with", "--python", "--directory", "--project", "--registry", "-r", "--require", "--import", "-W"];
/// Options with the package as their value.
const PACKAGE_OPTIONS: [&str; 5] = ["--from", "--package", "-p", "-m", "-jar"];
/// Uninformative names of files and directories.
const UNINFORMATIVE_NAMES: [&str; 10] =
    ["index", "main", "server", "app", "cli", "__main__", "dist", "build", "src", "bin"];

/// Uninformative host labels.
const UNINFORMATIVE_LABELS: [&str; 3] = ["www", "mcp", "api"];

/// Returns the name of the package, module, file or program that a command runs.
pub fn name_from_command(words: &[String]) -> String {
    let program = words.first().map_or("server", |word| stem(word));
    let rest = words.get(1..).unwrap_or_default();
    let base = program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let named = if RUNNERS.contains(&program) {
        package_or_file(rest).map(package_name)
    } else if INTERPRETERS.contains(&base) {
        package_or_file(rest).map(file_name)
    } else {
        None
    };
    sanitize_name(named.unwrap_or(program))
}

/// Returns the site's name, or host and port if the host is not a domain with a dot.
pub fn name_from_url(url: &Url) -> String {
    let host = url.host_str().unwrap_or("server");
    let port = url.port().map(|port| format!("-{port}")).unwrap_or_default();
    let mut labels = host.split('.').filter(|label| !UNINFORMATIVE_LABELS.contains(label));
    match url.domain() {
        Some(domain) if domain.contains('.') => sanitize_name(labels.next().unwrap_or(host)),
        _ => sanitize_name(&format!("{host}{port}")),
    }
}

/// Returns the name, with a number appended if it is taken.
pub fn unique_name<'a>(name: &str, taken: impl Iterator<Item = &'a str> + Clone) -> String {
    let is_free = |candidate: &str| !taken.clone().any(|other| other == candidate);
    if is_free(name) {
        return name.to_owned();
    }
    (2..).map(|number| format!("{name}-{number}")).find(|candidate| is_free(candidate)).unwrap_or_default()
}

/// Returns the value of an option that names the package, or else the first word that is not an option.
fn package_or_file(words: &[String]) -> Option<&str> {
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if PACKAGE_OPTIONS.contains(&word) {
            return words.next();
        }
        if OPTIONS_WITH_VALUE.contains(&word) {
            words.next();
        } else if !word.starts_with('-') && !VERBS.contains(&word) {
            return Some(word);
        }
    }
    None
}

/// Strips scope and version from `@scope/name@1.2` and `name==1.2`.
fn package_name(text: &str) -> &str {
    let unscoped = text.rsplit('/').next().unwrap_or(text);
    unscoped.split(['@', '=', '<', '>', '[', '~']).next().unwrap_or(unscoped)
}

/// Returns a file's stem, or the nearest informative directory.
fn file_name(path: &str) -> &str {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect();
    let telling = parts.iter().rev().map(|part| stem(part)).find(|part| !UNINFORMATIVE_NAMES.contains(part));
    telling.unwrap_or_else(|| stem(path))
}

fn stem(word: &str) -> &str {
    Path::new(word).file_stem().and_then(|stem| stem.to_str()).unwrap_or(word)
}

/// Keeps letters, digits, `_` and `-`, at most 60, which leaves room for a number.
fn sanitize_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    let name: String = name.chars().map(plain).take(60).collect();
    match name.trim_matches('-') {
        "" => "server".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_name_is_derived_from_the_command() {
        for (line, expected) in [
            ("npx -y @modelcontextprotocol/server-everything", "server-everything"),
            ("npx -y @scope/thing@1.2.3 stdio", "thing"),
            ("npx --package @scope/thing thing-cli", "thing"),
            ("uvx mcp-server-git==1.0 --repository .", "mcp-server-git"),
            ("uvx --python 3.12 --from git+https://x/y/tool serve", "tool"),
            ("pnpm dlx some-server", "some-server"),
            ("python3 -m mcp_server_time", "mcp_server_time"),
            ("python3.12 -u /opt/weather.py", "weather"),
            ("node /opt/server-files/dist/index.js stdio", "server-files"),
            ("node index.js", "index"),
            ("./target/release/wharf demo-server", "wharf"),
            ("/usr/bin/env", "env"),
            ("my.server.sh", "my-server"),
            ("python3", "python3"),
            ("???", "server"),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(name_from_command(&words), expected, "{line}");
        }
    }

    #[test]
    fn server_name_is_derived_from_the_url() {
        for (url, expected) in [
            ("https://mcp.example.org/mcp", "example"),
            ("https://example.org:8443/", "example"),
            ("https://api.tools.example.org/", "tools"),
            ("http://localhost:8080/mcp", "localhost-8080"),
            ("http://127.0.0.1:9/mcp", "127-0-0-1-9"),
            ("http://[::1]:9/mcp", "1--9"),
            ("http://intranet/mcp", "intranet"),
        ] {
            assert_eq!(name_from_url(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn duplicate_name_gets_a_number() {
        let taken = ["a", "a-2"];
        assert_eq!(unique_name("a", taken.into_iter()), "a-3");
        assert_eq!(unique_name("b", taken.into_iter()), "b");
    }
}
