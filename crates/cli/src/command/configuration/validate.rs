//! `wharf validate`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use wharf_config::{
    Config, ConfigPaths, ConfigProblem, ConfiguredServer, ProblemSeverity, ResolveContext, SourceLocation, load,
};
use wharf_policy::Policy;
use wharf_spec::{ActivationState, UntrustedText};

use super::item::{ProblemItem, severity_word};
use wharf_terminal::count_text::CountText;
use wharf_terminal::display_path::display_path;
use wharf_terminal::failure::{CommandEnding, CommandResult, FailureKind};
use wharf_terminal::session::{CommandSession, JsonArgs};
use wharf_terminal::style::{BAD, GOOD, HEADING, QUIET, WARNING, paint};

/// Check the configuration
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Reads every layer without starting servers or running secret commands. Exits with 2 if there are errors, with \
--strict-config also for warnings. Same as wharf --validate-config.

Examples:
  wharf validate
  wharf validate team.yaml
  wharf validate --json | jq -r '.items[].message'")]
pub struct ValidateArgs {
    /// File to check; default: every layer
    file: Option<PathBuf>,
    #[command(flatten)]
    pub output: JsonArgs,
}

#[derive(Serialize)]
struct ValidateDocument {
    success: bool,
    servers: usize,
    files: Vec<String>,
    errors: usize,
    warnings: usize,
    items: Vec<ProblemItem>,
}

pub async fn run(args: &ValidateArgs, session: &CommandSession) -> CommandResult {
    let config = match &args.file {
        None => load(&session.configuration.places, &session.environment),
        Some(file) => load(&single_file_places(session, file), &session.environment),
    };
    let problems = collect_problems(session, &config);
    let count = |wanted| problems.iter().filter(|problem| problem.severity == wanted).count();
    let (errors, warnings) = (count(ProblemSeverity::Error), count(ProblemSeverity::Warning));
    let is_bad = errors > 0 || (session.configuration.is_strict() && warnings > 0);
    if session.console.mode.json {
        let files = found_files(&config).map(|file| file.display().to_string()).collect();
        let items = problems.iter().map(ProblemItem::new).collect();
        let servers = config.servers.len();
        session
            .console
            .print_document(!is_bad, &ValidateDocument { success: !is_bad, servers, files, errors, warnings, items })?;
    } else {
        session.console.print(group_by_file(session, &problems))?;
        session.console.say(summary(session, &config, errors, warnings));
    }
    Ok(if is_bad { CommandEnding::Reported(FailureKind::Usage) } else { CommandEnding::Fine })
}

/// Returns places that contain only one file.
fn single_file_places(session: &CommandSession, file: &Path) -> ConfigPaths {
    ConfigPaths {
        project: session.configuration.places.project.clone(),
        server_dirs: session.configuration.places.server_dirs.clone(),
        flags: vec![session.environment.cwd.join(file)],
        only_flags: true,
        ..ConfigPaths::default()
    }
}

fn found_files(config: &Config) -> impl Iterator<Item = &Path> {
    config.layers.iter().filter(|layered| layered.found).map(|layered| layered.file.as_path())
}

/// Collects the problems found while loading, the references that cannot be resolved and the invalid rules, sorted by
/// location.
fn collect_problems(session: &CommandSession, config: &Config) -> Vec<ConfigProblem> {
    let used = config.servers.iter().filter(|server| server.activation() == ActivationState::Enabled);
    let unresolved = used.flat_map(|server| unresolved_references(session, config, server));
    let mut problems: Vec<ConfigProblem> =
        config.problems.iter().cloned().chain(unresolved).chain(bad_rules(config)).collect();
    let order =
        |problem: &ConfigProblem| problem.place.as_ref().map(|place: &SourceLocation| (place.file.clone(), place.at));
    problems.sort_by_key(order);
    problems.dedup();
    problems
}

/// Returns the references that cannot be resolved. Secrets are assumed to exist, because reading one may run a program.
fn unresolved_references(session: &CommandSession, config: &Config, server: &ConfiguredServer) -> Vec<ConfigProblem> {
    let secrets = |_: &str| Ok("secret".to_owned());
    let (environment, places) = (&session.environment, &session.configuration.places);
    let with = ResolveContext { around: environment, settings: &config.settings, secrets: &secrets, places };
    // Problems of the entry itself were reported when it was loaded.
    if server.described.is_err() {
        return Vec::new();
    }
    let mut problems = server.resolve(&with).err().unwrap_or_default();
    let is_secret = |key: &str| server.written.get(key).is_some_and(|url| url.to_string().contains("${secret:"));
    problems.retain(|problem| problem.code != "bad_url" || !(is_secret("url") || is_secret("httpUrl")));
    problems
}

fn bad_rules(config: &Config) -> Vec<ConfigProblem> {
    let servers: Vec<_> = config.servers.iter().map(|server| server.name.clone()).collect();
    let rules = &config.settings.rules;
    let policy = Policy::compile(wharf::rules_from_config(rules), &servers);
    let problem = |found: &wharf_policy::RuleProblem| ConfigProblem {
        code: "rule",
        severity: if found.is_unreadable() { ProblemSeverity::Error } else { ProblemSeverity::Warning },
        place: rules.get(found.index).map(|rule| rule.place.clone()),
        server: None,
        text: UntrustedText::new(format!("the rule on `{}`: {}", found.rule.rule.tool, found.kind)).to_string(),
        fix: None,
    };
    policy.problems().iter().map(problem).collect()
}

/// Formats problems grouped by file.
fn group_by_file(session: &CommandSession, problems: &[ConfigProblem]) -> String {
    let mut text = String::new();
    let mut last: Option<&Path> = None;
    for problem in problems {
        let file = problem.place.as_ref().map(|place| &*place.file);
        if file.is_some() && file != last {
            let gap = if text.is_empty() { "" } else { "\n" };
            let name = file.map(|file| display_path(file, &session.environment)).unwrap_or_default();
            let _ = writeln!(text, "{gap}{}", paint(HEADING, name));
            last = file;
        }
        let at = problem.place.as_ref().map(|place| place.at.to_string()).unwrap_or_default();
        let style = if problem.severity == ProblemSeverity::Error { BAD } else { WARNING };
        let word = severity_word(problem.severity);
        let _ = writeln!(text, "  {at:<8} {} {}", paint(style, format_args!("{word:<7}")), problem.text);
        if let Some(fix) = &problem.fix {
            let _ = writeln!(text, "  {:<8} {} {fix}", "", paint(QUIET, format_args!("{:<7}", "fix")));
        }
    }
    text
}

fn summary(session: &CommandSession, config: &Config, errors: usize, warnings: usize) -> String {
    let files: Vec<String> = found_files(config).map(|file| display_path(file, &session.environment)).collect();
    let read = match files.is_empty() {
        true => "no file found".to_owned(),
        false => files.join(", "),
    };
    let verdict = match (errors, warnings) {
        (0, 0) => paint(GOOD, "no problems".to_owned()),
        (0, _) => paint(WARNING, CountText(warnings, "warning").to_string()),
        _ => paint(BAD, format!("{}, {}", CountText(errors, "error"), CountText(warnings, "warning"))),
    };
    format!("{}: {verdict} ({read})", CountText(config.servers.len(), "server"))
}
