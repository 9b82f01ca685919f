//! The directories of `--root`.

use std::path::{Path, PathBuf};

use url::Url;
use wharf_client::{BoxedFuture, RequestSource, RootsSource};
use wharf_wire::Root;

use crate::failure::Failure;

/// Existing directories with their canonical paths.
pub struct FixedRoots(Vec<Root>);

impl FixedRoots {
    /// Resolves directories relative to the working directory.
    ///
    /// # Errors
    ///
    /// Fails if a path does not exist or is not a directory.
    pub fn resolve(directories: &[PathBuf], cwd: &Path) -> Result<Self, Failure> {
        directories.iter().map(|directory| root(&cwd.join(directory))).collect::<Result<_, _>>().map(Self)
    }
}

impl RootsSource for FixedRoots {
    fn roots(&self, _: RequestSource<'_>) -> BoxedFuture<Vec<Root>> {
        Box::pin(std::future::ready(self.0.clone()))
    }
}

fn root(directory: &Path) -> Result<Root, Failure> {
    let wrong = |reason: &dyn std::fmt::Display| {
        Failure::usage(format_args!("cannot use the root `{}`: {reason}", directory.display()))
            .with_hint("give an existing directory with --root")
    };
    // Resolve symbolic links, so that a server can compare the root with its own paths.
    let real = directory.canonicalize().map_err(|error| wrong(&error))?;
    if !real.is_dir() {
        return Err(wrong(&"not a directory"));
    }
    let uri = Url::from_file_path(&real).map_err(|()| wrong(&"the path has no file URL"))?;
    let name = real.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(Root { uri: uri.into(), name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_percent_encoded() {
        let base = std::env::temp_dir().canonicalize().unwrap().join(format!("wharf-roots-{}", std::process::id()));
        let directory = base.join("a b#c?d%41é");
        std::fs::create_dir_all(&directory).unwrap();
        std::os::unix::fs::symlink(&directory, base.join("link")).unwrap();
        let roots = FixedRoots::resolve(&["a b#c?d%41é".into(), "link/.".into()], &base).unwrap().0;
        std::fs::remove_dir_all(&base).unwrap();
        for root in &roots {
            assert!(root.uri.starts_with("file:///") && root.uri.ends_with("/a%20b%23c%3Fd%2541%C3%A9"), "{root:?}");
            assert_eq!(root.name.as_deref(), Some("a b#c?d%41é"));
        }
        assert_eq!(roots.len(), 2);
    }

    #[test]
    fn invalid_root_directory_is_named() {
        for path in ["/no/such/place", "/dev/null"] {
            let failure = FixedRoots::resolve(&[path.into()], Path::new("/")).err().unwrap();
            assert!(failure.error.message.starts_with(&format!("cannot use the root `{path}`: ")), "{failure:?}");
        }
    }
}
