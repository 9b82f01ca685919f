//! Login requested by the user: the page is shown as a question before it is opened.

use std::sync::Arc;

use wharf::{Ask, ConsentAnswer, HostError, LoginAsk};
use wharf_auth::{BrowserVisit, DeviceCodePage, LoginBrowser, LoginCallback, LoginPage, VisitError};
use wharf_net::AuthFuture;
use wharf_spec::{ServerName, UntrustedText};

use super::{DeskMessage, QuestionSender};
use wharf_terminal::accounts::{self, LoginPageMode};
use wharf_terminal::failure::{Failure, render_failure};
use wharf_terminal::login_errors::login_failure;
use wharf_terminal::managed_host::ManagedHost;
use wharf_terminal::style::{GOOD, NAME, paint};

/// Returns a visitor that asks for consent before each page.
pub fn consent_visitor(managed_host: &ManagedHost<'_>, server: &str, sender: QuestionSender) -> Arc<dyn LoginBrowser> {
    let visitor =
        accounts::login_visitor(managed_host.session, &managed_host.login_settings(server), LoginPageMode::Agreed);
    Arc::new(ConsentVisitor { visitor, sender, server: server.to_owned() })
}

/// Formats the result of a login.
pub fn format_login_result(server: &str, outcome: Result<(), HostError>) -> String {
    let name = UntrustedText::new(server);
    match outcome {
        Ok(()) => format!("{} to {}.", paint(GOOD, "Logged in"), paint(NAME, name)),
        Err(HostError::Login { error, .. }) => render_failure(&login_failure(&error).about_server(server)),
        Err(error) => render_failure(&Failure::other(error)),
    }
}

struct ConsentVisitor {
    visitor: Arc<dyn LoginBrowser>,
    sender: QuestionSender,
    server: String,
}

struct ConsentVisit {
    visit: Box<dyn BrowserVisit>,
    sender: QuestionSender,
    server: String,
}

impl LoginBrowser for ConsentVisitor {
    fn prepare(&self) -> AuthFuture<Result<Box<dyn BrowserVisit>, VisitError>> {
        let (preparing, sender, server) = (self.visitor.prepare(), self.sender.clone(), self.server.clone());
        Box::pin(async move {
            Ok(Box::new(ConsentVisit { visit: preparing.await?, sender, server }) as Box<dyn BrowserVisit>)
        })
    }
}

impl BrowserVisit for ConsentVisit {
    fn redirect_uri(&self) -> &str {
        self.visit.redirect_uri()
    }

    fn open_and_wait(self: Box<Self>, page: LoginPage) -> AuthFuture<Result<LoginCallback, VisitError>> {
        let Self { visit, sender, server } = *self;
        Box::pin(async move {
            match sender.ask_consent(&server, &page).await {
                ConsentAnswer::Given => visit.open_and_wait(page).await,
                ConsentAnswer::Refused => Err(VisitError::Declined),
            }
        })
    }

    fn show_code(&self, page: &DeviceCodePage) -> Result<(), VisitError> {
        self.visit.show_code(page)
    }
}

impl QuestionSender {
    /// Asks for consent to open a page. Dropping the future withdraws the question.
    async fn ask_consent(&self, server: &str, page: &LoginPage) -> ConsentAnswer {
        let Ok(server) = ServerName::new(server) else { return ConsentAnswer::Refused };
        let mut ask = LoginAsk::new(server, page.url.as_str(), page.issuer.as_str());
        ask.scope.clone_from(&page.scope);
        let (reply, answer) = wharf::AskReply::pair();
        match self.inbox.send(DeskMessage::Ask(Box::new(Ask::Login(ask, reply)))).await {
            Ok(()) => answer.await.unwrap_or(ConsentAnswer::Refused),
            Err(_) => ConsentAnswer::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;
    use wharf_auth::LoginError;

    /// A visit that returns immediately.
    struct ImmediateVisit;

    impl BrowserVisit for ImmediateVisit {
        fn redirect_uri(&self) -> &str {
            "http://127.0.0.1:1/"
        }

        fn open_and_wait(self: Box<Self>, _: LoginPage) -> AuthFuture<Result<LoginCallback, VisitError>> {
            Box::pin(async { Err(VisitError::NotPossible("it was opened".to_owned())) })
        }
    }

    #[tokio::test]
    async fn page_is_opened_only_after_consent() {
        for (consent, expected) in [
            (Some(ConsentAnswer::Given), VisitError::NotPossible("it was opened".to_owned())),
            (Some(ConsentAnswer::Refused), VisitError::Declined),
            (None, VisitError::Declined),
        ] {
            let (inbox, mut arrivals) = mpsc::channel(1);
            let sender = QuestionSender { inbox, samples: Arc::default() };
            let visit = Box::new(ConsentVisit { visit: Box::new(ImmediateVisit), sender, server: "docs".to_owned() });
            let mut page = LoginPage::new("https://a.example/authorize", "https://a.example", "state");
            page.scope = Some("read".to_owned());
            let person = async {
                let Some(DeskMessage::Ask(ask)) = arrivals.recv().await else { panic!("no question arrived") };
                let Ask::Login(ask, reply) = *ask else { panic!("something else is asked") };
                assert_eq!((ask.server.as_str(), ask.scope.as_deref()), ("docs", Some("read")));
                if let Some(consent) = consent {
                    reply.answer(consent);
                }
            };
            let (outcome, ()) = tokio::join!(visit.open_and_wait(page), person);
            assert_eq!(outcome.unwrap_err(), expected);
        }
    }

    #[test]
    fn login_result_is_formatted() {
        let plain = |outcome| anstream::adapter::strip_str(&format_login_result("docs", outcome)).to_string();
        assert_eq!(plain(Ok(())), "Logged in to docs.");
        let server = ServerName::new("docs").unwrap();
        let declined = plain(Err(HostError::Login { server, error: LoginError::Visit(VisitError::Declined) }));
        assert!(declined.starts_with("error: docs: "), "{declined}");
    }
}
