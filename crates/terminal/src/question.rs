//! Questions to the user, asked on the terminal line by line for one-shot commands.
//!
//! A [`Dialog`] decides the reply to each line and is independent of any terminal; a terminal front end drives it. Here
//! prompts go to stderr and answers are whole lines from stdin, without redrawing, so the output works over a
//! pseudo-terminal, on a dumb terminal and with a screen reader. `:decline` declines; `:cancel` and end of input
//! (Ctrl-D) dismiss the question without an answer. Ctrl-C interrupts the command, which drops the question.

mod approval;
mod field_value;
mod form;
mod json_indent;
mod link;
mod login;
mod opener;
mod page_visit;
mod pages;
mod permission;
mod prepared_answers;
mod sampling;
mod secret;
mod terminal;
mod terminal_asker;

use tokio::sync::Mutex;
use wharf::ConsentAnswer;
use wharf_spec::UntrustedText;
use wharf_wire::{Elicitation, ElicitationResponse, FormRequest, UrlRequest};

use crate::console::Console;
use crate::editor::{EchoMode, InputField};
use crate::failure::gutter;
use crate::style::{NAME, paint};
use crate::table::{wrap, wrap_gutter};

pub use approval::{ApprovalDialog, prompt as approval_prompt};
pub use form::FormDialog;
pub use json_indent::indent_json;
pub use link::{BrowserLink, LinkDialog};
pub use login::{LoginDialog, LoginPrompt, OPEN};
pub use opener::UrlOpener;
pub use page_visit::PageVisitDialog;
pub use pages::ScreenSize;
pub use permission::PermissionDialog;
pub use prepared_answers::from_answers;
pub use sampling::{SamplingDialog, SamplingSummary};
pub use secret::read_secrets;
pub use terminal_asker::TerminalAsker;

/// Context of an elicitation: the requesting server and the means to ask.
pub struct ElicitationContext<'a> {
    pub console: &'a Console,
    /// The server's configured name.
    pub server: &'a str,
    pub opener: &'a UrlOpener,
    /// Allows forms to ask for passwords and other secrets.
    pub allow_secrets: bool,
}

/// Input read from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialogInput {
    /// A line without its line ending.
    Line(String),
    /// A line that is not valid UTF-8.
    Garbled,
    /// End of input.
    End,
}

/// The next step of a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialogStep<A> {
    /// Print `say` and read a line.
    Ask {
        say: String,
        prompt: String,
    },
    Done(A),
}

/// The state machine of one question, independent of any terminal.
pub trait Dialog {
    /// Result of the dialog.
    type Answer;

    fn begin(&self) -> DialogStep<Self::Answer>;
    fn on_input(&mut self, input: DialogInput) -> DialogStep<Self::Answer>;

    /// Describes the input field the next line belongs to.
    fn field(&self) -> InputField {
        choice_field(&[])
    }
}

impl<A> DialogStep<A> {
    fn ask(say: impl Into<String>, prompt: &str) -> Self {
        Self::Ask { say: say.into(), prompt: prompt.to_owned() }
    }
}

/// Serializes questions: the terminal shows one at a time.
static TERMINAL_LOCK: Mutex<()> = Mutex::const_new(());

/// Maximum number of lines and characters shown of a server's message, and its wrap width.
const MAX_MESSAGE_LINES: usize = 40;
const MESSAGE_WIDTH: usize = 76;
const MAX_MESSAGE_CHARS: usize = 8_000;

/// Asks the user at the terminal. Declines with a warning on stderr if there is no terminal or the request must be
/// refused.
///
/// # Cancel safety
///
/// Dropping the future abandons the question. Later input is not read.
pub async fn ask(asking: &ElicitationContext<'_>, request: &Elicitation) -> ElicitationResponse {
    let name = UntrustedText::new(asking.server).to_string();
    match request {
        Elicitation::Form(form) => ask_form(asking, &name, form).await,
        Elicitation::Url(request) => ask_link(asking, &name, request).await,
    }
}

async fn ask_form(asking: &ElicitationContext<'_>, name: &str, form: &FormRequest) -> ElicitationResponse {
    if let Some(field) = form.secret_field().filter(|_| !asking.allow_secrets) {
        let field = UntrustedText::new(field.display_name()).truncate(80).to_string();
        asking.console.warn(format_args!(
            "declined: {name} asks for `{field}` in a form, which looks like a secret (allow it with --allow-secrets)"
        ));
        return ElicitationResponse::Decline;
    }
    if !terminal::is_available() {
        let how = "run the command in a terminal, or use --answer name=value";
        return decline_without_terminal(asking, name, &form.message, how);
    }
    run_dialog(asking.console, &mut FormDialog::new(name, form)).await
}

async fn ask_link(asking: &ElicitationContext<'_>, name: &str, request: &UrlRequest) -> ElicitationResponse {
    let link = match BrowserLink::parse(&request.url) {
        Ok(link) => link,
        Err(reason) => {
            warn_refused_link(asking.console, asking.server, &request.url, &reason);
            return ElicitationResponse::Decline;
        }
    };
    if !terminal::is_available() {
        return decline_without_terminal(
            asking,
            name,
            &request.message,
            "run the command in a terminal to review the URL",
        );
    }
    let answer = run_dialog(asking.console, &mut LinkDialog::new(name, &request.message, &link)).await;
    if let ElicitationResponse::Accept(_) = answer {
        open_link(asking.console, asking.opener, &link);
    }
    answer
}

/// Warns about a link that is refused without asking the user.
pub fn warn_refused_link(console: &Console, server: &str, url: &str, reason: &str) {
    let (server, url) = (UntrustedText::new(server), UntrustedText::new(url));
    console.warn(format_args!("{server} asked to open `{}`. Refused: {reason}", url.truncate(400)));
}

