//! Finds the directory of the project that the working directory belongs to.

use std::path::{Path, PathBuf};

use wharf_spec::repository_root;

/// Files of a project, relative to its directory.
const PROJECT_FILES: [&str; 2] = [".mcp.json", ".wharf/config.json"];

/// Returns the directory of the project: the nearest directory with a project file, from the working directory up to
/// the root of its repository. Without such a file it is the repository's root, and outside of a repository it is the
/// working directory. The home directory and the directories above it are the project only if they are the working
/// directory.
pub fn find_project_directory(cwd: &Path, home: Option<&Path>) -> PathBuf {
    let Some(root) = repository_root(cwd, home) else { return cwd.to_owned() };
    let has_file = |directory: &&Path| PROJECT_FILES.iter().any(|file| has_entry(directory, file));
    let mut within = cwd.ancestors().take_while(|directory| directory.starts_with(root));
    within.find(has_file).unwrap_or(root).to_owned()
}

/// Reports whether a file, a directory or a link exists, valid or not.
fn has_entry(directory: &Path, name: &str) -> bool {
    directory.join(name).symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wharf_testkit::test_home::TestHome;

    use super::*;

    #[test]
    fn project_is_the_nearest_directory_with_a_project_file_in_the_repository() {
        let home = TestHome::new();
        let at = |name: &str| {
            fs::create_dir_all(home.path(name)).unwrap();
            home.path(name)
        };
        let found = |cwd: &Path| find_project_directory(cwd, Some(&home.path("home")));
        let deep = at("home/work/repo/src/deep");
        assert_eq!(found(&deep), deep, "outside of a repository");
        home.write("home/work/.mcp.json", "{}");
        home.write("home/work/repo/.git", "gitdir: elsewhere");
        assert_eq!(found(&deep), home.path("home/work/repo"), "above the repository is not searched");
        home.write("home/work/repo/src/.wharf/config.json", "{}");
        assert_eq!(found(&deep), home.path("home/work/repo/src"));
        home.write("home/work/repo/src/deep/.mcp.json", "{}");
        assert_eq!(found(&deep), deep);
    }

    #[test]
    fn home_directory_and_above_are_never_searched() {
        let home = TestHome::new();
        for file in [".git/HEAD", "home/.git/HEAD", ".mcp.json", "home/.mcp.json"] {
            home.write(file, "{}");
        }
        let found = |cwd: &str| {
            fs::create_dir_all(home.path(cwd)).unwrap();
            find_project_directory(&home.path(cwd), Some(&home.path("home")))
        };
        for cwd in ["home/notes/deep", "home"] {
            assert_eq!(found(cwd), home.path(cwd));
        }
        assert_eq!(find_project_directory(home.root(), Some(&home.path("home"))), home.root());
        std::os::unix::fs::symlink(home.path("home"), home.path("link")).unwrap();
        let linked = find_project_directory(&home.path("home/notes"), Some(&home.path("link")));
        assert_eq!(linked, home.path("home/notes"), "HOME is a link");
    }
}
