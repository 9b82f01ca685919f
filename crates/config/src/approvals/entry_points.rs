//! Detection of the files that a command line runs in addition to its program: scripts in the arguments, modules,
//! commands of packages, scripts of `package.json`, and files that launchers read in the working directory.
//!
//! Detection is best effort and starts nothing. A missing file is not listed. When it appears, the list and the digest
//! of the approval change. Too many files are preferred to too few: at worst, an approval is asked for again.

mod command_words;
mod node_package;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::warnings::program_name;
use command_words::{
    DIRECTORY_OPTIONS, PRELOAD_OPTIONS, command_of_package, find_modules, find_node_entries, find_operands,
    folder_of_package, package_name, possible_paths, split_script,
};
use node_package::NodePackage;

/// Maximum number of `package.json` files that are read for a command line.
const MAX_PACKAGES: usize = 64;
/// Maximum number of scripts that are inspected for a command line.
const MAX_SCRIPTS: usize = 32;
/// Maximum depth of scripts that run scripts.
const MAX_SCRIPT_DEPTH: usize = 4;
/// Maximum bytes of a script that is inspected.
const MAX_SCRIPT_BYTES: usize = 16 << 10;
/// Maximum number of directories in which a command may run.
const MAX_DIRECTORIES: usize = 8;
/// Maximum number of directories of `PYTHONPATH`.
const MAX_PYTHON_PATH: usize = 64;
/// Maximum number of parts of a module name.
const MAX_MODULE_PARTS: usize = 16;
/// Maximum number of times that a program is inspected in one command line.
const MAX_REPETITIONS: usize = 16;

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

/// Launchers that run a command of a package below `node_modules`.
const NODE_LAUNCHERS: [&str; 7] = ["npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"];

/// Programs that run scripts of `package.json` by name: launchers, and `node --run`.
const SCRIPT_LAUNCHERS: [&str; 9] = ["npm", "pnpm", "yarn", "bun", "node", "nodejs", "npm-run-all", "run-s", "run-p"];

/// Programs that run a shell script or command line given as one argument.
const SHELLS: [&str; 11] = ["sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "env", "npm", "npx", "concurrently"];

/// Interpreters that run a directory by its `package.json`.
const NODE_INTERPRETERS: [&str; 5] = ["node", "nodejs", "bun", "tsx", "ts-node"];

/// Endings that Node and its replacements add to the name of a script. JSON is not code.
const NODE_ENDINGS: [&str; 10] = ["", ".js", ".mjs", ".cjs", ".node", ".ts", ".mts", ".cts", ".tsx", ".jsx"];

/// Programs that run a module with `-m`, and a directory by its `__main__.py`.
const PYTHON_INTERPRETERS: [&str; 4] = ["python", "pythonw", "pypy", "uv"];

/// A command line as it would run.
pub(super) struct CommandLine<'a> {
    /// The command and its arguments, expanded.
    pub words: &'a [String],
    /// Working directory.
    pub cwd: &'a Path,
    /// Directories of `PYTHONPATH`, if the entry sets it. Relative ones are relative to the working directory.
    pub python_path: Vec<PathBuf>,
}

/// Files that a command line runs or reads at its start, each with a label for its first mention.
pub(super) type EntryPoints = BTreeMap<PathBuf, String>;

impl CommandLine<'_> {
    /// Returns all detected files. Blocks.
    pub(super) fn entry_points(&self) -> EntryPoints {
        let mut search = EntryPointSearch::default();
        search.inspect(&InspectedLine {
            words: self.words,
            directories: find_directories(self.words, self.cwd),
            python_path: &self.python_path,
            depth: 0,
        });
        search.found
    }
}

/// A command line under inspection: that of the entry, or a script that it runs.
struct InspectedLine<'a> {
    words: &'a [String],
    /// Directories in which it may run.
    directories: Vec<PathBuf>,
    python_path: &'a [PathBuf],
    /// Number of scripts that lead to it.
    depth: usize,
}

impl InspectedLine<'_> {
    /// Returns the directories in which Python looks for modules.
    fn module_directories(&self) -> Vec<PathBuf> {
        let assigned = self.words.iter().filter_map(|word| word.strip_prefix("PYTHONPATH="));
        let assigned = assigned.flat_map(std::env::split_paths);
        let python_path: Vec<PathBuf> =
            self.python_path.iter().cloned().chain(assigned).take(MAX_PYTHON_PATH).collect();
        let below = |directory: &PathBuf| -> Vec<PathBuf> {
            let paths = python_path.iter().map(|path| directory.join(path));
            std::iter::once(directory.clone()).chain(paths).collect()
        };
        let all: BTreeSet<PathBuf> = self.directories.iter().flat_map(below).collect();
        all.into_iter().collect()
    }
}

/// State of the detection for one command line and the scripts that it runs.
#[derive(Default)]
struct EntryPointSearch {
    found: EntryPoints,
    /// The `package.json` files read. `None` for one that is not valid.
    packages: BTreeMap<PathBuf, Option<Rc<NodePackage>>>,
    /// Scripts inspected, with their directories.
    scripts: BTreeSet<(PathBuf, String)>,
}

