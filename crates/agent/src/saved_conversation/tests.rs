use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, UNIX_EPOCH};

use tempfile::TempDir;
use wharf_json::RawJson;

use super::*;
use crate::conversation::{ResultBlock, TurnBlock, TurnRole};

fn user(text: &str) -> ConversationTurn {
    ConversationTurn { role: TurnRole::User, blocks: vec![TurnBlock::Text(text.into())] }
}

fn assistant(text: &str) -> ConversationTurn {
    ConversationTurn { role: TurnRole::Assistant, blocks: vec![TurnBlock::Text(text.into())] }
}

fn call_turn(id: &str) -> ConversationTurn {
    let call =
        TurnBlock::ToolCall { id: id.into(), name: "t".into(), arguments: RawJson::empty_object(), malformed: None };
    ConversationTurn { role: TurnRole::Assistant, blocks: vec![call] }
}

/// Returns a directory with one closed conversation of these turns, and its id.
fn save_turns(turns: &[ConversationTurn]) -> (TempDir, String) {
    let directory = TempDir::new().unwrap();
    let mut saved = SavedConversation::create(directory.path()).unwrap();
    turns.iter().for_each(|turn| saved.append(turn).unwrap());
    let id = saved.id().to_owned();
    (directory, id)
}

fn write(directory: &TempDir, id: &str, change: impl FnOnce(String) -> String) {
    let path = directory::conversation_path(directory.path(), id);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, change(text)).unwrap();
}

#[test]
fn appended_turns_are_restored() {
    let directory = TempDir::new().unwrap();
    let mut saved = SavedConversation::create(&directory.path().join("a/b")).unwrap();
    let directory = directory.path().join("a/b");
    saved.record_servers(&["files".into()]).unwrap();
    assert_eq!(directory.read_dir().unwrap().count(), 0, "nothing was said");
    saved.append(&user("hi")).unwrap();
    saved.append(&assistant("hello")).unwrap();
    saved.record_servers(&["files".into()]).unwrap();
    saved.record_servers(&["files".into(), "mail".into()]).unwrap();
    let id = saved.id().to_owned();
    let text = std::fs::read_to_string(directory::conversation_path(&directory, &id)).unwrap();
    let heads: Vec<&str> = text.lines().map(|line| &line[..24]).collect();
    let servers = r#"{"schema":2,"servers":["#;
    assert_eq!(heads[0], r#"{"schema":2,"conversatio"#);
    assert!(heads[1].starts_with(servers) && heads[4].starts_with(servers) && heads.len() == 5, "{heads:?}");
    drop(saved);
    let mut resumed = SavedConversation::resume(&directory, Some(&id)).unwrap();
    assert_eq!(resumed.conversation.turns, [user("hi"), assistant("hello")]);
    assert_eq!((resumed.servers, resumed.problems), (vec!["files".into(), "mail".into()], vec![]));
    resumed.saved.append(&user("more")).unwrap();
    drop(resumed.saved);
    assert_eq!(SavedConversation::resume(&directory, None).unwrap().conversation.turns.len(), 3);
}

#[test]
fn files_are_private_to_the_user() {
    let (directory, id) = save_turns(&[user("hi")]);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(directory.path()), mode(&directory::conversation_path(directory.path(), &id))), (0o700, 0o600));
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    SavedConversation::create(directory.path()).unwrap();
    assert_eq!(mode(directory.path()), 0o700);
}

#[test]
fn conversation_is_locked_by_one_process() {
    let directory = TempDir::new().unwrap();
    let mut saved = SavedConversation::create(directory.path()).unwrap();
    saved.append(&user("hi")).unwrap();
    assert!(
        matches!(SavedConversation::resume(directory.path(), None), Err(SavedConversationError::Busy(id)) if id == saved.id())
    );
    drop(saved);
    let resumed = SavedConversation::resume(directory.path(), None).unwrap();
    assert!(matches!(SavedConversation::resume(directory.path(), None), Err(SavedConversationError::Busy(_))));
    drop(resumed);
}

