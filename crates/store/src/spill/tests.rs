//! Tests: containment, permissions and quotas of spilled files.

use std::fs::{self, FileTimes, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use proptest::prelude::*;

use super::*;
use crate::scratch_dir::{ScratchDir, names};

fn open(scratch: &ScratchDir, limits: SpillLimits) -> SpillDir {
    SpillDir::open(&scratch.path("spill"), limits).unwrap()
}

fn age(path: &Path, by: Duration) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_times(FileTimes::new().set_modified(SystemTime::now() - by)).unwrap();
}

#[test]
fn spilled_file_is_private_with_a_generated_name() {
    let scratch = ScratchDir::new();
    let spill = open(&scratch, SpillLimits::default());
    assert_eq!(fs::metadata(scratch.path("spill")).unwrap().mode() & 0o7777, 0o700);
    for kind in SpillExtension::ALL {
        let spilled = spill.write_pieces(kind, ["ab", "", "cd"]).unwrap();
        assert_eq!((fs::read(&spilled.path).unwrap(), spilled.bytes), (b"abcd".to_vec(), 4));
        assert_eq!(spilled.path.parent(), Some(scratch.path("spill").as_path()));
        assert!(is_our_name(spilled.path.file_name().unwrap()));
        assert_eq!(spilled.path.extension().unwrap(), kind.as_str());
        assert_eq!(fs::metadata(&spilled.path).unwrap().mode() & 0o7777, 0o600);
    }
}

#[test]
fn unsafe_spill_directory_is_rejected() {
    let scratch = ScratchDir::new();
    let path = scratch.path("spill");
    let refused = || match SpillDir::open(&path, SpillLimits::default()) {
        Err(SpillError::Unsafe(found)) => found.flaw,
        other => panic!("{other:?}"),
    };
    fs::create_dir(&path).unwrap();
    for mode in [0o755, 0o770, 0o1777] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert_eq!(refused(), PathViolation::Exposed(mode));
    }
    fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        assert_eq!(refused(), PathViolation::Owner { found: 12345, expected: 0 });
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
    }
    fs::rename(&path, scratch.path("real")).unwrap();
    symlink("real", &path).unwrap();
    assert_eq!(refused(), PathViolation::Link);
    fs::remove_file(&path).unwrap();
    fs::set_permissions(scratch.path(""), Permissions::from_mode(0o777)).unwrap();
    assert_eq!(refused(), PathViolation::Writable(0o777));
    fs::remove_dir(&path).unwrap();
    fs::set_permissions(scratch.path(""), Permissions::from_mode(0o700)).unwrap();
    fs::write(&path, "").unwrap();
    assert!(matches!(SpillDir::open(&path, SpillLimits::default()), Err(SpillError::Io { .. })));
}

#[test]
fn spill_quotas_are_exact() {
    let limits = SpillLimits { total_bytes: 10, files: 3, one: 6, age: Duration::from_secs(60) };
    for (before, bytes, expected) in [
        (&[][..], 6, "written"),
        (&[], 7, "too large"),
        (&[6], 4, "written"),
        (&[6], 5, "full"),
        (&[5, 5], 0, "written"),
        (&[5, 5], 1, "full"),
        (&[1, 1, 1], 1, "full"),
    ] {
        let scratch = ScratchDir::new();
        let spill = open(&scratch, limits);
        let write = |count: usize| spill.write(SpillExtension::Txt, &vec![b'x'; count][..]);
        before.iter().for_each(|&count| drop(write(count).unwrap()));
        let found = match write(bytes) {
            Ok(_) => "written",
            Err(SpillError::TooLarge { limit: 6 }) => "too large",
            Err(SpillError::Full { limit: 10, files, .. }) if files == before.len() => "full",
            Err(error) => panic!("{error:?}"),
        };
        assert_eq!(found, expected, "{before:?} and {bytes}");
        let count = before.len() + usize::from(expected == "written");
        assert_eq!(names(&scratch.path("spill")).len(), count, "{before:?} and {bytes}");
    }
}

