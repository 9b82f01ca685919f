//! `/permissions`: the permission rules, their locations and their problems.

use std::path::Path;

use serde_json::Value;
use wharf::policy::{RuleAction, RuleProblem, SourcedRule};
use wharf_config::Layer;
use wharf_config::edit::remove_rule;
use wharf_spec::{Environment, EscapedText};

use super::{CommandContext, ReplAction};
use wharf_terminal::columns::{left_aligned, render_columns};
use wharf_terminal::config_context::rules_of;
use wharf_terminal::config_scope::change_file;
use wharf_terminal::display_path::display_path;
use wharf_terminal::failure::Failure;
use wharf_terminal::style::{BAD, GOOD, HEADING, QUIET, WARNING, paint};
use wharf_terminal::table::wrap;

/// Maximum characters shown of a rule's text.
const MAX_RULE_CHARS: usize = 200;

const PRECEDENCE_NOTICE: &str = "A matching deny rule always wins. Otherwise the most specific rule wins (ask on a tie), then whether \
the server is trusted. Without a match you are asked. Answers for this session apply in addition.";

/// Input of the listing.
struct RuleListing<'a> {
    rules: &'a [SourcedRule],
    problems: &'a [RuleProblem],
    /// Servers with calls allowed unless a rule matches.
    trusted: &'a [String],
    /// File that "always" answers are written to.
    file: &'a Path,
    environment: &'a Environment,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  /permissions
  /permissions remove 2")]