impl EntryPointSearch {
    fn inspect(&mut self, line: &InspectedLine<'_>) {
        self.add_arguments(line);
        // Programs such as `env` run the command after them, and a script may run several.
        let mut repetitions: BTreeMap<&str, usize> = BTreeMap::new();
        for (position, word) in line.words.iter().enumerate() {
            let name = program_name(word);
            if !is_known(name) {
                continue;
            }
            let count = repetitions.entry(name).or_default();
            *count += 1;
            if *count <= MAX_REPETITIONS {
                self.add_program(line, name, &line.words[position + 1..]);
            }
        }
    }

    /// Adds the files of a known program with these arguments.
    fn add_program(&mut self, line: &InspectedLine<'_>, name: &str, arguments: &[String]) {
        if PYTHON_INTERPRETERS.contains(&name) {
            self.add_python(line, arguments);
        }
        if NODE_INTERPRETERS.contains(&name) {
            self.add_node(line, arguments);
        }
        if NODE_LAUNCHERS.contains(&name) {
            self.add_packages(line, name, arguments);
        }
        if SCRIPT_LAUNCHERS.contains(&name) {
            self.add_package_scripts(line, name, arguments);
        }
        if SHELLS.contains(&name) {
            self.add_shell_scripts(line, arguments);
        }
        for file in LAUNCHER_FILES.iter().filter(|(names, _)| names.contains(&name)).flat_map(|(_, files)| *files) {
            for directory in &line.directories {
                self.add(&format!("read by {name}"), directory.join(file));
            }
        }
    }

    /// Adds every argument that names a file, either on its own or as the value of an option.
    fn add_arguments(&mut self, line: &InspectedLine<'_>) {
        for (position, argument) in line.words.iter().enumerate().skip(1) {
            let label = match line.depth {
                0 => format!("argument {position}"),
                _ => format!("word {position} of a script"),
            };
            for candidate in possible_paths(argument) {
                for directory in &line.directories {
                    self.add(&label, directory.join(candidate));
                }
            }
        }
    }

    /// Adds the files of `python -m MODULE` and `python DIRECTORY`.
    fn add_python(&mut self, line: &InspectedLine<'_>, arguments: &[String]) {
        let bases = line.module_directories();
        for module in find_modules(arguments) {
            let label = format!("module {module}");
            let parts: Vec<&str> = module.split('.').take(MAX_MODULE_PARTS).collect();
            let whole: PathBuf = parts.iter().collect();
            for (base, ending) in bases.iter().flat_map(|base| [(base, "py"), (base, "pyc")]) {
                self.add(&label, base.join(&whole).with_extension(ending));
                self.add(&label, base.join(&whole).join("__main__").with_extension(ending));
                for depth in 1..=parts.len() {
                    let package: PathBuf = parts[..depth].iter().collect();
                    self.add(&label, base.join(package).join("__init__").with_extension(ending));
                }
            }
        }
        for operand in find_operands(arguments) {
            for directory in &line.directories {
                let main = directory.join(operand).join("__main__.py");
                self.add(&format!("directory {operand}"), main.with_extension("pyc"));
                self.add(&format!("directory {operand}"), main);
            }
        }
    }

    /// Adds the files of `node DIRECTORY`, of `node SCRIPT` without a file extension, and of preloaded packages.
    fn add_node(&mut self, line: &InspectedLine<'_>, arguments: &[String]) {
        let entries = find_node_entries(arguments);
        let preloaded: Vec<&str> =
            PRELOAD_OPTIONS.find_values(arguments).into_iter().filter(|value| !value.starts_with(['.', '/'])).collect();
        for directory in &line.directories {
            for entry in &entries {
                self.add_node_entry(&format!("entry point of {entry}"), directory.join(entry));
            }
            for package in &preloaded {
                let path = directory.join("node_modules").join(package);
                self.add_node_entry(&format!("entry point of {package}"), path);
            }
        }
    }

    fn add_node_entry(&mut self, label: &str, path: PathBuf) {
        let file = path.join("package.json");
        let main = self.read_package(&file).map(|package| package.main.clone()).unwrap_or_default();
        self.add(label, file);
        for candidate in [path.join(&main), path.join(&main).join("index"), path.join("index"), path] {
            for ending in NODE_ENDINGS {
                let mut file = candidate.clone().into_os_string();
                file.push(ending);
                self.add(label, file.into());
            }
        }
    }

    /// Adds the commands of packages: below `node_modules`, in a directory given as the package, and in the working
    /// directory, whose own package `npx` prefers to a download.
    fn add_packages(&mut self, line: &InspectedLine<'_>, name: &str, arguments: &[String]) {
        let label = format!("run by {name}");
        let operands = find_operands(arguments);
        let folders: Vec<&str> = find_node_entries(arguments).into_iter().filter_map(folder_of_package).collect();
        for directory in &line.directories {
            let modules = directory.join("node_modules");
            for operand in &operands {
                self.add(&label, modules.join(".bin").join(command_of_package(operand)));
                let Some(package) = package_name(operand) else { continue };
                self.add_package(&label, &modules.join(package), &modules);
                let own = self.read_package(&directory.join("package.json"));
                if own.is_some_and(|own| own.provides(package)) {
                    self.add_package(&label, directory, &modules);
                }
            }
            for folder in &folders {
                self.add_package(&label, &directory.join(folder), &modules);
            }
        }
    }

