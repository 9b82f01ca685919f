//! Phrases that are matched within a whole sentence or letter by letter, instead of word by word.

use super::super::{FindingRule, FindingWeight};
use FindingRule::{Exfiltration, Override, Secrecy, SecretPlace, Smuggling, ToolOrder};
use FindingWeight::{Certain, Suspect};

/// Class combinations: a sentence matches if it has a word of each class, in any order, and none of those with `!`.
/// `code` is text in backticks.
pub(in super::super) const CLASS_COMBINATIONS: &[(FindingRule, FindingWeight, &str)] = &[
    (Secrecy, Suspect, "no speak someone !may"),
    (Secrecy, Suspect, "cloak someone"),
    (Secrecy, Suspect, "cloak move you"),
    (Exfiltration, Suspect, "move prey code"),
    (Exfiltration, Suspect, "move prey you"),
    (Exfiltration, Suspect, "move prey someone"),
    (Exfiltration, Suspect, "take private you !tells !kinds"),
    (Exfiltration, Suspect, "take private code !tells !kinds"),
    (Exfiltration, Suspect, "take private someone !tells !kinds"),
    (Exfiltration, Suspect, "take private slots !tells !kinds"),
    (SecretPlace, Certain, "take vault code !tells !path !may"),
    (SecretPlace, Certain, "take vault slots !tells !path !may"),
    (Smuggling, Suspect, "take code slots !tells"),
    (Override, Suspect, "consent waive"),
    (ToolOrder, Suspect, "tamper stake often"),
    (Override, Certain, "law void you !tells"),
    (Override, Certain, "law void someone !tells"),
    (Override, Suspect, "law void"),
    (ToolOrder, Certain, "others shun"),
    (ToolOrder, Certain, "others bad"),
    (ToolOrder, Certain, "rivals order"),
    (Exfiltration, Suspect, "deliver away you"),
    (Exfiltration, Suspect, "deliver away someone"),
    (Exfiltration, Suspect, "deliver away prey"),
    (ToolOrder, Suspect, "others you"),
];

/// Phrases that are found even if their letters are separated by spaces, punctuation or line breaks, or not separated.
pub(in super::super) const SPELLED_PHRASES: &[(FindingRule, &str)] = &[
    (Override, "ignore previous instructions"),
    (Override, "ignore all previous"),
    (Override, "ignore prior instructions"),
    (Override, "ignore the above"),
    (Override, "ignore all instructions"),
    (Override, "ignore your instructions"),
    (Override, "disregard previous"),
    (Override, "disregard all previous"),
    (Override, "disregard prior"),
    (Override, "forget previous instructions"),
    (Override, "override previous instructions"),
    (Secrecy, "do not tell the user"),
    (Secrecy, "don't tell the user"),
    (Secrecy, "do not inform the user"),
    (Secrecy, "do not mention this"),
    (Secrecy, "do not mention it"),
    (Secrecy, "hide this from the user"),
    (Exfiltration, "send the conversation"),
    (Exfiltration, "the entire conversation to"),
    (Exfiltration, "your system prompt to"),
];
