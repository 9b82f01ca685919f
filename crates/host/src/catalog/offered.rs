//! Which of a section's tools models get, and why somebody does not find one.

use std::sync::Arc;

use wharf_spec::Untrusted;

use super::{CatalogTool, ListName, Section};

impl Section {
    /// The tools that are not quarantined, in their order.
    pub fn offered(&self) -> impl Iterator<Item = &Arc<CatalogTool>> {
        self.tools.iter().filter(|tool| tool.quarantine().is_none())
    }

    /// What may explain that a tool is not there; escaped.
    pub fn why_not(&self, tool: &str) -> Option<String> {
        let shown = Untrusted::new(tool).shortened(100).to_string();
        let mut withheld = self.withheld.iter().filter(|(list, _)| *list == ListName::Tools);
        if let Some((_, item)) = withheld.find(|(_, item)| item.name.as_deref() == Some(shown.as_str())) {
            return Some(format!("it is withheld: {}", item.reason));
        }
        if let Some((_, why)) = self.failures.iter().find(|(list, _)| *list == ListName::Tools) {
            return Some(format!("its tools could not be listed: {why}"));
        }
        (self.filtered > 0).then(|| format!("{} of its tools are filtered out", self.filtered))
    }
}
