//! The token that clients of this user's gateway present.

use std::path::PathBuf;

use wharf_store::{Document, DocumentPrivacy};

use wharf_terminal::failure::Failure;
use wharf_terminal::session::CommandSession;

/// File of the token in the state directory.
const TOKEN_FILE: &str = "serve.token";

pub struct ServeToken {
    pub text: String,
    pub path: PathBuf,
}

/// Reads the token, creating it if it does not exist.
///
/// # Errors
///
/// Fails if there is no state directory, or the file cannot be read or created.
pub fn open(session: &CommandSession) -> Result<ServeToken, Failure> {
    let state = session.configuration.state.as_deref();
    let state = state.ok_or_else(|| {
        Failure::other("no state directory to keep the token in").with_hint("set HOME or XDG_STATE_HOME")
    })?;
    let path = state.join(TOKEN_FILE);
    let document = Document::new(&path, DocumentPrivacy::Private).with_limit(1024);
    let created = document.update(|old| match old {
        Some(_) => Ok(None),
        None => random_token().map(Some),
    });
    created.map_err(Failure::other)?;
    let loaded = document.load().map_err(Failure::other)?;
    let text = loaded.and_then(|loaded| String::from_utf8(loaded.bytes.to_vec()).ok()).unwrap_or_default();
    match text.trim() {
        "" => Err(Failure::other(format_args!("{} is empty", path.display()))
            .with_hint("delete the file; the next start makes a new token")),
        text => Ok(ServeToken { text: text.to_owned(), path }),
    }
}

fn random_token() -> Result<Vec<u8>, getrandom::Error> {
    Ok(format!("{}\n", random_hex()?).into_bytes())
}

/// Returns 256 random bits as hexadecimal digits.
///
/// # Errors
///
/// Fails if the system has no random numbers.
pub fn random_hex() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
