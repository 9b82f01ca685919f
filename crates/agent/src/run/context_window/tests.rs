use wharf_json::RawJson;

use super::*;
use crate::repair::find_defect;

/// Builds a conversation of rounds: the person's text (may be empty), then a call and its result. A result is a number
/// of bytes, or `p` for an image. A `+` is followed by a relayed block in the same notation.
fn rounds(rounds: &[(&str, &str)]) -> Conversation {
    let mut conversation = Conversation::default();
    for (number, (text, result)) in rounds.iter().enumerate() {
        let words = (!text.is_empty()).then(|| TurnBlock::Text((*text).to_owned()));
        repair::append_turn(&mut conversation, user(words.into_iter().collect()));
        let id = number.to_string();
        let call = TurnBlock::ToolCall {
            id: id.clone(),
            name: "t".into(),
            arguments: RawJson::empty_object(),
            malformed: None,
        };
        conversation.turns.push(ConversationTurn { role: TurnRole::Assistant, blocks: vec![call] });
        let (result, relayed) =
            result.split_once('+').map_or((*result, None), |(result, relayed)| (result, Some(relayed)));
        let content = vec![match result.parse() {
            Ok(bytes) => ResultBlock::Text("x".repeat(bytes)),
            Err(_) => ResultBlock::Image { media_type: "image/png".into(), data: "aGk=".into() },
        }];
        let relayed = relayed.map(|size| match size.parse() {
            Ok(bytes) => TurnBlock::Relayed("x".repeat(bytes)),
            Err(_) => TurnBlock::Image { media_type: "image/png".into(), data: "aGk=".into() },
        });
        let result = TurnBlock::ToolResult { id, content, is_error: false };
        conversation.turns.push(user(std::iter::once(result).chain(relayed).collect()));
    }
    conversation
}

fn user(blocks: Vec<TurnBlock>) -> ConversationTurn {
    ConversationTurn { role: TurnRole::User, blocks }
}

/// Describes a shortened conversation: the person's text, the size of each result, and after a `+` the size of a
/// relayed block. `-` is a removed image.
fn shape(conversation: &Conversation) -> String {
    let blocks = conversation.turns.iter().flat_map(|turn| &turn.blocks);
    let word = |block: &TurnBlock| match block {
        TurnBlock::Text(text) => Some(text.clone()),
        TurnBlock::Relayed(text) => Some(format!("+{}", text_shape(text))),
        TurnBlock::Image { .. } => Some("+p".to_owned()),
        TurnBlock::ToolResult { content, .. } => Some(match &content[0] {
            ResultBlock::Image { .. } => "p".to_owned(),
            ResultBlock::Text(text) => text_shape(text),
        }),
        _ => None,
    };
    blocks.filter_map(word).collect::<Vec<_>>().join(" ")
}

fn text_shape(text: &str) -> String {
    match text {
        IMAGE_PLACEHOLDER => "-".to_owned(),
        text => text.bytes().filter(|byte| *byte == b'x').count().to_string(),
    }
}

fn check(before: &[(&str, &str)], excess: u64, reach: ShortenScope, expected: &str, cost: (usize, usize)) {
    let mut conversation = rounds(before);
    assert_eq!(find_defect(&conversation), None);
    let ShortenCost { results, answers } = shorten(&mut conversation, excess, reach);
    assert_eq!((shape(&conversation).as_str(), (results, answers)), (expected, cost), "{before:?} by {excess}");
    assert_eq!(find_defect(&conversation), None);
}

#[test]
fn oldest_results_are_shortened_first_and_minimally() {
    use ShortenScope::{All, Old, Utmost};
    let long = [("do", "9000"), ("", "9000"), ("", "9000")];
    check(&long, 0, Old, "do 9000 9000 9000", (0, 0));
    check(&long, 100, Old, "do 1000 9000 9000", (1, 0));
    check(&long, 3000, Old, "do 1000 1000 9000", (2, 0));
    check(&long, 3000, All, "do 400 400 9000", (2, 0));
    check(&long, 4600, Old, "do 9000", (2, 2));
    check(&long, 100_000, Old, "do 9000", (2, 2));
    check(&long, 100_000, All, "do 4000", (3, 2));
    check(&long, 100_000, Utmost, "do 400", (3, 2));
}

