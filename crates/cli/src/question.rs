//! Questions that servers put to a person, asked at the terminal line by line.
//!
//! Prompts go to stderr and answers come from stdin as whole lines, with nothing redrawn: it reads the same over a
//! pseudo-terminal, on a dumb terminal and to a screen reader. What is said to which line is decided by [`FormTalk`]
//! and [`LinkTalk`], which know no terminal. `:decline` says no; `:cancel` and the end of the input (Ctrl-D) dismiss
//! the question without an answer; Ctrl-C is the command's, which drops the question.

mod form;
mod given;
mod link;
mod opener;
mod secret;
mod terminal;
mod typed;

use tokio::sync::Mutex;
use wharf_spec::Untrusted;
use wharf_wire::{ElicitAnswer, Elicitation, FormRequest, UrlRequest};

use crate::console::Console;
use crate::failure::gutter;
use crate::style::{NAME, paint};
use crate::table::wrap;
use form::FormTalk;
use link::{Link, LinkTalk};

pub use given::from_answers;
pub use opener::Opener;
pub use secret::secrets;

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
pub enum Turn {
    /// Says something and waits for a line.
    Ask {
        say: String,
        prompt: String,
        /// Whether what is typed stays unseen.
        hidden: bool,
    },
    Done(ElicitAnswer),
}

/// A conversation about one question, free of any terminal.
pub trait Talk {
    fn begin(&self) -> Turn;
    fn hear(&mut self, heard: Heard) -> Turn;
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
            let url = Untrusted::new(request.url.as_str());
            let url = url.shortened(400);
            asking.console.warn(format_args!("{name} asks to open `{url}`, which is refused: {reason}"));
            return ElicitAnswer::Decline;
        }
    };
    if !terminal::is_there() {
        return unheard(asking, name, &request.message, "run it in a terminal to look at the address it wants opened");
    }
    let answer = converse(asking.console, &mut LinkTalk::new(name, &request.message, &link)).await;
    if let ElicitAnswer::Accept(_) = answer {
        open(asking, &link);
    }
    answer
}

/// Opens what was agreed to. A browser that does not start leaves the person with the address, which is shown.
fn open(asking: &Asking<'_>, link: &Link) {
    let failed = |status| tracing::debug!(%status, "the browser ended badly");
    match asking.opener.open(link.url(), failed) {
        Ok(()) => asking.console.say("Opened in the browser."),
        Err(error) => asking.console.warn(format_args!("no browser could be started ({error}); open it yourself")),
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
    console.say(say);
    loop {
        let Heard::Line(line) = terminal::hear(console, prompt).await else { return false };
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return true,
            "" | "n" | "no" => return false,
            _ => console.say("  Answer y or n."),
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
    let server = Untrusted::new(server).to_string();
    let prompt = format!("Press Enter once you are done there; {server} may also say so itself: ");
    terminal::hear(console, &prompt).await;
}

fn unheard(asking: &Asking<'_>, name: &str, message: &str, how: &str) -> ElicitAnswer {
    let message = Untrusted::new(message);
    let message = message.shortened(200);
    asking.console.warn(format_args!("{name} asks: {message}\n  Nobody is there to answer, so it is told no; {how}."));
    ElicitAnswer::Decline
}

/// Carries a talk to its end. The terminal is one question's at a time, and what was typed before a question was on
/// it answers nothing.
async fn converse(console: &Console, talk: &mut (dyn Talk + Send)) -> ElicitAnswer {
    let _terminal = TERMINAL.lock().await;
    let _floor = console.take_floor();
    terminal::forget_typed();
    let mut turn = talk.begin();
    loop {
        match turn {
            Turn::Done(answer) => return answer,
            Turn::Ask { say, prompt, hidden } => {
                console.say(say);
                let _unseen = hidden.then(terminal::Unseen::begin);
                turn = talk.hear(terminal::hear(console, &prompt).await);
            }
        }
    }
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
