//! Tests: line format, detection of tampering, and recovery from crashes.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::path_safety::PathViolation;
use crate::scratch_dir::ScratchDir;

const LARGE_FILES: JournalOptions = JournalOptions { max_bytes: 1 << 20, keep_files: 3 };

/// Creates a journal with these entries, and its directory.
fn journal(entries: &[&str]) -> (ScratchDir, Journal) {
    let scratch = ScratchDir::new();
    let journal = Journal::open(&scratch.path("log"), LARGE_FILES).unwrap();
    entries.iter().for_each(|entry| journal.append(entry).unwrap());
    (scratch, journal)
}

fn lines(scratch: &ScratchDir) -> Vec<Value> {
    let text = fs::read_to_string(scratch.path("log")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn entries(scratch: &ScratchDir) -> Vec<Value> {
    lines(scratch).into_iter().map(|mut line| line["entry"].take()).collect()
}

/// Returns line and fault that verification reports.
fn fault(scratch: &ScratchDir) -> Option<(u64, CorruptionKind)> {
    match verify_journal(&scratch.path("log")) {
        Ok(_) => None,
        Err(JournalVerifyError::Broken(broken)) => Some((broken.line, broken.fault)),
        Err(error) => panic!("{error:?}"),
    }
}

#[test]
fn entries_are_single_printable_lines() {
    let (scratch, journal) = journal(&[]);
    let hostile = [
        json!("a\nb\r\n\u{1b}[2J\u{7f}"),
        json!({"tool": "x\u{2028}\u{202e}\u{9b}31m", "emoji \u{1f389}": "\\n \\\\ \" é"}),
        json!([null, 1.5, "\u{0}", {"deep": [[]]}]),
    ];
    hostile.iter().for_each(|entry| journal.append(entry).unwrap());
    let raw = RawValue::from_string("{\n\t\"a\" :\r\n \"é\u{7f}\" }".to_owned()).unwrap();
    journal.append(&*raw).unwrap();
    let text = fs::read(scratch.path("log")).unwrap();
    assert!(text.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n')));
    assert_eq!(text.iter().filter(|&&byte| byte == b'\n').count(), 4);
    assert_eq!(entries(&scratch), [&hostile[..], &[json!({"a": "é\u{7f}"})]].concat());
    assert_eq!(fault(&scratch), None);
}

#[test]
fn batch_is_chained_and_rotated_like_single_entries() {
    let raw = |number: usize| serde_json::value::to_raw_value(&format!("entry {number}")).unwrap();
    let batch: Vec<_> = (0..20).map(raw).collect();
    let options = JournalOptions { max_bytes: 700, keep_files: 9 };
    let written = [true, false].map(|at_once| {
        let scratch = ScratchDir::new();
        let journal = Journal::open(&scratch.path("log"), options).unwrap();
        match at_once {
            true => journal.append_all(&batch).unwrap(),
            false => batch.iter().for_each(|entry| journal.append(&**entry).unwrap()),
        }
        journal.append("last").unwrap();
        assert_eq!(verify_journal(&scratch.path("log")).unwrap().entries, 21);
        (fs::read_to_string(scratch.path("log")).unwrap(), fs::read_dir(scratch.path("")).unwrap().count())
    });
    assert_eq!(written[0], written[1]);
    assert!(written[0].1 > 3, "the journal was rotated");
}

#[test]
fn journal_is_private_and_versioned() {
    let (scratch, journal) = journal(&["a"]);
    assert_eq!(lines(&scratch)[0]["schema"], json!(1));
    for name in ["log", "log.head"] {
        assert_eq!(fs::metadata(scratch.path(name)).unwrap().mode() & 0o7777, 0o600, "{name}");
    }
    fs::set_permissions(scratch.path("log"), fs::Permissions::from_mode(0o644)).unwrap();
    let refused = journal.append("b").unwrap_err();
    assert!(matches!(refused, JournalAppendError::Unsafe(found) if found.flaw == PathViolation::Exposed(0o644)));
    fs::set_permissions(scratch.path("log.head"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(Journal::open(&scratch.path("log"), LARGE_FILES), Err(JournalOpenError::Unsafe(_))));
}

#[test]
fn tampering_is_found_where_it_happened() {
    type Tamper = fn(&mut Vec<String>);
    let cases: [(&str, Tamper, u64, CorruptionKind); 9] = [
        ("first deleted", |lines| drop(lines.remove(0)), 1, CorruptionKind::Beginning),
        ("middle deleted", |lines| drop(lines.remove(1)), 2, CorruptionKind::Order { expected: 1, found: 2 }),
        ("last deleted", |lines| drop(lines.pop()), 3, CorruptionKind::End(1)),
        ("all deleted", |lines| lines.clear(), 0, CorruptionKind::End(4)),
        ("swapped", |lines| lines.swap(1, 2), 2, CorruptionKind::Order { expected: 1, found: 2 }),
        ("doubled", |lines| lines.insert(1, lines[1].clone()), 3, CorruptionKind::Order { expected: 2, found: 1 }),
        ("edited", |lines| lines[1] = lines[1].replace("two", "2"), 2, CorruptionKind::Altered),
        ("last edited", |lines| lines[3] = lines[3].replace("four", "4"), 4, CorruptionKind::Altered),
        ("foreign", |lines| lines.insert(2, "hello\n".to_owned()), 3, CorruptionKind::Foreign),
    ];
    for (name, tamper, line, expected) in cases {
        let (scratch, journal) = journal(&["one", "two", "three", "four"]);
        let text = fs::read_to_string(scratch.path("log")).unwrap();
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        tamper(&mut lines);
        fs::write(scratch.path("log"), lines.concat()).unwrap();
        assert_eq!(fault(&scratch), Some((line, expected)), "{name}");
        // Appending further entries does not hide the fault.
        journal.append("five").unwrap();
        assert!(fault(&scratch).is_some(), "{name}");
    }
}

#[test]
fn lost_head_is_reported_and_rebuilt() {
    let (scratch, journal) = journal(&["one", "two"]);
    drop(journal);
    fs::remove_file(scratch.path("log.head")).unwrap();
    assert_eq!(fault(&scratch), Some((2, CorruptionKind::NoHead)));
    let journal = Journal::open(&scratch.path("log"), LARGE_FILES).unwrap();
    journal.append("three").unwrap();
    assert_eq!(fault(&scratch), None);
    fs::write(scratch.path("log.head"), "nonsense").unwrap();
    journal.append("four").unwrap();
    assert_eq!(
        verify_journal(&scratch.path("log")).unwrap(),
        JournalSummary { entries: 4, first: 0, files: 1, torn: 0 }
    );
    assert!(matches!(verify_journal(&scratch.path("other")), Err(JournalVerifyError::Io { .. })));
    let _untouched = Journal::open(&scratch.path("other"), LARGE_FILES).unwrap();
    assert_eq!(verify_journal(&scratch.path("other")).unwrap().entries, 0);
}

#[test]
fn crash_at_any_byte_loses_only_the_unfinished_line() {
    let (scratch, journal) = journal(&["one", "two"]);
    let (head, before) = (fs::read(scratch.path("log.head")).unwrap(), fs::read(scratch.path("log")).unwrap());
    journal.append("three").unwrap();
    let after = fs::read(scratch.path("log")).unwrap();
    for cut in before.len()..=after.len() {
        // Simulates a crash there: part of the line is written, the head is not.
        fs::write(scratch.path("log"), &after[..cut]).unwrap();
        fs::write(scratch.path("log.head"), &head).unwrap();
        let _ = fs::remove_file(scratch.path("log.torn"));
        let (is_whole, is_torn) = (cut == after.len(), cut > before.len() && cut < after.len());
        assert_eq!(fault(&scratch), is_torn.then_some((3, CorruptionKind::Torn)), "{cut}");
        journal.append("four").unwrap();
        let expected: &[&str] = if is_whole { &["one", "two", "three", "four"] } else { &["one", "two", "four"] };
        assert_eq!(entries(&scratch), expected, "{cut}");
        assert_eq!(verify_journal(&scratch.path("log")).unwrap().torn, u64::from(is_torn), "{cut}");
        let torn = fs::read(scratch.path("log.torn")).unwrap_or_default();
        assert_eq!(torn.strip_suffix(b"\n").unwrap_or_default(), if is_torn { &after[before.len()..cut] } else { b"" });
    }
}

#[test]
fn concurrent_threads_lose_no_entries() {
    let (scratch, journal) = journal(&[]);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let journal = &journal;
            scope.spawn(move || (0..50).for_each(|step| journal.append(&[thread, step]).unwrap()));
        }
    });
    journal.sync().unwrap();
    let mut found = entries(&scratch);
    found.sort_by_key(|entry| (entry[0].as_u64(), entry[1].as_u64()));
    let expected: Vec<Value> = (0..400).map(|number| json!([number / 50, number % 50])).collect();
    assert_eq!((found, fault(&scratch)), (expected, None));
}

#[test]
fn full_files_are_rotated_and_the_oldest_removed() {
    let scratch = ScratchDir::new();
    let options = JournalOptions { max_bytes: 600, keep_files: 2 };
    let journal = Journal::open(&scratch.path("log"), options).unwrap();
    for number in 0..20 {
        journal.append(&json!({"number": number})).unwrap();
        verify_journal(&scratch.path("log")).unwrap();
    }
    let names = scratch.names();
    let [current, older, newer, head] = names.as_slice() else { panic!("{names:?}") };
    assert_eq!((current.as_str(), head.as_str()), ("log", "log.head"));
    assert_eq!(lines(&scratch)[0]["after"], json!(newer));
    for name in [current, older, newer] {
        assert!(fs::metadata(scratch.path(name)).unwrap().len() <= options.max_bytes, "{name}");
    }
    let verified = verify_journal(&scratch.path("log")).unwrap();
    assert_eq!((verified.first + verified.entries, verified.files), (20, 3));
    // Simulates a crash between renaming the full file and starting the next.
    fs::rename(scratch.path("log"), scratch.path("log.000099")).unwrap();
    journal.append("after a crash").unwrap();
    assert_eq!(verify_journal(&scratch.path("log")).unwrap().files, 4);
    fs::remove_file(scratch.path(newer)).unwrap();
    assert!(matches!(fault(&scratch), Some((1, CorruptionKind::Order { .. }))));
}

#[test]
fn append_failures_are_reported_and_recoverable() {
    struct Unserializable;
    impl Serialize for Unserializable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no"))
        }
    }
    let scratch = ScratchDir::new();
    let journal = Journal::open(&scratch.path("log"), JournalOptions { max_bytes: 200, keep_files: 1 }).unwrap();
    assert!(matches!(journal.append(&Unserializable), Err(JournalAppendError::NotJson(_))));
    assert!(matches!(journal.append(&"x".repeat(200)), Err(JournalAppendError::TooLarge { limit: 200 })));
    journal.append("fine").unwrap();
    fs::rename(scratch.path("log"), scratch.path("away")).unwrap();
    fs::create_dir(scratch.path("log")).unwrap();
    assert!(matches!(journal.append("fine"), Err(JournalAppendError::Io { .. })));
    fs::remove_dir(scratch.path("log")).unwrap();
    fs::rename(scratch.path("away"), scratch.path("log")).unwrap();
    journal.append("again").unwrap();
    assert_eq!(verify_journal(&scratch.path("log")).unwrap().entries, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every change, removal or insertion of a single byte is detected.
    #[test]
    fn any_single_byte_change_is_detected(
        texts in proptest::collection::vec(".{0,12}", 1..5),
        place: prop::sample::Index,
        byte: u8,
        how in 0..3u8,
    ) {
        let (scratch, _journal) = journal(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert_eq!(fault(&scratch), None);
        let before = fs::read(scratch.path("log")).unwrap();
        let mut after = before.clone();
        let at = place.index(before.len());
        match how {
            0 => after[at] = byte,
            1 => drop(after.remove(at)),
            _ => after.insert(at, byte),
        }
        fs::write(scratch.path("log"), &after).unwrap();
        prop_assert_eq!(fault(&scratch).is_some(), after != before);
    }
}
