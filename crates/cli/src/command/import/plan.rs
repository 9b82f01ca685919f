//! The servers that an import can store, and the table that shows them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};
use wharf_config::{ApprovalSubject, EntrySite, ServerDefinition, validate_entry};
use wharf_spec::{ServerName, UntrustedText};

use super::found::FoundServer;
use super::{ImportArgs, ImportOutcome};
use crate::command::clients::note_line;
use crate::masking::{self, SecretDisplay, literal_secrets};
use wharf_terminal::columns::{ColumnAlignment, render_columns};
use wharf_terminal::config_context::server_problems_failure;
use wharf_terminal::count_text::CountText;
use wharf_terminal::failure::{Failure, gutter};
use wharf_terminal::session::CommandSession;
use wharf_terminal::style::{HEADING, NAME, QUIET, WARNING, paint};

/// A found server, and whether it can be stored.
pub struct PlannedServer<'a> {
    pub found: &'a FoundServer,
    pub verdict: Result<ServerName, ImportRefusal>,
    /// Places of secrets in clear text.
    pub tokens: Vec<String>,
    /// The definition for display. Secrets of the user's own files are masked.
    shown: Option<ServerDefinition>,
}

/// The reason that a server cannot be stored.
#[derive(Debug, Clone)]
pub struct ImportRefusal {
    pub outcome: ImportOutcome,
    pub reason: String,
}

/// Decides for each found server whether it can be stored. The first of several with the same name is stored.
///
/// # Errors
///
/// Fails if the configuration cannot be read.
pub fn plan<'a>(
    args: &ImportArgs,
    session: &CommandSession,
    found: &'a [FoundServer],
) -> Result<Vec<PlannedServer<'a>>, Failure> {
    let config = session.configuration.config()?;
    let mut taken: HashMap<&str, &'static str> = HashMap::new();
    let mut planned = Vec::new();
    for one in found {
        let mut verdict = check(one);
        if let Ok(name) = &verdict {
            if let Some(other) = taken.get(name.as_str()) {
                verdict = Err(refusal(ImportOutcome::AlreadyThere, format!("same name as the one of {other}")));
            } else if config.server(name.as_str()).is_some() && !args.overwrite {
                verdict = Err(refusal(ImportOutcome::AlreadyThere, "already configured (see --overwrite)".to_owned()));
            } else {
                taken.insert(&one.server.id, one.client.name());
            }
        }
        let shown = verdict.as_ref().ok().and_then(|name| shown_definition(args, session, name, one));
        planned.push(PlannedServer { found: one, verdict, tokens: literal_secrets(&one.server.entry), shown });
    }
    Ok(planned)
}

/// Checks whether a server can be converted.
fn check(one: &FoundServer) -> Result<ServerName, ImportRefusal> {
    let unusable = |reason: String| refusal(ImportOutcome::Unusable, reason);
    let server = &one.server;
    let (Ok(name), true) = (ServerName::new(&server.id), server.has_entry()) else {
        return Err(unusable("cannot be converted".to_owned()));
    };
    if is_gateway(&server.entry) {
        return Err(unusable("it is `wharf serve` itself".to_owned()));
    }
    match validate_entry(&name, &server.entry).described {
        Ok(_) => Ok(name),
        Err(problems) => Err(unusable(server_problems_failure(name.as_str(), &problems).error.message)),
    }
}

/// Reports whether an entry runs `wharf serve`, as `wharf serve --print-config` writes it.
fn is_gateway(entry: &Map<String, Value>) -> bool {
    let program = entry.get("command").and_then(Value::as_str).map(Path::new).and_then(Path::file_name);
    let first = entry.get("args").and_then(|words| words.get(0)?.as_str());
    program.is_some_and(|name| name == "wharf") && first == Some("serve")
}

fn refusal(outcome: ImportOutcome, reason: String) -> ImportRefusal {
    ImportRefusal { outcome, reason }
}

