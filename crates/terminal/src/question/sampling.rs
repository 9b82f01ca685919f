//! Consent to a sampling request, and to returning the model's response to the server.

use wharf::ConsentAnswer;
use wharf_spec::UntrustedText;

use super::pages::{ScreenSize, TextPager};
use super::{Dialog, DialogInput, DialogStep, choice_field, parse_consent};
use crate::count_text::CountText;
use crate::editor::InputField;
use crate::style::{HEADING, NAME, paint};

const ASK_PROMPT: &str = "Send this to the model? [y/n]: ";
const SEND_PROMPT: &str = "Send the response? [y/n]: ";
const RETRY_MESSAGE: &str = "  Answer y or n. Nothing has been sent yet.";

/// A sampling request of a server.
#[derive(Debug, Clone)]
pub struct SamplingSummary<'a> {
    /// The server's name.
    pub server: &'a str,
    /// The model's name. Untrusted.
    pub model: &'a str,
    /// Number of messages.
    pub messages: usize,
    /// Maximum tokens to generate.
    pub max_tokens: u64,
    /// The full prompt for the model. Untrusted.
    pub text: &'a str,
}

/// Dialog that shows a text page by page and asks for consent: to send a prompt to the model, or to return its
/// response.
pub struct SamplingDialog {
    head: String,
    pages: TextPager,
    prompt: &'static str,
}

impl SamplingDialog {
    /// Creates the dialog shown before the model is called.
    pub fn for_request(wanted: &SamplingSummary<'_>, room: ScreenSize) -> Self {
        let SamplingSummary { server, model, messages, max_tokens, text } = wanted;
        let (server, model) = (paint(NAME, UntrustedText::new(*server)), UntrustedText::new(*model));
        let messages = CountText(*messages, "message");
        let head = format!(
            "\n{server} requests a completion from {}: {messages}, at most {max_tokens} tokens",
            paint(HEADING, model.truncate(100))
        );
        Self { head, pages: TextPager::new(text, room), prompt: ASK_PROMPT }
    }

    /// Creates the dialog shown after the model has responded. Neither text is escaped by the caller.
    pub fn for_response(server: &str, answer: &str, room: ScreenSize) -> Self {
        let server = paint(NAME, UntrustedText::new(server));
        let head = format!("\nThe model has responded. To be sent to {server}:");
        Self { head, pages: TextPager::new(answer, room), prompt: SEND_PROMPT }
    }
}

impl Dialog for SamplingDialog {
    type Answer = ConsentAnswer;

    fn begin(&self) -> DialogStep<ConsentAnswer> {
        DialogStep::ask(format!("{}\n{}", self.head, self.pages.render_page()), self.prompt)
    }

    /// Handles a line. Enter shows the next page and never answers the question.
    fn on_input(&mut self, input: DialogInput) -> DialogStep<ConsentAnswer> {
        let line = match input {
            DialogInput::End => return DialogStep::Done(ConsentAnswer::Refused),
            DialogInput::Garbled => "?".to_owned(),
            DialogInput::Line(line) => line,
        };
        match (line.trim().is_empty(), parse_consent(&line)) {
            (true, _) if self.pages.next_page() => DialogStep::ask(self.pages.render_page(), self.prompt),
            (false, Some(consent)) => DialogStep::Done(consent),
            _ => DialogStep::ask(RETRY_MESSAGE, self.prompt),
        }
    }

    fn field(&self) -> InputField {
        choice_field(&["yes", "no"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: ScreenSize = ScreenSize { width: 80, rows: 16 };

    /// Returns the answer to some lines, and the last output.
    fn run_lines(mut dialog: SamplingDialog, lines: &[&str]) -> (Option<ConsentAnswer>, String) {
        let mut step = dialog.begin();
        for line in lines {
            step = dialog.on_input(DialogInput::Line((*line).to_owned()));
        }
        match step {
            DialogStep::Done(consent) => (Some(consent), String::new()),
            DialogStep::Ask { say, prompt } => {
                (None, anstream::adapter::strip_str(&format!("{say}\n{prompt}")).to_string())
            }
        }
    }

    fn sampling(text: &str) -> SamplingDialog {
        let wanted = SamplingSummary { server: "demo", model: "small\u{1b}", messages: 2, max_tokens: 200, text };
        SamplingDialog::for_request(&wanted, ROOM)
    }

    #[test]
    fn prompt_and_response_are_shown() {
        assert_eq!(
            run_lines(sampling("user: Ahoy\u{202e}"), &[]).1,
            "\ndemo requests a completion from small\\u{1b}: 2 messages, at most 200 tokens\n  \
             │ user: Ahoy\\u{202e}\nSend this to the model? [y/n]: "
        );
        assert_eq!(
            run_lines(SamplingDialog::for_response("demo", "High\nwater", ROOM), &[]).1,
            "\nThe model has responded. To be sent to demo:\n  │ High\n  │ water\nSend the response? [y/n]: "
        );
    }

    #[test]
    fn only_yes_gives_consent() {
        let long = "x\n".repeat(20);
        for (lines, expected) in [
            (&["y"][..], Some(ConsentAnswer::Given)),
            (&["", "yes"], Some(ConsentAnswer::Given)),
            (&["no"], Some(ConsentAnswer::Refused)),
            (&[""], None),
            (&["", "", "", "", ""], None),
            (&["what"], None),
        ] {
            assert_eq!(run_lines(sampling(&long), lines).0, expected, "{lines:?}");
            assert_eq!(run_lines(SamplingDialog::for_response("demo", &long, ROOM), lines).0, expected, "{lines:?}");
        }
        assert!(run_lines(sampling(&long), &[""]).1.contains("lines 7–12 of 21"));
        assert_eq!(sampling("x").on_input(DialogInput::End), DialogStep::Done(ConsentAnswer::Refused));
    }
}
