//! A server in one line, as `list --probe` shows it.

use std::ffi::OsString;

use wharf_client::Exit;
use wharf_config::{Configured, Reach};
use wharf_spec::{Untrusted, masked_arguments, shown_url};

use super::Looked;
use crate::clock::Took;
use crate::failure::{Failure, Kind};
use crate::style::{BAD, GOOD, NAME, QUIET, paint};

/// The longest that one thing may be in such a line.
const LONGEST: usize = 200;

/// `files: npx … - ✓ connected (13 tools, 0.9 s)`.
pub fn brief(looked: &Looked<'_>) -> String {
    let verdict = match &looked.outcome {
        Ok(probed) => match &probed.outcome {
            Ok(ready) => {
                let tools = ready.section.tools.len();
                let noun = if tools == 1 { "tool" } else { "tools" };
                format!("{} connected ({tools} {noun}, {})", paint(GOOD, "✓"), Took(probed.took))
            }
            Err(broken) if broken.failure.kind == Kind::LoginNeeded => {
                format!("{} login needed", paint(BAD, "✗"))
            }
            Err(broken) => failed(&broken.failure),
        },
        Err(refused) => match refused.kind {
            Kind::Denied => format!("{} not approved (wharf approve {})", paint(QUIET, "‖"), looked.server.name),
            Kind::Usage if !looked.server.enabled => format!("{} disabled", paint(QUIET, "○")),
            _ => failed(refused),
        },
    };
    format!("{}: {} - {verdict}", paint(NAME, &looked.server.name), reached(looked.server))
}

fn failed(failure: &Failure) -> String {
    format!("{} failed — {}", paint(BAD, "✗"), evidence(failure))
}

/// What is wrong, in a line: how it ended and the last it wrote to stderr where that is known, or else the message.
pub fn evidence(failure: &Failure) -> String {
    let stderr = failure.error.stderr.last().map(|line| Untrusted::new(line.trim()).shortened(LONGEST).to_string());
    let said = match (failure.error.exit, &stderr) {
        (Some(exit @ (Exit::Code(_) | Exit::Signal(_))), _) => exit.to_string(),
        _ => Untrusted::new(failure.error.message.as_str()).shortened(LONGEST).to_string(),
    };
    stderr.map_or(said.clone(), |stderr| format!("{said}: {stderr}"))
}

/// How a server is reached, without anything that may be a secret: its program, or its address.
fn reached(server: &Configured) -> String {
    let Ok(described) = &server.described else { return "?".to_owned() };
    match &described.reach {
        Reach::Stdio(stdio) => {
            let words: Vec<OsString> = stdio.command.value.split(' ').map(Into::into).collect();
            let program = Untrusted::new(masked_arguments(&words).join(" ")).shortened(LONGEST).to_string();
            if stdio.args.is_empty() { program } else { format!("{program} …") }
        }
        Reach::Http(http) => match url::Url::parse(&http.url.value) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => {
                format!("{} (HTTP)", Untrusted::new(shown_url(&url)).shortened(LONGEST))
            }
            // A reference, or no URL at all: a secret may stand anywhere in it.
            _ => "… (HTTP)".to_owned(),
        },
    }
}
