//! Lookup of a command's executable. Reads the file system and starts nothing.
//!
//! The approval prompt and the launcher use the same function, so that both resolve a command to the same file.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::Environment;
use crate::repository::repository_root;

/// The error number of a file that is neither a binary nor a script with an interpreter.
const ENOEXEC: i32 = 8;

/// Error of the lookup of an executable.
#[derive(Debug)]
pub enum ProgramError {
    /// The program is in no directory of the search path.
    NotFound {
        /// Directories that were searched.
        searched: Vec<PathBuf>,
    },
    /// The file exists, but the system cannot execute it.
    NotExecutable {
        /// The file.
        file: PathBuf,
        /// Reason from the system.
        error: io::Error,
    },
}

/// Returns the file that a command resolves to. A path is resolved against `base`, a name is looked up in `path`.
///
/// Skips relative entries of `path` and entries inside the working directory or its repository, also through links, so
/// that a repository cannot shadow the user's programs.
///
/// # Errors
/// Returns a [`ProgramError`] if no executable file is found.
pub fn find_program(
    program: &OsStr,
    path: &OsStr,
    base: &Path,
    surroundings: &Environment,
) -> Result<PathBuf, ProgramError> {
    let given = Path::new(program);
    if program.is_empty() {
        return Err(ProgramError::NotFound { searched: Vec::new() });
    }
    if given.components().count() > 1 || given.is_absolute() {
        let file = base.join(given);
        return match check_executable(&file) {
            Ok(()) => Ok(file),
            Err(error) => Err(ProgramError::NotExecutable { file, error }),
        };
    }
    search(given, path, surroundings)
}

