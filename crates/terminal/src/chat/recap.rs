//! Recap of a resumed conversation: the user's last message and the model's last answer.

use wharf_agent::{Conversation, ConversationTurn, TurnBlock, TurnRole};
use wharf_spec::EscapedText;

/// Maximum lines shown of a message.
const MAX_LINES: usize = 4;
/// Maximum characters shown of a line.
const MAX_LINE_CHARS: usize = 300;

/// The last exchange of a conversation. Texts are escaped and cut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recap {
    /// The user's last message.
    pub user: Vec<String>,
    /// The model's answer to it.
    pub model: Vec<String>,
}

impl Recap {
    pub fn from_conversation(conversation: &Conversation) -> Self {
        let turns = &conversation.turns;
        let is_message = |turn: &ConversationTurn| turn.role == TurnRole::User && text_of(turn).is_some();
        let Some(at) = turns.iter().rposition(is_message) else { return Self::default() };
        let answer = turns[at..].iter().rev().find(|turn| turn.role == TurnRole::Assistant && text_of(turn).is_some());
        let lines = |turn| text_of(turn).map(|text| cut_lines(&text)).unwrap_or_default();
        Self { user: lines(&turns[at]), model: answer.map(lines).unwrap_or_default() }
    }
}

/// Returns the text of a turn, without results, attachments and notes.
fn text_of(turn: &ConversationTurn) -> Option<String> {
    let texts = turn.blocks.iter().filter_map(|block| match block {
        TurnBlock::Text(text) => Some(text.trim()),
        _ => None,
    });
    Some(texts.collect::<Vec<_>>().join("\n")).filter(|text| !text.trim().is_empty())
}

fn cut_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.trim().lines().collect();
    let shown = lines.iter().take(MAX_LINES).map(|line| EscapedText::single_line(line, MAX_LINE_CHARS).to_string());
    let more = lines.len().saturating_sub(MAX_LINES);
    shown.chain((more > 0).then(|| format!("… {more} more lines"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recap_has_the_last_message_and_its_answer() {
        let turn = |role, blocks| ConversationTurn { role, blocks };
        let text = |text: &str| TurnBlock::Text(text.to_owned());
        let mut conversation = Conversation::default();
        assert_eq!(Recap::from_conversation(&conversation), Recap::default());
        conversation.turns = vec![
            turn(TurnRole::User, vec![text("first")]),
            turn(TurnRole::Assistant, vec![text("one")]),
            turn(TurnRole::User, vec![text("second\u{1b}"), TurnBlock::Relayed("a file".to_owned())]),
            turn(TurnRole::Assistant, vec![text("let me see")]),
            turn(TurnRole::User, vec![TurnBlock::Relayed("a result".to_owned())]),
            turn(TurnRole::Assistant, vec![text("1\n2\n3\n4\n5\n6")]),
        ];
        let recap = Recap::from_conversation(&conversation);
        assert_eq!(recap.user, ["second\\u{1b}"]);
        assert_eq!(recap.model, ["1", "2", "3", "4", "… 2 more lines"]);
    }
}
