//! Detection of tags and labels that impersonate another speaker.

use super::{FindingRule, FindingSink, FindingWeight};

/// Finds tags such as `<IMPORTANT>` and `[SYSTEM]`, chat-template markers, and comments.
pub(super) fn find_markup(text: &str, add: &mut FindingSink<'_>) {
    let is_mark = |byte: &u8| matches!(byte, b'<' | b'[' | b'#' | b'\n' | b'{');
    for (at, _) in text.bytes().enumerate().filter(|(_, byte)| is_mark(byte)) {
        let rest = marker_window(&text[at..]);
        if let Some((rule, weight)) = rate_marker(rest) {
            add(rule, weight, rest);
        }
    }
    if is_role_label(marker_window(text)) {
        add(FindingRule::Authority, FindingWeight::Suspect, text);
    }
}

/// Returns the part of a text that a marker may extend over, so that the cost per marker is bounded.
fn marker_window(text: &str) -> &str {
    const MAX_MARKER_REACH: usize = 400;
    &text[..text.floor_char_boundary(MAX_MARKER_REACH)]
}

fn rate_marker(rest: &str) -> Option<(FindingRule, FindingWeight)> {
    if rest.starts_with("<!--") {
        return Some((FindingRule::BuriedText, FindingWeight::Suspect));
    }
    let weight = match rest.as_bytes()[0] {
        // A placeholder looks like a tag but is never closed.
        b'<' => match tag_weight(rest, &CERTAIN_TAGS, &SUSPECT_TAGS)? {
            FindingWeight::Certain if !rest[1..].contains("</") && !is_shouted(rest) => FindingWeight::Suspect,
            weight => weight,
        },
        b'[' => tag_weight(rest, &CERTAIN_LABELS, &SUSPECT_LABELS)?,
        b'{' => tag_weight(rest.strip_prefix("{{")?, &["system"], &["user", "assistant"])?,
        b'#' => heading_weight(rest)?,
        _ => is_role_label(&rest[1..]).then_some(FindingWeight::Suspect)?,
    };
    Some((FindingRule::Authority, weight))
}

fn is_shouted(tag: &str) -> bool {
    tag.starts_with("</") || tag.starts_with("<|") || tag[1..].starts_with(|letter: char| letter.is_ascii_uppercase())
}

const CERTAIN_TAGS: [&str; 24] = [
    "important",
    "system",
    "secret",
    "hidden",
    "admin",
    "critical",
    "sys",
    "instructions",
    "instruction",
    "im_start",
    "im_end",
    "system-reminder",
    "system_reminder",
    "tool_result",
    "function_results",
    "function_calls",
    "tool_response",
    "start_of_turn",
    "end_of_turn",
    "eot_id",
    "start_header_id",
    "endoftext",
    "override",
    "systemprompt",
];
const SUSPECT_TAGS: [&str; 8] =
    ["assistant", "human", "note", "warning", "urgent", "tool_call", "attention", "mandatory"];
const CERTAIN_LABELS: [&str; 8] =
    ["system", "inst", "sys", "system message", "system prompt", "system override", "hidden", "admin override"];
const SUSPECT_LABELS: [&str; 7] = ["important", "assistant", "admin", "critical", "urgent", "tool result", "override"];

/// Name parts of tags that are invented to be obeyed.
const SUSPICIOUS_TAG_PARTS: [&str; 9] =
    ["instructions", "instruction", "system", "important", "directive", "directives", "override", "hidden", "prompt"];

/// Rates the name of a tag, ignoring brackets, bars and slashes around it.
fn tag_weight(rest: &str, certain: &[&str], suspect: &[&str]) -> Option<FindingWeight> {
    const MAX_TAG_LENGTH: usize = 40;
    let dressed = &rest[..rest.floor_char_boundary(MAX_TAG_LENGTH)];
    let name = dressed.trim_start_matches(['<', '[', '{', '/', '|', '!', ' ', '*']);
    let end = name.find(['>', ']', '}', '|', ':', '/', '!', '*', '='])?;
    let name = name[..end].trim();
    let is_one_of = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let is_closed =
        || rest.contains("</") && name.split(['_', '-', ' ']).any(|part| SUSPICIOUS_TAG_PARTS.contains(&part));
    match () {
        () if is_one_of(certain) || rest.starts_with('<') && is_closed() => Some(FindingWeight::Certain),
        () if is_one_of(suspect) => Some(FindingWeight::Suspect),
        () => None,
    }
}

/// Rates a chat-template heading, such as `### Instruction:`.
fn heading_weight(rest: &str) -> Option<FindingWeight> {
    let title = rest.strip_prefix("###")?.trim_start_matches(['#', ' ']);
    let is_role = |role: &&str| title.get(..role.len()).is_some_and(|start| start.eq_ignore_ascii_case(role));
    ["system:", "instruction:", "system prompt", "new instruction", "assistant:", "response:"]
        .iter()
        .any(is_role)
        .then_some(FindingWeight::Suspect)
}

/// Reports whether a line begins with the label of another speaker.
fn is_role_label(line: &str) -> bool {
    const MAX_LABEL_INDENT: usize = 8;
    let line = &line[line.bytes().take(MAX_LABEL_INDENT).take_while(|byte| *byte == b' ').count()..];
    ["SYSTEM:", "System:", "Assistant:", "ASSISTANT:", "Human:"].iter().any(|role| line.starts_with(role))
}
