//! FIFO queue of questions. The first one is open.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};

use wharf::AskReply;
use wharf_spec::UntrustedText;

use wharf_terminal::editor::InputField;
use wharf_terminal::question::{Dialog, DialogInput, DialogStep};
use wharf_terminal::style::{NAME, QUIET, paint};

/// A question with its pending answer.
pub trait PendingQuestion: Send {
    /// Name of the requesting server, escaped.
    fn server(&self) -> &str;

    /// Reports whether the server itself asks, and can withdraw the question.
    fn is_from_server(&self) -> bool;

    /// Returns the opening text.
    fn begin(&self) -> String;

    /// Handles a line. Returns the next text, or `None` if the question is answered.
    fn on_input(&mut self, input: DialogInput) -> Option<String>;

    fn field(&self) -> InputField;

    /// Polls for withdrawal: ready once the receiver of the answer is gone.
    fn poll_withdrawn(&mut self, context: &mut Context<'_>) -> Poll<()>;

    fn has_receiver(&self) -> bool;
}

/// A dialog with the receiver of its answer.
pub struct DialogQuestion<T: Dialog> {
    server: String,
    is_from_server: bool,
    dialog: T,
    /// `None` once answered.
    reply: Option<AskReply<T::Answer>>,
    then: Option<AnswerCallback<T::Answer>>,
}

/// Callback that runs before the answer is delivered.
type AnswerCallback<A> = Box<dyn FnOnce(&A) + Send>;

/// The pending questions.
#[derive(Default)]
pub struct QuestionQueue {
    open: VecDeque<Box<dyn PendingQuestion>>,
    /// True after the user has cancelled the run, which withdraws its questions.
    is_run_cancelled: bool,
}

/// Text to print after an operation of the queue.
#[derive(Debug, PartialEq, Eq)]
pub struct QueueReply {
    pub text: String,
    /// True if another question is open now, or none is.
    pub is_question_changed: bool,
}

impl<T: Dialog> DialogQuestion<T> {
    /// Creates a question of a server. Its name is unescaped.
    pub fn new(server: &str, dialog: T, reply: AskReply<T::Answer>) -> Self {
        let server = UntrustedText::new(server).to_string();
        Self { server, is_from_server: true, dialog, reply: Some(reply), then: None }
    }

    /// Creates a question of Wharf's own about a server.
    pub fn about(server: &str, dialog: T, reply: AskReply<T::Answer>) -> Self {
        Self { is_from_server: false, ..Self::new(server, dialog, reply) }
    }

    /// Sets a callback to run before the answer is delivered.
    pub fn with_callback(self, then: impl FnOnce(&T::Answer) + Send + 'static) -> Self {
        Self { then: Some(Box::new(then)), ..self }
    }

    fn answer(&mut self, answer: T::Answer) {
        if let Some(then) = self.then.take() {
            then(&answer);
        }
        if let Some(reply) = self.reply.take() {
            reply.answer(answer);
        }
    }
}

impl<T> PendingQuestion for DialogQuestion<T>
where
    T: Dialog + Send,
    T::Answer: Send,
{
    fn server(&self) -> &str {
        &self.server
    }

    fn is_from_server(&self) -> bool {
        self.is_from_server
    }

    fn begin(&self) -> String {
        match self.dialog.begin() {
            DialogStep::Ask { say, prompt } => question_text(&say, &prompt),
            DialogStep::Done(_) => String::new(),
        }
    }

    fn on_input(&mut self, input: DialogInput) -> Option<String> {
        match self.dialog.on_input(input) {
            DialogStep::Ask { say, prompt } => Some(question_text(&say, &prompt)),
            DialogStep::Done(answer) => {
                self.answer(answer);
                None
            }
        }
    }

    fn field(&self) -> InputField {
        self.dialog.field()
    }

    fn poll_withdrawn(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.reply {
            Some(reply) => pin!(reply.wait_withdrawn()).poll(context),
            None => Poll::Ready(()),
        }
    }

    fn has_receiver(&self) -> bool {
        self.reply.as_ref().is_some_and(AskReply::is_awaited)
    }
}

/// Formats the text above the input line.
fn question_text(say: &str, prompt: &str) -> String {
    let gap = if say.is_empty() { "" } else { "\n" };
    format!("{say}{gap}{}", prompt.trim_end())
}

impl QuestionQueue {
    pub fn len(&self) -> usize {
        self.open.len()
    }

