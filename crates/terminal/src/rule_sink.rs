//! Writes the permission rule of an "always" answer to the user's configuration file.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};
use wharf::RuleSink;
use wharf::policy::Rule;
use wharf_config::edit::{ConfigChange, add_rule};
use wharf_config::{ConfigPaths, Layer};
use wharf_spec::{Environment, UntrustedText};

use crate::config_scope::change_file;
use crate::console::Console;
use crate::display_path::display_path;
use crate::failure::Failure;
use crate::session::CommandSession;
use crate::style::{GOOD, QUIET, paint};

/// Returns a sink that appends a host's rules to the user's rule file and keeps its other content. A rule that cannot
/// be written is reported and applies until the host stops.
pub fn rule_sink(session: &CommandSession) -> RuleSink {
    let (console, environment) = (session.console.clone(), session.environment.clone());
    let (places, file) = (session.configuration.places.clone(), rule_file(session));
    Arc::new(move |rule: &Rule| {
        let writing = RuleWrite {
            rule: rule.clone(),
            file: file.clone(),
            places: places.clone(),
            environment: environment.clone(),
        };
        let console = console.clone();
        wharf_threads::run_in_background(move || writing.report(&console, writing.write()));
    })
}

/// Returns the rule file, or `None` without a user configuration directory.
pub fn rule_file(session: &CommandSession) -> Option<PathBuf> {
    let file = session.configuration.config().ok().map(|config| config.settings.rule_file.clone());
    file.filter(|file| !file.as_os_str().is_empty())
}

struct RuleWrite {
    rule: Rule,
    file: Option<PathBuf>,
    places: ConfigPaths,
    environment: Environment,
}

impl RuleWrite {
    fn write(&self) -> Result<ConfigChange, Failure> {
        let nowhere = || Failure::usage("no user configuration directory is available");
        let file = self.file.as_deref().ok_or_else(nowhere)?;
        let rule: Map<String, Value> = match serde_json::to_value(&self.rule) {
            Ok(Value::Object(rule)) => rule,
            Ok(_) => return Err(Failure::other("the rule is not a JSON object")),
            Err(error) => return Err(Failure::other(error)),
        };
        change_file(&self.places, Layer::User, file, |text| add_rule(text, &rule))
    }

    fn report(&self, console: &Console, written: Result<ConfigChange, Failure>) {
        match written {
            Ok(_) => console.say(self.success_message()),
            Err(failure) => {
                let why = UntrustedText::new(failure.error.message.as_str());
                console.warn(format_args!("could not write the rule, it applies to this session only: {why}"));
                for hint in &failure.hints {
                    console.say(format_args!("  {} {}", paint(QUIET, "hint:"), UntrustedText::new(hint.as_str())));
                }
            }
        }
    }

    fn success_message(&self) -> String {
        let rule = serde_json::to_string(&self.rule).unwrap_or_default();
        let file = self.file.as_deref().map(|file| display_path(file, &self.environment)).unwrap_or_default();
        format!(
            "{} {} in {file}\n  {} remove it from `permissions` in that file",
            paint(GOOD, "Always allowed:"),
            UntrustedText::new(rule),
            paint(QUIET, "undo:")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf::policy::RuleAction;

    fn writing(file: Option<PathBuf>) -> RuleWrite {
        let rule = Rule::new("mcp__git__push", RuleAction::Allow);
        let environment = Environment { env: Vec::new(), cwd: "/".into() };
        RuleWrite { rule, file, places: ConfigPaths::default(), environment }
    }

    #[test]
    fn rule_is_added_once_and_other_content_is_preserved() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.json");
        std::fs::write(&file, "{\n  // mine\n  \"mcpServers\": {}\n}\n").unwrap();
        let writing = writing(Some(file.clone()));
        assert_eq!(writing.write().unwrap(), ConfigChange::Added);
        assert_eq!(writing.write().unwrap(), ConfigChange::Unchanged);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("// mine"), "{text}");
        assert_eq!(text.matches("mcp__git__push").count(), 1, "{text}");
        let message = anstream::adapter::strip_str(&writing.success_message()).to_string();
        assert!(
            message.contains(r#"{"tool":"mcp__git__push","action":"allow"}"#) && message.contains("config.json"),
            "{message}"
        );
    }

    #[test]
    fn unwritable_rule_is_a_failure() {
        assert!(writing(None).write().is_err());
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.json");
        std::fs::write(&file, "{ broken").unwrap();
        assert!(writing(Some(file.clone())).write().is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{ broken");
    }
}
