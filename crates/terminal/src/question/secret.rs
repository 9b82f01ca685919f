//! Input of secrets: hidden at the terminal, or from a pipe.

use super::{DialogInput, TERMINAL_LOCK, terminal};
use crate::console::Console;
use crate::failure::Failure;
use crate::stdin;

/// Maximum bytes of a secret.
const MAX_SECRET_BYTES: usize = 64 * 1024;

/// Reads one secret for each label. From a pipe, each secret is one line of stdin in this order; a single secret may
/// span several lines.
///
/// # Cancel safety
///
/// Dropping the future abandons the question.
pub async fn read_secrets(console: &Console, wanted: &[String]) -> Result<Vec<String>, Failure> {
    let found = match wanted {
        [] => return Ok(Vec::new()),
        _ if terminal::is_available() => read_from_terminal(console, wanted).await?,
        _ => read_from_pipe(wanted).await?,
    };
    for (what, secret) in wanted.iter().zip(&found) {
        if secret.is_empty() || secret.len() > MAX_SECRET_BYTES {
            let wrong = if secret.is_empty() { "empty" } else { "too long" };
            return Err(Failure::usage(format_args!("the secret for {what} is {wrong}")));
        }
    }
    Ok(found)
}

async fn read_from_terminal(console: &Console, wanted: &[String]) -> Result<Vec<String>, Failure> {
    let _terminal = TERMINAL_LOCK.lock().await;
    let _floor = console.begin_prompt();
    terminal::discard_pending_input();
    let mut found = Vec::new();
    for what in wanted {
        let _unseen = terminal::EchoGuard::disable_echo();
        match terminal::read_input(console, &format!("Secret for {what} (not shown): ")).await {
            DialogInput::Line(line) => found.push(line),
            DialogInput::Garbled => return Err(Failure::usage("the secret is not valid UTF-8")),
            DialogInput::End => return Err(Failure::interrupted()),
        }
    }
    Ok(found)
}

async fn read_from_pipe(wanted: &[String]) -> Result<Vec<String>, Failure> {
    let unread = |error| Failure::usage(format_args!("cannot read standard input: {error}"));
    let text = stdin::read_all().await.map_err(unread)?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    if wanted.len() == 1 {
        return Ok(vec![text.strip_suffix('\r').unwrap_or(text).to_owned()]);
    }
    let mut lines = text.lines();
    Ok(wanted.iter().map(|_| lines.next().unwrap_or_default().to_owned()).collect())
}
