//! URLs that a server asks to open: parsed like a browser does, and never fetched.

use std::net::IpAddr;

use url::{Host, Url};
use wharf_auth::{VisitError, browser_argument};
use wharf_spec::UntrustedText;
use wharf_wire::ElicitationResponse;

use super::{Dialog, DialogInput, DialogStep, choice_field, question_header};
use crate::editor::InputField;
use crate::style::{HEADING, WARNING, paint};

/// Maximum bytes of a URL. The user cannot review a longer one.
const MAX_URL_BYTES: usize = 4096;
const PROMPT: &str = "Open the URL in a browser? [y/N/c]: ";

/// A URL that may be shown to the user and, after consent, opened.
#[derive(Debug, Clone)]
pub struct BrowserLink {
    /// The argument for the browser launcher, prepared like that of a login page: ASCII, the host in its canonical
    /// form, shell metacharacters escaped.
    argument: String,
    /// Host and port.
    host: String,
    warnings: Vec<String>,
}

impl BrowserLink {
    /// Parses a URL.
    ///
    /// # Errors
    ///
    /// Returns the reason why the URL is refused without asking the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_URL_BYTES {
            return Err(format!("the URL is longer than {MAX_URL_BYTES} bytes"));
        }
        if text.starts_with('-') {
            return Err("the URL begins with a dash".to_owned());
        }
        if text.contains(char::is_whitespace) || UntrustedText::new(text).to_string() != text {
            return Err("the URL contains invisible characters".to_owned());
        }
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        let host = url.host().ok_or("the URL has no host")?.to_owned();
        match url.scheme() {
            "https" => {}
            "http" if is_loopback(&host) => {}
            "http" => return Err("plain http is allowed only for this machine".to_owned()),
            _ => return Err("only https URLs are opened".to_owned()),
        }
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let argument = browser_argument(url.as_str()).map_err(|refusal| match refusal {
            VisitError::NotPossible(why) => why,
            other => other.to_string(),
        })?;
        Ok(Self { host: format!("{host}{port}"), argument, warnings: warnings(&host, text) })
    }

    /// Returns the URL that is shown and opened.
    pub fn url(&self) -> &str {
        &self.argument
    }
}

fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => IpAddr::V6(*address).to_canonical().is_loopback(),
    }
}

fn warnings(host: &Host, text: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Host::Domain(name) = host {
        let (read, _) = idna::domain_to_unicode(name);
        if read != *name || name.split('.').any(|label| label.starts_with("xn--")) {
            let read = UntrustedText::new(read);
            warnings.push(format!("lookalike characters in the host: `{read}` is `{name}`"));
        }
    }
    if !text.is_ascii() || text.contains('\\') {
        warnings.push(format!("the server sent a different spelling: {}", UntrustedText::new(text)));
    }
    warnings
}

/// Dialog that asks to open a URL.
pub struct LinkDialog {
    /// The server's name, escaped.
    server: String,
    message: String,
    link: BrowserLink,
}

impl LinkDialog {
    /// Takes the escaped server name and the unescaped message.
    pub fn new(server: &str, message: &str, link: &BrowserLink) -> Self {
        Self { server: server.to_owned(), message: message.to_owned(), link: link.clone() }
    }
}

impl Dialog for LinkDialog {
    type Answer = ElicitationResponse;

    fn begin(&self) -> DialogStep<ElicitationResponse> {
        let BrowserLink { argument: url, host, warnings } = &self.link;
        let mut say = question_header(&self.server, "asks you to open a URL in your browser:", &self.message);
        say.push_str(&format!("\n  URL:     {url}\n  host:    {}", paint(HEADING, host)));
        for warning in warnings {
            say.push_str(&format!("\n  {} {warning}", paint(WARNING, "warning:")));
        }
        DialogStep::ask(say, PROMPT)
    }

    fn on_input(&mut self, input: DialogInput) -> DialogStep<ElicitationResponse> {
        let line = match input {
            DialogInput::End => return DialogStep::Done(ElicitationResponse::Cancel),
            DialogInput::Garbled => "?".to_owned(),
            DialogInput::Line(line) => line.trim().to_lowercase(),
        };
        match line.as_str() {
            "y" | "yes" => DialogStep::Done(ElicitationResponse::Accept(None)),
            "" | "n" | "no" | "d" | ":decline" => DialogStep::Done(ElicitationResponse::Decline),
            "c" | "cancel" | ":cancel" => DialogStep::Done(ElicitationResponse::Cancel),
            _ => DialogStep::ask("  Answer y to open the URL, n to decline, or c to cancel.", PROMPT),
        }
    }

