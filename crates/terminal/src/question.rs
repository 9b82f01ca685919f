//! Questions that are put to a person, and for one command asked at the terminal line by line.
//!
//! What is said to which line is decided by talks, which know no terminal: whoever sits at one carries them. Here prompts
//! go to stderr and answers come from stdin as whole lines, with nothing redrawn: it reads the same over a
//! pseudo-terminal, on a dumb terminal and to a screen reader. `:decline` says no; `:cancel` and the end of the input
//! (Ctrl-D) dismiss the question without an answer; Ctrl-C is the command's, which drops the question.

mod approval;
mod form;
mod given;
mod indented;
mod link;
mod login;
mod opener;
mod pages;
mod permission;
mod sampling;
mod secret;
mod terminal;
mod typed;
mod visited;

use tokio::sync::Mutex;
use wharf::Consent;
use wharf_spec::Untrusted;
use wharf_wire::{ElicitAnswer, Elicitation, FormRequest, UrlRequest};

use crate::console::Console;
use crate::editor::{Echo, Field};
use crate::failure::gutter;
use crate::style::{NAME, paint};
use crate::table::{wrap, wrap_gutter};

pub use approval::{ApprovalTalk, prompt as approval_prompt};
pub use form::FormTalk;
pub use given::from_answers;
pub use link::{Link, LinkTalk};
pub use login::{Login, LoginTalk, OPEN};
pub use opener::Opener;
pub use pages::Room;
pub use permission::PermissionTalk;
pub use sampling::{SamplingTalk, Wanted};
pub use secret::secrets;
pub use visited::VisitedTalk;

/// Who asks, and how it is put.
pub struct Asking<'a> {
    pub console: &'a Console,
    /// The server's name here.
    pub server: &'a str,
    pub opener: &'a Opener,
    /// Lets a form ask for passwords and the like.
    pub allow_secrets: bool,
}

/// What came from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A line, without its end.
    Line(String),
    /// A line that is not UTF-8.
    Garbled,
    /// The input is over.
    End,
}

/// What a talk does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn<A> {
    /// Says something and waits for a line.
    Ask {
        say: String,
        prompt: String,
    },
    Done(A),
}

/// A conversation about one question, free of any terminal.
pub trait Talk {
    /// What it comes to.
    type Answer;

    fn begin(&self) -> Turn<Self::Answer>;
    fn hear(&mut self, heard: Heard) -> Turn<Self::Answer>;

    /// What the next line is typed for.
    fn field(&self) -> Field {
        one_of(&[])
    }
}

impl<A> Turn<A> {
    fn ask(say: impl Into<String>, prompt: &str) -> Self {
        Self::Ask { say: say.into(), prompt: prompt.to_owned() }
    }
}

/// There is one terminal, and one question on it at a time.
static TERMINAL: Mutex<()> = Mutex::const_new(());

/// The most lines and characters of a server's message that are shown, and how wide it is set.
const MESSAGE_LINES: usize = 40;
const MESSAGE_WIDTH: usize = 76;
const MESSAGE_SHOWN: usize = 8_000;

/// Puts a question to the person at the terminal. Where there is none, and for what nobody should be asked, the answer
/// is a no at once, with a word on stderr.
///
/// Dropped, it abandons the question: nothing typed afterwards is read.
pub async fn ask(asking: &Asking<'_>, request: &Elicitation) -> ElicitAnswer {
    let name = Untrusted::new(asking.server).to_string();
    match request {
        Elicitation::Form(form) => ask_form(asking, &name, form).await,
        Elicitation::Url(request) => ask_link(asking, &name, request).await,
    }
}

async fn ask_form(asking: &Asking<'_>, name: &str, form: &FormRequest) -> ElicitAnswer {
    if let Some(field) = form.secret_field().filter(|_| !asking.allow_secrets) {
        let field = Untrusted::new(field.display_name()).shortened(80).to_string();
        asking.console.warn(format_args!(
            "{name} asks for `{field}`, which looks like a secret; a form is no place for one, so the answer is no"
        ));
        return ElicitAnswer::Decline;
    }
    if !terminal::is_there() {
        let how = "run it in a terminal, or answer beforehand with --answer name=value";
        return unheard(asking, name, &form.message, how);
    }
    converse(asking.console, &mut FormTalk::new(name, form)).await
}

async fn ask_link(asking: &Asking<'_>, name: &str, request: &UrlRequest) -> ElicitAnswer {
    let link = match Link::read(&request.url) {
        Ok(link) => link,
        Err(reason) => {
            warn_of_link(asking.console, asking.server, &request.url, &reason);
            return ElicitAnswer::Decline;
        }
    };
    if !terminal::is_there() {
        return unheard(asking, name, &request.message, "run it in a terminal to look at the address it wants opened");
    }
    let answer = converse(asking.console, &mut LinkTalk::new(name, &request.message, &link)).await;
    if let ElicitAnswer::Accept(_) = answer {
        open(asking.console, asking.opener, &link);
    }
    answer
}

/// Tells of an address that nobody should be asked about.
pub fn warn_of_link(console: &Console, server: &str, url: &str, reason: &str) {
    let (server, url) = (Untrusted::new(server), Untrusted::new(url));
    console.warn(format_args!("{server} asks to open `{}`, which is refused: {reason}", url.shortened(400)));
}