    /// Adds the `package.json` of a package, its commands, and their links below `node_modules`.
    fn add_package(&mut self, label: &str, folder: &Path, modules: &Path) {
        let file = folder.join("package.json");
        match self.read_package(&file) {
            Some(package) => {
                for (command, target) in &package.commands {
                    self.add(label, folder.join(target));
                    self.add(label, modules.join(".bin").join(command));
                }
            }
            // For a directory without a valid description, npm uses its list of installed packages.
            None if folder.is_dir() => self.add(label, modules.join(".package-lock.json")),
            None => {}
        }
        self.add(label, file);
    }

    /// Adds the files of the scripts of `package.json` that the arguments name, and of those around them.
    fn add_package_scripts(&mut self, line: &InspectedLine<'_>, name: &str, arguments: &[String]) {
        let is_run_option = |argument: &String| argument == "--run" || argument.starts_with("--run=");
        if matches!(name, "node" | "nodejs") && !arguments.iter().any(is_run_option) {
            return;
        }
        let operands = find_operands(arguments);
        for directory in &line.directories {
            if operands.contains(&"start") {
                // The default of npm.
                self.add(&format!("run by {name} start"), directory.join("server.js"));
            }
            let file = directory.join("package.json");
            let Some(package) = self.read_package(&file) else { continue };
            self.add(&format!("read by {name}"), file);
            for operand in &operands {
                for prefix in ["pre", "", "post"] {
                    let Some(script) = package.scripts.get(&format!("{prefix}{operand}")) else { continue };
                    self.add_script_commands(directory, script);
                    self.add_script(line, directory, script);
                }
            }
        }
    }

    /// Adds the commands below `node_modules` that shadow programs of the same name in a script of `package.json`.
    fn add_script_commands(&mut self, directory: &Path, script: &str) {
        if script.len() > MAX_SCRIPT_BYTES {
            return;
        }
        for word in split_script(script).iter().filter(|word| !word.is_empty() && !word.contains('/')) {
            self.add(&format!("run by a script as {word}"), directory.join("node_modules/.bin").join(word));
        }
    }

    /// Adds the files of scripts that are given as one argument, as in `sh -c SCRIPT`.
    fn add_shell_scripts(&mut self, line: &InspectedLine<'_>, arguments: &[String]) {
        for text in find_operands(arguments).into_iter().filter(|text| text.contains(char::is_whitespace)) {
            for directory in &line.directories {
                self.add_script(line, directory, text);
            }
        }
    }

    /// Adds the files of a script that runs in a directory. Each script is inspected once.
    fn add_script(&mut self, line: &InspectedLine<'_>, directory: &Path, script: &str) {
        let is_too_much = line.depth >= MAX_SCRIPT_DEPTH || self.scripts.len() >= MAX_SCRIPTS;
        if is_too_much || script.len() > MAX_SCRIPT_BYTES {
            return;
        }
        if !self.scripts.insert((directory.to_owned(), script.to_owned())) {
            return;
        }
        let words = split_script(script);
        self.inspect(&InspectedLine {
            words: &words,
            directories: find_directories(&words, directory),
            python_path: line.python_path,
            depth: line.depth + 1,
        });
    }

    /// Reads a `package.json`. Returns `None` if it is missing or not valid, or after the maximum number of files.
    fn read_package(&mut self, file: &Path) -> Option<Rc<NodePackage>> {
        if let Some(known) = self.packages.get(file) {
            return known.clone();
        }
        if self.packages.len() >= MAX_PACKAGES || !file.is_file() {
            return None;
        }
        let package = NodePackage::read(file).map(Rc::new);
        self.packages.insert(file.to_owned(), package.clone());
        package
    }

    fn add(&mut self, label: &str, path: PathBuf) {
        if path.is_file() {
            // Normalized, so that a file is listed once regardless of its spelling.
            self.found.entry(path.components().collect()).or_insert_with(|| label.to_owned());
        }
    }
}

fn is_known(name: &str) -> bool {
    PYTHON_INTERPRETERS.contains(&name)
        || NODE_INTERPRETERS.contains(&name)
        || NODE_LAUNCHERS.contains(&name)
        || SCRIPT_LAUNCHERS.contains(&name)
        || SHELLS.contains(&name)
        || LAUNCHER_FILES.iter().any(|(names, _)| names.contains(&name))
}

/// Returns the directories in which a command may run: the working directory, and those that options select.
fn find_directories(words: &[String], cwd: &Path) -> Vec<PathBuf> {
    let mut directories = vec![cwd.to_owned()];
    for value in DIRECTORY_OPTIONS.find_values(words) {
        for known in directories.clone() {
            let directory: PathBuf = known.join(value).components().collect();
            if directories.len() < MAX_DIRECTORIES && !directories.contains(&directory) && directory.is_dir() {
                directories.push(directory);
            }
        }
    }
    directories
}
