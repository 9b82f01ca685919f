//! Well-formedness of conversations: the roles alternate, no turn is empty, and each call has exactly one result, in
//! the turn directly after it. Every API accepts a well-formed conversation.

use std::collections::HashSet;

use crate::conversation::{Conversation, ConversationTurn, ResultBlock, TurnBlock, TurnRole};

/// Appends a turn, merging it into the last turn if that has the same role.
pub(crate) fn append_turn(conversation: &mut Conversation, turn: ConversationTurn) {
    match conversation.turns.last_mut() {
        _ if turn.blocks.is_empty() => {}
        Some(last) if last.role == turn.role => last.blocks.extend(turn.blocks),
        _ => conversation.turns.push(turn),
    }
}

/// Makes any conversation well-formed. Calls without a result get an error result with the text `why`. Misplaced blocks
/// are removed.
pub(crate) fn repair(conversation: &mut Conversation, why: &str) {
    let mut mended = Conversation { system: conversation.system.take(), turns: Vec::new() };
    let mut called = HashSet::new();
    for mut turn in std::mem::take(&mut conversation.turns) {
        turn.blocks.retain(|block| is_valid_block(turn.role, block, &mut called));
        let begins = turn.role == TurnRole::User || !mended.turns.is_empty();
        if begins {
            append_turn(&mut mended, turn);
        }
    }
    add_missing_results(&mut mended, why);
    *conversation = mended;
}

/// Creates error results for calls that were not executed.
pub(crate) fn error_results<'a>(ids: impl IntoIterator<Item = &'a str>, why: &str) -> Vec<TurnBlock> {
    ids.into_iter().map(|id| error_result(id, why)).collect()
}

/// Returns the ids of the calls in these blocks, in order.
pub(crate) fn call_ids(blocks: &[TurnBlock]) -> Vec<&str> {
    let mut ids = Vec::new();
    for block in blocks {
        if let TurnBlock::ToolCall { id, .. } = block {
            ids.push(id.as_str());
        }
    }
    ids
}

/// Reports whether a block is valid in a turn of this role. Of several calls with the same id only the first is valid.
fn is_valid_block(role: TurnRole, block: &TurnBlock, called: &mut HashSet<String>) -> bool {
    match (role, block) {
        (_, TurnBlock::Text(text)) | (TurnRole::User, TurnBlock::Relayed(text)) => !text.trim().is_empty(),
        (TurnRole::User, TurnBlock::Image { .. }) => true,
        (TurnRole::User, TurnBlock::ToolResult { id, .. }) => called.contains(id),
        (TurnRole::Assistant, TurnBlock::ToolCall { id, .. }) => called.insert(id.clone()),
        (TurnRole::Assistant, TurnBlock::Thinking { .. } | TurnBlock::Unknown { .. }) => true,
        _ => false,
    }
}

/// Adds a result for each call, and removes results without a call.
fn add_missing_results(conversation: &mut Conversation, why: &str) {
    let turns = &mut conversation.turns;
    let is_asking =
        turns.last().is_some_and(|last| last.role == TurnRole::Assistant && !call_ids(&last.blocks).is_empty());
    if is_asking {
        turns.push(ConversationTurn { role: TurnRole::User, blocks: Vec::new() });
    }
    let mut open: Vec<String> = Vec::new();
    for turn in turns.iter_mut() {
        match turn.role {
            TurnRole::User => pair_results(turn, &std::mem::take(&mut open), why),
            TurnRole::Assistant => open = call_ids(&turn.blocks).into_iter().map(str::to_owned).collect(),
        }
    }
    let emptied = std::mem::take(turns).into_iter().filter(|turn| !turn.blocks.is_empty());
    let system = conversation.system.take();
    *conversation = emptied.fold(Conversation { system, turns: Vec::new() }, |mut joined, turn| {
        append_turn(&mut joined, turn);
        joined
    });
}

