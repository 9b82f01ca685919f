//! Login callback by typing or pasting the redirect URL, for a browser on another machine.

use std::sync::Arc;

use wharf_net::AuthFuture;

use super::loopback::{LoopbackBrowser, LoopbackVisit};
use super::{BrowserVisit, DeviceCodePage, LoginBrowser, LoginCallback, LoginPage, VisitError};

/// Maximum length of a line in bytes.
const MAX_LINE_BYTES: usize = 16 << 10;

/// A source of lines from the user.
pub trait LineSource: Send + Sync {
    /// Prompts for the redirect URL. `complaint` is the problem with the previous line. Returns `None` at the end of
    /// input.
    fn next_line(&self, complaint: Option<&'static str>) -> AuthFuture<Option<String>>;
}

/// Receives the redirect URL as typed or pasted text, for machines without a browser.
///
/// Also listens on the loopback address. The first result is used.
#[derive(Clone)]
pub struct PastedUrlBrowser {
    /// The loopback server for a browser on this machine.
    pub loopback: LoopbackBrowser,
    /// The source of lines.
    pub lines: Arc<dyn LineSource>,
}

impl LoginBrowser for PastedUrlBrowser {
    fn prepare(&self) -> AuthFuture<Result<Box<dyn BrowserVisit>, VisitError>> {
        let Self { loopback, lines } = self.clone();
        Box::pin(async move {
            Ok(Box::new(PastedUrlVisit { listening: loopback.listen().await?, lines }) as Box<dyn BrowserVisit>)
        })
    }
}

struct PastedUrlVisit {
    listening: LoopbackVisit,
    lines: Arc<dyn LineSource>,
}

impl BrowserVisit for PastedUrlVisit {
    fn redirect_uri(&self) -> &str {
        self.listening.redirect_uri()
    }

    fn open_and_wait(self: Box<Self>, page: LoginPage) -> AuthFuture<Result<LoginCallback, VisitError>> {
        let Self { listening, lines } = *self;
        let typed = read_callback_lines(lines, page.state.clone());
        Box::pin(listening.wait_for_callback(page, typed))
    }

    fn show_code(&self, page: &DeviceCodePage) -> Result<(), VisitError> {
        self.listening.show_code(page)
    }
}

/// Prompts until a line is a matching callback. At the end of input this waits forever, since a callback may still
/// arrive.
async fn read_callback_lines(lines: Arc<dyn LineSource>, state: String) -> LoginCallback {
    let mut complaint = None;
    while let Some(line) = lines.next_line(complaint).await {
        match parse_line(&line, &state) {
            Ok(returned) => return returned,
            Err(why) => complaint = Some(why),
        }
    }
    std::future::pending().await
}

/// Parses a full URL, its query with `?`, or the bare query.
fn parse_line(line: &str, state: &str) -> Result<LoginCallback, &'static str> {
    let line = line.trim().trim_matches(['"', '\'', '<', '>']);
    if line.len() > MAX_LINE_BYTES {
        return Err("the line is too long");
    }
    let query = line.split_once('?').map_or(line, |(_, query)| query);
    let query = query.split_once('#').map_or(query, |(query, _)| query);
    let returned = LoginCallback::parse_query(query)
        .ok_or("not a redirect URL; paste the full URL from the browser's address bar")?;
    if returned.matches_state(state) {
        Ok(returned)
    } else {
        Err("this URL belongs to another login (the `state` does not match)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o08_pasted_url_must_match_the_state() {
        for (line, expected) in [
            ("http://127.0.0.1:7/callback/x?code=c&state=right", Ok("c")),
            ("  \"http://127.0.0.1:7/callback?state=right&code=c\"  ", Ok("c")),
            ("<http://127.0.0.1:7/callback?code=c&state=right#_=_>", Ok("c")),
            ("?code=c&state=right", Ok("c")),
            ("code=c&state=right", Ok("c")),
            ("error=access_denied&state=right", Ok("")),
            ("code=c&state=wrong", Err("this URL belongs to another login (the `state` does not match)")),
            ("code=c", Err("this URL belongs to another login (the `state` does not match)")),
            ("c", Err("not a redirect URL; paste the full URL from the browser's address bar")),
            ("", Err("not a redirect URL; paste the full URL from the browser's address bar")),
            (
                "http://127.0.0.1:7/callback",
                Err("not a redirect URL; paste the full URL from the browser's address bar"),
            ),
        ] {
            let read = parse_line(line, "right").map(|returned| returned.code.unwrap_or_default());
            assert_eq!(read.as_deref().map_err(|why| *why), expected, "{line}");
        }
        assert!(parse_line(&format!("code=c&state=right&x={}", "x".repeat(MAX_LINE_BYTES)), "right").is_err());
    }
}
