//! Servers and rules of one configuration file, for programs that have no other configuration of Wharf.

use std::path::Path;

use wharf_config::{ConfigPaths, ConfigProblem, ProblemSeverity, ResolveContext, RuleText};
use wharf_policy::{Rule, RuleAction, RuleAuthority, RuleOrigin, SourcedRule};
use wharf_spec::{Environment, ServerEntry};

/// The servers and permission rules of one file, such as an `mcp.json`, in any format that Wharf reads.
///
/// # Example
///
/// ```
/// use wharf::spec::Environment;
/// use wharf::{ConfigFile, Host};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("mcp.json");
/// # std::fs::write(&path, r#"{"mcpServers": {"demo": {"command": "wharf", "lazy": true}}}"#)?;
/// let environment = Environment { env: std::env::vars_os().collect(), cwd: std::env::current_dir()? };
/// let file = ConfigFile::load(&path, &environment)?;
/// for problem in &file.problems {
///     eprintln!("{problem}");
/// }
/// let host = Host::builder().environment(environment).servers(file.servers).rules(file.rules).start().await?;
/// assert!(host.status_of("demo").is_ok());
/// # host.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ConfigFile {
    /// The servers whose definitions are valid.
    pub servers: Vec<ServerEntry>,
    /// The rules of `permissions`, with the authority of the user.
    pub rules: Vec<SourcedRule>,
    /// Problems of single entries. An entry with an error is not among the servers.
    pub problems: Vec<ConfigProblem>,
}

impl ConfigFile {
    /// Reads a file. Blocks. References such as `${VAR}` are expanded from the environment; a relative path is resolved
    /// against its working directory. There is no store for `${secret:NAME}`.
    ///
    /// # Errors
    ///
    /// Returns the problem if the file is missing or unreadable.
    pub fn load(path: impl AsRef<Path>, environment: &Environment) -> Result<Self, ConfigProblem> {
        let places = ConfigPaths {
            project: environment.cwd.clone(),
            flags: vec![environment.cwd.join(path)],
            only_flags: true,
            ..ConfigPaths::default()
        };
        let mut config = wharf_config::load(&places, environment);
        let is_lost = config.settings.unread;
        let is_fatal = |problem: &ConfigProblem| match problem.server {
            None => problem.code == "missing_file" || (is_lost && problem.severity == ProblemSeverity::Error),
            Some(_) => false,
        };
        if let Some(fatal) = config.problems.iter().position(is_fatal) {
            return Err(config.problems.swap_remove(fatal));
        }
        let no_secrets = |_: &str| Err("the program has no secret store".to_owned());
        let with =
            ResolveContext { around: environment, settings: &config.settings, secrets: &no_secrets, places: &places };
        let mut servers = Vec::new();
        for server in &config.servers {
            match server.resolve(&with) {
                Ok(entry) => servers.push(entry),
                // Loading has already reported an invalid definition.
                Err(problems) if server.described.is_ok() => config.problems.extend(problems),
                Err(_) => {}
            }
        }
        Ok(Self { servers, rules: rules_from_config(&config.settings.rules), problems: config.problems })
    }
}

/// Converts rules of a configuration to policy rules.
pub fn rules_from_config(rules: &[RuleText]) -> Vec<SourcedRule> {
    let rule = |text: &RuleText| SourcedRule {
        rule: Rule {
            tool: text.tool.clone(),
            pattern: text.pattern.clone(),
            action: parse_action(&text.action),
            defined_in: text.defined_in.clone(),
        },
        origin: RuleOrigin {
            place: text.place.to_string(),
            authority: if text.from_project { RuleAuthority::Project } else { RuleAuthority::User },
        },
    };
    rules.iter().map(rule).collect()
}

/// Converts an action, which was validated on loading.
fn parse_action(word: &str) -> RuleAction {
    match word {
        "allow" => RuleAction::Allow,
        "ask" => RuleAction::Ask,
        _ => RuleAction::Deny,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: Option<&str>) -> Result<ConfigFile, ConfigProblem> {
        let directory = tempfile::tempdir().unwrap();
        if let Some(text) = text {
            std::fs::write(directory.path().join("mcp.json"), text).unwrap();
        }
        ConfigFile::load("mcp.json", &Environment { env: Vec::new(), cwd: directory.path().to_owned() })
    }

    #[test]
    fn file_gives_servers_and_rules_and_a_bad_entry_costs_itself() {
        let file = load(Some(
            r#"{"mcpServers": {"good": {"command": "x"}, "unset": {"command": "${NOT_SET}"}, "bad": {"command": 1}},
                "permissions": [{"tool": "mcp__good__*", "action": "allow"}]}"#,
        ))
        .unwrap();
        assert_eq!(file.servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["good"]);
        assert_eq!(file.rules.iter().map(|rule| &rule.rule).collect::<Vec<_>>(), [&Rule::allow("mcp__good__*")]);
        let mut with_problems: Vec<_> = file.problems.iter().filter_map(|problem| problem.server.as_deref()).collect();
        with_problems.sort_unstable();
        with_problems.dedup();
        assert_eq!(with_problems, ["bad", "unset"], "{:?}", file.problems);
    }

    #[test]
    fn missing_or_unreadable_file_is_an_error() {
        assert_eq!(load(None).unwrap_err().code, "missing_file");
        assert_eq!(load(Some("{\"mcpServers\": ")).unwrap_err().code, "unreadable");
    }
}
