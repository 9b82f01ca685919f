//! Tool filter of a server: `includeTools` and `excludeTools`.

use wharf_spec::{Glob, ServerSettings};

/// Globs over the names that a server gives its tools. Exclusion takes precedence over inclusion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Tools to include; all of them if absent.
    pub include: Option<Vec<Glob>>,
    /// Tools to exclude.
    pub exclude: Vec<Glob>,
}

impl ToolFilter {
    /// Creates the filter from a server's settings.
    pub fn from_settings(settings: &ServerSettings) -> Self {
        let globs = |texts: &[String]| texts.iter().map(|text| Glob::new(text)).collect();
        Self { include: settings.include_tools.as_deref().map(globs), exclude: globs(&settings.exclude_tools) }
    }

    /// Reports whether a tool is enabled.
    pub fn admits(&self, tool: &str) -> bool {
        let among = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(tool));
        self.include.as_deref().is_none_or(among) && !among(&self.exclude)
    }

    /// Returns the globs that match none of the tools and are probably misspelt.
    pub fn unmatched_globs<'a>(&self, tools: impl Iterator<Item = &'a str> + Clone) -> Vec<Glob> {
        let all = self.include.iter().flatten().chain(&self.exclude);
        all.filter(|glob| !tools.clone().any(|tool| glob.matches(tool))).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(include: Option<&[&str]>, exclude: &[&str]) -> ToolFilter {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let mut settings = ServerSettings::default();
        settings.include_tools = include.map(owned);
        settings.exclude_tools = owned(exclude);
        ToolFilter::from_settings(&settings)
    }

    #[test]
    fn exclude_globs_take_precedence_over_include() {
        const TOOLS: [&str; 4] = ["read_file", "read_dir", "write_file", "Read"];
        for (include, exclude, admitted, unmatched) in [
            (None, &[][..], &TOOLS[..], &[][..]),
            (Some(&[][..]), &[], &[], &[]),
            (Some(&["read_*"]), &[], &["read_file", "read_dir"], &[]),
            (Some(&["read_*"]), &["*_dir"], &["read_file"], &[]),
            (Some(&["read_dir"]), &["read_dir"], &[], &[]),
            (None, &["write?file", "wriet_*"], &["read_file", "read_dir", "Read"], &["wriet_*"]),
            (Some(&["read_fil", "*"]), &["x"], &TOOLS, &["read_fil", "x"]),
        ] {
            let filter = filter(include, exclude);
            let found: Vec<&str> = TOOLS.into_iter().filter(|tool| filter.admits(tool)).collect();
            assert_eq!(found, admitted, "{filter:?}");
            let idle = filter.unmatched_globs(TOOLS.into_iter());
            assert_eq!(idle.iter().map(Glob::as_str).collect::<Vec<_>>(), unmatched, "{filter:?}");
        }
    }
}
