//! Call ids. A model may repeat an id, omit it, or use characters that only its own API accepts.

use std::collections::HashSet;

use crate::conversation::{Conversation, TurnBlock};
use crate::repair::call_ids;

/// Maximum length of an id. Every API accepts up to this many characters of `[A-Za-z0-9_-]`.
const MAX_ID_CHARS: usize = 64;

/// Call ids in use in a conversation.
#[derive(Debug)]
pub(super) struct CallIds(HashSet<String>);

impl CallIds {
    pub fn from_conversation(conversation: &Conversation) -> Self {
        let ids = conversation.turns.iter().flat_map(|turn| call_ids(&turn.blocks)).map(str::to_owned);
        Self(ids.collect())
    }

    /// Gives a call an id that is unique and valid for every API. Returns other blocks unchanged.
    pub fn assign_unique_id(&mut self, block: TurnBlock) -> TurnBlock {
        let TurnBlock::ToolCall { id, name, arguments, malformed } = block else { return block };
        TurnBlock::ToolCall { id: self.make_unique(&id), name, arguments, malformed }
    }

    fn make_unique(&mut self, id: &str) -> String {
        let plain = sanitize_id(id);
        let numbered = (2u32..).map(|number| format!("{}_{number}", &plain[..plain.len().min(MAX_ID_CHARS - 11)]));
        let mut wanted = std::iter::once(plain.clone()).chain(numbered);
        let id = wanted.find(|id| !self.0.contains(id)).unwrap_or_default();
        self.0.insert(id.clone());
        id
    }
}

fn sanitize_id(id: &str) -> String {
    let safe = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => character,
        _ => '_',
    };
    let plain: String = id.chars().take(MAX_ID_CHARS).map(safe).collect();
    if plain.is_empty() { "call".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_ids_are_unique_and_sanitized() {
        let mut ids = CallIds(HashSet::from(["old".to_owned()]));
        let long = "x".repeat(100);
        for (given, expected) in [
            ("a", "a".to_owned()),
            ("a", "a_2".to_owned()),
            ("a", "a_3".to_owned()),
            ("old", "old_2".to_owned()),
            ("", "call".to_owned()),
            ("", "call_2".to_owned()),
            ("functions.add:0", "functions_add_0".to_owned()),
            (&long, "x".repeat(64)),
            (&long, format!("{}_2", "x".repeat(53))),
        ] {
            assert_eq!(ids.make_unique(given), expected);
        }
    }
}
