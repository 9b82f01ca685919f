//! Tests: rejected layouts, atomic writes, and handling of links.

use std::convert::Infallible;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::lock::{LockError, LockFile};
use crate::path_safety::PathViolation;
use crate::scratch_dir::ScratchDir;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// Creates a private document in `home/wharf/tokens`, applies `spoil`, and compares the result of loading.
fn check_layout(name: &str, spoil: impl FnOnce(&Path), expected: Result<Option<&str>, PathViolation>) {
    let scratch = ScratchDir::new();
    let folder = scratch.path("home/wharf");
    let document = Document::new(folder.join("tokens"), DocumentPrivacy::Private);
    document.write(b"secret").unwrap();
    spoil(&folder);
    let loaded = document.load();
    let found = match &loaded {
        Ok(loaded) => Ok(loaded.as_ref().map(|loaded| str::from_utf8(&loaded.bytes).unwrap())),
        Err(error) => Err(error.violation().unwrap_or_else(|| panic!("{name}: {error:?}")).flaw),
    };
    assert_eq!(found, expected, "{name}");
    if expected.is_err() {
        let before = names_below(&scratch.path(""));
        assert!(matches!(document.write(b"new"), Err(DocumentSaveError::Load(DocumentLoadError::Unsafe(_)))), "{name}");
        assert_eq!(names_below(&scratch.path("")), before, "{name}: something was made or removed");
    }
}

/// Returns everything below a directory, with the content of files.
fn names_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            found.extend(names_below(&path));
        }
        let content = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        found.push((path, content));
    }
    found.sort();
    found
}

#[test]
fn private_document_rejects_unsafe_permissions() {
    let fine = Ok(Some("secret"));
    for bits in [0o600, 0o400, 0o700] {
        check_layout(&format!("mode {bits:o}"), |folder| set_mode(&folder.join("tokens"), bits), fine);
    }
    for bits in [0o640, 0o604, 0o660, 0o606, 0o601, 0o666, 0o777] {
        let expected = Err(PathViolation::Exposed(bits));
        check_layout(&format!("mode {bits:o}"), |folder| set_mode(&folder.join("tokens"), bits), expected);
    }
    for (bits, expected) in [
        (0o755, fine),
        (0o1777, fine),
        (0o777, Err(PathViolation::Writable(0o777))),
        (0o770, Err(PathViolation::Writable(0o770))),
        (0o702, Err(PathViolation::Writable(0o702))),
    ] {
        check_layout(&format!("directory {bits:o}"), |folder| set_mode(folder, bits), expected);
        check_layout(&format!("grandparent {bits:o}"), |folder| set_mode(folder.parent().unwrap(), bits), expected);
    }
    check_layout("missing", |folder| fs::remove_file(folder.join("tokens")).unwrap(), Ok(None));
    check_layout("missing with its directory", |folder| fs::remove_dir_all(folder).unwrap(), Ok(None));
}

#[test]
fn private_document_rejects_links_and_special_files() {
    let tokens = |folder: &Path| folder.join("tokens");
    let away = |folder: &Path| fs::rename(folder.join("tokens"), folder.join("real")).unwrap();
    check_layout("hard link", |f| fs::hard_link(tokens(f), f.join("other")).unwrap(), Err(PathViolation::HardLinks(2)));
    let link = |to: &'static str| {
        move |folder: &Path| {
            away(folder);
            symlink(to, tokens(folder)).unwrap();
        }
    };
    check_layout("link", link("real"), Err(PathViolation::Link));
    check_layout("link to nowhere", link("nowhere"), Err(PathViolation::Link));
    check_layout("link to itself", link("tokens"), Err(PathViolation::Link));
    let directory = |folder: &Path| {
        away(folder);
        fs::create_dir(tokens(folder)).unwrap();
    };
    check_layout("directory", directory, Err(PathViolation::NotAFile));
    let pipe = |folder: &Path| {
        away(folder);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, tokens(folder), mode).unwrap();
    };
    check_layout("pipe", pipe, Err(PathViolation::NotAFile));
    // Links in the directory path are allowed: only the final target is checked.
    let linked = |folder: &Path| {
        fs::rename(folder, folder.with_file_name("elsewhere")).unwrap();
        symlink("elsewhere", folder).unwrap();
    };
    check_layout("linked directory", linked, Ok(Some("secret")));
}

#[test]
fn private_document_rejects_foreign_owners() {
    let us = rustix::process::geteuid();
    if us.is_root() {
        let foreign = Err(PathViolation::Owner { found: 12345, expected: 0 });
        check_layout("owner", |folder| chown(folder.join("tokens"), Some(12345), None).unwrap(), foreign);
        check_layout("directory's owner", |folder| chown(folder, Some(12345), None).unwrap(), foreign);
    } else {
        let error = Document::new("/etc/passwd", DocumentPrivacy::Private).load().unwrap_err();
        assert_eq!(error.violation().unwrap().flaw, PathViolation::Owner { found: 0, expected: us.as_raw() });
    }
}

