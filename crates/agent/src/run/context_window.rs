//! Context window management: estimates the size of a conversation and shortens it.
//!
//! Content that the model can request again goes first: old images, then the ends of old results and relayed texts,
//! then old relayed texts, then old model turns with the results of their calls. The person's own text is never
//! removed.

use crate::conversation::{Conversation, ConversationTurn, ResultBlock, TurnBlock, TurnRole};
use crate::repair;
use crate::tool_offer::estimate_tokens;

const IMAGE_PLACEHOLDER: &str = "(image removed)";
/// Minimum bytes to save. Smaller cuts are not worth the note about the omission.
const MIN_SAVED_BYTES: usize = 200;

/// Scope of shortening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShortenScope {
    /// Content older than the last model turn.
    Old,
    /// The same with a shorter limit, and as a last resort the ends of texts that the model has not seen yet.
    All,
    /// The same, with only the beginnings of texts that the model has not seen yet.
    Utmost,
}

/// Content lost by shortening.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ShortenCost {
    /// Number of results and relayed texts that were truncated or removed.
    pub results: usize,
    /// Number of model turns that were removed.
    pub answers: usize,
}

/// Estimates the number of tokens of a conversation.
#[derive(Debug, Default)]
pub(super) struct TokenEstimator {
    /// Tokens of the tool definitions sent with each request.
    pub definitions: u64,
    last_count: Option<TokenCount>,
}

/// Token count reported by an API, and the size of the counted conversation.
#[derive(Debug, Clone, Copy)]
struct TokenCount {
    tokens: u64,
    size: usize,
}

impl TokenEstimator {
    /// Records the tokens reported by an API up to and including its last response. Some APIs report none.
    pub fn record(&mut self, tokens: u64, conversation: &Conversation) {
        self.last_count = (tokens > 0).then(|| TokenCount { tokens, size: conversation_size(conversation) });
    }

    pub fn estimate(&self, conversation: &Conversation) -> u64 {
        let now = estimate_tokens(conversation_size(conversation));
        match self.last_count {
            Some(TokenCount { tokens, size }) => tokens.saturating_add(now).saturating_sub(estimate_tokens(size)),
            None => now.saturating_add(self.definitions),
        }
    }
}

/// Returns the maximum tokens of a conversation. Reserves space for the response (at most half of the context), and at
/// least a fifth of the context, because sizes are estimates.
pub(super) fn max_conversation_tokens(context: u64, max_tokens: u32) -> u64 {
    context - u64::from(max_tokens).min(context / 2).max(context / 5)
}

/// Removes about `excess` tokens from a conversation and returns the cost.
pub(super) fn shorten(conversation: &mut Conversation, excess: u64, reach: ShortenScope) -> ShortenCost {
    let missing = usize::try_from(excess.saturating_mul(4)).unwrap_or(usize::MAX);
    let mut making = ContextShrinker { missing, answers: 0 };
    let turns = &mut conversation.turns[..];
    let before = user_sizes(turns);
    let old = unanswered_start(turns);
    making.remove_images(&mut turns[..old]);
    making.truncate_texts(&mut turns[..old], if reach == ShortenScope::Old { 1000 } else { 400 });
    making.drop_relayed(&mut turns[..old]);
    making.drop_answers(turns);
    if reach != ShortenScope::Old {
        making.remove_images(turns);
        making.truncate_texts(turns, if reach == ShortenScope::All { 4000 } else { 400 });
    }
    if reach == ShortenScope::Utmost {
        making.drop_relayed(turns);
    }
    let results = before.iter().zip(user_sizes(turns)).filter(|(before, now)| *before != now).count();
    remove_dropped(conversation);
    ShortenCost { results, answers: making.answers }
}

/// Removes every image and returns their number.
pub(super) fn remove_images(conversation: &mut Conversation) -> usize {
    conversation.turns.iter_mut().flat_map(|turn| &mut turn.blocks).map(replace_images).sum()
}

/// Returns the index after the last model turn.
fn unanswered_start(turns: &[ConversationTurn]) -> usize {
    turns.iter().rposition(|turn| turn.role == TurnRole::Assistant).map_or(0, |last| last + 1)
}

/// Returns the sizes of all user-side blocks. A block that shrinks is a tool result or a relayed text.
fn user_sizes(turns: &[ConversationTurn]) -> Vec<usize> {
    turns.iter().filter(|turn| turn.role == TurnRole::User).flat_map(|turn| &turn.blocks).map(block_size).collect()
}

/// Removes dropped blocks and merges user turns that become adjacent, so that the roles still alternate.
fn remove_dropped(conversation: &mut Conversation) {
    for mut turn in std::mem::take(&mut conversation.turns) {
        turn.blocks.retain(|block| !is_dropped(block));
        repair::append_turn(conversation, turn);
    }
}

/// Shortening in progress. Dropped blocks hold their position until the end, so that each is counted once.
struct ContextShrinker {
    /// Bytes that still have to be removed.
    missing: usize,
    answers: usize,
}

impl ContextShrinker {
    fn remove_images(&mut self, turns: &mut [ConversationTurn]) {
        let saved =
            |block: &mut TurnBlock| replace_images(block) * (TurnBlock::IMAGE_COST_BYTES - IMAGE_PLACEHOLDER.len());
        self.shrink_blocks(turns, saved);
    }

