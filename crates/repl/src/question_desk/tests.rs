use super::*;
use std::time::Duration;

use tokio::sync::oneshot::Receiver;
use wharf::PageAsk;
use wharf::tools::ToolDescription;
use wharf_agent::{ApiFormat, ModelProvider};
use wharf_net::{Net, NetOptions};
use wharf_spec::{Environment, ServerName, ToolId};
use wharf_testkit::test_home::{SHARED_CONFIG, TestHome};
use wharf_wire::{JsonLimits, SamplingRequest, View};

use wharf_terminal::editor::EchoMode;
use wharf_terminal::managed_host::is_same_definition;

fn open_session(home: &TestHome) -> CommandSession {
    CommandSession::for_tests(Environment { env: home.variables(), cwd: home.path("project") })
}

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

fn line(text: &str) -> DialogInput {
    DialogInput::Line(text.to_owned())
}

fn view<T: View>(text: &str) -> T {
    T::from_raw(RawJson::parse(text.to_owned()).unwrap(), &JsonLimits::default()).unwrap()
}

/// Asks for permission to call a tool of a server.
fn permission(asker: &dyn Asker, name: &str) -> Receiver<PermissionAnswer> {
    let tool = Arc::new(ToolDescription::new("add", "Adds.", RawJson::empty_object()));
    let (reply, answer) = AskReply::pair();
    let ask = PermissionAsk::new(ToolId::new(&server(name), "add"), tool, RawJson::empty_object());
    asker.ask(Ask::Permission(ask, reply));
    answer
}

/// Sends an elicitation from a server.
fn elicitation(asker: &dyn Asker, question: &str) -> Receiver<ElicitationResponse> {
    let (reply, answer) = AskReply::pair();
    asker.ask(Ask::Elicitation(ElicitationAsk { server: server("demo"), call: None, question: view(question) }, reply));
    answer
}

