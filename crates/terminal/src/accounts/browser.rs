//! Takes the user to a login page: in a browser after confirmation, or by printing the URL.

use std::sync::Arc;

use wharf_auth::{
    AuthSettings, BrowserVisit, DeviceCodePage, LineSource, LoginBrowser, LoginPage, LoopbackBrowser, PageOpener,
    PastedUrlBrowser, VisitError, browser_argument,
};
use wharf_net::AuthFuture;
use wharf_spec::UntrustedText;

use crate::config_context::split_project_key;
use crate::console::Console;
use crate::question::{self, LoginPrompt, OPEN, UrlOpener};
use crate::servers::printable_word;
use crate::session::CommandSession;
use crate::style::{HEADING, NAME, QUIET, paint};

/// Presentation of a login page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginPageMode {
    /// Open a browser after confirmation, or print the URL without a terminal.
    Asking,
    /// Open a browser immediately.
    AtOnce,
    /// Open a browser immediately: the user has already confirmed the login prompt.
    Agreed,
    /// Print the URL and accept the pasted redirect URL.
    Address,
    /// Print a code to enter on another device.
    Code,
}

/// Creates a visitor that takes the user to login pages and waits for at most `--timeout`.
pub fn login_visitor(
    session: &CommandSession,
    settings: &AuthSettings,
    page_mode: LoginPageMode,
) -> Arc<dyn LoginBrowser> {
    login_visitor_factory(session, page_mode)(settings)
}

/// Returns a factory that creates such a visitor for the login settings of each server.
pub fn login_visitor_factory(
    session: &CommandSession,
    page_mode: LoginPageMode,
) -> impl Fn(&AuthSettings) -> Arc<dyn LoginBrowser> + Clone + use<> {
    let (console, max_wait) = (session.console.clone(), session.timeout());
    let browser = Arc::new(BrowserLauncher {
        console: console.clone(),
        opener: UrlOpener::from_environment(&session.environment),
        page_mode,
    });
    move |settings| {
        let mut loopback = LoopbackBrowser::new(settings, browser.clone());
        loopback.max_wait = max_wait.unwrap_or(loopback.max_wait);
        match page_mode {
            LoginPageMode::Asking | LoginPageMode::AtOnce | LoginPageMode::Agreed => Arc::new(loopback),
            LoginPageMode::Address => {
                Arc::new(PastedUrlBrowser { loopback, lines: Arc::new(StdinLines(console.clone())) })
            }
            LoginPageMode::Code => Arc::new(DeviceCodeVisitor(loopback)),
        }
    }
}

struct DeviceCodeVisitor(LoopbackBrowser);

impl LoginBrowser for DeviceCodeVisitor {
    fn prepare(&self) -> AuthFuture<Result<Box<dyn BrowserVisit>, VisitError>> {
        self.0.prepare()
    }

    fn prefers_device_code(&self) -> bool {
        true
    }
}

#[derive(Clone)]
struct BrowserLauncher {
    console: Arc<Console>,
    opener: UrlOpener,
    page_mode: LoginPageMode,
}

impl PageOpener for BrowserLauncher {
    fn open(&self, page: &LoginPage) -> AuthFuture<Result<(), VisitError>> {
        let (browser, page) = (self.clone(), page.clone());
        Box::pin(async move { browser.show(&page).await })
    }

    fn show_code(&self, page: &DeviceCodePage) -> Result<(), VisitError> {
        let url = browser_argument(&page.url)?;
        let complete = page.complete_url.as_deref().map(browser_argument).transpose()?;
        let server = server_label(&page.server);
        let mut say = format!(
            "{} requires a login. On any device, open\n  {url}\nand enter the code {}",
            paint(NAME, server),
            paint(HEADING, UntrustedText::new(page.code.as_str()).truncate(80)),
        );
        if let Some(complete) = complete.filter(|complete| *complete != url) {
            say.push_str(&format!("\nor open {complete}"));
        }
        self.console.say(format_args!("{say}\n{}", device_wait_message(page.lasts)));
        Ok(())
    }
}

impl BrowserLauncher {
    async fn show(&self, page: &LoginPage) -> Result<(), VisitError> {
        let url = browser_argument(&page.url)?;
        let opens = match self.page_mode {
            LoginPageMode::Agreed => true,
            LoginPageMode::AtOnce => {
                self.console.say(login_message(page, &url));
                true
            }
            LoginPageMode::Asking if question::has_terminal() => {
                if !question::confirm(&self.console, &login_message(page, &url), OPEN).await {
                    return Err(VisitError::Declined);
                }
                true
            }
            _ => {
                self.console.say(login_message(page, &url));
                false
            }
        };
        if opens {
            self.start(&url);
        }
        match self.page_mode {
            LoginPageMode::Address => {}
            LoginPageMode::Agreed => self.console.say(paint(QUIET, "Waiting for the login to finish.")),
            _ => self.console.say(paint(QUIET, "Waiting for the login to finish (Ctrl-C cancels).")),
        }
        Ok(())
    }

    /// Starts the browser. If that fails, the user still has the printed URL.
    fn start(&self, url: &str) {
        let console = self.console.clone();
        let failed = move |status| {
            console.warn(format_args!("could not start a browser ({status}). Open the URL above manually"));
        };
        match self.opener.open(url, failed) {
            Ok(()) => self.console.say("Opening your browser."),
            Err(error) => {
                self.console.warn(format_args!("could not start a browser ({error}). Open the URL above manually"))
            }
        }
    }
}

fn device_wait_message(lasts: u64) -> String {
    paint(QUIET, format!("Waiting up to {} min for the login to finish (Ctrl-C cancels).", lasts.div_ceil(60)))
        .to_string()
}

/// Describes the login: the server, the URL, the issuer and the scopes.
fn login_message(page: &LoginPage, url: &str) -> String {
    LoginPrompt { server: &server_label(&page.server), url, issuer: &page.issuer, scope: page.scope.as_deref() }
        .describe()
}

/// Lines from standard input.
struct StdinLines(Arc<Console>);

const PASTE_INSTRUCTIONS: &str = "\
After the login, the browser is redirected to a URL that begins with http://127.0.0.1. If it cannot open that URL
because it runs on another machine, copy the whole URL and paste it here.";

impl LineSource for StdinLines {
    fn next_line(&self, complaint: Option<&'static str>) -> AuthFuture<Option<String>> {
        let console = self.0.clone();
        let say = complaint.map_or(PASTE_INSTRUCTIONS.to_owned(), |complaint| format!("  {}.", capitalize(complaint)));
        Box::pin(async move { question::ask_line(&console, &say, "URL: ").await })
    }
}

fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Returns the display name of the server that requires the login.
fn server_label(server: &str) -> String {
    printable_word(split_project_key(server).map_or(server, |(_, name)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_message_hides_url_secrets() {
        let mut page = LoginPage::new("https://a.example/authorize", "https://a.example", "state");
        page.server = "http://h.example/mcp?key=HUSH".to_owned();
        let shown = login_message(&page, &page.url);
        assert!(shown.contains("h.example") && !shown.contains("HUSH"), "{shown}");
    }
}
