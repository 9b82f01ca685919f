//! `wharf get`.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use wharf_config::{ConfiguredServer, Layer, ServerApproval, TemplatePart, parse_template};
use wharf_spec::UntrustedText;

use super::item::{ConfiguredServerItem, ReferenceItem, problems_of_server};
use crate::masking::SecretDisplay;
use wharf_terminal::config_context::problem_line;
use wharf_terminal::detail_sheet::DetailSheet;
use wharf_terminal::display_path::display_path;
use wharf_terminal::failure::{CommandEnding, CommandResult};
use wharf_terminal::session::{CommandSession, JsonArgs};

/// Show one server's configuration
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Secrets are shown as ***. A reference such as ${TOKEN} is shown as written, with whether it is set.

Examples:
  wharf get github
  wharf get github --json | jq .env
  wharf get github --reveal")]
pub struct GetArgs {
    /// Name of the server
    id: String,
    /// Show secrets in clear text
    #[arg(long)]
    reveal: bool,
    #[command(flatten)]
    pub output: JsonArgs,
}

#[derive(Serialize)]
struct GetDocument {
    #[serde(flatten)]
    item: ConfiguredServerItem,
    /// Entries of the same id that are not in effect.
    others: Vec<ConfiguredServerItem>,
}

pub async fn run(args: &GetArgs, session: &CommandSession) -> CommandResult {
    let server = session.configuration.find(&args.id)?;
    let config = session.configuration.config()?;
    let item = |server: &ConfiguredServer| {
        ConfiguredServerItem::new(server, config, &session.environment, SecretDisplay::from_flag(args.reveal))
    };
    let others: Vec<&ConfiguredServer> = config.beside.iter().filter(|other| other.name == server.name).collect();
    if session.console.mode.json {
        let others = others.into_iter().map(item).collect();
        session.console.print_document(true, &GetDocument { item: item(server), others })?;
        return Ok(CommandEnding::Fine);
    }
    let mut sheet = EntrySheet(DetailSheet::new(&args.id));
    sheet.head(session, server, &item(server));
    sheet.reach(&item(server));
    sheet.settings(&item(server));
    for other in others {
        sheet.0.line(relation(server, other), &format!("{} ({})", location(session, other), other.layer.source()));
    }
    for problem in problems_of_server(server, config) {
        sheet.0.line("Problem", &problem_line(problem));
    }
    sheet.end(server);
    session.console.print(sheet.0.text)?;
    Ok(CommandEnding::Fine)
}

/// Returns the relation of another entry of the same id to the effective one.
fn relation(server: &ConfiguredServer, other: &ConfiguredServer) -> &'static str {
    match other.approval {
        ServerApproval::Needed | ServerApproval::Changed => "Unapproved",
        _ if other.layer <= server.layer => "Replaces",
        _ => "Shadowed",
    }
}

fn location(session: &CommandSession, server: &ConfiguredServer) -> String {
    format!("{}:{}", display_path(&server.place.file, &session.environment), server.place.at.line)
}

/// A sheet about one entry.
struct EntrySheet(DetailSheet);

impl EntrySheet {
    fn head(&mut self, session: &CommandSession, server: &ConfiguredServer, item: &ConfiguredServerItem) {
        let whose = match server.layer {
            Layer::Home => "global (shared with other programs)",
            Layer::User => "global (your own)",
            Layer::ProjectShared => "project (shared with other programs)",
            Layer::Project => "project",
            Layer::Flag => "flag (--config)",
            Layer::Variable => "env (WHARF_MCP_SERVERS)",
        };
        self.0.line("Scope", whose);
        let next = match item.state {
            "unapproved" | "changed" => format!(": wharf approve {}", item.id),
            "disabled" => format!(": wharf enable {}", item.id),
            _ => String::new(),
        };
        self.0.line("State", &format!("{}{next}", item.state));
        self.0.line("File", &location(session, server));
        self.0.line("Type", item.transport.unwrap_or("unknown"));
    }

    fn reach(&mut self, item: &ConfiguredServerItem) {
        self.value("Command", item, &item.command);
        self.value("Args", item, &item.args);
        self.value("URL", item, &item.url);
        self.value("Env", item, &item.env);
        self.value("Headers", item, &item.headers);
    }

    /// Adds the settings present in the entry.
    fn settings(&mut self, item: &ConfiguredServerItem) {
        if item.trust {
            self.0.line("Settings", "trust: true");
        }
        for (key, value) in item.others.iter().chain(&item.unknown) {
            let key = UntrustedText::new(key.as_str()).to_string();
            match value {
                Value::Object(members) => {
                    for (name, value) in members {
                        let name = UntrustedText::new(name.as_str()).to_string();
                        self.0.line("Settings", &format!("{key}.{name}: {}", value_text(item, value)));
                    }
                }
                value => self.0.line("Settings", &format!("{key}: {}", value_text(item, value))),
            }
        }
    }

    /// Adds a value, one line per element.
    fn value(&mut self, word: &'static str, item: &ConfiguredServerItem, value: &Value) {
        match value {
            Value::Null => {}
            Value::Array(values) => values.iter().for_each(|value| self.0.line(word, &value_text(item, value))),
            Value::Object(members) => {
                for (name, value) in members {
                    self.0.line(word, &format!("{}={}", UntrustedText::new(name.as_str()), value_text(item, value)));
                }
            }
            value => self.0.line(word, &value_text(item, value)),
        }
    }

    fn end(&mut self, server: &ConfiguredServer) {
        let _ = match server.layer {
            Layer::Variable => {
                writeln!(self.0.text, "\nDefined by the variable WHARF_MCP_SERVERS. To remove: unset it")
            }
            _ => writeln!(self.0.text, "\nTo remove: wharf remove {}", server.name),
        };
    }
}

/// Formats a value on one line, escaped, with the state of its references.
fn value_text(item: &ConfiguredServerItem, value: &Value) -> String {
    let Value::String(text) = value else { return UntrustedText::new(value.to_string()).to_string() };
    let mut notes = Vec::new();
    for one in &item.references {
        if contains_reference(text, one) {
            notes.push(match (one.set, &one.value) {
                (Some(true), Some(value)) => format!("set: {}", UntrustedText::new(value.as_str())),
                (Some(true), None) => "set".to_owned(),
                (Some(false), _) => "not set".to_owned(),
                (None, _) => "stored elsewhere".to_owned(),
            });
        }
    }
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    let quote = if text.is_empty() || text.trim() != text { "\"" } else { "" };
    format!("{quote}{}{quote}{notes}", UntrustedText::new(text.as_str()))
}

/// Reports whether a text contains a reference.
fn contains_reference(text: &str, one: &ReferenceItem) -> bool {
    let wanted = |part: &TemplatePart<'_>| match part {
        TemplatePart::Variable { name, .. } => one.kind == "variable" && *name == one.name,
        TemplatePart::Secret(name) => one.kind == "secret" && *name == one.name,
        _ => false,
    };
    parse_template(text).iter().any(wanted)
}
