//! Room in the model's context: how much a conversation takes, and how it is made to take less.
//!
//! What goes first is what can be asked for again: old pictures, then the ends of old results and of what servers said,
//! then what servers said, then old answers with the results of their calls. The person's words stay.

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
    /// That and more of it, and in the end the ends of what the model has not seen yet: there is no other way.
    All,
    /// That, and of what the model has not seen yet only the beginning.
    Utmost,
}

/// What it has cost to make room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// Results, and what servers said: those that were shortened or left out.
    pub results: usize,
    /// Answers that were left out.
    pub answers: usize,
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

/// What a conversation may take of a context. Free are the room for an answer, for which half of it is enough, and at
/// least a fifth, since sizes are estimated.
pub(super) fn room(context: u64, max_tokens: u32) -> u64 {
    context - u64::from(max_tokens).min(context / 2).max(context / 5)
}

/// Takes about so many tokens out of a conversation, and says what that has cost.
pub(super) fn shorten(conversation: &mut Conversation, excess: u64, reach: Reach) -> Cost {
    let missing = usize::try_from(excess.saturating_mul(4)).unwrap_or(usize::MAX);
    let mut making = Making { missing, cost: Cost::default() };
    let turns = &mut conversation.turns;
    let old = newest(turns);
    making.leave_out_pictures(&mut turns[..old]);
    making.cut_texts(&mut turns[..old], if reach == Reach::Old { 1000 } else { 400 });
    making.drop_relayed(&mut turns[..old]);
    making.drop_answers(turns);
    if reach != Reach::Old {
        making.leave_out_pictures(turns);
        making.cut_texts(turns, if reach == Reach::All { 4000 } else { 400 });
    }
    if reach == Reach::Utmost {
        making.drop_relayed(turns);
    }
    making.cost
}

/// Leaves out every picture, and says how many there were.
pub(super) fn leave_out_pictures(conversation: &mut Conversation) -> usize {
    conversation.turns.iter_mut().flat_map(|turn| &mut turn.blocks).map(without_pictures).sum()
}

/// Where the turn is that the model has not answered yet.
fn newest(turns: &[Turn]) -> usize {
    turns.iter().rposition(|turn| turn.role == Role::Assistant).map_or(0, |last| last + 1)
}

/// Room while it is being made.
struct Making {
    /// Bytes that are still too many.
    missing: usize,
    cost: Cost,
}

impl Making {
    fn leave_out_pictures(&mut self, turns: &mut [Turn]) {
        let saved = |block: &mut Block| without_pictures(block) * (PICTURE - PICTURE_LEFT_OUT.len());
        self.each_block(turns, saved);
    }

    fn cut_texts(&mut self, turns: &mut [Turn], kept: usize) {
        self.each_block(turns, |block| cut_block(block, kept));
    }

    /// Makes blocks smaller, the oldest first, as long as there is need.
    fn each_block(&mut self, turns: &mut [Turn], mut saved: impl FnMut(&mut Block) -> usize) {
        for block in turns.iter_mut().flat_map(|turn| &mut turn.blocks) {
            if self.missing == 0 {
                return;
            }
            let saved = saved(block);
            self.missing = self.missing.saturating_sub(saved);
            self.cost.results += usize::from(saved > 0);
        }
    }

    /// Drops what servers said, the oldest first; a turn of nothing else keeps the last of it.
    fn drop_relayed(&mut self, turns: &mut [Turn]) {
        for turn in turns {
            while self.missing > 0
                && turn.blocks.len() > 1
                && let Some(at) = turn.blocks.iter().position(|block| matches!(block, Block::Relayed(_)))
            {
                self.missing = self.missing.saturating_sub(block_size(&turn.blocks.remove(at)));
                self.cost.results += 1;
            }
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
            self.cost.answers += 1;
        }
    }
}

/// Puts a line in the place of each picture, and says how many there were.
fn without_pictures(block: &mut Block) -> usize {
    match block {
        Block::Image { .. } => {
            *block = Block::Relayed(PICTURE_LEFT_OUT.to_owned());
            1
        }
        Block::ToolResult { content, .. } => {
            let pictures = content.iter_mut().filter(|block| is_picture(block));
            pictures.map(|picture| *picture = ResultBlock::Text(PICTURE_LEFT_OUT.to_owned())).count()
        }
        _ => 0,
    }
}

fn is_picture(block: &ResultBlock) -> bool {
    matches!(block, ResultBlock::Image { .. })
}

/// Cuts the texts of a result or of what a server said, and gives how many bytes that has saved.
fn cut_block(block: &mut Block, kept: usize) -> usize {
    match block {
        Block::Relayed(text) => cut(text, kept),
        Block::ToolResult { content, .. } => {
            let cut_result = |block: &mut ResultBlock| match block {
                ResultBlock::Text(text) => cut(text, kept),
                ResultBlock::Image { .. } => 0,
            };
            content.iter_mut().map(cut_result).sum()
        }
        _ => 0,
    }
}

/// Keeps the beginning of a text, and gives how many bytes that has saved.
fn cut(text: &mut String, kept: usize) -> usize {
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

/// How many bytes a block takes, about.
pub(super) fn block_size(block: &Block) -> usize {
    match block {
        Block::Text(text) | Block::Relayed(text) => text.len(),
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