    fn truncate_texts(&mut self, turns: &mut [ConversationTurn], max_bytes: usize) {
        self.shrink_blocks(turns, |block| truncate_block(block, max_bytes));
    }

    /// Shrinks blocks, oldest first, until enough is removed.
    fn shrink_blocks(&mut self, turns: &mut [ConversationTurn], mut saved: impl FnMut(&mut TurnBlock) -> usize) {
        for block in turns.iter_mut().flat_map(|turn| &mut turn.blocks) {
            if self.missing == 0 {
                return;
            }
            self.missing = self.missing.saturating_sub(saved(block));
        }
    }

    /// Drops relayed texts, oldest first. The last remaining block of a turn is never dropped.
    fn drop_relayed(&mut self, turns: &mut [ConversationTurn]) {
        for turn in turns {
            let mut remaining = turn.blocks.iter().filter(|block| !is_dropped(block)).count();
            for block in
                turn.blocks.iter_mut().filter(|block| matches!(block, TurnBlock::Relayed(_)) && !is_dropped(block))
            {
                if self.missing == 0 || remaining == 1 {
                    break;
                }
                self.drop_block(block);
                remaining -= 1;
            }
        }
    }

    /// Drops the oldest model turns except the last, each with the results of its calls.
    fn drop_answers(&mut self, turns: &mut [ConversationTurn]) {
        let last = unanswered_start(turns).saturating_sub(1);
        for at in 1..last {
            if self.missing == 0 {
                return;
            }
            if turns[at].role == TurnRole::Assistant {
                turns[at].blocks.iter_mut().for_each(|block| self.drop_block(block));
                let results =
                    turns[at + 1].blocks.iter_mut().filter(|block| matches!(block, TurnBlock::ToolResult { .. }));
                results.for_each(|result| self.drop_block(result));
                self.answers += 1;
            }
        }
    }

    fn drop_block(&mut self, block: &mut TurnBlock) {
        self.missing = self.missing.saturating_sub(block_size(block));
        *block = TurnBlock::Relayed(String::new());
    }
}

fn is_dropped(block: &TurnBlock) -> bool {
    matches!(block, TurnBlock::Relayed(text) if text.is_empty())
}

/// Replaces each image by a placeholder text and returns their number.
fn replace_images(block: &mut TurnBlock) -> usize {
    match block {
        TurnBlock::Image { .. } => {
            *block = TurnBlock::Relayed(IMAGE_PLACEHOLDER.to_owned());
            1
        }
        TurnBlock::ToolResult { content, .. } => {
            let images = content.iter_mut().filter(|block| is_image(block));
            images.map(|image| *image = ResultBlock::Text(IMAGE_PLACEHOLDER.to_owned())).count()
        }
        _ => 0,
    }
}

fn is_image(block: &ResultBlock) -> bool {
    matches!(block, ResultBlock::Image { .. })
}

/// Truncates the texts of a result or a relayed text. Returns the bytes saved.
fn truncate_block(block: &mut TurnBlock, max_bytes: usize) -> usize {
    match block {
        TurnBlock::Relayed(text) => truncate_text(text, max_bytes),
        TurnBlock::ToolResult { content, .. } => {
            let cut_result = |block: &mut ResultBlock| match block {
                ResultBlock::Text(text) => truncate_text(text, max_bytes),
                ResultBlock::Image { .. } => 0,
            };
            content.iter_mut().map(cut_result).sum()
        }
        _ => 0,
    }
}

/// Truncates a text. Returns the bytes saved.
fn truncate_text(text: &mut String, max_bytes: usize) -> usize {
    if text.len() < max_bytes + MIN_SAVED_BYTES {
        return 0;
    }
    let before = text.len();
    let end = text.floor_char_boundary(max_bytes);
    text.truncate(end);
    text.push_str(&format!("\n(truncated: {} bytes removed)", before - end));
    before - text.len()
}

fn conversation_size(conversation: &Conversation) -> usize {
    conversation.system.as_deref().map_or(0, str::len) + turns_size(&conversation.turns)
}

fn turns_size(turns: &[ConversationTurn]) -> usize {
    turns.iter().flat_map(|turn| &turn.blocks).map(block_size).sum()
}

/// Returns the approximate size of a block in bytes.
pub(super) fn block_size(block: &TurnBlock) -> usize {
    match block {
        TurnBlock::Text(text) | TurnBlock::Relayed(text) => text.len(),
        TurnBlock::Image { .. } => TurnBlock::IMAGE_COST_BYTES,
        TurnBlock::ToolCall { name, arguments, .. } => name.len() + arguments.as_bytes().len(),
        TurnBlock::ToolResult { content, .. } => content.iter().map(result_size).sum(),
        TurnBlock::Thinking { raw, .. } | TurnBlock::Unknown { raw, .. } => raw.as_bytes().len(),
    }
}

fn result_size(block: &ResultBlock) -> usize {
    match block {
        ResultBlock::Text(text) => text.len(),
        ResultBlock::Image { .. } => TurnBlock::IMAGE_COST_BYTES,
    }
}

#[cfg(test)]
mod tests;
