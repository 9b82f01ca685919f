//! Consent to open a login page.

use unicode_width::UnicodeWidthStr as _;
use url::Url;
use wharf::{ConsentAnswer, LoginAsk};
use wharf_auth::{VisitError, browser_argument};
use wharf_spec::UntrustedText;

use super::{Dialog, DialogInput, DialogStep, MESSAGE_WIDTH, choice_field, consent_step};
use crate::editor::InputField;
use crate::failure::gutter;
use crate::style::{HEADING, NAME, WARNING, paint};
use crate::table::{split_columns, wrap};

/// Prompt of the question.
pub const OPEN: &str = "Open the login page in your browser? [y/N]: ";

/// Maximum width of a scope list printed after its label.
const MAX_INLINE_SCOPE_WIDTH: usize = 40;

/// A requested login.
#[derive(Debug, Clone, Copy)]
pub struct LoginPrompt<'a> {
    /// The server's configured name, escaped.
    pub server: &'a str,
    /// URL of the page as passed to the browser: ASCII, the host in its canonical form.
    pub url: &'a str,
    /// Authorization server. Untrusted.
    pub issuer: &'a str,
    /// Requested scopes. Untrusted.
    pub scope: Option<&'a str>,
}

impl LoginPrompt<'_> {
    /// Describes the login: the server, the host, the issuer and the scopes.
    pub fn describe(&self) -> String {
        let host = host_of(self.url).unwrap_or_default();
        let mut say = format!("{} requires a login at {}", paint(NAME, self.server), paint(HEADING, &host));
        if host_of(self.issuer).is_none_or(|issuer| issuer != host) {
            let issuer = UntrustedText::new(self.issuer);
            say.push_str(&format!("\n  {} on behalf of {}", paint(WARNING, "note:"), issuer.truncate(200)));
        }
        if let Some(scope) = self.scope {
            say.push_str(&format_scope(&UntrustedText::new(scope).to_string()));
        }
        say.push_str(&format!("\n  URL:     {}", self.url));
        say
    }
}

/// Formats the full scope list. A long one is set apart in the gutter, so that it cannot imitate other lines of the
/// question.
fn format_scope(scope: &str) -> String {
    if scope.width() <= MAX_INLINE_SCOPE_WIDTH {
        return format!("\n  scopes:  {scope}");
    }
    let rows = wrap(scope, Some(MESSAGE_WIDTH));
    let rows = rows.lines().flat_map(|row| split_columns(row, MESSAGE_WIDTH)).map(|row| format!("\n{}", gutter(&row)));
    format!("\n  scopes:{}", rows.collect::<String>())
}

fn host_of(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}

/// Dialog that asks to open a login page.
pub struct LoginDialog {
    say: String,
}

impl LoginDialog {
    /// Creates the dialog.
    ///
    /// # Errors
    ///
    /// Fails if the URL must not be opened in a browser.
    pub fn new(ask: &LoginAsk) -> Result<Self, VisitError> {
        let (server, url) = (UntrustedText::new(ask.server.as_str()).to_string(), browser_argument(&ask.url)?);
        let login = LoginPrompt { server: &server, url: &url, issuer: &ask.issuer, scope: ask.scope.as_deref() };
        Ok(Self { say: format!("\n{}", login.describe()) })
    }
}

impl Dialog for LoginDialog {
    type Answer = ConsentAnswer;

    fn begin(&self) -> DialogStep<ConsentAnswer> {
        DialogStep::ask(self.say.clone(), OPEN)
    }

    fn on_input(&mut self, input: DialogInput) -> DialogStep<ConsentAnswer> {
        consent_step(input, OPEN)
    }

    fn field(&self) -> InputField {
        choice_field(&["yes", "no"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_spec::ServerName;

    fn ask(url: &str, issuer: &str) -> LoginAsk {
        LoginAsk::new(ServerName::new("docs").unwrap(), url, issuer)
    }

    fn shown(ask: &LoginAsk) -> String {
        let DialogStep::Ask { say, prompt } = LoginDialog::new(ask).unwrap().begin() else { panic!("no question") };
        anstream::adapter::strip_str(&format!("{say}\n{prompt}")).to_string()
    }

    #[test]
    fn issuer_with_another_host_is_named() {
        let page = "https://accounts.example.org/authorize";
        for (issuer, is_named) in [
            ("https://accounts.example.org", false),
            ("https://accounts.example.org:443/tenant", false),
            ("https://accounts.example.org.evil.example", true),
            ("https://accounts.example.org@evil.example", true),
            ("https://evil.example", true),
            ("", true),
        ] {
            assert_eq!(shown(&ask(page, issuer)).contains("on behalf of"), is_named, "{issuer}");
        }
    }

    #[test]
    fn host_is_shown_in_canonical_form() {
        let mut login = ask("https://\u{430}pple.com/login", "https://\u{430}pple.com");
        login.scope = Some("read\u{1b}[2J write".to_owned());
        assert_eq!(
            shown(&login),
            "\ndocs requires a login at xn--pple-43d.com\n  scopes:  read\\u{1b}[2J write\n  \
             URL:     https://xn--pple-43d.com/login\nOpen the login page in your browser? [y/N]: "
        );
        assert!(LoginDialog::new(&ask("javascript:alert(1)", "https://a.example")).is_err());
    }

    #[test]
    fn long_scopes_stay_in_the_gutter() {
        let mut login = ask("https://a.example/login", "https://a.example");
        login.scope =
            Some(format!("{} \n  address: https://b.example {} admin:*", "read ".repeat(200), "x".repeat(900)));
        let shown = shown(&login);
        let rows: Vec<&str> = shown.lines().skip_while(|line| *line != "  scopes:").collect();
        let (covered, ours) = rows[1..].split_at(rows.len() - 3);
        assert!(covered.iter().all(|row| row.starts_with("  │ ") && row.width() <= 80), "{shown}");
        assert_eq!(ours, ["  URL:     https://a.example/login", "Open the login page in your browser? [y/N]: "]);
        let words: String =
            covered.iter().flat_map(|row| row.chars().skip(4)).filter(|letter| *letter != ' ').collect();
        assert_eq!((words.matches("read").count(), words.matches('x').count()), (200, 900 + 1), "{shown}");
        assert!(words.ends_with("admin:*"), "{shown}");
    }

    #[test]
    fn only_yes_opens_the_login_page() {
        for (input, expected) in [
            (DialogInput::Line("y".to_owned()), Some(ConsentAnswer::Given)),
            (DialogInput::Line(" Yes ".to_owned()), Some(ConsentAnswer::Given)),
            (DialogInput::Line(String::new()), Some(ConsentAnswer::Refused)),
            (DialogInput::Line("no".to_owned()), Some(ConsentAnswer::Refused)),
            (DialogInput::Line("yy".to_owned()), None),
            (DialogInput::Garbled, None),
            (DialogInput::End, Some(ConsentAnswer::Refused)),
        ] {
            let answer = match LoginDialog::new(&ask("https://a.example/", "")).unwrap().on_input(input.clone()) {
                DialogStep::Done(answer) => Some(answer),
                DialogStep::Ask { .. } => None,
            };
            assert_eq!(answer, expected, "{input:?}");
        }
    }
}