#[test]
fn torn_line_is_skipped_and_overwritten() {
    let (directory, id) = save_turns(&[user("hi"), assistant("hello")]);
    write(&directory, &id, |text| text[..text.len() - 10].to_owned());
    let mut resumed = SavedConversation::resume(directory.path(), None).unwrap();
    assert_eq!((resumed.conversation.turns, resumed.problems), (vec![user("hi")], vec![]));
    resumed.saved.append(&assistant("again")).unwrap();
    drop(resumed.saved);
    let resumed = SavedConversation::resume(directory.path(), None).unwrap();
    assert_eq!((resumed.conversation.turns, resumed.problems), (vec![user("hi"), assistant("again")], vec![]));
}

#[test]
fn malformed_line_is_reported_and_newer_schema_fails() {
    let (directory, id) = save_turns(&[user("hi"), assistant("hello")]);
    write(&directory, &id, |text| text.replacen("\n", "\n{\"schema\":1,\"turn\":7}\nnothing\n", 1));
    let resumed = SavedConversation::resume(directory.path(), None).unwrap();
    assert_eq!(resumed.conversation.turns.len(), 2);
    let expected = ["line 2: not a conversation turn", "line 3: not a conversation turn"];
    assert_eq!(resumed.problems, expected);
    drop(resumed);
    write(&directory, &id, |text| text + "{\"schema\":7,\"poem\":1}\n");
    let error = SavedConversation::resume(directory.path(), None).err().unwrap();
    assert_eq!(error.to_string(), format!("conversation `{id}` has schema 7, but this version supports only up to 2"));
}

#[test]
fn schema_1_conversation_is_listed_and_resumed() {
    let (directory, id) = save_turns(&[user("hi"), assistant("hello")]);
    write(&directory, &id, |text| text.replace("{\"schema\":2,", "{\"schema\":1,"));
    let listed = SavedConversation::list(directory.path(), 2).unwrap();
    assert_eq!((listed[0].first.as_str(), listed[0].turns), ("hi", 2));
    let relayed = ConversationTurn { role: TurnRole::User, blocks: vec![TurnBlock::quote("Whose:", "words")] };
    let mut resumed = SavedConversation::resume(directory.path(), None).unwrap();
    resumed.saved.append(&relayed).unwrap();
    drop(resumed.saved);
    let resumed = SavedConversation::resume(directory.path(), None).unwrap();
    assert_eq!((resumed.conversation.turns, resumed.problems), (vec![user("hi"), assistant("hello"), relayed], vec![]));
    assert_eq!(SavedConversation::list(directory.path(), 2).unwrap()[0].turns, 3);
}

fn result(id: &str, text: &str) -> TurnBlock {
    TurnBlock::ToolResult { id: id.into(), content: vec![ResultBlock::Text(text.into())], is_error: false }
}

/// L4: the process was killed while the second of two calls was pending.
#[test]
fn result_of_an_answered_call_survives_a_crash() {
    let mut calls = call_turn("1");
    calls.blocks.extend(call_turn("2").blocks);
    let directory = TempDir::new().unwrap();
    let mut saved = SavedConversation::create(directory.path()).unwrap();
    saved.append(&user("hi")).unwrap();
    saved.append(&calls).unwrap();
    saved.append_result(result("1", "done")).unwrap();
    drop(saved);
    let resumed = SavedConversation::resume(directory.path(), None).unwrap();
    let results = |turn: &ConversationTurn| format!("{:?}", turn.blocks);
    assert_eq!((resumed.conversation.turns.len(), resumed.problems), (3, vec![]));
    assert_eq!(resumed.conversation.turns[2].blocks[0], result("1", "done"));
    assert!(results(&resumed.conversation.turns[2]).contains("may or may not have executed"));
    let mut saved = resumed.saved;
    // Without a crash the complete turn follows, and a listing counts turns only.
    let all = ConversationTurn { role: TurnRole::User, blocks: vec![result("1", "done"), result("2", "late")] };
    saved.append(&all).unwrap();
    drop(saved);
    let resumed = SavedConversation::resume(directory.path(), None).unwrap();
    assert_eq!(resumed.conversation.turns[2..], [all]);
    assert_eq!(SavedConversation::list(directory.path(), 1).unwrap()[0].turns, 3);
}

#[test]
fn unanswered_call_gets_an_error_result() {
    let (directory, _) = save_turns(&[user("hi"), call_turn("1")]);
    let turns = SavedConversation::resume(directory.path(), None).unwrap().conversation.turns;
    let content =
        vec![ResultBlock::Text("the program ended before this call returned; it may or may not have executed".into())];
    let result = TurnBlock::ToolResult { id: "1".into(), content, is_error: true };
    assert_eq!(turns[2..], [ConversationTurn { role: TurnRole::User, blocks: vec![result] }]);
}

