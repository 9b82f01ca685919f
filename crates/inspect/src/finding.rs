//! Findings of the inspection and their locations.

use std::fmt;

use wharf_spec::UntrustedText;

/// One sign of prompt injection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule that matched.
    pub rule: FindingRule,
    /// Location of the text.
    pub place: FindingLocation,
    /// The matching words, shortened and escaped for a terminal.
    pub excerpt: String,
    /// Certainty of the finding.
    pub weight: FindingWeight,
}

impl Finding {
    /// Reports whether two suspicions confirm each other. They must have different rules and different words.
    /// Suspicions in two locations are unrelated, unless one location describes the whole tool and together they
    /// indicate a theft.
    pub(super) fn confirms(&self, other: &Self) -> bool {
        let is_bossy = |finding: &Self| matches!(finding.rule, FindingRule::ToolOrder | FindingRule::Authority);
        let is_apart = self.rule != other.rule && self.excerpt != other.excerpt && !(is_bossy(self) && is_bossy(other));
        is_apart && (self.place.is_adjacent(&other.place) || self.conceals(other) || other.conceals(self))
    }

    fn conceals(&self, other: &Self) -> bool {
        let is_theft = (self.rule, other.rule) == (FindingRule::Secrecy, FindingRule::Exfiltration);
        is_theft && (self.place.is_head() || other.place.is_head())
    }
}

/// The kind of a finding. The names returned by [`FindingRule::name`] are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FindingRule {
    /// Orders the model how to use other tools, or to use this one before or instead of them.
    ToolOrder,
    /// Asks to conceal information from the person.
    Secrecy,
    /// Names a location of secrets.
    SecretPlace,
    /// Asks to disclose the conversation, files or secrets.
    Exfiltration,
    /// Asks to pass data in an unrelated place, such as an argument for another purpose.
    Smuggling,
    /// Impersonates the system, the vendor or the person, or threatens.
    Authority,
    /// Asks to ignore earlier instructions.
    Override,
    /// Asks to run a command on the person's machine.
    Command,
    /// Contains invisible characters.
    HiddenText,
    /// Contains text in inconspicuous places: after much white space, or in a comment.
    BuriedText,
    /// Contains encoded text.
    EncodedText,
    /// Spells words with letters of another script.
    LookAlike,
    /// Could not be parsed.
    Unreadable,
}

impl FindingRule {
    /// Returns the stable name for files and display.
    pub fn name(self) -> &'static str {
        match self {
            Self::ToolOrder => "tool-order",
            Self::Secrecy => "secrecy",
            Self::SecretPlace => "secret-place",
            Self::Exfiltration => "exfiltration",
            Self::Smuggling => "smuggling",
            Self::Authority => "authority",
            Self::Override => "override",
            Self::Command => "command",
            Self::HiddenText => "hidden-text",
            Self::BuriedText => "buried-text",
            Self::EncodedText => "encoded-text",
            Self::LookAlike => "look-alike",
            Self::Unreadable => "unreadable",
        }
    }

    /// Reports whether the rule is about disclosure of data.
    pub(super) fn is_theft(self) -> bool {
        matches!(self, Self::Exfiltration | Self::Smuggling | Self::SecretPlace)
    }

    /// Reports whether two suspicions of this rule in one text count as much as one of another rule. For the other
    /// rules, harmless texts often contain several.
    pub(super) fn accumulates(self) -> bool {
        matches!(self, Self::Override | Self::Secrecy | Self::Exfiltration | Self::ToolOrder | Self::Authority)
    }
}

impl fmt::Display for FindingRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Certainty of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingWeight {
    /// For display only.
    Note,
    /// Quarantines together with a suspicion of another rule.
    Suspect,
    /// Quarantines by itself.
    Certain,
}

/// Location of a text in a definition. Paths come from the server and are shortened and escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingLocation {
    /// The name.
    Name,
    /// The title.
    Title,
    /// The description.
    Description,
    /// In one of the schemas. Holds the path.
    Schema(String),
    /// In the annotations. Holds the path.
    Annotation(String),
    /// In another member. Holds the path.
    Member(String),
    /// A server's instructions.
    Instructions,
    /// The text of a prompt.
    Prompt,
    /// The text of a resource.
    Resource,
    /// An error, a progress line or a log line.
    Message,
}

impl FindingLocation {
    /// Reports whether the text describes the whole definition.
    fn is_head(&self) -> bool {
        matches!(self, Self::Name | Self::Title | Self::Description)
    }

    /// Reports whether two locations are read together.
    fn is_adjacent(&self, other: &Self) -> bool {
        self == other || self.is_head() && other.is_head()
    }
}

impl fmt::Display for FindingLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "name",
            Self::Title => "title",
            Self::Description => "description",
            Self::Schema(path) | Self::Annotation(path) | Self::Member(path) => path,
            Self::Instructions => "instructions",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Message => "message",
        })
    }
}

/// Collected findings. Keeps the first few of each rule, and any that is more certain.
#[derive(Default)]
pub(super) struct FindingCollector {
    pub(super) findings: Vec<Finding>,
}

impl FindingCollector {
    const MAX_FINDINGS_PER_RULE: usize = 8;
    const MAX_EXCERPT_CHARS: usize = 120;

    pub(super) fn add(&mut self, place: FindingLocation, rule: FindingRule, weight: FindingWeight, excerpt: &str) {
        let same = || self.findings.iter().filter(|finding| finding.rule == rule);
        let is_known = same().any(|finding| finding.place == place && finding.weight >= weight);
        let is_surer = same().all(|finding| finding.weight < weight);
        if is_known || !is_surer && same().count() >= Self::MAX_FINDINGS_PER_RULE {
            return;
        }
        let excerpt = UntrustedText::new(excerpt).truncate(Self::MAX_EXCERPT_CHARS).to_string();
        self.findings.retain(|finding| finding.rule != rule || finding.place != place);
        self.findings.push(Finding { rule, place, excerpt, weight });
    }
}