/// Opens what was agreed to. A browser that does not start leaves the person with the address, which is shown.
pub fn open(console: &Console, opener: &Opener, link: &Link) {
    let failed = |status| tracing::debug!(%status, "the browser ended badly");
    match opener.open(link.url(), failed) {
        Ok(()) => console.say("Opened in the browser."),
        Err(error) => console.warn(format_args!("no browser could be started ({error}); open it yourself")),
    }
}

/// Whether somebody can be asked at all.
pub fn is_somebody_there() -> bool {
    terminal::is_there()
}

/// Says something and asks yes or no; anything but a clear yes is a no. Only where somebody is there.
///
/// Dropped, it abandons the question.
pub async fn confirm(console: &Console, say: &str, prompt: &str) -> bool {
    let _terminal = TERMINAL.lock().await;
    let _floor = console.take_floor();
    terminal::forget_typed();
    console.say(wrap_gutter(say, console.talk_width()));
    loop {
        let Heard::Line(line) = terminal::hear(console, prompt).await else { return false };
        match consent(&line) {
            Some(consent) => return consent == Consent::Given,
            None => console.say(Y_OR_N),
        }
    }
}

/// Asks for a line, from whoever is at the other end of the standard input. Nothing when there are no more.
///
/// Dropped, it abandons the question.
pub async fn line(console: &Console, say: &str, prompt: &str) -> Option<String> {
    let _terminal = TERMINAL.lock().await;
    let _floor = console.take_floor();
    if !say.is_empty() {
        console.say(say);
    }
    loop {
        match terminal::hear(console, prompt).await {
            Heard::Line(line) => return Some(line),
            Heard::Garbled => console.say("  That is not UTF-8."),
            Heard::End => return None,
        }
    }
}

/// Waits for the person to say that they are done with a page they agreed to open. Where nobody is there, for ever:
/// the server may still say so itself.
///
/// Dropped, it abandons the question.
pub async fn page_visited(console: &Console, server: &str) {
    if !terminal::is_there() {
        return std::future::pending().await;
    }
    // The server's own word may be there already, and then nobody need be asked.
    tokio::task::yield_now().await;
    let _terminal = TERMINAL.lock().await;
    let _floor = console.take_floor();
    terminal::hear(console, &visited::prompt(server)).await;
}

fn unheard(asking: &Asking<'_>, name: &str, message: &str, how: &str) -> ElicitAnswer {
    let message = Untrusted::new(message);
    let message = message.shortened(200);
    asking.console.warn(format_args!("{name} asks: {message}\n  Nobody is there to answer, so it is told no; {how}."));
    ElicitAnswer::Decline
}

/// Carries a talk to its end. The terminal is one question's at a time, and what was typed before a question was on
/// it answers nothing.
async fn converse<T: Talk>(console: &Console, talk: &mut T) -> T::Answer {
    let _terminal = TERMINAL.lock().await;
    let _floor = console.take_floor();
    terminal::forget_typed();
    let mut turn = talk.begin();
    loop {
        match turn {
            Turn::Done(answer) => return answer,
            Turn::Ask { say, prompt } => {
                console.say(wrap_gutter(&say, console.talk_width()));
                let _unseen = (talk.field().echo == Echo::Hidden).then(terminal::Unseen::begin);
                turn = talk.hear(terminal::hear(console, &prompt).await);
            }
        }
    }
}

const Y_OR_N: &str = "  Answer y or n.";
const NOT_UTF8: &str = "  that was not UTF-8; type it again";

/// Reads a line as a yes or a no; nothing where it is neither. Saying nothing is never a yes.
fn consent(line: &str) -> Option<Consent> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(Consent::Given),
        "" | "n" | "no" => Some(Consent::Refused),
        _ => None,
    }
}

/// The turn of a talk that wants a yes or a no. The end of the input is a no.
fn yes_or_no(heard: Heard, prompt: &str) -> Turn<Consent> {
    match heard {
        Heard::End => Turn::Done(Consent::Refused),
        Heard::Garbled => Turn::ask(NOT_UTF8, prompt),
        Heard::Line(line) => consent(&line).map_or_else(|| Turn::ask(Y_OR_N, prompt), Turn::Done),
    }
}

/// A line for one of these words, of which the first letters do as well.
fn one_of(words: &[&str]) -> Field {
    Field { echo: Echo::Shown, check: None, choices: words.iter().map(|word| (*word).to_owned()).collect() }
}

/// The head of every question: who asks, and its words set apart from ours.
fn opening(name: &str, wants: &str, message: &str) -> String {
    let end = message.char_indices().nth(MESSAGE_SHOWN).map_or(message.len(), |(at, _)| at);
    let lines: Vec<String> = wrap(&message[..end], Some(MESSAGE_WIDTH)).lines().map(gutter).collect();
    let cut = lines.len() > MESSAGE_LINES || end < message.len();
    let shown = lines[..lines.len().min(MESSAGE_LINES)].join("\n");
    let more = if cut { "\n  (the message goes on; the rest is not shown)" } else { "" };
    format!("\n{} {wants}\n{shown}{more}", paint(NAME, name))
}
