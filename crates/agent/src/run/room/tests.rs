use wharf_json::Raw;

use super::*;
use crate::whole::flaw;

/// A conversation of rounds: words of the person or nothing, a call, and its result of so many bytes; `p` is a picture.
fn rounds(rounds: &[(&str, &str)]) -> Conversation {
    let mut conversation = Conversation::default();
    for (number, (said, result)) in rounds.iter().enumerate() {
        let words = (!said.is_empty()).then(|| Block::Text((*said).to_owned()));
        crate::whole::add(&mut conversation, user(words.into_iter().collect()));
        let id = number.to_string();
        let call =
            Block::ToolCall { id: id.clone(), name: "t".into(), arguments: Raw::empty_object(), malformed: None };
        conversation.turns.push(Turn { role: Role::Assistant, blocks: vec![call] });
        let content = vec![match result.parse() {
            Ok(bytes) => ResultBlock::Text("x".repeat(bytes)),
            Err(_) => ResultBlock::Image { media_type: "image/png".into(), data: "aGk=".into() },
        }];
        conversation.turns.push(user(vec![Block::ToolResult { id, content, is_error: false }]));
    }
    conversation
}

fn user(blocks: Vec<Block>) -> Turn {
    Turn { role: Role::User, blocks }
}

/// What is left: the person's words, and the size of each result; `-` is a picture that was left out.
fn shape(conversation: &Conversation) -> String {
    let blocks = conversation.turns.iter().flat_map(|turn| &turn.blocks);
    let word = |block: &Block| match block {
        Block::Text(text) => Some(text.clone()),
        Block::ToolResult { content, .. } => Some(match &content[0] {
            ResultBlock::Image { .. } => "p".to_owned(),
            ResultBlock::Text(text) if text == PICTURE_LEFT_OUT => "-".to_owned(),
            ResultBlock::Text(text) => text.bytes().filter(|byte| *byte == b'x').count().to_string(),
        }),
        _ => None,
    };
    blocks.filter_map(word).collect::<Vec<_>>().join(" ")
}

fn check(before: &[(&str, &str)], excess: u64, reach: Reach, expected: &str, touched: usize) {
    let mut conversation = rounds(before);
    assert_eq!(flaw(&conversation), None);
    let told = shorten(&mut conversation, excess, reach);
    assert_eq!((shape(&conversation).as_str(), told), (expected, touched), "{before:?} by {excess}");
    assert_eq!(flaw(&conversation), None);
}

#[test]
fn the_oldest_goes_first_and_no_more_than_needed() {
    use Reach::{All, Old};
    let long = [("do", "9000"), ("", "9000"), ("", "9000")];
    check(&long, 0, Old, "do 9000 9000 9000", 0);
    check(&long, 100, Old, "do 1000 9000 9000", 1);
    check(&long, 3000, Old, "do 1000 1000 9000", 2);
    check(&long, 3000, All, "do 400 400 9000", 2);
    check(&long, 4600, Old, "do 9000", 4);
    check(&long, 100_000, Old, "do 9000", 4);
    check(&long, 100_000, All, "do 4000", 5);
}

#[test]
fn pictures_go_before_texts() {
    let mixed = [("do", "9000"), ("", "p"), ("", "p")];
    check(&mixed, 100, Reach::Old, "do 9000 - p", 1);
    check(&mixed, 2000, Reach::Old, "do 1000 - p", 2);
    check(&mixed, 100_000, Reach::All, "do -", 5);
}

#[test]
fn the_words_of_the_person_stay() {
    let said = [("one", "9000"), ("two", "9000"), ("three", "100")];
    check(&said, 100_000, Reach::Old, "one two three 100", 4);
    check(&[("one", "10")], 100_000, Reach::Old, "one 10", 0);
}

#[test]
fn what_was_cut_says_so() {
    let mut block = ResultBlock::Text("ü".repeat(1000));
    let saved = cut(&mut block, 401);
    let expected = format!("{}\n(shortened: 1600 bytes left out)", "ü".repeat(200));
    assert_eq!((&block, saved), (&ResultBlock::Text(expected.clone()), 2000 - expected.len()));
    assert_eq!(cut(&mut block, 401), 0);
}

#[test]
fn what_an_api_counted_is_believed() {
    let mut conversation = rounds(&[("do", "9000")]);
    let mut gauge = Gauge { definitions: 50, ..Gauge::default() };
    assert_eq!(gauge.estimate(&conversation), 50 + tokens(9000 + 2 + 3));
    gauge.count(0, &conversation);
    assert_eq!(gauge.estimate(&conversation), 50 + tokens(9000 + 2 + 3));
    gauge.count(5000, &conversation);
    assert_eq!(gauge.estimate(&conversation), 5000);
    conversation.turns.push(user(vec![Block::Text("x".repeat(400))]));
    assert_eq!(gauge.estimate(&conversation), 5100);
    shorten(&mut conversation, 1_000_000, Reach::All);
    assert!(gauge.estimate(&conversation) < 5100);
}
