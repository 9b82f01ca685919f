//! `/resume`: lists recent conversations, or resumes one.

use std::path::PathBuf;

use wharf_agent::{ConversationSummary, SavedConversation};
use wharf_spec::UntrustedText;

use super::{CommandContext, ReplAction};
use wharf_terminal::age::AgeText;
use wharf_terminal::columns::{ColumnAlignment, render_columns};
use wharf_terminal::failure::Failure;
use wharf_terminal::style::{NAME, QUIET, paint};
use wharf_terminal::table::wrap;

/// Maximum number of listed conversations.
const MAX_LISTED: usize = 10;
/// Argument that selects the most recent conversation.
const LAST_ARGUMENT: &str = "last";
/// Maximum characters shown of the first message.
const MAX_FIRST_CHARS: usize = 200;

pub async fn run(conversation: Option<String>, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    match conversation.as_deref() {
        None => show_saved(context).await,
        Some(LAST_ARGUMENT) => Ok(ReplAction::Resume(None)),
        Some(_) => Ok(ReplAction::Resume(conversation)),
    }
}

async fn show_saved(context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let Some(state) = &context.managed_host.session.configuration.state else {
        return Err(
            Failure::usage("conversations are not saved: no state directory").with_hint("set HOME or XDG_STATE_HOME")
        );
    };
    let saved = list(state.join("conversations")).await?;
    if saved.is_empty() {
        return context.say("no saved conversations");
    }
    let rows: Vec<ConversationRow> = saved.iter().map(ConversationRow::from_summary).collect();
    context.print(render_conversations(&rows, context.facts.id.as_deref(), context.width()))
}

async fn list(directory: PathBuf) -> Result<Vec<ConversationSummary>, Failure> {
    let read = wharf_threads::run_blocking(move || SavedConversation::list(&directory, MAX_LISTED)).await;
    read.map_err(Failure::other)?.map_err(Failure::other)
}

/// A conversation as displayed.
struct ConversationRow {
    id: String,
    age: String,
    turns: usize,
    first: String,
}

impl ConversationRow {
    fn from_summary(saved: &ConversationSummary) -> Self {
        let first = saved.first.lines().next().unwrap_or_default().to_owned();
        Self { id: saved.id.clone(), age: AgeText(saved.at).to_string(), turns: saved.turns, first }
    }
}

fn render_conversations(saved: &[ConversationRow], current: Option<&str>, width: Option<usize>) -> String {
    let head = [
        ("  CONVERSATION", ColumnAlignment::Left),
        ("LAST", ColumnAlignment::Left),
        ("TURNS", ColumnAlignment::Right),
        ("FIRST MESSAGE", ColumnAlignment::Left),
    ];
    let rows: Vec<[String; 4]> = saved.iter().map(|saved| row(saved, current)).collect();
    let table =
        render_columns(
            head,
            &rows,
            width,
            |at, cell| if at == 0 { paint(NAME, cell).to_string() } else { cell.to_owned() },
        );
    let hint = wrap("/resume last resumes the most recent one, /resume CONVERSATION another", width);
    format!("{table}{}\n", paint(QUIET, hint))
}

fn row(saved: &ConversationRow, current: Option<&str>) -> [String; 4] {
    let mark = if current == Some(saved.id.as_str()) { '*' } else { ' ' };
    let first = UntrustedText::new(saved.first.as_str()).truncate(MAX_FIRST_CHARS).to_string();
    [format!("{mark} {}", UntrustedText::new(saved.id.as_str())), saved.age.clone(), saved.turns.to_string(), first]
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    #[test]
    fn conversations_are_listed_as_rows() {
        let saved = |id: &str, turns, first: &str| ConversationRow {
            id: id.to_owned(),
            age: "2h ago".to_owned(),
            turns,
            first: first.to_owned(),
        };
        let all = [saved("20261115-a", 4, "What is in the harbour?"), saved("20261114-b", 12, "Say\u{1b}[2J it")];
        let shown =
            |width| anstream::adapter::strip_str(&render_conversations(&all, Some("20261115-a"), width)).to_string();
        assert_eq!(
            shown(None),
            "  CONVERSATION  LAST    TURNS  FIRST MESSAGE\n\
             * 20261115-a    2h ago      4  What is in the harbour?\n\
             \x20 20261114-b    2h ago     12  Say\\u{1b}[2J it\n\
             /resume last resumes the most recent one, /resume CONVERSATION another\n"
        );
        for width in [60, 80, 120] {
            assert!(shown(Some(width)).lines().all(|line| line.width() <= width), "{}", shown(Some(width)));
        }
    }
}
