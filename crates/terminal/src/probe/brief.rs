//! Formats a probed server on one line, for `list --probe`.

use std::ffi::OsString;

use wharf_client::ProcessExit;
use wharf_config::{ConfiguredServer, TransportDefinition};
use wharf_spec::{UntrustedText, mask_arguments, mask_url_secrets};

use super::ProbedServer;
use crate::clock::DurationText;
use crate::failure::{Failure, FailureKind};
use crate::style::{BAD, GOOD, NAME, QUIET, paint};

/// Maximum characters of one part of the line.
const MAX_PART_LEN: usize = 200;

/// Formats a line such as `files: npx … - ✓ connected (13 tools, 0.9 s)`.
pub fn brief_line(looked: &ProbedServer<'_>) -> String {
    let verdict = match &looked.outcome {
        Ok(probed) => match &probed.outcome {
            Ok(ready) => {
                let tools = ready.section.tools.len();
                let noun = if tools == 1 { "tool" } else { "tools" };
                format!("{} connected ({tools} {noun}, {})", paint(GOOD, "✓"), DurationText(probed.took))
            }
            Err(broken) if broken.failure.kind == FailureKind::LoginNeeded => {
                format!("{} login needed", paint(BAD, "✗"))
            }
            Err(broken) => failed_text(&broken.failure),
        },
        Err(refused) => match refused.kind {
            FailureKind::Denied => format!("{} not approved (wharf approve {})", paint(QUIET, "‖"), looked.server.name),
            FailureKind::Usage if !looked.server.enabled => format!("{} disabled", paint(QUIET, "○")),
            _ => failed_text(refused),
        },
    };
    format!("{}: {} - {verdict}", paint(NAME, &looked.server.name), target_text(looked.server))
}

fn failed_text(failure: &Failure) -> String {
    format!("{} failed — {}", paint(BAD, "✗"), evidence_line(failure))
}

/// Formats a failure on one line: the exit status if known, otherwise the message, and the last stderr line.
pub fn evidence_line(failure: &Failure) -> String {
    let stderr =
        failure.error.stderr.last().map(|line| UntrustedText::new(line.trim()).truncate(MAX_PART_LEN).to_string());
    let said = match (failure.error.exit, &stderr) {
        (Some(exit @ (ProcessExit::Code(_) | ProcessExit::Signal(_))), _) => exit.to_string(),
        _ => UntrustedText::new(failure.error.message.as_str()).truncate(MAX_PART_LEN).to_string(),
    };
    stderr.map_or(said.clone(), |stderr| format!("{said}: {stderr}"))
}

/// Returns the program or URL of a server, without parts that may be secret.
fn target_text(server: &ConfiguredServer) -> String {
    let Ok(described) = &server.described else { return "?".to_owned() };
    match &described.reach {
        TransportDefinition::Stdio(stdio) => {
            let words: Vec<OsString> = stdio.command.value.split(' ').map(Into::into).collect();
            let program = UntrustedText::new(mask_arguments(&words).join(" ")).truncate(MAX_PART_LEN).to_string();
            if stdio.args.is_empty() { program } else { format!("{program} …") }
        }
        TransportDefinition::Http(http) => match url::Url::parse(&http.url.value) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => {
                format!("{} (HTTP)", UntrustedText::new(mask_url_secrets(&url)).truncate(MAX_PART_LEN))
            }
            // A reference or an invalid URL may contain a secret anywhere.
            _ => "… (HTTP)".to_owned(),
        },
    }
}
