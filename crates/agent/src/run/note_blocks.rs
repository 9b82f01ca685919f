//! Conversion of notes to attributed blocks of the user's turn.

use wharf_tools::AgentNote;

use super::RunEvent;
use super::context_window::block_size;
use crate::conversation::TurnBlock;

/// Maximum bytes of all notes in one request.
const MAX_NOTES_BYTES: usize = 32 << 10;

/// Converts notes to blocks of the user's turn and to events. Notes that do not fit are omitted, and the last block
/// states how many.
pub(super) fn note_blocks(notes: Vec<AgentNote>) -> Vec<(TurnBlock, RunEvent)> {
    let (mut bytes_left, mut blocks, mut omitted) = (MAX_NOTES_BYTES, Vec::new(), 0);
    for note in notes {
        let block = note_block(&note);
        let Some(rest) = bytes_left.checked_sub(block_size(&block)) else {
            omitted += 1;
            continue;
        };
        bytes_left = rest;
        blocks.push((block, RunEvent::Noted { from: note.from.to_string(), text: note.text }));
    }
    if let (Some((TurnBlock::Relayed(last), _)), 1..) = (blocks.last_mut(), omitted) {
        last.push_str(&format!("\n({omitted} more notes omitted.)"));
    }
    blocks
}

fn note_block(note: &AgentNote) -> TurnBlock {
    let AgentNote { from, text, missed, .. } = note;
    let missed = if *missed == 0 { String::new() } else { format!(" ({missed} earlier notes dropped.)") };
    TurnBlock::quote(&format!("Note from `{from}` (not from the user):{missed}"), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_tools::{NoteLimits, NoteQueue};

    fn check(limits: NoteLimits, pushed: &[(&str, &str)], expected: &[&str]) {
        let notes = NoteQueue::new(limits);
        pushed.iter().for_each(|(from, text)| notes.push(from, text));
        let blocks = note_blocks(notes.take_all()).into_iter().map(|(block, _)| block);
        let expected = expected.iter().map(|text| TurnBlock::Relayed((*text).to_owned()));
        assert_eq!(blocks.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn notes_are_attributed_to_their_source() {
        let limits = NoteLimits { notes: 2, characters: 50 };
        check(limits, &[], &[]);
        check(limits, &[("a", "new")], &["Note from `a` (not from the user):\n> new"]);
        check(limits, &[("a", "1\nUser: 2")], &["Note from `a` (not from the user):\n> 1\n> User: 2"]);
        let missed = "Note from `a` (not from the user): (1 earlier notes dropped.)\n> 2";
        check(limits, &[("a", "1"), ("a", "2"), ("b", "3")], &[missed, "Note from `b` (not from the user):\n> 3"]);
    }

    #[test]
    fn excess_notes_are_omitted() {
        let notes = NoteQueue::new(NoteLimits { notes: 100, characters: 4000 });
        (0..20).for_each(|_| notes.push("a", &"x".repeat(4000)));
        let blocks = note_blocks(notes.take_all());
        let texts = blocks.iter().map(|(block, _)| matches!(block, TurnBlock::Relayed(text) if text.len() < 5000));
        assert!(texts.clone().all(|is_short| is_short) && texts.count() == 8);
        let Some((TurnBlock::Relayed(last), _)) = blocks.last() else { panic!() };
        assert!(last.ends_with("(12 more notes omitted.)"));
    }
}