/// Opens an accepted link. If the browser does not start, the user still has the URL on screen.
pub fn open_link(console: &Console, opener: &UrlOpener, link: &BrowserLink) {
    let failed = |status| tracing::debug!(%status, "browser exited with an error");
    match opener.open(link.url(), failed) {
        Ok(()) => console.say("Opened in the browser."),
        Err(error) => console.warn(format_args!("could not start a browser ({error}). Open the URL above manually")),
    }
}

/// Reports whether a terminal is available for questions.
pub fn has_terminal() -> bool {
    terminal::is_available()
}

/// Prints a text and asks for yes or no. Anything but an explicit yes is a no. Requires a terminal.
///
/// # Cancel safety
///
/// Dropping the future abandons the question.
pub async fn confirm(console: &Console, say: &str, prompt: &str) -> bool {
    let _terminal = TERMINAL_LOCK.lock().await;
    let _floor = console.begin_prompt();
    terminal::discard_pending_input();
    console.say(wrap_gutter(say, console.stderr_width()));
    loop {
        let DialogInput::Line(line) = terminal::read_input(console, prompt).await else { return false };
        match parse_consent(&line) {
            Some(consent) => return consent == ConsentAnswer::Given,
            None => console.say(YES_NO_MESSAGE),
        }
    }
}

/// Reads one line from stdin, also if stdin is not a terminal. Returns `None` at end of input.
///
/// # Cancel safety
///
/// Dropping the future abandons the question.
pub async fn ask_line(console: &Console, say: &str, prompt: &str) -> Option<String> {
    let _terminal = TERMINAL_LOCK.lock().await;
    let _floor = console.begin_prompt();
    terminal::discard_pending_input();
    if !say.is_empty() {
        console.say(say);
    }
    loop {
        match terminal::read_input(console, prompt).await {
            DialogInput::Line(line) => return Some(line),
            DialogInput::Garbled => console.say("  Not valid UTF-8."),
            DialogInput::End => return None,
        }
    }
}

/// Waits until the user confirms that they are done with a page they agreed to open. Without a terminal it waits
/// forever: the server may still report completion.
///
/// # Cancel safety
///
/// Dropping the future abandons the question.
pub async fn wait_for_page_visit(console: &Console, server: &str) {
    if !terminal::is_available() {
        return std::future::pending().await;
    }
    // The server may already have reported completion. Yield so that the caller can drop this future unasked.
    tokio::task::yield_now().await;
    let _terminal = TERMINAL_LOCK.lock().await;
    let _floor = console.begin_prompt();
    terminal::read_input(console, &page_visit::prompt(server)).await;
}

fn decline_without_terminal(
    asking: &ElicitationContext<'_>,
    name: &str,
    message: &str,
    how: &str,
) -> ElicitationResponse {
    let message = UntrustedText::new(message);
    let message = message.truncate(200);
    asking
        .console
        .warn(format_args!("{name} asks: {message}\n  declined: no terminal to prompt on. To answer, {how}."));
    ElicitationResponse::Decline
}

/// Runs a dialog to its end. Holds the terminal for one question and discards input typed before the question appeared.
async fn run_dialog<T: Dialog>(console: &Console, dialog: &mut T) -> T::Answer {
    let _terminal = TERMINAL_LOCK.lock().await;
    let _floor = console.begin_prompt();
    terminal::discard_pending_input();
    let mut step = dialog.begin();
    loop {
        match step {
            DialogStep::Done(answer) => return answer,
            DialogStep::Ask { say, prompt } => {
                console.say(wrap_gutter(&say, console.stderr_width()));
                let _unseen = (dialog.field().echo == EchoMode::Hidden).then(terminal::EchoGuard::disable_echo);
                step = dialog.on_input(terminal::read_input(console, &prompt).await);
            }
        }
    }
}

const YES_NO_MESSAGE: &str = "  Answer y or n.";
const NOT_UTF8_MESSAGE: &str = "  not valid UTF-8, please type it again";

/// Parses a line as yes or no, or `None` for neither. An empty line is a no.
fn parse_consent(line: &str) -> Option<ConsentAnswer> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(ConsentAnswer::Given),
        "" | "n" | "no" => Some(ConsentAnswer::Refused),
        _ => None,
    }
}

/// Returns the next step of a yes-or-no dialog. End of input is a no.
fn consent_step(input: DialogInput, prompt: &str) -> DialogStep<ConsentAnswer> {
    match input {
        DialogInput::End => DialogStep::Done(ConsentAnswer::Refused),
        DialogInput::Garbled => DialogStep::ask(NOT_UTF8_MESSAGE, prompt),
        DialogInput::Line(line) => {
            parse_consent(&line).map_or_else(|| DialogStep::ask(YES_NO_MESSAGE, prompt), DialogStep::Done)
        }
    }
}

/// Returns a field that accepts one of these words or an abbreviation.
fn choice_field(words: &[&str]) -> InputField {
    InputField { echo: EchoMode::Shown, check: None, choices: words.iter().map(|word| (*word).to_owned()).collect() }
}

/// Formats the header of a question: the requesting server and its message, set apart in the gutter.
fn question_header(name: &str, wants: &str, message: &str) -> String {
    let end = message.char_indices().nth(MAX_MESSAGE_CHARS).map_or(message.len(), |(at, _)| at);
    let lines: Vec<String> = wrap(&message[..end], Some(MESSAGE_WIDTH)).lines().map(gutter).collect();
    let cut = lines.len() > MAX_MESSAGE_LINES || end < message.len();
    let shown = lines[..lines.len().min(MAX_MESSAGE_LINES)].join("\n");
    let more = if cut { "\n  (message truncated)" } else { "" };
    format!("\n{} {wants}\n{shown}{more}", paint(NAME, name))
}
