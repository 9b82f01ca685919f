//! What was found, and where.

use std::fmt;

use wharf_spec::Untrusted;

/// One sign of poison.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What it is a sign of.
    pub rule: FindingRule,
    /// Where it stands.
    pub place: Place,
    /// The words that show it, shortened and escaped: fit for a terminal.
    pub excerpt: String,
    /// How sure it is.
    pub weight: Weight,
}

impl Finding {
    /// Whether two suspicions are better than one: not those of one rule, nor by the same words. What is said in two
    /// places has little to do with each other, unless one of them speaks for the whole and together they make a theft.
    pub(super) fn bears_out(&self, other: &Self) -> bool {
        let is_bossy = |finding: &Self| matches!(finding.rule, FindingRule::ToolOrder | FindingRule::Authority);
        let is_apart = self.rule != other.rule && self.excerpt != other.excerpt && !(is_bossy(self) && is_bossy(other));
        is_apart && (self.place.is_beside(&other.place) || self.hides(other) || other.hides(self))
    }

    fn hides(&self, other: &Self) -> bool {
        let is_theft = (self.rule, other.rule) == (FindingRule::Secrecy, FindingRule::Exfiltration);
        is_theft && (self.place.is_head() || other.place.is_head())
    }
}

/// What a finding is a sign of. The names that [`FindingRule::name`] gives are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FindingRule {
    /// Orders the model how to use other tools, or to use this one before or instead of them.
    ToolOrder,
    /// Wants something kept from the person.
    Secrecy,
    /// Names a place where secrets are kept.
    SecretPlace,
    /// Wants the conversation, files or secrets passed on.
    Exfiltration,
    /// Wants something passed on where it does not belong, such as in an argument made for something else.
    Smuggling,
    /// Speaks as the system, the vendor or the person, or threatens.
    Authority,
    /// Wants earlier instructions ignored.
    Override,
    /// Wants a command run on the person's machine.
    Command,
    /// Holds characters that nobody sees.
    HiddenText,
    /// Holds text where nobody looks: behind much white space, or in a comment.
    BuriedText,
    /// Holds text that has to be decoded first.
    EncodedText,
    /// Spells words with letters of another script.
    LookAlike,
    /// Could not be read.
    Unreadable,
}

impl FindingRule {
    /// The name to write into files and to show.
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

    /// Whether it is about something being given away.
    pub(super) fn is_theft(self) -> bool {
        matches!(self, Self::Exfiltration | Self::Smuggling | Self::SecretPlace)
    }

    /// Whether two suspicions of this kind in one text are as good as one by another rule. Of the rest, honest texts
    /// often hold several.
    pub(super) fn adds_up(self) -> bool {
        matches!(self, Self::Override | Self::Secrecy | Self::Exfiltration | Self::ToolOrder | Self::Authority)
    }
}

impl fmt::Display for FindingRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// Worth showing, and nothing more.
    Note,
    /// Enough together with a suspicion by another rule.
    Suspect,
    /// Enough by itself.
    Certain,
}

/// Where in a definition a text stands. Paths are the server's words, shortened and escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// The name.
    Name,
    /// The title.
    Title,
    /// The description.
    Description,
    /// In one of the schemas, with the path to it.
    Schema(String),
    /// In the annotations, with the path to it.
    Annotation(String),
    /// In another member, with the path to it.
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

impl Place {
    /// Whether it speaks for the whole definition.
    fn is_head(&self) -> bool {
        matches!(self, Self::Name | Self::Title | Self::Description)
    }

    /// Whether two places are read in one breath.
    fn is_beside(&self, other: &Self) -> bool {
        self == other || self.is_head() && other.is_head()
    }
}

impl fmt::Display for Place {
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

/// Findings as they come in. Of each rule it keeps the first few, and any that is surer than those.
#[derive(Default)]
pub(super) struct Report {
    pub(super) findings: Vec<Finding>,
}

impl Report {
    const MOST_OF_A_RULE: usize = 8;
    const LONGEST_EXCERPT: usize = 120;

    pub(super) fn add(&mut self, place: Place, rule: FindingRule, weight: Weight, excerpt: &str) {
        let same = || self.findings.iter().filter(|finding| finding.rule == rule);
        let is_known = same().any(|finding| finding.place == place && finding.weight >= weight);
        let is_surer = same().all(|finding| finding.weight < weight);
        if is_known || !is_surer && same().count() >= Self::MOST_OF_A_RULE {
            return;
        }
        let excerpt = Untrusted::new(excerpt).shortened(Self::LONGEST_EXCERPT).to_string();
        self.findings.retain(|finding| finding.rule != rule || finding.place != place);
        self.findings.push(Finding { rule, place, excerpt, weight });
    }
}