    pub fn field(&self) -> Option<InputField> {
        self.open.front().map(|question| question.field())
    }

    /// Records that the user has cancelled the run, or that a new run starts.
    pub fn set_run_cancelled(&mut self, is_cancelled: bool) {
        self.is_run_cancelled = is_cancelled;
    }

    /// Appends a question. If another one is open, only the number of waiting questions is shown.
    pub fn push(&mut self, question: Box<dyn PendingQuestion>) -> QueueReply {
        self.open.push_back(question);
        match self.open.len() {
            1 => self.open_question(String::new()),
            _ => QueueReply { text: self.waiting_count().unwrap_or_default(), is_question_changed: false },
        }
    }

    /// Passes a line to the open question. A line for a withdrawn question is discarded.
    pub fn on_input(&mut self, input: DialogInput) -> QueueReply {
        let Some(question) = self.open.front_mut() else {
            return QueueReply { text: String::new(), is_question_changed: false };
        };
        if !question.has_receiver() {
            return self.remove(0);
        }
        match question.on_input(input) {
            Some(text) => QueueReply { text, is_question_changed: true },
            None => {
                self.open.pop_front();
                self.open_question(String::new())
            }
        }
    }

    /// Waits until a question is withdrawn and removes it. Cancel-safe.
    pub async fn wait_for_withdrawal(&mut self) -> QueueReply {
        let open = &mut self.open;
        let gone = poll_fn(|context| {
            let gone = open.iter_mut().position(|question| question.poll_withdrawn(context).is_ready());
            gone.map_or(Poll::Pending, Poll::Ready)
        });
        let gone = gone.await;
        self.remove(gone)
    }

    fn remove(&mut self, at: usize) -> QueueReply {
        let Some(question) = self.open.remove(at) else {
            return QueueReply { text: String::new(), is_question_changed: false };
        };
        let server = paint(NAME, question.server());
        let gone = match (self.is_run_cancelled, question.is_from_server()) {
            (true, true) => format!("You cancelled the question of {server}."),
            (true, false) => format!("You cancelled the question about {server}. Its tool was not called."),
            (false, true) => format!("{server} withdrew its question."),
            (false, false) => format!("The question about {server} is no longer needed."),
        };
        match at {
            0 => self.open_question(gone),
            _ => QueueReply { text: gone, is_question_changed: false },
        }
    }

    /// Returns the open question's text, preceded by `words`.
    fn open_question(&self, words: String) -> QueueReply {
        let question = self.open.front().map(|question| question.begin());
        let parts = [Some(words).filter(|words| !words.is_empty()), self.waiting_count(), question];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        QueueReply { text: parts.join("\n"), is_question_changed: true }
    }

