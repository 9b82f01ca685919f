//! Commands that undo a change.

use serde_json::{Map, Value};
use wharf_spec::ServerName;

use crate::masking::{self, SecretDisplay};

/// Returns the command that writes an entry again. Secrets are masked, with a note to fill them in.
pub fn add_json_command(name: &ServerName, entry: &Map<String, Value>, flags: &str) -> String {
    let shown = masking::mask_entry(entry, SecretDisplay::Masked);
    let is_whole = shown == masking::mask_entry(entry, SecretDisplay::Revealed);
    let json = Value::Object(if is_whole { entry.clone() } else { shown }).to_string();
    let flags = if flags.is_empty() { String::new() } else { format!(" {flags}") };
    let note = if is_whole { "" } else { "   (replace *** with the secrets)" };
    format!("wharf add-json {} {}{flags}{note}", shell_quote(name.as_str()), shell_quote(&json))
}

/// Quotes a word for the shell.
pub fn shell_quote(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| "…".to_owned(), std::borrow::Cow::into_owned)
}
