//! Effects of an approval beyond the command that would run: a replaced server, and rules that already allow tools.

use std::fmt::Write as _;

use wharf_config::{Config, ConfiguredServer, SourceLocation};
use wharf_policy::Policy;
use wharf_spec::ServerName;

use crate::config_context::rules_of;
use crate::style::{WARNING, paint};

/// Maximum number of rules listed.
const MAX_RULES: usize = 10;

/// Effects of an approval beyond the command that would run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalEffects {
    /// Location of the server definition that this one replaces.
    pub replaces: Option<SourceLocation>,
    /// Rules that already allow its tools, and the entry's own `trust`. Escaped.
    pub allowed_by: Vec<String>,
}

impl ApprovalEffects {
    /// Computes the effects of approving a server of this configuration. Reads the file system.
    pub fn new(server: &ConfiguredServer, config: &Config) -> Self {
        // The server of that name currently in effect. It is replaced only if its layer is lower.
        let current = config.server(server.name.as_str()).filter(|current| current.layer < server.layer);
        let names: Vec<ServerName> = config.servers.iter().map(|server| server.name.clone()).collect();
        let policy = Policy::compile(rules_of(&config.settings), &names);
        let mut allowed_by: Vec<String> =
            policy.allow_rules_for(&server.name, &server.origin()).iter().map(ToString::to_string).collect();
        if let Some(more) = allowed_by.len().checked_sub(MAX_RULES).filter(|more| *more > 0) {
            allowed_by.truncate(MAX_RULES);
            allowed_by.push(format!("{more} more rules"));
        }
        if server.described.as_ref().is_ok_and(|described| described.trust) {
            allowed_by.push("`\"trust\": true` of this entry: all tools".to_owned());
        }
        Self { replaces: current.map(|current| current.place.clone()), allowed_by }
    }

    /// Returns the effects as lines to show, each preceded by a line break.
    pub fn to_lines(&self, name: &ServerName) -> String {
        let mut text = String::new();
        if let Some(place) = &self.replaces {
            let _ = write!(text, "\n  {} `{name}` defined in {place}", paint(WARNING, "replaces"));
        }
        for rule in &self.allowed_by {
            let _ = write!(text, "\n  {} {rule}", paint(WARNING, "tools already allowed by"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use wharf_config::{ConfigPaths, load};
    use wharf_spec::Environment;
    use wharf_testkit::test_home::{SHARED_CONFIG, TestHome, USER_CONFIG};

    use super::*;

    /// Loads a user file and a project file, and returns the effects of approving the project's `docs`.
    fn effects(home: &TestHome, user: &str, project: &str) -> ApprovalEffects {
        home.write(SHARED_CONFIG, project);
        let (user, project) = (home.write(USER_CONFIG, user), home.path("project"));
        let places = ConfigPaths { user, project: project.clone(), ..ConfigPaths::default() };
        let config = load(&places, &Environment { env: Vec::new(), cwd: project });
        let mut all = config.servers.iter().chain(&config.beside);
        let waiting = all.find(|server| server.layer.needs_approval() && server.name.as_str() == "docs").unwrap();
        ApprovalEffects::new(waiting, &config)
    }

    fn shown(effects: &ApprovalEffects) -> String {
        anstream::adapter::strip_str(&effects.to_lines(&ServerName::new("docs").unwrap())).to_string()
    }

    #[test]
    fn replaced_server_and_matching_rules_are_named() {
        let home = TestHome::new();
        let here = home.path(SHARED_CONFIG);
        let user = format!(
            r#"{{"mcpServers": {{"docs": {{"command": "mine"}}}},
"permissions": [
{{"tool": "mcp__docs__search", "action": "allow"}},
{{"tool": "mcp__docs__read", "action": "allow", "definedIn": "{}"}},
{{"tool": "mcp__*__list", "action": "allow"}},
{{"tool": "mcp__docs__write", "action": "deny"}}]}}"#,
            here.display()
        );
        let project = r#"{"mcpServers": {"docs": {"command": "theirs", "trust": true}}}"#;
        let text = shown(&effects(&home, &user, project));
        let config = home.path(USER_CONFIG);
        let config = config.display();
        let expected = [
            format!("  replaces `docs` defined in {config}:1:17"),
            format!(
                "  tools already allowed by allow `mcp__docs__read` as defined in `{}` ({config}:4:1)",
                here.display()
            ),
            format!("  tools already allowed by allow `mcp__*__list` ({config}:5:1)"),
            "  tools already allowed by `\"trust\": true` of this entry: all tools".to_owned(),
        ];
        assert_eq!(text, format!("\n{}", expected.join("\n")));
    }

    #[test]
    fn unrelated_server_has_no_effects() {
        let home = TestHome::new();
        let user = r#"{"mcpServers": {"other": {"command": "x"}},
            "permissions": [{"tool": "mcp__docs__search", "action": "allow"}]}"#;
        let found = effects(&home, user, r#"{"mcpServers": {"docs": {"command": "theirs"}}}"#);
        assert_eq!((found.clone(), shown(&found)), (ApprovalEffects::default(), String::new()));
    }

    #[test]
    fn excess_rules_are_counted() {
        let home = TestHome::new();
        let rules: Vec<String> = (0..13).map(|n| format!(r#"{{"tool": "mcp__*__t{n}", "action": "allow"}}"#)).collect();
        let user = format!(r#"{{"permissions": [{}]}}"#, rules.join(","));
        let found = effects(&home, &user, r#"{"mcpServers": {"docs": {"command": "theirs"}}}"#);
        assert_eq!((found.allowed_by.len(), found.allowed_by[10].as_str()), (11, "3 more rules"));
    }
}