    /// Formats the number of further questions.
    fn waiting_count(&self) -> Option<String> {
        let others = match self.open.len().saturating_sub(1) {
            0 => return None,
            1 => "1 more question pending".to_owned(),
            others => format!("{others} more questions pending"),
        };
        Some(paint(QUIET, format!("({others})")).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot::Receiver;
    use wharf::ConsentAnswer;

    use wharf_terminal::question::ApprovalDialog;

    /// Creates a yes-or-no question and the receiver of its answer.
    fn question(name: &str) -> (Box<dyn PendingQuestion>, Receiver<ConsentAnswer>) {
        let (reply, answer) = AskReply::pair();
        (Box::new(DialogQuestion::new(name, ApprovalDialog::new(name, format!("about {name}")), reply)), answer)
    }

    fn line(text: &str) -> DialogInput {
        DialogInput::Line(text.to_owned())
    }

    #[track_caller]
    fn check(reply: &QueueReply, text: &str, is_question_changed: bool) {
        let shown = anstream::adapter::strip_str(&reply.text).to_string();
        assert_eq!((shown.as_str(), reply.is_question_changed), (text, is_question_changed));
    }

    #[tokio::test]
    async fn questions_are_asked_in_order() {
        let mut queue = QuestionQueue::default();
        let ((one, first), (two, second), (three, third)) = (question("one"), question("two"), question("three"));
        check(&queue.push(one), "about one\nApprove one? It runs with your permissions. [y/N]", true);
        check(&queue.push(two), "(1 more question pending)", false);
        check(&queue.push(three), "(2 more questions pending)", false);
        assert_eq!((queue.len(), queue.field().unwrap().choices.len()), (3, 3));
        check(
            &queue.on_input(line("what")),
            "  Answer y or n.\nApprove one? It runs with your permissions. [y/N]",
            true,
        );
        let next = "(1 more question pending)\nabout two\nApprove two? It runs with your permissions. [y/N]";
        check(&queue.on_input(line("y")), next, true);
        check(&queue.on_input(line("n")), "about three\nApprove three? It runs with your permissions. [y/N]", true);
        check(&queue.on_input(DialogInput::End), "", true);
        check(&queue.on_input(line("y")), "", false);
        assert_eq!((first.await, second.await), (Ok(ConsentAnswer::Given), Ok(ConsentAnswer::Refused)));
        assert_eq!((third.await, queue.len(), queue.field().is_none()), (Ok(ConsentAnswer::Refused), 0, true));
    }

    #[tokio::test]
    async fn withdrawn_question_is_removed() {
        let mut queue = QuestionQueue::default();
        let ((one, first), (two, second), (three, third)) = (question("one"), question("t\u{1b}wo"), question("three"));
        for question in [one, two, three] {
            queue.push(question);
        }
        drop(second);
        check(&queue.wait_for_withdrawal().await, "t\\u{1b}wo withdrew its question.", false);
        drop(first);
        let gone = "one withdrew its question.\n\
                    about three\nApprove three? It runs with your permissions. [y/N]";
        check(&queue.wait_for_withdrawal().await, gone, true);
        drop(third);
        check(&queue.wait_for_withdrawal().await, "three withdrew its question.", true);
        assert_eq!(queue.len(), 0);
    }

    #[tokio::test]
    async fn withdrawal_wakes_the_waiter() {
        let mut queue = QuestionQueue::default();
        let ((one, first), (two, _second)) = (question("one"), question("two"));
        queue.push(one);
        queue.push(two);
        let leaving = async {
            tokio::task::yield_now().await;
            drop(first);
        };
        let (reply, ()) = tokio::join!(queue.wait_for_withdrawal(), leaving);
        assert!(reply.text.contains("one") && reply.is_question_changed, "{reply:?}");
    }

    #[tokio::test]
    async fn line_for_a_withdrawn_question_is_discarded() {
        let mut queue = QuestionQueue::default();
        let ((one, first), (two, mut second)) = (question("one"), question("two"));
        queue.push(one);
        queue.push(two);
        drop(first);
        let gone = "one withdrew its question.\n\
                    about two\nApprove two? It runs with your permissions. [y/N]";
        check(&queue.on_input(line("y")), gone, true);
        assert!(second.try_recv().is_err());
        queue.on_input(line("y"));
        assert_eq!(second.await, Ok(ConsentAnswer::Given));
    }

    #[tokio::test]
    async fn callback_runs_before_the_answer() {
        let (reply, answer) = AskReply::pair();
        let (callback_tx, follows) = std::sync::mpsc::channel();
        let question = DialogQuestion::new("one", ApprovalDialog::new("one", String::new()), reply);
        let mut queue = QuestionQueue::default();
        queue.push(Box::new(question.with_callback(move |consent| callback_tx.send(*consent).unwrap())));
        queue.on_input(line("y"));
        assert_eq!((follows.try_recv(), answer.await), (Ok(ConsentAnswer::Given), Ok(ConsentAnswer::Given)));
    }
}
