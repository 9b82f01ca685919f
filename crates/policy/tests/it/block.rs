//! How rules and attempts are written in tables.

use wharf_json::RawJson;
use wharf_policy::{
    AttemptKind, CallAttempt, RiskLevel, Rule, RuleAction, RuleAuthority, RuleOrigin, SourcedRule, Verdict,
};
use wharf_spec::{ServerName, ServerOrigin};

/// Rules, and what they decide.
#[derive(Default)]
pub struct Block {
    pub servers: Vec<ServerName>,
    pub rules: Vec<SourcedRule>,
    pub rows: Vec<Row>,
}

/// One attempt and what is decided about it.
pub struct Row {
    pub text: String,
    server: Option<ServerName>,
    tool: String,
    arguments: RawJson,
    trust: bool,
    risk: RiskLevel,
    pub expected: Verdict,
}

impl Row {
    pub fn attempt(&self) -> CallAttempt<'_> {
        let Self { server, tool, arguments, trust, risk, .. } = self;
        let origin = ServerOrigin::USER;
        CallAttempt {
            server: server.as_ref(),
            origin,
            tool,
            arguments,
            trust: *trust,
            risk: *risk,
            kind: AttemptKind::Call,
        }
    }
}

pub fn server(name: &str) -> ServerName {
    ServerName::new(name).expect("names in tables are good")
}

/// Reads a table; `decisions.txt` says how it is written.
pub fn blocks(table: &str) -> Vec<Block> {
    let mut list: Vec<Block> = Vec::new();
    let lines = table.lines().zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    for (line, number) in lines {
        if let Some(names) = line.strip_prefix("servers ") {
            list.push(Block { servers: names.split(' ').map(server).collect(), ..Block::default() });
            continue;
        }
        let block = list.last_mut().expect("a table begins with servers");
        match line.strip_prefix("= ") {
            Some(rest) => block.rows.extend(rows(rest)),
            None => block.rules.push(rule(line, &format!("config.json:{number}"))),
        }
    }
    list
}

/// Reads `[project] ACTION TOOL [where PATTERN] [in FILE]`.
pub fn rule(line: &str, place: &str) -> SourcedRule {
    let (authority, line) = match line.strip_prefix("project ") {
        Some(rest) => (RuleAuthority::Project, rest),
        None => (RuleAuthority::User, line),
    };
    let (action, target) = line.split_once(' ').expect(line);
    let (target, defined_in) = match target.split_once(" in ") {
        Some((target, file)) => (target, Some(file.to_owned())),
        None => (target, None),
    };
    let (tool, pattern) = match target.split_once(" where") {
        Some((tool, pattern)) => (tool, Some(pattern.trim_start().to_owned())),
        None => (target, None),
    };
    let rule = Rule { pattern, defined_in, ..Rule::new(tool, action_of(action)) };
    SourcedRule { rule, origin: RuleOrigin { place: place.to_owned(), authority } }
}

fn action_of(word: &str) -> RuleAction {
    match word {
        "allow" => RuleAction::Allow,
        "ask" => RuleAction::Ask,
        "deny" => RuleAction::Deny,
        other => panic!("{other}"),
    }
}

/// Reads `VERDICT ATTEMPT ; ATTEMPT`.
fn rows(text: &str) -> Vec<Row> {
    let (verdict, attempts) = text.split_once(' ').expect(text);
    let expected = match action_of(verdict) {
        RuleAction::Allow => Verdict::Allow,
        RuleAction::Ask => Verdict::Ask,
        RuleAction::Deny => Verdict::Deny,
    };
    attempts.split(" ; ").map(|attempt| row(attempt, expected)).collect()
}

fn row(text: &str, expected: Verdict) -> Row {
    let whole = text.to_owned();
    let (trust, text) = text.strip_prefix('+').map_or((false, text), |rest| (true, rest));
    let (risk, text) = text.strip_prefix('~').map_or((RiskLevel::High, text), |rest| (RiskLevel::Low, rest));
    let (name, arguments) = match [" {", " [", " \""].iter().filter_map(|start| text.find(start)).min() {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, "{}"),
    };
    let (server_name, tool) = name.split_once('/').expect(text);
    let server = (!server_name.is_empty()).then(|| server(server_name));
    // Not parsed: what a rule makes of arguments that are no JSON is in the table as well.
    Row {
        text: whole,
        server,
        tool: tool.to_owned(),
        arguments: RawJson::new_unchecked(arguments.to_owned()),
        trust,
        risk,
        expected,
    }
}