fn sampling(asker: &dyn Asker) -> Receiver<Result<RawJson, SamplingError>> {
    let (reply, answer) = AskReply::pair();
    let request: SamplingRequest =
        view(r#"{"maxTokens":9,"messages":[{"role":"user","content":{"type":"text","text":"Ahoy"}}]}"#);
    asker.ask(Ask::Sampling(SamplingAsk { server: server("demo"), call: None, request }, reply));
    answer
}

#[tokio::test]
async fn every_permission_answer_is_delivered() {
    use PermissionAnswer::{Always, No, NoBecause, Once, Session as ForSession};
    let home = TestHome::new();
    let session = open_session(&home);
    let (mut question_desk, asker) = QuestionDesk::new(&session);
    for (lines, expected) in [
        (vec![line("y")], Once),
        (vec![line(""), line("s")], ForSession),
        (vec![line("a")], Always),
        (vec![DialogInput::Garbled, line("n")], No),
        (vec![line("r"), line("use the copy")], NoBecause("use the copy".to_owned())),
        (vec![DialogInput::End], No),
    ] {
        let answer = permission(&*asker, "math");
        assert_eq!(question_desk.next().await, DeskEvent::QuestionChanged);
        assert_eq!((question_desk.waiting(), question_desk.field().unwrap().choices.len()), (1, 5));
        for input in lines {
            assert_eq!(question_desk.on_input(input), DeskEvent::QuestionChanged);
        }
        assert_eq!(answer.await.unwrap(), expected);
        assert!(question_desk.waiting() == 0 && question_desk.field().is_none());
    }
}

#[tokio::test]
async fn questions_of_several_kinds_queue_and_can_be_withdrawn() {
    let home = TestHome::new();
    let session = open_session(&home);
    let (mut question_desk, asker) = QuestionDesk::new(&session);
    let first = permission(&*asker, "math");
    let form = elicitation(
        &*asker,
        r#"{"message":"m","requestedSchema":{"properties":{"deck":{"type":"integer","maximum":9},"ok":{"type":"boolean"}}}}"#,
    );
    let (reply, page) = AskReply::pair();
    asker.ask(Ask::Page(PageAsk { server: server("demo"), call: None }, reply));
    assert_eq!(question_desk.next().await, DeskEvent::QuestionChanged);
    drop(first);
    // The form may arrive before or after the queue is empty.
    let is_form = |field: InputField| field.check.is_some();
    while !question_desk.field().is_some_and(is_form) {
        assert_eq!(question_desk.next().await, DeskEvent::QuestionChanged);
    }
    let field = question_desk.field().unwrap();
    assert_eq!((field.echo, field.check.unwrap()("12")), (EchoMode::Shown, Err("must be at most 9".to_owned())));
    question_desk.on_input(line("7"));
    assert_eq!(question_desk.field().unwrap().choices, ["yes", "no"]);
    question_desk.on_input(line("y"));
    question_desk.on_input(line(""));
    assert_eq!(form.await.unwrap().to_raw().as_str(), r#"{"action":"accept","content":{"deck":7,"ok":true}}"#);
    while question_desk.waiting() == 0 {
        question_desk.next().await;
    }
    question_desk.on_input(line(""));
    page.await.unwrap();
    assert_eq!(question_desk.waiting(), 0);
}

#[tokio::test]
async fn unsafe_urls_are_refused_without_asking() {
    let home = TestHome::new();
    let session = open_session(&home);
    let (mut question_desk, asker) = QuestionDesk::new(&session);
    let link = elicitation(&*asker, r#"{"mode":"url","message":"m","url":"http://a.example/","elicitationId":"1"}"#);
    let (reply, login) = AskReply::pair();
    asker.ask(Ask::Login(LoginAsk::new(server("demo"), "javascript:alert(1)", "https://a.example"), reply));
    let after = permission(&*asker, "math");
    assert_eq!(question_desk.next().await, DeskEvent::QuestionChanged);
    assert_eq!(link.await.unwrap(), ElicitationResponse::Decline);
    assert!(login.await.is_err());
    question_desk.on_input(line("n"));
    assert_eq!(after.await.unwrap(), PermissionAnswer::No);
}

#[tokio::test]
async fn link_is_accepted_or_declined() {
    let home = TestHome::new();
    let session = open_session(&home);
    let (mut question_desk, asker) = QuestionDesk::new(&session);
    let question = r#"{"mode":"url","message":"m","url":"https://a.example/","elicitationId":"1"}"#;
    for (typed, expected) in [("y", ElicitationResponse::Accept(None)), ("n", ElicitationResponse::Decline)] {
        let link = elicitation(&*asker, question);
        assert_eq!(question_desk.next().await, DeskEvent::QuestionChanged);
        question_desk.on_input(line(typed));
        assert_eq!(link.await.unwrap(), expected);
    }
}

#[tokio::test]
async fn sampling_is_declared_while_a_model_is_lent() {
    let home = TestHome::new();
    let session = open_session(&home);
    let (mut question_desk, asker) = QuestionDesk::new(&session);
    assert!(asker.shows_pages() && !asker.supports_sampling());
    let provider = ModelProvider {
        format: ApiFormat::ChatCompletions,
        base_url: url::Url::parse("http://127.0.0.1:9").unwrap(),
        key: None,
        model: "small".to_owned(),
        max_tokens: 100,
        headers: Vec::new(),
    };
    question_desk
        .set_sampling_model(Some(Model::new(provider, Net::open(&NetOptions::default()).await.unwrap()).unwrap()));
    assert!(asker.supports_sampling());
    let refused = sampling(&*asker);
    assert_eq!(question_desk.next().await, DeskEvent::QuestionChanged);
    question_desk.on_input(line("n"));
    tokio::select! {
        answer = refused => assert_eq!(answer.unwrap().unwrap_err(), SamplingError::Declined),
        event = question_desk.next() => panic!("{event:?}"),
    }
    question_desk.set_sampling_model(None);
    let unlent = sampling(&*asker);
    tokio::select! {
        answer = unlent => assert_eq!(answer.unwrap().unwrap_err(), SamplingError::Failed("no model is selected".to_owned())),
        event = question_desk.next() => panic!("{event:?}"),
    }
}

#[tokio::test]
async fn questions_over_the_limit_are_refused() {
    let home = TestHome::new();
    let session = open_session(&home);
    let (mut question_desk, asker) = QuestionDesk::new(&session);
    let mut answers: Vec<_> = (0..MAX_QUESTIONS + 1).map(|_| permission(&*asker, "math")).collect();
    assert!(answers.pop().unwrap().await.is_err());
    for _ in 0..MAX_QUESTIONS {
        let message = question_desk.inbox.recv().await.unwrap();
        question_desk.on_message(message);
    }
    let surplus = permission(&*asker, "math");
    let message = question_desk.inbox.recv().await.unwrap();
    assert_eq!((question_desk.on_message(message), question_desk.waiting()), (None, MAX_QUESTIONS));
    assert!(surplus.await.is_err());
    drop(question_desk);
    assert!(answers.pop().unwrap().await.is_err());
}

/// A session in a project with two servers.
fn in_project(home: &TestHome) -> CommandSession {
    home.write(SHARED_CONFIG, r#"{"mcpServers":{"one":{"command":"/bin/true"},"two":{"command":"/bin/false"}}}"#);
    open_session(home)
}

/// A desk with approval questions for both servers.
async fn approving(session: &CommandSession) -> QuestionDesk<'_> {
    let (mut question_desk, _asker) = QuestionDesk::new(session);
    let config = session.configuration.config().unwrap();
    question_desk.ask_approvals(config.servers.clone(), Arc::clone(config));
    assert_eq!((question_desk.next().await, question_desk.waiting()), (DeskEvent::QuestionChanged, 2));
    question_desk
}

#[tokio::test]
async fn project_servers_are_asked_one_by_one_and_approvals_are_saved() {
    let home = TestHome::new();
    let session = in_project(&home);
    let mut question_desk = approving(&session).await;
    question_desk.on_input(line("later"));
    question_desk.on_input(line("y"));
    assert_eq!(question_desk.next().await, DeskEvent::Approved("two".to_owned()));
    let again = open_session(&home);
    let approved = |name: &str| again.configuration.config().unwrap().server(name).unwrap().approval;
    assert_eq!(approved("one"), wharf_config::ServerApproval::Needed);
    assert!(matches!(approved("two"), wharf_config::ServerApproval::Approved(_)));
}

#[tokio::test]
async fn stale_approval_question_is_withdrawn() {
    let home = TestHome::new();
    let session = in_project(&home);
    let mut question_desk = approving(&session).await;
    question_desk.withdraw_approvals(|server| server.name.as_str() == "one");
    assert_eq!((question_desk.next().await, question_desk.waiting()), (DeskEvent::QuestionChanged, 1));
    question_desk.on_input(line("y"));
    assert_eq!(question_desk.next().await, DeskEvent::Approved("two".to_owned()));
}

/// Handles events until no more arrive.
async fn settle(question_desk: &mut QuestionDesk<'_>) {
    while tokio::time::timeout(Duration::from_secs(1), question_desk.next()).await.is_ok() {}
}

#[tokio::test(start_paused = true)]
async fn changing_project_is_rate_limited() {
    let home = TestHome::new();
    let session = in_project(&home);
    let (mut question_desk, _asker) = QuestionDesk::new(&session);
    let change = |number: usize| {
        let servers = format!(r#"{{"mcpServers":{{"one":{{"command":"/bin/true","args":["{number}"]}}}}}}"#);
        home.write(SHARED_CONFIG, &servers);
        Arc::clone(open_session(&home).configuration.config().unwrap())
    };
    let mut questions = 0;
    for number in 0..60 {
        let config = change(number);
        question_desk
            .withdraw_approvals(|asked| !config.servers.iter().any(|server| is_same_definition(server, asked)));
        question_desk.ask_changed_approvals(config.servers.clone(), config);
        settle(&mut question_desk).await;
        assert!(question_desk.waiting() <= 1, "{} questions wait", question_desk.waiting());
        questions += question_desk.waiting();
    }
    // A round takes one second of the paused clock, so sixty take a minute.
    assert!((3..=4).contains(&questions), "{questions} questions");
    tokio::time::advance(Duration::from_secs(60)).await;
    let config = change(60);
    question_desk.ask_changed_approvals(config.servers.clone(), config);
    settle(&mut question_desk).await;
    assert_eq!(question_desk.waiting(), 1, "after a minute it is asked about again");
}

#[tokio::test(start_paused = true)]
async fn new_approval_question_replaces_the_old_one() {
    let home = TestHome::new();
    let session = in_project(&home);
    let (mut question_desk, _asker) = QuestionDesk::new(&session);
    let config = session.configuration.config().unwrap();
    // All at once: none has been handled when the next arrives.
    for _ in 0..3 {
        question_desk.ask_approvals(config.servers.clone(), Arc::clone(config));
    }
    settle(&mut question_desk).await;
    assert_eq!(question_desk.waiting(), 2);
    question_desk.ask_approvals(config.servers.clone(), Arc::clone(config));
    settle(&mut question_desk).await;
    assert_eq!(question_desk.waiting(), 2);
}

#[tokio::test]
async fn login_question_is_answered() {
    let home = TestHome::new();
    let session = open_session(&home);
    let (mut question_desk, asker) = QuestionDesk::new(&session);
    for (typed, expected) in [("y", ConsentAnswer::Given), ("", ConsentAnswer::Refused)] {
        let (reply, answer) = AskReply::pair();
        asker.ask(Ask::Login(LoginAsk::new(server("docs"), "https://a.example/authorize", "https://a.example"), reply));
        assert_eq!(question_desk.next().await, DeskEvent::QuestionChanged);
        question_desk.on_input(line(typed));
        assert_eq!(answer.await.unwrap(), expected);
    }
}
