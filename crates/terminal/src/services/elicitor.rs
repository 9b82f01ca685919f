//! Answers a server's questions, by prompting the user or from `--answer`.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use wharf_client::{BoxedFuture, Elicitor, RequestSource};
use wharf_wire::{Elicitation, ElicitationResponse, UrlRequest};

use crate::console::Console;
use crate::failure::Failure;
use crate::question::{ElicitationContext, UrlOpener, ask, from_answers, wait_for_page_visit};
use crate::session::CommandSession;

/// The elicitor of one-shot commands.
#[derive(Clone)]
pub struct TerminalElicitor {
    console: Arc<Console>,
    opener: UrlOpener,
    allow_secrets: bool,
    /// Values of `--answer`. If there are any, the user is not prompted.
    answers: Arc<[String]>,
    cwd: PathBuf,
    failure_tx: mpsc::Sender<Failure>,
}

impl TerminalElicitor {
    /// Creates the elicitor. Sends a failure to `failure_tx` if an answer does not fit its question.
    pub fn new(
        session: &CommandSession,
        answers: Vec<String>,
        allow_secrets: bool,
        failure_tx: mpsc::Sender<Failure>,
    ) -> Self {
        Self {
            console: session.console.clone(),
            opener: UrlOpener::from_environment(&session.environment),
            allow_secrets,
            answers: answers.into(),
            cwd: session.environment.cwd.clone(),
            failure_tx,
        }
    }

    async fn answer(&self, server: &str, question: &Elicitation) -> ElicitationResponse {
        if self.answers.is_empty() {
            let Self { console, opener, allow_secrets, .. } = self;
            return ask(&ElicitationContext { console, server, opener, allow_secrets: *allow_secrets }, question).await;
        }
        match from_answers(question, &self.answers, &self.cwd) {
            Ok(answer) => answer,
            Err(failure) => match self.failure_tx.try_send(failure.about_server(server)) {
                Err(TrySendError::Closed(_)) => ElicitationResponse::Cancel,
                // The first failure ends the command. Later ones are dropped.
                Ok(()) | Err(TrySendError::Full(_)) => std::future::pending().await,
            },
        }
    }
}

impl Elicitor for TerminalElicitor {
    fn supports_pages(&self) -> bool {
        true
    }

    fn elicit(&self, source: RequestSource<'_>, question: Elicitation) -> BoxedFuture<ElicitationResponse> {
        let (person, server) = (self.clone(), source.server.to_owned());
        Box::pin(async move { person.answer(&server, &question).await })
    }

    fn wait_for_page(&self, source: RequestSource<'_>, _: &UrlRequest) -> BoxedFuture<()> {
        let (console, server) = (self.console.clone(), source.server.to_owned());
        Box::pin(async move { wait_for_page_visit(&console, &server).await })
    }
}
