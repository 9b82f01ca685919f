//! Detection of the files that a command line runs in addition to its program: scripts in the arguments, modules, and
//! files that launchers read in the working directory.
//!
//! Detection is best effort and starts nothing. A missing file is not listed. When it appears, the list and the digest
//! of the approval change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::warnings::program_name;

/// Maximum bytes of a `package.json` that is read.
const MAX_PACKAGE_JSON_BYTES: u64 = 1 << 20;

/// Launchers, and the files that they read in the working directory.
///
/// `uvx` and `pipx` are not listed, because the tools that they run ignore the configuration of the directory.
const LAUNCHER_FILES: [(&[&str], &[&str]); 9] = [
    (&["npx", "pnpx"], &[".npmrc"]),
    (&["npm", "pnpm", "yarn"], &["package.json", ".npmrc", ".yarnrc.yml", ".pnp.cjs", "pnpm-workspace.yaml"]),
    (&["bun", "bunx"], &["package.json", "bunfig.toml", ".npmrc"]),
    (&["uv"], &["pyproject.toml", "uv.toml", "uv.lock", ".python-version", ".env"]),
    (&["deno"], &["deno.json", "deno.jsonc", "package.json"]),
    (&["cargo"], &["Cargo.toml", ".cargo/config.toml", ".cargo/config", "rust-toolchain.toml"]),
    (&["make", "gmake"], &["Makefile", "makefile", "GNUmakefile"]),
    (
        &["docker", "podman", "docker-compose"],
        &["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"],
    ),
    (&["direnv"], &[".envrc"]),
];

/// Launchers that run a command from `node_modules/.bin`.
const NODE_LAUNCHERS: [&str; 7] = ["npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"];

/// Interpreters that run a directory by its `package.json`.
const NODE_INTERPRETERS: [&str; 5] = ["node", "nodejs", "bun", "tsx", "ts-node"];

/// Interpreters that run a module with `-m`, and a directory by its `__main__.py`.
const PYTHON_INTERPRETERS: [&str; 3] = ["python", "pythonw", "pypy"];

/// A command line as it would run.
pub(super) struct CommandLine<'a> {
    /// The command and its arguments, expanded.
    pub words: &'a [String],
    /// Working directory.
    pub cwd: &'a Path,
    /// Directories of `PYTHONPATH`, if the entry sets it.
    pub python_path: Vec<PathBuf>,
}

/// Files that a command line runs or reads at its start, each with a label for its first mention.
pub(super) type EntryPoints = BTreeMap<PathBuf, String>;

impl CommandLine<'_> {
    /// Returns all detected files. Blocks.
    pub(super) fn entry_points(&self) -> EntryPoints {
        let mut found = EntryPoints::new();
        self.add_arguments(&mut found);
        // Programs such as `env` run the command after them. The arguments of a second interpreter of a kind are
        // included in those of the first, so each kind is inspected once regardless of the length of the command line.
        let mut seen = BTreeSet::new();
        for (position, word) in self.words.iter().enumerate() {
            let (name, rest) = (program_name(word), &self.words[position + 1..]);
            if !is_known(name) || !seen.insert(name) {
                continue;
            }
            match name {
                name if PYTHON_INTERPRETERS.contains(&name) => self.add_python(rest, &mut found),
                name if NODE_INTERPRETERS.contains(&name) => self.add_node(rest, &mut found),
                _ => {}
            }
            self.add_launcher(name, rest, &mut found);
        }
        found
    }

    /// Adds every argument that names a file, either on its own or as the value of an option.
    fn add_arguments(&self, found: &mut EntryPoints) {
        for (position, argument) in self.words.iter().enumerate().skip(1) {
            let value = argument.strip_prefix('-').and_then(|option| option.split_once('=')).map(|(_, value)| value);
            let attached =
                argument.strip_prefix('-').filter(|option| !option.starts_with('-')).and_then(|option| option.get(1..));
            for candidate in [Some(argument.as_str()), value, attached].into_iter().flatten() {
                self.add(found, format!("argument {position}"), self.cwd.join(candidate));
            }
        }
    }

    /// Adds the files of `python -m MODULE` and `python DIRECTORY`.
    fn add_python(&self, arguments: &[String], found: &mut EntryPoints) {
        if let Some(module) = find_module(arguments) {
            let parts: Vec<&str> = module.split('.').collect();
            for base in std::iter::once(self.cwd).chain(self.python_path.iter().map(PathBuf::as_path)) {
                let whole: PathBuf = parts.iter().collect();
                self.add(found, format!("module {module}"), base.join(&whole).with_extension("py"));
                self.add(found, format!("module {module}"), base.join(&whole).join("__main__.py"));
                for depth in 1..=parts.len() {
                    let package: PathBuf = parts[..depth].iter().collect();
                    self.add(found, format!("module {module}"), base.join(package).join("__init__.py"));
                }
            }
        }
        if let Some(script) = first_operand(arguments) {
            self.add(found, format!("directory {script}"), self.cwd.join(script).join("__main__.py"));
        }
    }

    /// Adds the files of `node DIRECTORY`, and of `node SCRIPT` without a file extension.
    fn add_node(&self, arguments: &[String], found: &mut EntryPoints) {
        let Some(script) = first_operand(arguments) else { return };
        let (label, path) = (format!("entry point of {script}"), self.cwd.join(script));
        let package = path.join("package.json");
        let main = read_package_main(&package).unwrap_or_default();
        self.add(found, label.clone(), package);
        for candidate in [path.join(&main), path.join(&main).join("index"), path.join("index"), path] {
            for ending in ["", ".js", ".mjs", ".cjs", ".ts", ".json"] {
                let mut file = candidate.clone().into_os_string();
                file.push(ending);
                self.add(found, label.clone(), file.into());
            }
        }
    }

    fn add_launcher(&self, name: &str, arguments: &[String], found: &mut EntryPoints) {
        for file in LAUNCHER_FILES.iter().filter(|(names, _)| names.contains(&name)).flat_map(|(_, files)| *files) {
            self.add(found, format!("read by {name}"), self.cwd.join(file));
        }
        if NODE_LAUNCHERS.contains(&name) {
            for argument in arguments.iter().filter(|argument| !argument.starts_with('-')) {
                let command = command_of_package(argument);
                self.add(found, format!("run by {name}"), self.cwd.join("node_modules/.bin").join(command));
            }
        }
    }

    fn add(&self, found: &mut EntryPoints, label: String, path: PathBuf) {
        if path.is_file() {
            // Normalized, so that a file is listed once regardless of its spelling.
            found.entry(path.components().collect()).or_insert(label);
        }
    }
}