#[test]
fn expired_files_make_room_and_foreign_files_stay() {
    let scratch = ScratchDir::new();
    let day = Duration::from_secs(86_400);
    let spill = open(&scratch, SpillLimits { total_bytes: 4, age: 7 * day, ..SpillLimits::default() });
    let spilled = spill.write(SpillExtension::Txt, &b"1234"[..]).unwrap();
    let foreign = [
        "notes.txt".to_owned(),
        "spill-12.txt".to_owned(),
        format!("spill-{}.txt", "G".repeat(32)),
        format!("spill-{}.sh", "a".repeat(32)),
        format!("spill-{}", "a".repeat(32)),
    ];
    for name in &foreign {
        fs::write(scratch.path("spill").join(name), "precious").unwrap();
        age(&scratch.path("spill").join(name), 100 * day);
    }
    fs::create_dir(scratch.path("spill").join(format!("spill-{}.bin", "b".repeat(32)))).unwrap();
    symlink(scratch.path("spill/notes.txt"), scratch.path("spill").join(format!("spill-{}.txt", "c".repeat(32))))
        .unwrap();
    let others = foreign.len() + 2;
    assert_eq!(spill.remove_expired().unwrap(), FileTotals::default());
    assert!(matches!(spill.write(SpillExtension::Txt, &b"x"[..]), Err(SpillError::Full { used: 4, files: 1, .. })));
    age(&spilled.path, 6 * day);
    assert_eq!(spill.remove_expired().unwrap(), FileTotals::default());
    age(&spilled.path, 8 * day);
    let next = spill.write(SpillExtension::Txt, &b"5678"[..]).unwrap();
    assert!(!spilled.path.exists());
    age(&next.path, 8 * day);
    assert_eq!(spill.remove_expired().unwrap(), FileTotals { files: 1, bytes: 4 });
    assert_eq!(names(&scratch.path("spill")).len(), others);
}

#[test]
fn only_valid_base64_is_decoded() {
    let scratch = ScratchDir::new();
    let spill = open(&scratch, SpillLimits::default());
    for (text, expected) in [
        ("", Some("")),
        ("YWhveQ==", Some("ahoy")),
        ("YWhveQ", Some("ahoy")),
        ("YWhv", Some("aho")),
        ("YWhveQ=", Some("ahoy")),
        ("YWhv eQ==", None),
        ("YWhveQ==YWhv", None),
        ("-_-_", None),
        ("YWhv\u{1b}", None),
        ("Y", None),
    ] {
        match spill.write_base64(SpillExtension::Bin, text.as_bytes()) {
            Ok(spilled) => assert_eq!(Some(fs::read_to_string(spilled.path).unwrap().as_str()), expected, "{text}"),
            Err(SpillError::NotBase64) => assert_eq!(None, expected, "{text}"),
            Err(error) => panic!("{text}: {error:?}"),
        }
    }
    let written = names(&scratch.path("spill")).len();
    let late = format!("{}!", "QUJD".repeat(COPY_BUFFER_BYTES));
    assert!(matches!(spill.write_base64(SpillExtension::Bin, late.as_bytes()), Err(SpillError::NotBase64)));
    assert_eq!(names(&scratch.path("spill")).len(), written);
}

/// Another thread keeps swapping the directory for a link to another directory.
#[test]
fn spill_stays_in_the_opened_directory() {
    let scratch = ScratchDir::new();
    let spill = open(&scratch, SpillLimits::default());
    let (path, aside, victim) = (scratch.path("spill"), scratch.path("aside"), scratch.path("victim"));
    fs::create_dir(&victim).unwrap();
    let done = AtomicBool::new(false);
    let swaps = std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let mut swaps = 0;
            while !done.load(Ordering::Relaxed) || swaps == 0 {
                fs::rename(&path, &aside).unwrap();
                symlink(&victim, &path).unwrap();
                fs::remove_file(&path).unwrap();
                fs::rename(&aside, &path).unwrap();
                swaps += 1;
            }
            swaps
        });
        let written = (0..300).try_for_each(|_| spill.write(SpillExtension::Txt, &b"x"[..]).map(drop));
        done.store(true, Ordering::Relaxed);
        written.unwrap();
        swapper.join().unwrap()
    });
    assert!(swaps > 0);
    assert_eq!(names(&victim).len(), 0);
    assert_eq!(names(&path).len(), 300);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn spilled_content_round_trips(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..6)) {
        let scratch = ScratchDir::new();
        let spill = open(&scratch, SpillLimits::default());
        let whole = pieces.concat();
        let encoded = base64::engine::general_purpose::STANDARD.encode(&whole);
        for spilled in [spill.write_pieces(SpillExtension::Bin, &pieces), spill.write_base64(SpillExtension::Bin, encoded.as_bytes())] {
            let spilled = spilled.unwrap();
            prop_assert_eq!(spilled.bytes, whole.len() as u64);
            prop_assert_eq!(fs::read(spilled.path).unwrap(), whole.clone());
        }
    }
}