#[test]
fn directories_created_by_root_inherit_their_owner() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scratch = ScratchDir::new();
    fs::create_dir(scratch.path("home")).unwrap();
    chown(scratch.path("home"), Some(12345), Some(12346)).unwrap();
    Document::new(scratch.path("home/a/b/config"), DocumentPrivacy::Shared).write(b"one").unwrap();
    for name in ["home/a", "home/a/b", "home/a/b/config"] {
        let metadata = fs::metadata(scratch.path(name)).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (12345, 12346), "{name}");
    }
}

#[test]
fn write_is_private_and_leaves_no_temporary_files() {
    let scratch = ScratchDir::new();
    let document = Document::new(scratch.path("a/b/tokens"), DocumentPrivacy::Private);
    assert_eq!(document.load().unwrap(), None);
    let stamp = document.write(b"one").unwrap();
    assert_eq!(document.load().unwrap(), Some(LoadedDocument { bytes: b"one".to_vec(), stamp }));
    assert_eq!((mode(&scratch.path("a")), mode(&scratch.path("a/b"))), (0o700, 0o700));
    assert_eq!(mode(document.path()), 0o600);
    assert_eq!(crate::scratch_dir::names(&scratch.path("a/b")), ["tokens"]);
    assert!(!format!("{:?}", document.load()).contains("one"));
}

#[test]
fn unchanged_content_is_not_rewritten() {
    let scratch = ScratchDir::new();
    let document = Document::new(scratch.path("config"), DocumentPrivacy::Shared);
    document.write(b"same").unwrap();
    let before = fs::metadata(document.path()).unwrap().ino();
    document.write(b"same").unwrap();
    document.update(|_| Ok::<_, Infallible>(None)).unwrap();
    assert_eq!(fs::metadata(document.path()).unwrap().ino(), before);
    document.write(b"other").unwrap();
    assert_ne!(fs::metadata(document.path()).unwrap().ino(), before);
    let absent = Document::new(scratch.path("absent"), DocumentPrivacy::Shared);
    assert_eq!(absent.update(|_| Ok::<_, Infallible>(None)).unwrap(), ContentStamp::ABSENT);
    assert_eq!(scratch.names(), ["config"]);
}

#[test]
fn shared_document_is_replaced_behind_symlinks() {
    let scratch = ScratchDir::new();
    fs::create_dir(scratch.path("dotfiles")).unwrap();
    fs::write(scratch.path("dotfiles/real"), "old").unwrap();
    set_mode(&scratch.path("dotfiles/real"), 0o664);
    symlink("dotfiles/real", scratch.path("second")).unwrap();
    symlink(scratch.path("second"), scratch.path("first")).unwrap();
    let document = Document::new(scratch.path("first"), DocumentPrivacy::Shared);
    assert_eq!(document.load().unwrap().unwrap().bytes, b"old");
    document.write(b"new").unwrap();
    assert_eq!(fs::read(scratch.path("dotfiles/real")).unwrap(), b"new");
    assert_eq!(mode(&scratch.path("dotfiles/real")), 0o664);
    assert!(fs::symlink_metadata(scratch.path("first")).unwrap().is_symlink());
    fs::remove_file(scratch.path("dotfiles/real")).unwrap();
    assert_eq!(document.load().unwrap(), None);
    document.write(b"again").unwrap();
    assert_eq!(fs::read(scratch.path("dotfiles/real")).unwrap(), b"again");
    symlink("loop", scratch.path("loop")).unwrap();
    assert!(matches!(
        Document::new(scratch.path("loop"), DocumentPrivacy::Shared).load(),
        Err(DocumentLoadError::Io { .. })
    ));
    let folder = Document::new(scratch.path("dotfiles"), DocumentPrivacy::Shared);
    assert!(matches!(folder.load(), Err(DocumentLoadError::NotAFile { .. })));
}

#[test]
fn hard_linked_shared_document_is_not_replaced() {
    let scratch = ScratchDir::new();
    fs::write(scratch.path("config"), "old").unwrap();
    fs::hard_link(scratch.path("config"), scratch.path("other")).unwrap();
    let document = Document::new(scratch.path("config"), DocumentPrivacy::Shared);
    assert_eq!(document.load().unwrap().unwrap().bytes, b"old");
    let error = document.write(b"new").unwrap_err();
    assert!(
        matches!(&error, DocumentSaveError::Load(error) if error.violation().unwrap().flaw == PathViolation::HardLinks(2)),
        "{error:?}"
    );
    fs::remove_file(scratch.path("other")).unwrap();
    document.write(b"new").unwrap();
    assert_eq!(scratch.names(), ["config"]);
}

