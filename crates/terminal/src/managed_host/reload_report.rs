//! Result of a configuration reload and its description, local or over the control socket.

use serde::{Deserialize, Serialize};
use wharf::ServerSetChanges;
use wharf_config::{ConfiguredServer, ProblemSeverity};
use wharf_policy::RuleProblem;
use wharf_spec::ServerName;

use super::{LoadedConfig, is_same_definition};
use crate::config_context::{problem_line, unreadable_rules};

/// Result of a configuration reload. The texts are not escaped; the caller escapes them for display.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReloadReport {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<String>,
    /// Project servers that newly await approval, or have a changed definition.
    pub unapproved: Vec<String>,
    /// All problems of the configuration.
    pub problems: Vec<String>,
    /// True if every server and every rule was applied.
    pub success: bool,
    /// Problems that the previous configuration did not have.
    #[serde(skip)]
    pub new_problems: Vec<String>,
}

impl ReloadReport {
    /// Compares two loaded configurations.
    pub(super) fn new(before: &LoadedConfig, known: &LoadedConfig, changes: &ServerSetChanges) -> Self {
        let not_taken = changes.errors.iter().map(|(name, why)| format!("{name}: {why}"));
        let (unapproved, success) =
            (newly_unapproved(before, known), has_no_errors(known) && changes.errors.is_empty());
        let mut reloaded = Self { unapproved, success, ..Self::with_problems(before, known, not_taken) };
        let ServerSetChanges { added, removed, changed, .. } = changes;
        (reloaded.added, reloaded.removed, reloaded.changed) = (names(added), names(removed), names(changed));
        reloaded
    }

    /// Reports a reload that was rejected because of an invalid rule.
    pub(super) fn rejected(before: &LoadedConfig, known: &LoadedConfig, rule: &RuleProblem) -> Self {
        Self::with_problems(before, known, [format!("configuration not applied: {rule}")])
    }

    /// Collects the current problems and adds `further_problems`.
    fn with_problems(
        before: &LoadedConfig,
        known: &LoadedConfig,
        further_problems: impl IntoIterator<Item = String>,
    ) -> Self {
        let (mut problems, known_before) = (list_problems(known), list_problems(before));
        let mut new_problems: Vec<String> =
            problems.iter().filter(|line| !known_before.contains(line)).cloned().collect();
        for line in further_problems {
            new_problems.push(line.clone());
            problems.push(line);
        }
        Self { problems, new_problems, ..Self::default() }
    }

    /// Reports whether an automatic reload has anything to announce.
    pub fn has_changes(&self) -> bool {
        let Self { added, removed, changed, unapproved, new_problems, .. } = self;
        [added, removed, changed, unapproved, new_problems].iter().any(|list| !list.is_empty())
    }

    /// Describes the changes.
    pub fn describe(&self) -> String {
        let lists = [("added", &self.added), ("removed", &self.removed), ("changed", &self.changed)];
        let some = lists.into_iter().filter(|(_, names)| !names.is_empty());
        let changes = some.map(|(word, names)| format!("{word} {}", names.join(", ")));
        let waiting = self.unapproved.iter().map(|name| format!("{name} needs approval: wharf approve {name}"));
        let words: Vec<String> = changes.chain(waiting).collect();
        if words.is_empty() { "no servers changed".to_owned() } else { words.join("; ") }
    }
}

fn names(names: &[ServerName]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn has_no_errors(known: &LoadedConfig) -> bool {
    let is_error = |problem: &wharf_config::ConfigProblem| problem.severity == ProblemSeverity::Error;
    known.failures.is_empty() && !known.config.problems.iter().any(is_error)
}

/// Lists problems of the files, and of servers with a valid definition that cannot be resolved.
fn list_problems(known: &LoadedConfig) -> Vec<String> {
    let is_readable = |name: &str| known.config.server(name).is_some_and(|server| server.described.is_ok());
    let failures = known.failures.iter().filter(|(name, _)| is_readable(name)).map(|(name, why)| {
        let is_kept = known.entries.iter().any(|entry| entry.name.as_str() == name);
        format!("{name}: {}{}", why.error.message, if is_kept { " (previous configuration stays active)" } else { "" })
    });
    let rules = unreadable_rules(&known.config.settings);
    known.config.problems.iter().map(problem_line).chain(rules).chain(failures).collect()
}

fn newly_unapproved(before: &LoadedConfig, known: &LoadedConfig) -> Vec<String> {
    let waited = |server: &ConfiguredServer| before.unapproved().any(|other| is_same_definition(other, server));
    known.unapproved().filter(|server| !waited(server)).map(|server| server.name.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_described() {
        let some = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let quiet = ReloadReport { problems: some(&["known before"]), success: true, ..ReloadReport::default() };
        let (added, removed, unapproved) = (some(&["a", "b"]), some(&["c"]), some(&["d"]));
        for (reloaded, is_any, words) in [
            (quiet.clone(), false, "no servers changed"),
            (ReloadReport { new_problems: some(&["new"]), ..quiet.clone() }, true, "no servers changed"),
            (ReloadReport { added, removed, ..quiet.clone() }, true, "added a, b; removed c"),
            (ReloadReport { unapproved, ..quiet }, true, "d needs approval: wharf approve d"),
        ] {
            assert_eq!((reloaded.has_changes(), reloaded.describe().as_str()), (is_any, words));
        }
    }
}
