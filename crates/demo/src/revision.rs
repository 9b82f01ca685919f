//! The protocol revisions and their features.
//!
//! Other modules ask this module for features instead of comparing dates.

use std::fmt;

/// A protocol revision, ordered by date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DemoRevision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl DemoRevision {
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

    /// Reports whether requests are independent and describe themselves in `_meta`.
    pub fn is_stateless(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// Reports whether an array of messages is allowed, which only one revision has.
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

    /// Reports whether completion has a capability. 2024-11-05 has only the method.
    pub fn has_completions_capability(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Reports whether named items have a `title`.
    pub fn has_titles(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Reports whether tools have an `outputSchema` and return `structuredContent`.
    pub fn has_structured_content(self) -> bool {
        self >= Self::V2025_06_18
    }

    pub fn has_resource_links(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Reports whether server info may have a description and a website.
    pub fn has_descriptions(self) -> bool {
        self >= Self::V2025_11_25
    }

    pub fn has_icons(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Reports whether the server may ask the client for a form.
    pub fn has_elicitation(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Reports whether elicitation has modes, which also add web pages, more field types and more defaults.
    pub fn has_elicitation_modes(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Reports whether an error may ask to open a web page, which only one revision has.
    pub fn has_elicitation_errors(self) -> bool {
        self == Self::V2025_11_25
    }

    /// Reports whether a sampling request may offer tools.
    pub fn has_sampling_tools(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Reports whether completion requests include the arguments given so far.
    pub fn has_completion_context(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Reports whether tasks are part of the core protocol. Later they are an extension.
    pub fn has_core_tasks(self) -> bool {
        self == Self::V2025_11_25
    }

    /// Returns the error code of an unknown resource.
    pub fn resource_not_found(self) -> i64 {
        if self.is_stateless() { -32602 } else { -32002 }
    }
}

impl fmt::Display for DemoRevision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::DemoRevision;

    #[test]
    fn revisions_parse_and_are_listed_newest_first() {
        for revision in DemoRevision::ALL {
            assert_eq!(DemoRevision::parse(revision.as_str()), Some(revision));
        }
        assert!(DemoRevision::ALL.is_sorted_by(|newer, older| newer > older));
        for wrong in ["", "2026", "2026-07-28 ", "latest"] {
            assert_eq!(DemoRevision::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn only_the_newest_is_stateless() {
        let stateless: Vec<_> = DemoRevision::ALL.into_iter().filter(|revision| revision.is_stateless()).collect();
        assert_eq!(stateless, [DemoRevision::V2026_07_28]);
        assert!(!DemoRevision::LATEST_HANDSHAKE.is_stateless());
    }
}