#[test]
fn shared_document_can_be_created_private() {
    let scratch = ScratchDir::new();
    fs::write(scratch.path("there"), "old").unwrap();
    set_mode(&scratch.path("there"), 0o644);
    for (name, expected) in [("new/config", 0o600), ("there", 0o644)] {
        Document::new(scratch.path(name), DocumentPrivacy::Shared).created_private().write(b"new").unwrap();
        assert_eq!(mode(&scratch.path(name)), expected, "{name}");
    }
    assert_eq!(mode(&scratch.path("new")), 0o700);
}

#[test]
fn replace_with_stale_stamp_conflicts() {
    let scratch = ScratchDir::new();
    let document = Document::new(scratch.path("config"), DocumentPrivacy::Shared);
    let first = document.replace(ContentStamp::ABSENT, b"first").unwrap();
    let second = document.replace(first, b"second").unwrap();
    for stale in [first, ContentStamp::ABSENT] {
        let conflict = document.replace(stale, b"third").unwrap_err();
        assert!(matches!(conflict, DocumentReplaceError::Conflict { found, .. } if found == second));
    }
    assert_eq!(document.load().unwrap().unwrap().bytes, b"second");
}

#[test]
fn update_restarts_when_file_changes_meanwhile() {
    let scratch = ScratchDir::new();
    let document = Document::new(scratch.path("config"), DocumentPrivacy::Shared);
    document.write(b"a").unwrap();
    let mut edits = 0;
    let add = |old: Option<&[u8]>| Ok::<_, Infallible>(Some([old.unwrap_or_default(), b"+"].concat()));
    let updated = document.update(|old| {
        edits += 1;
        if edits == 1 {
            fs::write(document.path(), "from an editor").unwrap();
        }
        add(old)
    });
    assert_eq!((updated.unwrap(), edits), (ContentStamp::from_content(b"from an editor+"), 2));
    let mut edits = 0;
    let restless = document.update(|old| {
        edits += 1;
        fs::write(document.path(), format!("{edits}")).unwrap();
        add(old)
    });
    assert!(matches!(restless, Err(DocumentUpdateError::Save(DocumentSaveError::Disturbed { .. }))));
    assert_eq!(scratch.names(), ["config"]);
}

#[test]
fn failed_write_leaves_the_old_content() {
    let scratch = ScratchDir::new();
    let document =
        Document::new(scratch.path("config"), DocumentPrivacy::Shared).with_limit(8).with_lock_timeout(Duration::ZERO);
    document.write(b"old").unwrap();
    let refused: Result<_, DocumentUpdateError<&str>> = document.update(|_| Err("no"));
    assert!(matches!(refused, Err(DocumentUpdateError::Edit("no"))));
    assert!(matches!(
        document.write(b"far too long"),
        Err(DocumentSaveError::Load(DocumentLoadError::TooLarge { limit: 8, .. }))
    ));
    let lock = LockFile::acquire(&scratch.path(".config.wharf-lock"), Duration::ZERO).unwrap();
    assert!(matches!(document.write(b"new"), Err(DocumentSaveError::Locked(LockError::Held { .. }))));
    drop(lock);
    fs::create_dir(scratch.path(".config.wharf-tmp")).unwrap();
    assert!(matches!(document.write(b"new"), Err(DocumentSaveError::Io { .. })));
    assert_eq!(document.load().unwrap().unwrap().bytes, b"old");
    fs::remove_dir(scratch.path(".config.wharf-tmp")).unwrap();
    fs::write(scratch.path(".config.wharf-tmp"), "left by a crash").unwrap();
    document.write(b"new").unwrap();
    assert_eq!(scratch.names(), ["config"]);
    fs::write(document.path(), "far too long").unwrap();
    assert!(matches!(document.load(), Err(DocumentLoadError::TooLarge { limit: 8, .. })));
    assert!(matches!(Document::new("/", DocumentPrivacy::Shared).load(), Err(DocumentLoadError::Io { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A document behaves like an optional byte string in memory.
    #[test]
    fn document_holds_the_last_written_content(
        steps in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..40)), 1..6),
        private: bool,
    ) {
        let scratch = ScratchDir::new();
        let privacy = if private { DocumentPrivacy::Private } else { DocumentPrivacy::Shared };
        let document = Document::new(scratch.path("document"), privacy);
        let mut model: Option<Vec<u8>> = None;
        for (fresh, bytes) in steps {
            let stamp = if fresh { ContentStamp::from_optional_content(model.as_deref()) } else { ContentStamp::from_content(&bytes) };
            let expected = stamp == ContentStamp::from_optional_content(model.as_deref());
            prop_assert_eq!(document.replace(stamp, &bytes).is_ok(), expected);
            if expected {
                model = Some(bytes);
            }
            prop_assert_eq!(document.load().unwrap().map(|loaded| loaded.bytes), model.clone());
        }
    }
}