    fn field(&self) -> InputField {
        choice_field(&["yes", "no", "cancel"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let link = BrowserLink::parse(text).unwrap();
        let DialogStep::Ask { say, .. } = LinkDialog::new("demo", "sign in", &link).begin() else {
            panic!("no question")
        };
        anstream::adapter::strip_str(&say).to_string()
    }

    #[test]
    fn url_and_host_are_shown_in_full() {
        assert_eq!(
            shown("https://a.example/x?y=1#z"),
            "\ndemo asks you to open a URL in your browser:\n  │ sign in\n  URL:     https://a.example/x?y=1#z\n  host:    a.example"
        );
        assert!(shown("https://a.example:8443/").ends_with("host:    a.example:8443"));
        for local in ["http://localhost:7/x", "http://127.0.0.1/", "http://[::1]:80/", "http://127.1/"] {
            assert!(!shown(local).contains("warning"), "{local}");
        }
    }

    #[test]
    fn lookalike_hosts_are_flagged() {
        for (text, host, warning) in [
            ("https://\u{430}pple.com/", "xn--pple-43d.com", "`\u{430}pple.com` is `xn--pple-43d.com`"),
            ("https://xn--pple-43d.com/", "xn--pple-43d.com", "`\u{430}pple.com` is `xn--pple-43d.com`"),
            ("https://evil.com\\@good.com/", "evil.com", "the server sent a different spelling"),
        ] {
            let shown = shown(text);
            assert!(shown.contains(&format!("\n  host:    {host}\n")) && shown.contains("\n  warning: "), "{shown}");
            assert!(shown.contains(warning), "{shown}");
        }
    }

    #[test]
    fn unsafe_urls_are_refused() {
        for text in [
            "",
            "-",
            "--upload-pack=x",
            "a.example",
            "http://a.example/",
            "http://localhost.example/",
            "http://10.0.0.1/",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "data:text/html,x",
            "ftp://a.example/",
            "https://",
            "https:///",
            "https://a.example/\n",
            "https://a b.example/",
            "https://a.example/\u{1b}[2J",
            "https://a.example/\u{202e}x",
            "HTTP://a.example/",
            "http://0.0.0.0/",
            "vscode://x/y",
            "https://good.com@evil.com/",
            "https://good.com:x@evil.com/",
            "https://good.com\u{2044}@evil.com/",
            " https://a.example/",
        ] {
            assert!(BrowserLink::parse(text).is_err(), "{text:?}");
        }
        assert!(BrowserLink::parse(&format!("https://a.example/{}", "x".repeat(MAX_URL_BYTES))).is_err());
    }

    #[test]
    fn opened_url_is_plain_ascii() {
        let harmless = |letter: char| letter.is_ascii_alphanumeric() || "-._~/?#&=%+:@,".contains(letter);
        for text in [
            "https://a.example/$(x)`y`\"z\"'<>",
            "https://a.example/;touch${IFS}/tmp/x|y",
            "https://a.example/?a=b;c&d='e'*!^[f]{g}",
            "https://a.example/#$(x)",
            "https://a.example/\u{fc}?\u{fc}",
        ] {
            let link = BrowserLink::parse(text).unwrap();
            assert!(link.url().chars().all(harmless), "{}", link.url());
            assert!(shown(text).contains(&format!("URL:     {}\n", link.url())), "what is shown is what is opened");
        }
    }

    #[test]
    fn server_and_login_urls_use_the_same_argument() {
        for text in ["https://a.example/$(x)?a='b'&c=%20", "http://127.0.0.1:7/x;y", "https://A.example:443/(z)"] {
            assert_eq!(Some(BrowserLink::parse(text).unwrap().url()), browser_argument(text).ok().as_deref());
        }
    }

    #[test]
    fn only_yes_opens_the_link() {
        let link = BrowserLink::parse("https://a.example/").unwrap();
        let mut dialog = LinkDialog::new("demo", "m", &link);
        for (line, answer) in [
            ("y", ElicitationResponse::Accept(None)),
            (" YES ", ElicitationResponse::Accept(None)),
            ("", ElicitationResponse::Decline),
            ("n", ElicitationResponse::Decline),
            (":decline", ElicitationResponse::Decline),
            ("c", ElicitationResponse::Cancel),
        ] {
            assert_eq!(dialog.on_input(DialogInput::Line(line.to_owned())), DialogStep::Done(answer), "{line}");
        }
        assert_eq!(dialog.on_input(DialogInput::End), DialogStep::Done(ElicitationResponse::Cancel));
        for input in [DialogInput::Garbled, DialogInput::Line("yy".to_owned()), DialogInput::Line("1".to_owned())] {
            assert!(matches!(dialog.on_input(input), DialogStep::Ask { .. }));
        }
    }
}