fn shown_definition(
    args: &ImportArgs,
    session: &CommandSession,
    name: &ServerName,
    one: &FoundServer,
) -> Option<ServerDefinition> {
    // Others may write a file of the project: a masked argument or variable would hide what runs, and a masked PATH
    // which program.
    let display = if one.is_projects { SecretDisplay::Revealed } else { SecretDisplay::Masked };
    let entry = &one.server.entry;
    let definition = |entry| validate_entry(name, entry).described.ok();
    let mut shown = definition(&masking::mask_entry(entry, display)).or_else(|| definition(entry))?;
    let places = &session.configuration.places;
    let file = places.layer_file(args.scope.layer()).unwrap_or_default();
    shown.site = EntrySite::new(places, args.scope.layer(), &file, name);
    Some(shown)
}

/// Renders all servers as one table, with the numbers of those that can be stored, and the conversion notes below.
pub fn render_table(planned: &[PlannedServer<'_>], width: Option<usize>) -> String {
    let mut numbers = 1..;
    let rows: Vec<[String; 5]> = planned.iter().map(|one| one.row(&mut numbers)).collect();
    let left = ColumnAlignment::Left;
    let headings =
        [("#", ColumnAlignment::Right), ("ID", left), ("PROGRAM", left), ("COMMAND OR URL", left), ("STATE", left)];
    let style = |column: usize, cell: &str| match column {
        1 => paint(NAME, cell).to_string(),
        2 => paint(QUIET, cell).to_string(),
        _ => cell.to_owned(),
    };
    let mut text = render_columns(headings, &rows, width, style);
    for one in planned {
        for note in &one.found.server.notes {
            let id = UntrustedText::new(one.found.server.id.as_str());
            let _ = writeln!(text, "{} {id}: {}", paint(WARNING, "note:"), note_line(note));
        }
    }
    text
}

impl PlannedServer<'_> {
    fn row(&self, numbers: &mut impl Iterator<Item = usize>) -> [String; 5] {
        let number = self.verdict.as_ref().ok().and_then(|_| numbers.next());
        [
            number.map(|number| number.to_string()).unwrap_or_default(),
            UntrustedText::new(self.found.server.id.as_str()).to_string(),
            self.found.client.name().to_owned(),
            UntrustedText::new(target(&self.found.server.entry)).to_string(),
            self.state(),
        ]
    }

    fn state(&self) -> String {
        if let Err(refusal) = &self.verdict {
            return UntrustedText::new(refusal.reason.as_str()).to_string();
        }
        let mut words = vec!["new".to_owned()];
        words.extend(self.found.is_projects.then(|| "from this project's files".to_owned()));
        words.extend(self.is_disabled().then(|| format!("disabled in {}", self.found.client.name())));
        words.extend(
            (!self.tokens.is_empty())
                .then(|| format!("{} in clear text", CountText(self.tokens.len() as u64, "token"))),
        );
        words.join(", ")
    }

    /// Reports whether the other program has the server disabled.
    pub fn is_disabled(&self) -> bool {
        self.found.server.entry.get("enabled") == Some(&Value::Bool(false))
    }

    /// Returns the location, the whole entry and the conversion notes. Blocks.
    pub fn review_text(&self, session: &CommandSession) -> String {
        let FoundServer { client, file, server, .. } = self.found;
        let id = UntrustedText::new(server.id.as_str()).to_string();
        let place = format!("{} · {}:{}", client.name(), file.display(), server.place.line);
        let mut text = format!("\n{}  {}", paint(HEADING, id), paint(QUIET, UntrustedText::new(place)));
        let lines = match (&self.verdict, &self.shown) {
            (Err(refusal), _) => vec![refusal.reason.clone()],
            (Ok(_), Some(shown)) => ApprovalSubject::inspect(shown, &session.environment).lines(),
            (Ok(_), None) => Vec::new(),
        };
        for line in lines {
            let _ = write!(text, "\n{}", gutter(&line));
        }
        for note in &server.notes {
            let _ = write!(text, "\n  {} {}", paint(WARNING, "note:"), note_line(note));
        }
        text
    }
}

/// Returns the command line or URL with masked secrets. Not escaped.
fn target(entry: &Map<String, Value>) -> String {
    let masked = masking::mask_entry(entry, SecretDisplay::Masked);
    let text = |key: &str| masked.get(key).and_then(Value::as_str).map(str::to_owned);
    let words = masked.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let line = || text("command").into_iter().chain(words.map(str::to_owned)).collect::<Vec<_>>().join(" ");
    text("url").or_else(|| text("httpUrl")).unwrap_or_else(line)
}