#[test]
fn ids_with_path_components_or_symlinks_are_unknown() {
    let (directory, id) = save_turns(&[user("hi")]);
    let elsewhere = TempDir::new().unwrap();
    std::fs::copy(directory::conversation_path(directory.path(), &id), elsewhere.path().join("x.jsonl")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("x.jsonl"), directory.path().join("link.jsonl")).unwrap();
    let outside = format!("../{}/x", elsewhere.path().file_name().unwrap().to_str().unwrap());
    for id_prefix in [outside.as_str(), "/etc/passwd", "..", "link", "x", "é"] {
        let error = SavedConversation::resume(directory.path(), Some(id_prefix)).err().unwrap();
        assert!(matches!(error, SavedConversationError::Unknown(unknown) if unknown == id_prefix), "{id_prefix}");
    }
}

#[test]
fn unique_id_prefix_is_resolved() {
    let directory = TempDir::new().unwrap();
    let ids = ["20261115-103005-aaaa", "20261115-103006-bbbb", "20261116-000000-cccc"];
    let (_kept, id) = save_turns(&[user("hi")]);
    for name in ids {
        std::fs::copy(
            directory::conversation_path(_kept.path(), &id),
            directory::conversation_path(directory.path(), name),
        )
        .unwrap();
    }
    for (id_prefix, expected) in [
        ("20261116", Ok(2)),
        ("20261115-103006", Ok(1)),
        (ids[0], Ok(0)),
        ("20261115", Err("several conversation ids begin with `20261115`")),
        ("", Err("several conversation ids begin with ``")),
        ("2025", Err("unknown conversation `2025`")),
    ] {
        let found = directory::find_id(directory.path(), Some(id_prefix)).map_err(|error| error.to_string());
        assert_eq!(found, expected.map(|at: usize| ids[at].to_owned()).map_err(str::to_owned), "{id_prefix}");
    }
    let none = SavedConversation::resume(&directory.path().join("none"), None).err().unwrap();
    assert!(matches!(none, SavedConversationError::Nothing));
}

#[test]
fn newest_conversation_is_listed_first() {
    let directory = TempDir::new().unwrap();
    for (number, text) in ["one", "two", "three"].into_iter().enumerate() {
        let mut saved = SavedConversation::create(directory.path()).unwrap();
        saved.append(&user(text)).unwrap();
        saved.append(&assistant("ok")).unwrap();
        let at = UNIX_EPOCH + Duration::from_secs(1_000_000 + number as u64);
        saved.file.as_ref().unwrap().set_modified(at).unwrap();
    }
    let listed = SavedConversation::list(directory.path(), 2).unwrap();
    let firsts: Vec<(&str, usize)> = listed.iter().map(|summary| (summary.first.as_str(), summary.turns)).collect();
    assert_eq!(firsts, [("three", 2), ("two", 2)]);
    assert_eq!(SavedConversation::list(&directory.path().join("none"), 2).unwrap(), []);
}

#[test]
fn summary_is_the_first_user_text() {
    let picture = TurnBlock::Image { media_type: "image/png".into(), data: "aGk=".into() };
    let began = |block: TurnBlock| ConversationTurn { role: TurnRole::User, blocks: vec![block] };
    for (first, expected) in [
        (user("hi"), "hi"),
        (began(TurnBlock::Relayed("whose:\n> words".into())), "whose:\n> words"),
        (began(picture), "then"),
    ] {
        let (directory, _) = save_turns(&[first, assistant("hello"), user("then")]);
        assert_eq!(SavedConversation::list(directory.path(), 1).unwrap()[0].first, expected);
    }
}

#[test]
fn ids_sort_by_time() {
    let at = |seconds| directory::new_id(UNIX_EPOCH + Duration::from_secs(seconds));
    assert!(at(1_794_738_605).starts_with("20261115-103005-"), "{}", at(1_794_738_605));
    assert_eq!(at(0).len(), "20261115-103005-x7k2".len());
    assert!(at(999_999_999) < at(1_000_000_000));
}
