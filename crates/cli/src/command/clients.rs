//! Shared by `import` and `export`: names of other programs, and conversion notes.

use wharf_config::clients::{ConversionNote, ExternalClient, NoteSeverity};

use wharf_terminal::failure::Failure;
use wharf_terminal::suggestions::suggestion;

/// Returns the failure for an unknown program name.
pub fn unknown_client(name: &str) -> Failure {
    let names: Vec<&str> = ExternalClient::ALL.map(ExternalClient::name).to_vec();
    let failure = Failure::usage(format_args!("unknown program `{name}`"));
    failure
        .with_hint(suggestion(name, names.iter().copied()))
        .with_hint(format_args!("known programs: {}", names.join(", ")))
}

/// Formats a conversion note as one line: severity, text and fix.
pub fn note_line(note: &ConversionNote) -> String {
    let head = match note.severity {
        NoteSeverity::Lost => "not carried over: ",
        NoteSeverity::Changed => "changed: ",
        NoteSeverity::Hint => "",
    };
    let fix = note.fix.as_ref().map(|fix| format!("; {fix}")).unwrap_or_default();
    format!("{head}{}{fix}", note.text)
}
