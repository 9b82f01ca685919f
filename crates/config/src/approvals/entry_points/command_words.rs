//! Reading of command lines: operands, values of options, modules, package names and the words of shell scripts.

use std::collections::BTreeSet;

/// Maximum number of operands, or of values of one kind of option, that are looked up as entry points.
const MAX_OPERANDS: usize = 64;
/// Maximum number of modules of a command line.
const MAX_MODULES: usize = 16;

/// Options of a kind, each with a value: attached, or in the next argument.
pub(super) struct ValueOptions {
    short: &'static [&'static str],
    long: &'static [&'static str],
}

/// Options that change the directory in which a command runs, and the shell command `cd`.
pub(super) const DIRECTORY_OPTIONS: ValueOptions = ValueOptions {
    short: &["-C", "-D", "-F", "-w"],
    long: &[
        "--chdir",
        "--cwd",
        "--dir",
        "--directory",
        "--filter",
        "--prefix",
        "--project",
        "--project-directory",
        "--workspace",
        "cd",
    ],
};

/// Options of Node and Bun that load a file or package before the script.
pub(super) const PRELOAD_OPTIONS: ValueOptions =
    ValueOptions { short: &["-r"], long: &["--require", "--import", "--loader", "--experimental-loader", "--preload"] };

/// Options of Node and its launchers without a value. Any other option may be followed by one.
const NODE_FLAGS: [&str; 11] = [
    "--",
    "-y",
    "--yes",
    "-q",
    "--quiet",
    "--silent",
    "--enable-source-maps",
    "--experimental-strip-types",
    "--inspect",
    "--inspect-brk",
    "--watch",
];

/// Subcommands before the script or package of Node's launchers.
const NODE_SUBCOMMANDS: [&str; 6] = ["dlx", "exec", "run", "start", "watch", "x"];

impl ValueOptions {
    /// Returns the distinct values of these options.
    pub(super) fn find_values<'a>(&self, arguments: &'a [String]) -> Vec<&'a str> {
        let mut seen = BTreeSet::new();
        let named =
            arguments.iter().enumerate().filter_map(|(position, argument)| match self.attached_value(argument)? {
                "" => arguments.get(position + 1).map(String::as_str),
                value => Some(value),
            });
        named.filter(|value| seen.insert(*value)).take(MAX_OPERANDS).collect()
    }

    /// Returns the value attached to one of these options. An empty one is in the next argument.
    fn attached_value<'a>(&self, argument: &'a str) -> Option<&'a str> {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        if self.long.contains(&name) {
            return Some(value);
        }
        self.short.iter().find_map(|option| argument.strip_prefix(*option))
    }
}

/// Returns the parts of an argument that may be a path: the whole, and the value attached to an option.
pub(super) fn possible_paths(argument: &str) -> impl Iterator<Item = &str> {
    let option = argument.strip_prefix('-');
    let value = option.and_then(|option| option.split_once('=')).map(|(_, value)| value);
    let attached = option.filter(|option| !option.starts_with('-')).and_then(|option| option.get(1..));
    [Some(argument), value, attached].into_iter().flatten()
}

/// Returns the distinct operands and values of options.
pub(super) fn find_operands(arguments: &[String]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let texts = arguments.iter().flat_map(|argument| possible_paths(argument)).filter(|text| is_operand(text));
    texts.filter(|text| seen.insert(*text)).take(MAX_OPERANDS).collect()
}

fn is_operand(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('-')
}

/// Returns the arguments that may be the script of Node or the package of a launcher: values of options, and the first
/// operand that is not one. Later operands belong to the script. They are often directories with data, whose
/// `package.json` does not select code.
pub(super) fn find_node_entries(arguments: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    let mut may_be_value = false;
    for argument in arguments {
        found.extend(possible_paths(argument).filter(|text| is_operand(text)));
        if argument.starts_with('-') {
            may_be_value = may_take_value(argument);
        } else if may_be_value || NODE_SUBCOMMANDS.contains(&argument.as_str()) {
            may_be_value = false;
        } else {
            break;
        }
        if found.len() >= MAX_OPERANDS {
            break;
        }
    }
    found
}

fn may_take_value(option: &str) -> bool {
    !option.contains('=') && !option.starts_with("--no-") && !NODE_FLAGS.contains(&option)
}

/// Returns the modules of `-m MODULE`, `-mMODULE`, `-Im MODULE` and `--module MODULE`. Arguments after a script or
/// module are included, because a module such as `pdb` runs another.
pub(super) fn find_modules(arguments: &[String]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let named = arguments.iter().enumerate().filter_map(|(position, argument)| match attached_module(argument)? {
        "" => arguments.get(position + 1).map(String::as_str),
        module => Some(module),
    });
    named.filter(|module| is_operand(module) && seen.insert(*module)).take(MAX_MODULES).collect()
}

/// Returns the module attached to an option. An empty one is in the next argument.
fn attached_module(argument: &str) -> Option<&str> {
    let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
    if name == "--module" {
        return Some(value);
    }
    let letters = argument.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    // The text after `c`, `W` and `X` is their value, as in `-Xfrozen_modules=off`.
    let at = letters.find(['c', 'm', 'W', 'X'])?;
    letters[at..].strip_prefix('m')
}

