//! Room in the model's context: how much a conversation takes, and how it is made to take less.
//!
//! What goes first is what can be asked for again: pictures of old results, then the ends of old results, then old
//! answers with the results of their calls. The person's words stay.

use crate::conversation::{Block, Conversation, ResultBlock, Role, Turn};
use crate::offer::tokens;

/// What a picture takes, in bytes of text: about 1600 tokens, however large it is.
const PICTURE: usize = 6400;
const PICTURE_LEFT_OUT: &str = "(a picture was left out)";
/// Less than this is not worth a note that something is missing.
const LEAST_SAVED: usize = 200;

/// How much is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// What is older than the last answer.
    Old,
    /// That and more of it, and in the end the results that the model has not seen yet: there is no other way.
    All,
}

/// Knows about how many tokens a conversation is.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    /// What goes with each request besides the conversation.
    pub definitions: u64,
    counted: Option<Counted>,
}

/// What an API counted, and the size of what it counted.
#[derive(Debug, Clone, Copy)]
struct Counted {
    tokens: u64,
    size: usize,
}

impl Gauge {
    /// Takes what an API counted up to and with its last answer. Some count nothing.
    pub fn count(&mut self, tokens: u64, conversation: &Conversation) {
        self.counted = (tokens > 0).then(|| Counted { tokens, size: size(conversation) });
    }

    pub fn estimate(&self, conversation: &Conversation) -> u64 {
        let now = tokens(size(conversation));
        match self.counted {
            Some(Counted { tokens: counted, size }) => counted.saturating_add(now).saturating_sub(tokens(size)),
            None => now.saturating_add(self.definitions),
        }
    }
}

/// Takes about so many tokens out of a conversation, and says how many results and answers that has cost.
pub(super) fn shorten(conversation: &mut Conversation, excess: u64, reach: Reach) -> usize {
    let mut making = Making { missing: usize::try_from(excess.saturating_mul(4)).unwrap_or(usize::MAX), touched: 0 };
    let turns = &mut conversation.turns;
    let kept = if reach == Reach::All { 400 } else { 1000 };
    let old = newest(turns);
    making.leave_out_pictures(&mut turns[..old]);
    making.cut_texts(&mut turns[..old], kept);
    making.drop_answers(turns);
    if reach == Reach::All {
        making.leave_out_pictures(turns);
        making.cut_texts(turns, 4000);
    }
    making.touched
}

/// Where the turn is that the model has not answered yet.
fn newest(turns: &[Turn]) -> usize {
    turns.iter().rposition(|turn| turn.role == Role::Assistant).map_or(0, |last| last + 1)
}

/// Room while it is being made.
struct Making {
    /// Bytes that are still too many.
    missing: usize,
    touched: usize,
}

impl Making {
    fn leave_out_pictures(&mut self, turns: &mut [Turn]) {
        for content in results(turns) {
            let has_picture = content.iter().any(|block| matches!(block, ResultBlock::Image { .. }));
            if self.missing == 0 || !has_picture {
                continue;
            }
            for block in content.iter_mut().filter(|block| matches!(block, ResultBlock::Image { .. })) {
                *block = ResultBlock::Text(PICTURE_LEFT_OUT.to_owned());
                self.missing = self.missing.saturating_sub(PICTURE - PICTURE_LEFT_OUT.len());
            }
            self.touched += 1;
        }
    }

    fn cut_texts(&mut self, turns: &mut [Turn], kept: usize) {
        for content in results(turns) {
            if self.missing == 0 {
                return;
            }
            let saved: usize = content.iter_mut().map(|block| cut(block, kept)).sum();
            self.missing = self.missing.saturating_sub(saved);
            self.touched += usize::from(saved > 0);
        }
    }

    /// Drops the oldest answers, each with the results of its calls. What the person said after one goes to what was
    /// said before it, so that the sides still take turns.
    fn drop_answers(&mut self, turns: &mut Vec<Turn>) {
        while self.missing > 0 {
            let oldest = turns.iter().position(|turn| turn.role == Role::Assistant);
            let Some(oldest) = oldest.filter(|&at| at > 0 && at + 1 < newest(turns)) else { return };
            let before = turns_size(turns);
            let answered = turns.remove(oldest + 1);
            turns.remove(oldest);
            let said = answered.blocks.into_iter().filter(|block| !matches!(block, Block::ToolResult { .. }));
            turns[oldest - 1].blocks.extend(said);
            self.missing = self.missing.saturating_sub(before - turns_size(turns));
            self.touched += 1;
        }
    }
}

fn results(turns: &mut [Turn]) -> impl Iterator<Item = &mut Vec<ResultBlock>> {
    turns.iter_mut().flat_map(|turn| &mut turn.blocks).filter_map(|block| match block {
        Block::ToolResult { content, .. } => Some(content),
        _ => None,
    })
}

/// Keeps the beginning of a text, and gives how many bytes that has saved.
fn cut(block: &mut ResultBlock, kept: usize) -> usize {
    let ResultBlock::Text(text) = block else { return 0 };
    if text.len() < kept + LEAST_SAVED {
        return 0;
    }
    let before = text.len();
    let end = text.floor_char_boundary(kept);
    text.truncate(end);
    text.push_str(&format!("\n(shortened: {} bytes left out)", before - end));
    before - text.len()
}

fn size(conversation: &Conversation) -> usize {
    conversation.system.as_deref().map_or(0, str::len) + turns_size(&conversation.turns)
}

fn turns_size(turns: &[Turn]) -> usize {
    turns.iter().flat_map(|turn| &turn.blocks).map(block_size).sum()
}

fn block_size(block: &Block) -> usize {
    match block {
        Block::Text(text) => text.len(),
        Block::Image { .. } => PICTURE,
        Block::ToolCall { name, arguments, .. } => name.len() + arguments.as_bytes().len(),
        Block::ToolResult { content, .. } => content.iter().map(result_size).sum(),
        Block::Thinking { raw, .. } | Block::Unknown { raw, .. } => raw.as_bytes().len(),
    }
}

fn result_size(block: &ResultBlock) -> usize {
    match block {
        ResultBlock::Text(text) => text.len(),
        ResultBlock::Image { .. } => PICTURE,
    }
}

#[cfg(test)]
mod tests;