#[test]
fn images_are_removed_before_text_is_cut() {
    let mixed = [("do", "9000"), ("", "p"), ("", "p")];
    check(&mixed, 100, ShortenScope::Old, "do 9000 - p", (1, 0));
    check(&mixed, 2000, ShortenScope::Old, "do 1000 - p", (2, 0));
    check(&mixed, 100_000, ShortenScope::All, "do -", (3, 2));
}

#[test]
fn relayed_text_is_shortened_before_turns_are_dropped() {
    use ShortenScope::{All, Old, Utmost};
    let rounds = [("do", "10+9000"), ("", "10+p"), ("", "10+9000")];
    check(&rounds, 100, Old, "do 10 +9000 10 +- 10 +9000", (1, 0));
    check(&rounds, 2000, Old, "do 10 +1000 10 +- 10 +9000", (2, 0));
    check(&rounds, 3700, Old, "do 10 10 +- 10 +9000", (2, 0));
    check(&rounds, 100_000, Old, "do 10 +9000", (4, 2));
    check(&rounds, 100_000, All, "do 10 +4000", (5, 2));
    check(&rounds, 100_000, Utmost, "do 10", (5, 2));
}

#[test]
fn turn_of_relayed_text_only_retains_its_last_block() {
    let mut conversation = Conversation::default();
    conversation.turns.push(user(vec![TurnBlock::Relayed("x".repeat(900)), TurnBlock::Relayed("x".repeat(900))]));
    let cost = shorten(&mut conversation, 100_000, ShortenScope::Utmost);
    assert_eq!((shape(&conversation).as_str(), cost), ("+400", ShortenCost { results: 2, answers: 0 }));
    assert_eq!(find_defect(&conversation), None);
}

#[test]
fn user_text_is_never_removed() {
    let rounds = [("one", "9000"), ("two", "9000"), ("three", "100")];
    check(&rounds, 100_000, ShortenScope::Old, "one two three 100", (2, 2));
    check(&[("one", "10")], 100_000, ShortenScope::Old, "one 10", (0, 0));
}

#[test]
fn truncation_is_marked_in_the_text() {
    let mut text = "ü".repeat(1000);
    let saved = truncate_text(&mut text, 401);
    let expected = format!("{}\n(truncated: 1600 bytes removed)", "ü".repeat(200));
    assert_eq!((&text, saved), (&expected, 2000 - expected.len()));
    assert_eq!(truncate_text(&mut text, 401), 0);
}

#[test]
fn reported_token_count_replaces_the_estimate() {
    let mut conversation = rounds(&[("do", "9000")]);
    let mut token_estimator = TokenEstimator { definitions: 50, ..TokenEstimator::default() };
    assert_eq!(token_estimator.estimate(&conversation), 50 + estimate_tokens(9000 + 2 + 3));
    token_estimator.record(0, &conversation);
    assert_eq!(token_estimator.estimate(&conversation), 50 + estimate_tokens(9000 + 2 + 3));
    token_estimator.record(5000, &conversation);
    assert_eq!(token_estimator.estimate(&conversation), 5000);
    conversation.turns.push(user(vec![TurnBlock::Text("x".repeat(400))]));
    assert_eq!(token_estimator.estimate(&conversation), 5100);
    shorten(&mut conversation, 1_000_000, ShortenScope::All);
    assert!(token_estimator.estimate(&conversation) < 5100);
}

#[test]
fn every_image_can_be_removed() {
    let mut conversation = rounds(&[("do", "p+p"), ("", "10+p")]);
    assert_eq!(remove_images(&mut conversation), 3);
    assert_eq!(shape(&conversation), "do - +- 10 +-");
    assert_eq!(remove_images(&mut conversation), 0);
}