fn is_known(name: &str) -> bool {
    PYTHON_INTERPRETERS.contains(&name)
        || NODE_INTERPRETERS.contains(&name)
        || LAUNCHER_FILES.iter().any(|(names, _)| names.contains(&name))
        || NODE_LAUNCHERS.contains(&name)
}

/// Returns the module of `-m MODULE`, `-mMODULE` or `-Im MODULE`.
fn find_module(arguments: &[String]) -> Option<&str> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let letters = argument.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
        if let Some(at) = letters.find('m') {
            let attached = &letters[at + 1..];
            return if attached.is_empty() { arguments.next().map(String::as_str) } else { Some(attached) };
        }
    }
    None
}

/// Returns the first argument that is not an option: the script, provided that no option takes a separate value.
fn first_operand(arguments: &[String]) -> Option<&str> {
    arguments.iter().map(String::as_str).find(|argument| !argument.starts_with('-'))
}

/// Returns the command of a package: its name without scope and version.
fn command_of_package(package: &str) -> &str {
    let name = package.rsplit('/').next().unwrap_or(package);
    name.split('@').find(|part| !part.is_empty()).unwrap_or(name)
}

/// Returns the `main` member of a `package.json`.
fn read_package_main(package: &Path) -> Option<String> {
    if !package.is_file() {
        return None;
    }
    let mut text = Vec::new();
    File::open(package).ok()?.take(MAX_PACKAGE_JSON_BYTES).read_to_end(&mut text).ok()?;
    let package: serde_json::Value = serde_json::from_slice(&text).ok()?;
    package.get("main")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_entry_points(words: &[&str], files: &[&str]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let (file, text) = file.split_once('|').unwrap_or((file, ""));
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let line = CommandLine { words: &words, cwd: folder.path(), python_path: vec![folder.path().join("lib")] };
        let name = |path: &Path| path.strip_prefix(folder.path()).unwrap().display().to_string().replace("./", "");
        let found: BTreeSet<String> = line.entry_points().keys().map(|path| name(path)).collect();
        found.into_iter().collect()
    }

    #[test]
    fn entry_points_of_common_command_lines_are_found() {
        let package = r#"package.json|{"main": "lib/start"}"#;
        let cases: [(&[&str], &[&str], &[&str]); 15] = [
            (&["python3", "server.py"], &["server.py", "other.py"], &["server.py"]),
            (&["python3.12", "-u", "server.py"], &["server.py"], &["server.py"]),
            (&["python3", "-m", "server"], &["server.py", "lib/server.py"], &["lib/server.py", "server.py"]),
            (
                &["python3", "-Im", "a.b"],
                &["a/__init__.py", "a/b/__main__.py", "a/b/c.py"],
                &["a/__init__.py", "a/b/__main__.py"],
            ),
            (&["python3", "app"], &["app/__main__.py"], &["app/__main__.py"]),
            (&["node", "."], &[package, "lib/start.js", "index.js"], &["index.js", "lib/start.js", "package.json"]),
            (&["node", "app"], &["app/index.js"], &["app/index.js"]),
            (&["node", "server"], &["server.js"], &["server.js"]),
            (&["node", "--import=./hook.mjs", "x.js"], &["hook.mjs", "x.js"], &["hook.mjs", "x.js"]),
            (&["node", "-r./hook.js", "x.js"], &["hook.js", "x.js"], &["hook.js", "x.js"]),
            (&["env", "A=1", "node", "."], &["index.js"], &["index.js"]),
            (&["npm", "run", "serve"], &["package.json", ".npmrc"], &[".npmrc", "package.json"]),
            (
                &["npx", "-y", "@scope/server@1.0.0"],
                &["node_modules/.bin/server", ".npmrc"],
                &[".npmrc", "node_modules/.bin/server"],
            ),
            (&["uv", "run", "serve"], &["pyproject.toml", "uv.toml"], &["pyproject.toml", "uv.toml"]),
            (&["tool", "--data", "dir", "plain"], &["dir/x"], &[]),
        ];
        for (words, files, expected) in cases {
            assert_eq!(find_entry_points(words, files), expected, "{words:?}");
        }
    }
}
