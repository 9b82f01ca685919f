//! Calls that `--allow` and `--allow-read-only` permit without a prompt, and calls refused for lack of a terminal.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use wharf::catalog::{ListName, Section};
use wharf::tools::ToolDescription;
use wharf::{AskFilter, Host};
use wharf_spec::{EscapedText, Glob};

use wharf_terminal::failure::{Failure, shell_word};
use wharf_terminal::session::CommandSession;
use wharf_terminal::suggestions::suggestion;

/// Maximum number of refused tools named in a hint.
const MAX_NAMED: usize = 5;

#[derive(Debug, Default, clap::Args)]
pub struct AllowArgs {
    /// Allow calls of a tool in this run, e.g. `git.git_status` or `'git.*'`; deny rules still apply; repeatable
    #[arg(long, value_name = "SERVER.TOOL", help_heading = "Conversation")]
    allow: Vec<String>,
    /// Allow calls of tools that their server declares read-only in this run; deny rules still apply
    #[arg(long, help_heading = "Conversation")]
    allow_read_only: bool,
}

/// Decides about calls that need a prompt, and records those that the flags do not allow.
#[derive(Debug, Default)]
pub struct AllowedTools {
    patterns: Vec<Glob>,
    read_only: bool,
    /// Display names of the tools that needed a prompt.
    prompted: Mutex<BTreeSet<String>>,
}

impl AllowArgs {
    /// Parses the patterns.
    ///
    /// # Errors
    ///
    /// Fails if a pattern names a server that is not configured.
    pub fn parse(&self, session: &CommandSession) -> Result<Arc<AllowedTools>, Failure> {
        for pattern in &self.allow {
            let Some((server, _)) = pattern.split_once('.') else {
                let hint = "write it as SERVER.TOOL, for example --allow git.git_status or --allow 'git.*'";
                return Err(Failure::usage(format_args!("--allow {pattern}: no server")).with_hint(hint));
            };
            if !server.contains(['*', '?', '\\']) {
                session.configuration.find(server)?;
            }
        }
        let patterns = self.allow.iter().map(|pattern| Glob::new(pattern)).collect();
        Ok(Arc::new(AllowedTools { patterns, read_only: self.allow_read_only, prompted: Mutex::default() }))
    }
}

impl AllowedTools {
    /// Returns the filter of a host's prompts.
    pub fn filter(self: &Arc<Self>) -> AskFilter {
        let allowed = Arc::clone(self);
        Arc::new(move |tool| allowed.allows(tool))
    }

    fn allows(&self, tool: &ToolDescription) -> bool {
        let name = selector(tool);
        let allowed = self.patterns.iter().any(|pattern| pattern.matches(&name))
            || self.read_only && tool.source.is_some() && tool.hints.read_only == Some(true);
        if !allowed {
            self.prompted.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
        }
        allowed
    }

    /// Returns a warning for each pattern that matches no tool of a server whose tools are listed. The names of tools in
    /// it are untrusted.
    pub fn unmatched_warnings(&self, host: &Host) -> Vec<String> {
        let (catalog, registry) = (host.catalog(), host.registry().snapshot());
        let built_in = registry.iter().map(|tool| tool.description()).filter(|tool| tool.source.is_none());
        let built_in: Vec<&str> = built_in.map(|tool| &*tool.name).collect();
        let mut warnings = Vec::new();
        for pattern in &self.patterns {
            let Some((server, tool)) = pattern.as_str().split_once('.') else { continue };
            let Some(section) = catalog.section(server).filter(|section| has_listed_tools(section)) else { continue };
            let names: Vec<&str> = section.tools.iter().map(|tool| &*tool.id.tool).collect();
            if !names.iter().chain(&built_in).any(|name| pattern.matches(&format!("{server}.{name}"))) {
                let hint = suggestion(tool, names.into_iter());
                warnings.push(format!("--allow {pattern} matches no tool of {server}; {hint}"));
            }
        }
        warnings
    }

    /// Returns the tools that needed a prompt, escaped.
    pub fn refused(&self) -> Vec<String> {
        let prompted = self.prompted.lock().unwrap_or_else(PoisonError::into_inner);
        prompted.iter().map(|name| EscapedText::single_line(name, 200).to_string()).collect()
    }
}

/// Reports whether the server's tools have been listed.
fn has_listed_tools(section: &Section) -> bool {
    let is_failed = section.failures.iter().any(|(list, _)| *list == ListName::Tools);
    !is_failed && !section.unasked.contains(&ListName::Tools)
}

/// Adds the refused tools and the flags that allow them to a failure.
pub fn with_refused_tools(failure: Failure, refused: &[String]) -> Failure {
    match refused {
        [] => failure,
        refused => failure.with_hint(refused_message(refused)),
    }
}

/// Names the tools that needed permission, and the flags that allow them.
pub fn refused_message(refused: &[String]) -> String {
    let more = match refused.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = &refused[..refused.len().min(MAX_NAMED)];
    let flags: Vec<String> = named.iter().map(|name| format!("--allow {}", shell_word(name))).collect();
    let (names, flags) = (named.join(", "), flags.join(" "));
    format!("refused, because nobody could be asked: {names}{more}. To allow: wharf run {flags}")
}

/// Returns the name of a tool as `--allow` takes it. A built-in tool is named by the server that its call concerns.
fn selector(tool: &ToolDescription) -> String {
    match (&tool.source, &tool.subject) {
        (Some(source), _) => format!("{}.{}", source.provider, source.name),
        (None, Some(about)) => format!("{}.{}", about.provider, tool.name),
        (None, None) => tool.name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf::tools::ToolSource;
    use wharf_spec::Fingerprint;
    use wharf_wire::RawJson;

    fn tool(server: &str, name: &str, read_only: Option<bool>) -> ToolDescription {
        let mut tool = ToolDescription::new(format!("mcp__{server}__{name}"), "", RawJson::empty_object());
        let fingerprint = Fingerprint([0; 32]);
        tool.source = Some(ToolSource { provider: server.into(), name: name.into(), fingerprint });
        tool.hints.read_only = read_only;
        tool
    }

    #[test]
    fn patterns_and_hints_allow_calls_and_others_are_recorded() {
        let patterns = ["git.git_status", "files.*"].map(Glob::new).to_vec();
        for (read_only, allowed) in [(false, ["git_status"].as_slice()), (true, &["git_status", "git_log"])] {
            let tools = AllowedTools { patterns: patterns.clone(), read_only, prompted: Mutex::default() };
            for (name, hint) in [("git_status", None), ("git_log", Some(true)), ("git_push", Some(false))] {
                assert_eq!(tools.allows(&tool("git", name, hint)), allowed.contains(&name), "{name}");
            }
            assert!(tools.allows(&tool("files", "write", None)) && !tools.allows(&tool("file", "write", None)));
            let expected: &[&str] = if read_only {
                &["file.write", "git.git_push"]
            } else {
                &["file.write", "git.git_log", "git.git_push"]
            };
            assert_eq!(tools.refused(), expected);
        }
        let message = refused_message(&["git.log".to_owned(), "git.push".to_owned()]);
        assert!(
            message.ends_with("git.log, git.push. To allow: wharf run --allow git.log --allow git.push"),
            "{message}"
        );
        let message = refused_message(&["git.x; rm -rf ~ #".to_owned()]);
        assert!(message.ends_with("wharf run --allow 'git.x; rm -rf ~ #'"), "{message}");
    }
}
