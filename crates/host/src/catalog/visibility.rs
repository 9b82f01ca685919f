//! Visibility of a section's tools.

use std::sync::Arc;

use wharf_spec::UntrustedText;

use super::{CatalogTool, ListName, Section};

impl Section {
    /// Returns the tools that are not quarantined, in order.
    pub fn visible_tools(&self) -> impl Iterator<Item = &Arc<CatalogTool>> {
        self.tools.iter().filter(|tool| tool.quarantine().is_none())
    }

    /// Reports whether both sections have equal content, including tool definitions.
    pub(crate) fn has_same_content(&self, other: &Self) -> bool {
        let tools = self.tools.iter().map(|tool| (tool.fingerprint, tool.quarantine().is_some()));
        tools.eq(other.tools.iter().map(|tool| (tool.fingerprint, tool.quarantine().is_some())))
            && self.freshness == other.freshness
            && self.resources.iter().map(|one| &one.raw).eq(other.resources.iter().map(|one| &one.raw))
            && self.templates.iter().map(|one| &one.raw).eq(other.templates.iter().map(|one| &one.raw))
            && self.prompts.iter().map(|one| &one.raw).eq(other.prompts.iter().map(|one| &one.raw))
    }

    /// Returns a possible explanation for a missing tool; escaped.
    pub fn explain_missing(&self, tool: &str) -> Option<String> {
        let shown = UntrustedText::new(tool).truncate(100).to_string();
        let mut withheld = self.withheld.iter().filter(|(list, _)| *list == ListName::Tools);
        if let Some((_, item)) = withheld.find(|(_, item)| item.name.as_deref() == Some(shown.as_str())) {
            return Some(format!("withheld: {}", item.reason));
        }
        if let Some((_, why)) = self.failures.iter().find(|(list, _)| *list == ListName::Tools) {
            return Some(format!("listing its tools failed: {why}"));
        }
        (self.filtered > 0).then(|| format!("{} of its tools are filtered out", self.filtered))
    }
}