fn pair_results(turn: &mut ConversationTurn, open: &[String], why: &str) {
    let (given, mut rest): (Vec<TurnBlock>, Vec<TurnBlock>) =
        std::mem::take(&mut turn.blocks).into_iter().partition(|block| matches!(block, TurnBlock::ToolResult { .. }));
    let of = |wanted: &String| {
        let found = given.iter().find(|block| matches!(block, TurnBlock::ToolResult { id, .. } if id == wanted));
        found.cloned().unwrap_or_else(|| error_result(wanted, why))
    };
    turn.blocks = open.iter().map(of).collect();
    turn.blocks.append(&mut rest);
}

fn error_result(id: &str, why: &str) -> TurnBlock {
    TurnBlock::ToolResult { id: id.to_owned(), content: vec![ResultBlock::Text(why.to_owned())], is_error: true }
}

/// Describes the first defect of a conversation, for tests.
#[cfg(test)]
pub(crate) fn find_defect(conversation: &Conversation) -> Option<String> {
    let mut mended = conversation.clone();
    repair(&mut mended, "-");
    let first = conversation.turns.iter().zip(&mended.turns).find(|(turn, mended)| turn != mended);
    match first {
        Some((turn, mended)) => Some(format!("{turn:?} should be {mended:?}")),
        None if conversation.turns.len() != mended.turns.len() => Some(format!("the end of {conversation:?}")),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_json::RawJson;

    /// Parses turns in shorthand: `u` or `a`, then blocks. `!1` is a call, `?1` a result, `-1` an error result, any
    /// other word a text.
    fn turns(text: &str) -> Vec<ConversationTurn> {
        text.split_terminator(';').map(turn).collect()
    }

    fn turn(text: &str) -> ConversationTurn {
        let mut words = text.split_whitespace();
        let role = if words.next() == Some("u") { TurnRole::User } else { TurnRole::Assistant };
        ConversationTurn { role, blocks: words.map(block).collect() }
    }

    fn block(word: &str) -> TurnBlock {
        match word.split_at(1) {
            ("!", id) => TurnBlock::ToolCall {
                id: id.into(),
                name: "t".into(),
                arguments: RawJson::empty_object(),
                malformed: None,
            },
            ("?", id) => TurnBlock::ToolResult { id: id.into(), content: Vec::new(), is_error: false },
            ("-", id) => error_result(id, "why"),
            _ => TurnBlock::Text(word.into()),
        }
    }

    #[test]
    fn repaired_conversation_is_well_formed() {
        for (written, expected) in [
            ("", ""),
            ("u hi;a hello", "u hi;a hello"),
            ("a hello;u hi", "u hi"),
            ("u hi;u again;a one;a two", "u hi again;a one two"),
            ("u hi;a !1 !2;u ?2 ?1 more", "u hi;a !1 !2;u ?1 ?2 more"),
            ("u hi;a !1 !2;u ?2", "u hi;a !1 !2;u -1 ?2"),
            ("u hi;a !1", "u hi;a !1;u -1"),
            ("u hi;a !1;u ?1 ?1;a ok", "u hi;a !1;u ?1;a ok"),
            ("u hi;a !1;u then;u ?1", "u hi;a !1;u ?1 then"),
            ("u hi;a !1;u ?1;a !1;u ?1", "u hi;a !1;u ?1"),
            ("u hi ?7;a ok ?8;u !9", "u hi;a ok"),
            ("u ?7;a ok;u hi", "u hi"),
            ("u hi;a !1;u ?1;a ok;u ?1;a bye", "u hi;a !1;u ?1;a ok bye"),
        ] {
            let mut conversation = Conversation { system: Some("s".into()), turns: turns(written) };
            repair(&mut conversation, "why");
            assert_eq!(conversation.turns, turns(expected), "{written}");
            assert_eq!(conversation.system.as_deref(), Some("s"));
            assert_eq!(find_defect(&conversation), None);
        }
    }
}