fn search(name: &Path, path: &OsStr, surroundings: &Environment) -> Result<PathBuf, ProgramError> {
    let searched: Vec<PathBuf> = trusted_entries(path, surroundings).collect();
    let mut refused = None;
    for file in searched.iter().map(|entry| entry.join(name)) {
        match check_executable(&file) {
            Ok(()) => return Ok(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => refused = refused.or(Some((file, error))),
        }
    }
    Err(match refused {
        Some((file, error)) => ProgramError::NotExecutable { file, error },
        None => ProgramError::NotFound { searched },
    })
}

/// Returns a search path without the entries that [`find_program`] skips. Servers inherit this path.
pub fn trusted_path(path: &OsStr, surroundings: &Environment) -> OsString {
    // Joining fails only for entries that contain a colon. Entries produced by splitting do not.
    std::env::join_paths(trusted_entries(path, surroundings)).unwrap_or_default()
}

fn trusted_entries(path: &OsStr, surroundings: &Environment) -> impl Iterator<Item = PathBuf> {
    let project = untrusted_directory(surroundings);
    std::env::split_paths(path).filter(move |entry| {
        let is_inside = |project: &PathBuf| resolve_links(entry).starts_with(project);
        entry.is_absolute() && !project.as_ref().is_some_and(is_inside)
    })
}

/// Returns the directory from which programs are not found by name: the repository of the working directory, or the
/// working directory itself. The home directory and its ancestors are trusted: users keep their own programs there.
fn untrusted_directory(surroundings: &Environment) -> Option<PathBuf> {
    let (home, cwd) = (surroundings.var("HOME").map(Path::new), resolve_links(&surroundings.cwd));
    let is_home = home.is_some_and(|home| resolve_links(home).starts_with(&cwd));
    let outermost = repository_root(&cwd, home).unwrap_or(&cwd);
    (!is_home && cwd.parent().is_some()).then(|| outermost.to_owned())
}

/// Returns a path without links and `..`, as far as it exists.
fn resolve_links(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn check_executable(file: &Path) -> io::Result<()> {
    let data = std::fs::metadata(file)?;
    if data.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if data.permissions().mode() & 0o111 == 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    if !data.is_file() {
        return Err(io::Error::from_raw_os_error(ENOEXEC));
    }
    // The C library passes any other file to a shell. This program does not. The kernel decides about files that cannot
    // be read.
    let mut start = [0; 4];
    match std::fs::File::open(file).and_then(|mut file| file.read(&mut start)) {
        Ok(_) if !start.starts_with(b"#!") && start != *b"\x7fELF" => Err(io::Error::from_raw_os_error(ENOEXEC)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings(home: &str, cwd: &Path) -> Environment {
        Environment { env: vec![("HOME".into(), home.into())], cwd: cwd.to_owned() }
    }

    #[test]
    fn the_home_directory_and_its_parents_are_trusted() {
        for (home, cwd, expected) in [
            ("/home/u", "/home/u", None),
            ("/home/u", "/home", None),
            ("/home/u", "/", None),
            ("/home/u", "/home/u/work", Some("/home/u/work")),
            ("/home/u", "/tmp", Some("/tmp")),
        ] {
            let surroundings = surroundings(home, Path::new(cwd));
            assert_eq!(untrusted_directory(&surroundings), expected.map(PathBuf::from), "{home} {cwd}");
        }
    }

    #[test]
    fn inherited_path_drops_relative_and_project_entries() {
        let surroundings = surroundings("/home/u", Path::new("/work/repo"));
        let path = OsStr::new("bin:/work/repo/node_modules/.bin:.::/usr/bin:/work/repository/bin:/bin");
        assert_eq!(trusted_path(path, &surroundings), "/usr/bin:/work/repository/bin:/bin");
    }

    #[test]
    fn inherited_path_drops_entries_that_lead_into_the_repository() {
        let root = std::env::temp_dir().join(format!("wharf-repository-{}", std::process::id()));
        let (sub, bin, outside) = (root.join("repo/sub"), root.join("repo/bin"), root.join("bin"));
        for directory in [&sub, &bin, &outside, &root.join("repo/.git")] {
            std::fs::create_dir_all(directory).unwrap();
        }
        let link = root.join("link");
        std::os::unix::fs::symlink(&bin, &link).unwrap();
        let detour = root.join("bin/../repo/bin");
        let path = std::env::join_paths([&bin, &link, &detour, &outside]).unwrap();
        let inherited = trusted_path(&path, &surroundings("/home/u", &sub));
        let at_home = trusted_path(&path, &surroundings(root.to_str().unwrap(), &root));
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(inherited, outside.as_os_str());
        assert_eq!(at_home, path);
    }

    #[test]
    fn programs_are_not_found_in_project_or_relative_entries() {
        let project = std::env::temp_dir().join(format!("wharf-program-{}", std::process::id()));
        let inside = project.join("bin");
        std::fs::create_dir_all(&inside).unwrap();
        let evil = inside.join("sh");
        std::fs::write(&evil, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::join_paths([Path::new("."), Path::new("bin"), &inside, Path::new("/bin")]).unwrap();
        let (strange, at_home) = (surroundings("/home/u", &project), surroundings(project.to_str().unwrap(), &project));
        let find = |program: &str, surroundings: &_| find_program(OsStr::new(program), &path, &project, surroundings);
        let found = find("sh", &strange);
        let named = find("bin/sh", &strange);
        let missing = find("no-such-program", &strange);
        let at_home = find("sh", &at_home);
        std::fs::write(&evil, "echo no shebang\n").unwrap();
        let script = find("bin/sh", &strange);
        std::fs::remove_dir_all(&project).unwrap();
        assert_eq!(found.unwrap(), Path::new("/bin/sh"));
        assert_eq!(named.unwrap(), evil);
        assert_eq!(at_home.unwrap(), evil);
        assert!(
            matches!(script, Err(ProgramError::NotExecutable { error, .. }) if error.raw_os_error() == Some(ENOEXEC))
        );
        assert!(matches!(missing, Err(ProgramError::NotFound { searched }) if searched == [Path::new("/bin")]));
    }
}
