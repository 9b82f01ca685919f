//! The dated versions of the protocol, and what each of them lets a server say.
//!
//! Owns every "since when" of this server; other modules ask here instead of comparing dates.

use std::fmt;

/// A dated version of the protocol, ordered by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl Revision {
    /// All revisions, newest first, which is the order in which they are offered.
    pub const ALL: [Self; 5] =
        [Self::V2026_07_28, Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26, Self::V2024_11_05];

    /// The newest revision, which is stateless.
    pub const LATEST: Self = Self::V2026_07_28;

    /// The newest revision that begins with `initialize`.
    pub const LATEST_HANDSHAKE: Self = Self::V2025_11_25;

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Whether each request stands alone and describes itself in `_meta`.
    pub fn is_stateless(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// Whether an array of messages is a message; it was so in one revision only.
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }

    pub fn has_tool_annotations(self) -> bool {
        self >= Self::V2025_03_26
    }

    pub fn has_audio(self) -> bool {
        self >= Self::V2025_03_26
    }

    pub fn has_progress_messages(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Whether completion is announced as a capability; 2024-11-05 had the method alone.
    pub fn has_completions_capability(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Whether named things have a `title` beside their `name`.
    pub fn has_titles(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether tools have an `outputSchema` and answer with `structuredContent`.
    pub fn has_structured_content(self) -> bool {
        self >= Self::V2025_06_18
    }

    pub fn has_resource_links(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether an implementation may describe itself and name its website.
    pub fn has_descriptions(self) -> bool {
        self >= Self::V2025_11_25
    }

    pub fn has_icons(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Whether a client may be asked to have a form filled in.
    pub fn has_elicitation(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether elicitation has modes, and with them web pages, more kinds of fields and more defaults.
    pub fn has_elicitation_modes(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Whether an error may ask to have a web page opened; it was so in one revision only.
    pub fn has_elicitation_errors(self) -> bool {
        self == Self::V2025_11_25
    }

    /// Whether the client's model may be offered tools.
    pub fn has_sampling_tools(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Whether completion is told of the arguments that are filled in already.
    pub fn has_completion_context(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether tasks are a part of the protocol itself; later they are an extension.
    pub fn has_core_tasks(self) -> bool {
        self == Self::V2025_11_25
    }

    /// Whether a stream of events may begin with one that has nothing but an id.
    pub fn has_priming_events(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// The code for a resource that does not exist.
    pub fn resource_not_found(self) -> i64 {
        if self.is_stateless() { -32602 } else { -32002 }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Revision;

    #[test]
    fn revisions_parse_and_are_listed_newest_first() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        assert!(Revision::ALL.is_sorted_by(|newer, older| newer > older));
        for wrong in ["", "2026", "2026-07-28 ", "latest"] {
            assert_eq!(Revision::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn only_the_newest_is_stateless() {
        let stateless: Vec<_> = Revision::ALL.into_iter().filter(|revision| revision.is_stateless()).collect();
        assert_eq!(stateless, [Revision::V2026_07_28]);
        assert!(!Revision::LATEST_HANDSHAKE.is_stateless());
    }
}
