//! A model response while it is received.

use std::collections::{HashMap, HashSet};

use crate::conversation::TurnBlock;

/// Maximum calls executed from a response that reached its token limit.
const MAX_CALLS_OF_TRUNCATED: usize = 16;

pub(super) const TRUNCATED_REASON: &str = "not executed: the response reached its token limit";
const DUPLICATE_REASON: &str = "not executed: duplicate of another call in the same response";
const TOO_MANY_REASON: &str = "not executed: the response reached its token limit and contains too many calls";

/// Calls that must not be executed, by id, with the reason.
pub(super) type SkippedCalls = HashMap<String, &'static str>;

/// The received part of a response.
#[derive(Debug, Default)]
pub(super) struct PartialResponse {
    blocks: Vec<TurnBlock>,
    /// Text that is not part of a complete block yet.
    text: String,
}

impl PartialResponse {
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.text.is_empty()
    }

    pub fn add_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a complete block. Removes its text from the partial text.
    pub fn add(&mut self, block: TurnBlock) {
        if let TurnBlock::Text(text) = &block {
            self.text = self.text.strip_prefix(text.as_str()).unwrap_or_default().to_owned();
        }
        self.blocks.push(block);
    }

    /// Returns the blocks of a complete response.
    pub fn into_complete(self) -> Vec<TurnBlock> {
        remove_unsendable(self.blocks)
    }

    /// Returns the blocks unmodified except for blank texts, for a paused model that expects them back.
    pub fn into_unmodified(mut self) -> Vec<TurnBlock> {
        self.blocks.retain(is_not_blank);
        self.blocks
    }

    /// Returns the blocks of a response that reached its token limit, and the calls that must not be executed. The last
    /// call may be truncated even if it looks complete. A runaway model may repeat a call or make too many.
    pub fn into_truncated(self) -> (Vec<TurnBlock>, SkippedCalls) {
        let last_is_complete = !self.text.is_empty();
        let blocks = self.merge_partial_text();
        let calls = blocks.iter().filter_map(|block| match block {
            TurnBlock::ToolCall { id, name, arguments, malformed } => Some((id, (name, arguments.as_str(), malformed))),
            _ => None,
        });
        let calls: Vec<_> = calls.collect();
        let mut seen = HashSet::new();
        let reason = |(at, (id, call)): (usize, &(&String, _))| {
            let is_last = at + 1 == calls.len() && !last_is_complete;
            let reason = match (seen.insert(*call), seen.len() > MAX_CALLS_OF_TRUNCATED) {
                _ if is_last => TRUNCATED_REASON,
                (false, _) => DUPLICATE_REASON,
                (true, true) => TOO_MANY_REASON,
                (true, false) => return None,
            };
            Some(((*id).clone(), reason))
        };
        let skipped = calls.iter().enumerate().filter_map(reason).collect();
        (blocks, skipped)
    }

    /// Returns the usable part of an interrupted response: its complete blocks and the partial text.
    pub fn into_interrupted(mut self) -> Vec<TurnBlock> {
        let is_half = |block: &TurnBlock| matches!(block, TurnBlock::ToolCall { malformed: Some(_), .. });
        self.blocks.retain(|block| !is_half(block));
        self.merge_partial_text()
    }

    fn merge_partial_text(mut self) -> Vec<TurnBlock> {
        let first_call = self.blocks.iter().position(|block| matches!(block, TurnBlock::ToolCall { .. }));
        // Text must precede the calls, because only results may follow a call.
        self.blocks.insert(first_call.unwrap_or(self.blocks.len()), TurnBlock::Text(self.text));
        remove_unsendable(self.blocks)
    }
}

/// Removes blocks that cannot be sent back: blank texts and trailing reasoning.
fn remove_unsendable(mut blocks: Vec<TurnBlock>) -> Vec<TurnBlock> {
    blocks.retain(is_not_blank);
    let is_thought = |block: &TurnBlock| matches!(block, TurnBlock::Thinking { .. });
    let end = blocks.iter().rposition(|block| !is_thought(block)).map_or(0, |last| last + 1);
    blocks.truncate(end);
    blocks
}

fn is_not_blank(block: &TurnBlock) -> bool {
    !matches!(block, TurnBlock::Text(text) if text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_json::RawJson;

    fn reasoning_block() -> TurnBlock {
        TurnBlock::Thinking { provider: "p".into(), raw: RawJson::empty_object() }
    }

    fn text(text: &str) -> TurnBlock {
        TurnBlock::Text(text.into())
    }

    fn call(malformed: Option<&str>) -> TurnBlock {
        let malformed = malformed.map(str::to_owned);
        TurnBlock::ToolCall { id: "1".into(), name: "t".into(), arguments: RawJson::empty_object(), malformed }
    }

    #[test]
    fn interrupted_response_retains_only_sendable_blocks() {
        let nothing: &[TurnBlock] = &[];
        for (blocks, half, complete, interrupted) in [
            (vec![], "", vec![], vec![]),
            (vec![], "ha", vec![], vec![text("ha")]),
            (vec![reasoning_block()], "", vec![], vec![]),
            (vec![reasoning_block()], "ha", vec![], vec![reasoning_block(), text("ha")]),
            (vec![text("a"), reasoning_block()], "", vec![text("a")], vec![text("a")]),
            (vec![text("a"), text(" \n")], "", vec![text("a")], vec![text("a")]),
            (
                vec![reasoning_block(), call(None)],
                "",
                vec![reasoning_block(), call(None)],
                vec![reasoning_block(), call(None)],
            ),
            (vec![call(None)], "ha", vec![call(None)], vec![text("ha"), call(None)]),
            (vec![reasoning_block(), call(Some("{"))], "", vec![reasoning_block(), call(Some("{"))], nothing.to_vec()),
        ] {
            let answer = || PartialResponse { blocks: blocks.clone(), text: half.into() };
            assert_eq!(
                (answer().into_complete(), answer().into_interrupted()),
                (complete, interrupted),
                "{blocks:?} {half}"
            );
        }
    }

    #[test]
    fn received_text_is_stored_once() {
        let mut answer = PartialResponse::default();
        answer.add_text("one, two");
        answer.add(text("one"));
        assert_eq!(answer.text, ", two");
        answer.add(text(", two"));
        assert_eq!(answer.into_interrupted(), [text("one"), text(", two")]);
    }
}