/// Returns the command that a package has by default: its name without scope and version.
pub(super) fn command_of_package(package: &str) -> &str {
    let name = package.rsplit('/').next().unwrap_or(package);
    name.split('@').find(|part| !part.is_empty()).unwrap_or(name)
}

/// Returns the name of a package without its version. `None` for a path or an address.
pub(super) fn package_name(package: &str) -> Option<&str> {
    let scope_length = usize::from(package.starts_with('@'));
    let end = package[scope_length..].find('@').map_or(package.len(), |at| scope_length + at);
    let name = &package[..end];
    let is_name =
        !name.is_empty() && !name.starts_with('.') && !name.contains("..") && name.matches('/').count() == scope_length;
    is_name.then_some(name)
}

/// Returns the directory of a package that is given as a path, such as `./tool` or `tool@file:tool`.
pub(super) fn folder_of_package(package: &str) -> Option<&str> {
    match package.split_once("file:") {
        Some((_, folder)) => Some(folder),
        None => package.starts_with(['.', '/']).then_some(package),
    }
}

/// Splits a shell script into words, preceded by an empty program name. Best effort: variables are not expanded, and
/// operators only separate words. A quoted text with separators is listed in parts, and as a whole at the end.
pub(super) fn split_script(script: &str) -> Vec<String> {
    let is_separator = |character: char| character.is_whitespace() || ";&|()<>`\"'".contains(character);
    let quoted = shlex::split(script).unwrap_or_else(|| script.split_whitespace().map(str::to_owned).collect());
    let (mut words, mut wholes) = (vec![String::new()], Vec::new());
    for word in quoted {
        if word.contains(is_separator) {
            words.extend(word.split(is_separator).filter(|part| !part.is_empty()).map(str::to_owned));
            wholes.push(word);
        } else {
            words.push(word);
        }
    }
    words.append(&mut wholes);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn modules_are_found_behind_options_with_values() {
        for (line, expected) in [
            ("-m server", &["server"][..]),
            ("-mserver", &["server"]),
            ("-Im server", &["server"]),
            ("-W ignore -m server", &["server"]),
            ("-Wignore::m -m server", &["server"]),
            ("-X dev -m server", &["server"]),
            ("-Xfrozen_modules=off -m server", &["server"]),
            ("--check-hash-based-pycs never -m server", &["server"]),
            ("run --module=server", &["server"]),
            ("-m pdb -m server", &["pdb", "server"]),
            ("-c import_m", &[]),
            ("-cimport_m", &[]),
            ("server.py --mode x", &[]),
        ] {
            assert_eq!(find_modules(&words(line)), expected, "{line}");
        }
    }

    #[test]
    fn node_entries_end_with_the_first_operand() {
        for (line, expected) in [
            (". data", &["."][..]),
            ("-r ./hook.js . data", &["./hook.js", "."]),
            ("--env-file .env --import=./hook.mjs server data", &[".env", "./hook.mjs", "server"]),
            ("--inspect server data", &["server"]),
            ("--max-old-space-size=64 -- server data", &["64", "server"]),
            ("-y @scope/pkg .", &["@scope/pkg"]),
            ("run app data", &["run", "app"]),
        ] {
            assert_eq!(find_node_entries(&words(line)), expected, "{line}");
        }
    }

    #[test]
    fn directory_options_are_found_in_every_spelling() {
        for line in ["-C app x", "-Capp x", "--dir app x", "--directory=app x", "--cwd app", "cd app", "--prefix app"] {
            assert_eq!(DIRECTORY_OPTIONS.find_values(&words(line)), ["app"], "{line}");
        }
        assert_eq!(DIRECTORY_OPTIONS.find_values(&words("--director app -c")), [""; 0]);
    }

    #[test]
    fn package_names_lose_their_version_and_paths_are_not_names() {
        for (text, name, folder) in [
            ("pkg", Some("pkg"), None),
            ("pkg@1.0.0", Some("pkg"), None),
            ("@scope/pkg", Some("@scope/pkg"), None),
            ("@scope/pkg@latest", Some("@scope/pkg"), None),
            ("pkg@file:tool", Some("pkg"), Some("tool")),
            ("./tool", None, Some("./tool")),
            ("/opt/tool", None, Some("/opt/tool")),
            ("user/repository", None, None),
            ("@", None, None),
            ("", None, None),
        ] {
            assert_eq!((package_name(text), folder_of_package(text)), (name, folder), "{text}");
        }
    }

    #[test]
    fn scripts_are_split_at_quotes_and_operators() {
        for (script, expected) in [
            ("node srv.js", &["", "node", "srv.js"][..]),
            ("node 'a b.js'", &["", "node", "a", "b.js", "a b.js"]),
            ("node a.js;node b.js", &["", "node", "a.js", "node", "b.js", "a.js;node"]),
            ("node a.js && x", &["", "node", "a.js", "x", "&&"]),
            ("node 'a.js", &["", "node", "a.js", "'a.js"]),
        ] {
            assert_eq!(split_script(script), expected, "{script}");
        }
    }
}
