//! `/permissions`: the permission rules, their locations and their problems.

use std::path::Path;

use wharf::policy::{RuleAction, RuleProblem, SourcedRule};
use wharf_spec::{Environment, EscapedText};

use super::{CommandContext, ReplAction};
use wharf_terminal::columns::{left_aligned, render_columns};
use wharf_terminal::config_context::rules_of;
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
    around: &'a Environment,
}

pub fn run(post: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let session = post.fleet.session;
    let statuses = post.fleet.host.status();
    let trusted: Vec<String> =
        statuses.iter().filter(|status| status.trust).map(|status| status.name.to_string()).collect();
    let known = post.fleet.loaded_config();
    let settings = &known.config.settings;
    let rules = RuleListing {
        rules: &rules_of(settings),
        problems: &post.fleet.host.rule_problems(),
        trusted: &trusted,
        file: &settings.rule_file,
        around: &session.surroundings,
    };
    post.print(render_permissions(&rules, post.width()))
}

fn render_permissions(all: &RuleListing<'_>, width: Option<usize>) -> String {
    let mut text = render_rules(all, width);
    if !all.trusted.is_empty() {
        text.push_str(&format!("trusted: {}\n", all.trusted.join(", ")));
    }
    let file = display_path(all.file, all.around);
    let add = format!("To add a rule: answer \"always\" to a question, or add it to `permissions` in {file}.");
    let remove = "To remove a rule: delete it from its file. Changes apply immediately.";
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
    let mut rules: Vec<(usize, &SourcedRule)> = all.rules.iter().enumerate().collect();
    // Stable: rules with the same action keep their order, which has no meaning.
    rules.sort_by_key(|(_, rule)| match rule.rule.action {
        RuleAction::Deny => 0,
        RuleAction::Ask => 1,
        RuleAction::Allow => 2,
    });
    let rows: Vec<[String; 4]> = rules.iter().map(|(_, rule)| row(rule, all.around)).collect();
    let table = render_columns(left_aligned(["  RULE", "TOOL", "ARGUMENTS", "DEFINED IN"]), &rows, width, style_cell);
    let mut lines = table.lines();
    let mut text = format!("{}\n", lines.next().unwrap_or_default());
    for ((index, rule), line) in rules.iter().zip(lines) {
        text.push_str(&format!("{line}\n"));
        for problem in all.problems.iter().filter(|problem| problem.index == *index && *problem.rule == **rule) {
            let told = format!("      {} {}", paint(WARNING, "!"), problem.kind);
            text.push_str(&format!("{}\n", wrap(&told, width)));
        }
    }
    text
}

fn row(rule: &SourcedRule, around: &Environment) -> [String; 4] {
    let shown = |text: &str| EscapedText::single_line(text, MAX_RULE_CHARS).to_string();
    let file = |file: &String| format!(" as defined in {}", display_path(Path::new(&shown(file)), around));
    [
        format!("  {}", rule.rule.action),
        format!("{}{}", shown(&rule.rule.tool), rule.rule.defined_in.as_ref().map(file).unwrap_or_default()),
        rule.rule.pattern.as_deref().map(shown).unwrap_or_default(),
        display_path(Path::new(&rule.origin.place), around),
    ]
}

fn style_cell(column: usize, cell: &str) -> String {
    match (column, cell.trim()) {
        (0, "deny") => paint(BAD, cell).to_string(),
        (0, "allow") => paint(GOOD, cell).to_string(),
        (0, _) => paint(WARNING, cell).to_string(),
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
            origin: RuleOrigin { place, standing: RuleAuthority::User },
        }
    }

    fn shown(rules: &[SourcedRule], trusted: &[String], width: Option<usize>) -> String {
        let policy = Policy::compile(rules.to_vec(), &[ServerName::new("git").unwrap()]);
        let around = Environment { env: vec![("HOME".into(), "/home/me".into())], cwd: "/work".into() };
        let file = Path::new("/home/me/.config/wharf/config.json");
        let rules = RuleListing { rules, problems: policy.problems(), trusted, file, around: &around };
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
                "  RULE   TOOL            ARGUMENTS   DEFINED IN\n\
                 \x20 deny   mcp__git__push  force=true  ~/.config/wharf/config.json:5:5\n\
                 \x20 ask    mcp__nobody__x              ~/.config/wharf/config.json:4:5\n\
                 \x20     ! never matches: no configured server has this name\n\
                 \x20 allow  mcp__git__log               ~/.config/wharf/config.json:3:5\n\
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
