//! One answer of the model while it comes.

use crate::conversation::Block;

/// What has come of an answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    blocks: Vec<Block>,
    /// Text that is not part of a whole block yet.
    text: String,
}

impl Answer {
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.text.is_empty()
    }

    pub fn add_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a whole block. What was told of a text before it was whole is not told twice.
    pub fn add(&mut self, block: Block) {
        if let Block::Text(text) = &block {
            self.text = self.text.strip_prefix(text.as_str()).unwrap_or_default().to_owned();
        }
        self.blocks.push(block);
    }

    /// The blocks of an answer that has come to its end.
    pub fn whole(self) -> Vec<Block> {
        tidy(self.blocks)
    }

    /// The blocks as they are, for a model that wants to have them back and go on.
    pub fn unchanged(mut self) -> Vec<Block> {
        self.blocks.retain(is_something);
        self.blocks
    }

    /// What is left of an answer that was cut off: its whole blocks, and the text so far.
    pub fn cut(mut self) -> Vec<Block> {
        let is_half = |block: &Block| matches!(block, Block::ToolCall { malformed: Some(_), .. });
        self.blocks.retain(|block| !is_half(block));
        let first_call = self.blocks.iter().position(|block| matches!(block, Block::ToolCall { .. }));
        // Nothing is said behind a call but its result.
        self.blocks.insert(first_call.unwrap_or(self.blocks.len()), Block::Text(self.text));
        tidy(self.blocks)
    }
}

/// Leaves out what cannot be sent back: blank texts, and thoughts that led to nothing.
fn tidy(mut blocks: Vec<Block>) -> Vec<Block> {
    blocks.retain(is_something);
    let is_thought = |block: &Block| matches!(block, Block::Thinking { .. });
    let end = blocks.iter().rposition(|block| !is_thought(block)).map_or(0, |last| last + 1);
    blocks.truncate(end);
    blocks
}

fn is_something(block: &Block) -> bool {
    !matches!(block, Block::Text(text) if text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_json::Raw;

    fn thought() -> Block {
        Block::Thinking { provider: "p".into(), raw: Raw::empty_object() }
    }

    fn text(text: &str) -> Block {
        Block::Text(text.into())
    }

    fn call(malformed: Option<&str>) -> Block {
        let malformed = malformed.map(str::to_owned);
        Block::ToolCall { id: "1".into(), name: "t".into(), arguments: Raw::empty_object(), malformed }
    }

    #[test]
    fn what_is_kept_can_be_sent_back() {
        let nothing: &[Block] = &[];
        for (blocks, half, whole, cut) in [
            (vec![], "", vec![], vec![]),
            (vec![], "ha", vec![], vec![text("ha")]),
            (vec![thought()], "", vec![], vec![]),
            (vec![thought()], "ha", vec![], vec![thought(), text("ha")]),
            (vec![text("a"), thought()], "", vec![text("a")], vec![text("a")]),
            (vec![text("a"), text(" \n")], "", vec![text("a")], vec![text("a")]),
            (vec![thought(), call(None)], "", vec![thought(), call(None)], vec![thought(), call(None)]),
            (vec![call(None)], "ha", vec![call(None)], vec![text("ha"), call(None)]),
            (vec![thought(), call(Some("{"))], "", vec![thought(), call(Some("{"))], nothing.to_vec()),
        ] {
            let answer = || Answer { blocks: blocks.clone(), text: half.into() };
            assert_eq!((answer().whole(), answer().cut()), (whole, cut), "{blocks:?} {half}");
        }
    }

    #[test]
    fn a_text_is_kept_once() {
        let mut answer = Answer::default();
        answer.add_text("one, two");
        answer.add(text("one"));
        assert_eq!(answer.text, ", two");
        answer.add(text(", two"));
        assert_eq!(answer.cut(), [text("one"), text(", two")]);
    }
}