pub struct PermissionsArgs {
    #[command(subcommand)]
    command: Option<PermissionsCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum PermissionsCommand {
    /// Remove a rule from your configuration
    #[command(visible_alias = "rm")]
    Remove {
        /// Number of the rule, as /permissions lists it
        #[arg(value_name = "NUMBER")]
        number: usize,
    },
}

pub async fn run(args: PermissionsArgs, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    match args.command {
        None => list(context),
        Some(PermissionsCommand::Remove { number }) => remove(number, context).await,
    }
}

/// Removes a rule from the user's rule file. The configuration is reloaded.
async fn remove(number: usize, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let (session, known) = (context.managed_host.session, context.managed_host.loaded_config());
    let settings = &known.config.settings;
    let rules = rules_of(settings);
    let found = number.checked_sub(1).and_then(|at| by_precedence(&rules).get(at).map(|(_, rule)| *rule));
    let Some(SourcedRule { rule, origin }) = found else {
        return Err(Failure::usage(format_args!("no rule {number}")).with_hint("/permissions lists them"));
    };
    let file = settings.rule_file.clone();
    let shown = display_path(Path::new(&origin.place), &session.environment);
    if !origin.place.strip_prefix(&*file.to_string_lossy()).is_some_and(|rest| rest.starts_with(':')) {
        let failure = Failure::usage(format_args!("rule {number} is not in your own configuration file"));
        return Err(failure.with_hint(format_args!("delete it in {shown}")));
    }
    let Ok(Value::Object(rule)) = serde_json::to_value(rule) else {
        return Err(Failure::other("the rule is not a JSON object"));
    };
    let (places, text) = (session.configuration.places.clone(), Value::Object(rule.clone()).to_string());
    let write = move || change_file(&places, Layer::User, &file, |text| remove_rule(text, &rule));
    let change = wharf_threads::run_blocking(write).await.map_err(Failure::other)??;
    let text = EscapedText::single_line(&text, MAX_RULE_CHARS);
    if !change.is_change() {
        let failure = Failure::usage(format_args!("rule {number} is not in the file as it is listed"));
        return Err(failure.with_hint(format_args!("delete it in {shown}")));
    }
    session.console.say(format_args!("Removed rule {number}: {text}"));
    Ok(ReplAction::Reload)
}

fn list(context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let session = context.managed_host.session;
    let statuses = context.managed_host.host.status();
    let trusted: Vec<String> =
        statuses.iter().filter(|status| status.trust).map(|status| status.name.to_string()).collect();
    let known = context.managed_host.loaded_config();
    let settings = &known.config.settings;
    let rules = RuleListing {
        rules: &rules_of(settings),
        problems: &context.managed_host.host.rule_problems(),
        trusted: &trusted,
        file: &settings.rule_file,
        environment: &session.environment,
    };
    context.print(render_permissions(&rules, context.width()))
}

fn render_permissions(all: &RuleListing<'_>, width: Option<usize>) -> String {
    let mut text = render_rules(all, width);
    if !all.trusted.is_empty() {
        text.push_str(&format!("trusted: {}\n", all.trusted.join(", ")));
    }
    let file = display_path(all.file, all.environment);
    let add = format!("To add a rule: answer \"always\" to a question, or add it to `permissions` in {file}.");
    let remove = "To remove a rule: /permissions remove NUMBER, or delete it from its file.";
    for line in [PRECEDENCE_NOTICE, &add, remove] {
        text.push_str(&format!("{}\n", paint(QUIET, wrap(line, width))));
    }
    text
}

/// Renders the rules by precedence of their action, each with its problems.
fn render_rules(all: &RuleListing<'_>, width: Option<usize>) -> String {
    if all.rules.is_empty() {
        return format!("{}\n", paint(HEADING, "No permission rules: you are asked about every call."));
    }
    let rules = by_precedence(all.rules);
    let rows: Vec<[String; 5]> =
        rules.iter().enumerate().map(|(at, (_, rule))| row(at + 1, rule, all.environment)).collect();
    let table =
        render_columns(left_aligned(["  #", "RULE", "TOOL", "ARGUMENTS", "DEFINED IN"]), &rows, width, style_cell);
    let mut lines = table.lines();
    let mut text = format!("{}\n", lines.next().unwrap_or_default());
    for ((index, rule), line) in rules.iter().zip(lines) {
        text.push_str(&format!("{line}\n"));
        for problem in all.problems.iter().filter(|problem| problem.index == *index && *problem.rule == **rule) {
            let warning = format!("      {} {}", paint(WARNING, "!"), problem.kind);
            text.push_str(&format!("{}\n", wrap(&warning, width)));
        }
    }
    text
}

/// Returns the rules with their positions, ordered by precedence of their action. Rules with the same action keep their
/// order, which has no meaning.
fn by_precedence(rules: &[SourcedRule]) -> Vec<(usize, &SourcedRule)> {
    let mut rules: Vec<(usize, &SourcedRule)> = rules.iter().enumerate().collect();
    rules.sort_by_key(|(_, rule)| match rule.rule.action {
        RuleAction::Deny => 0,
        RuleAction::Ask => 1,
        RuleAction::Allow => 2,
    });
    rules
}

fn row(number: usize, rule: &SourcedRule, environment: &Environment) -> [String; 5] {
    let shown = |text: &str| EscapedText::single_line(text, MAX_RULE_CHARS).to_string();
    let file = |file: &String| format!(" as defined in {}", display_path(Path::new(&shown(file)), environment));
    [
        format!("  {number}"),
        rule.rule.action.to_string(),
        format!("{}{}", shown(&rule.rule.tool), rule.rule.defined_in.as_ref().map(file).unwrap_or_default()),
        rule.rule.pattern.as_deref().map(shown).unwrap_or_default(),
        display_path(Path::new(&rule.origin.place), environment),
    ]
}

fn style_cell(column: usize, cell: &str) -> String {
    match (column, cell.trim()) {
        (1, "deny") => paint(BAD, cell).to_string(),
        (1, "allow") => paint(GOOD, cell).to_string(),
        (1, "ask") => paint(WARNING, cell).to_string(),
        _ => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;
    use wharf::policy::{Policy, Rule, RuleAuthority, RuleOrigin};
    use wharf_spec::ServerName;

    use super::*;

    fn rule(tool: &str, pattern: Option<&str>, action: RuleAction, line: u32) -> SourcedRule {
        let place = format!("/home/me/.config/wharf/config.json:{line}:5");
        SourcedRule {
            rule: Rule { pattern: pattern.map(str::to_owned), ..Rule::new(tool, action) },
            origin: RuleOrigin { place, authority: RuleAuthority::User },
        }
    }

    fn shown(rules: &[SourcedRule], trusted: &[String], width: Option<usize>) -> String {
        let policy = Policy::compile(rules.to_vec(), &[ServerName::new("git").unwrap()]);
        let environment = Environment { env: vec![("HOME".into(), "/home/me".into())], cwd: "/work".into() };
        let file = Path::new("/home/me/.config/wharf/config.json");
        let rules = RuleListing { rules, problems: policy.problems(), trusted, file, environment: &environment };
        anstream::adapter::strip_str(&render_permissions(&rules, width)).to_string()
    }

    #[test]
    fn rules_are_ordered_by_action_with_their_problems() {
        let rules = [
            rule("mcp__git__log", None, RuleAction::Allow, 3),
            rule("mcp__nobody__x", None, RuleAction::Ask, 4),
            rule("mcp__git__push", Some("force=true"), RuleAction::Deny, 5),
        ];
        let text = shown(&rules, &["git".to_owned()], None);
        assert!(
            text.starts_with(
                "  #  RULE   TOOL            ARGUMENTS   DEFINED IN\n\
                 \x20 1  deny   mcp__git__push  force=true  ~/.config/wharf/config.json:5:5\n\
                 \x20 2  ask    mcp__nobody__x              ~/.config/wharf/config.json:4:5\n\
                 \x20     ! never matches: no configured server has this name\n\
                 \x20 3  allow  mcp__git__log               ~/.config/wharf/config.json:3:5\n\
                 trusted: git\n\
                 A matching deny rule always wins."
            ),
            "{text}"
        );
        for width in [60, 80, 120] {
            let text = shown(&rules, &[], Some(width));
            assert!(text.lines().all(|line| line.width() <= width), "{text}");
        }
        assert!(shown(&[], &[], None).starts_with("No permission rules: you are asked about every call.\n"));
    }
}
