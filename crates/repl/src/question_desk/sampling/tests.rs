use super::*;
use std::sync::Arc;

use tokio::sync::mpsc;
use wharf_agent::{ApiFormat, ModelProvider};
use wharf_net::{Net, NetOptions};
use wharf_spec::ServerName;
use wharf_testkit::modeld::{self, Modeld, Script};
use wharf_wire::View as _;

use crate::question_desk::DeskMessage;
use wharf_terminal::console::OutputMode;
use wharf_terminal::question::DialogInput;

fn request(text: &str) -> SamplingRequest {
    SamplingRequest::from_raw(RawJson::parse(text.to_owned()).unwrap(), &JsonLimits::default()).unwrap()
}

const AHOY: &str = r#"{"maxTokens":50,"systemPrompt":"Be brief.","messages":[
    {"role":"user","content":{"type":"text","text":"Ahoy"}},
    {"role":"assistant","content":[{"type":"text","text":"Aye?"}]},
    {"role":"user","content":[{"type":"image","mimeType":"image/png","data":"aGk="},{"type":"text","text":"What?"}]}]}"#;

#[test]
fn request_is_converted_to_a_conversation() {
    let conversation = parse_conversation(&request(AHOY)).unwrap();
    assert_eq!(
        format_conversation(&conversation),
        "system: Be brief.\n\nuser: Ahoy\n\nassistant: Aye?\n\nuser: [image: image/png, 4 characters of Base64]\nWhat?"
    );
    assert_eq!(conversation.turns[2].blocks.len(), 2);
    for (messages, why) in [
        ("[]", "the request has no messages"),
        (r#"[{"role":"user","content":{"type":"audio","data":"","mimeType":"a/b"}}]"#, "only text and image content"),
        (r#"[{"role":"user","content":{"type":"text"}}]"#, "incomplete"),
        (r#"[{"role":"system","content":{"type":"text","text":"x"}}]"#, "system"),
    ] {
        let refused = parse_conversation(&request(&format!(r#"{{"maxTokens":1,"messages":{messages}}}"#))).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
}

/// Answers the desk's questions with these lines in order. Returns the output.
async fn person(mut inbox: mpsc::Receiver<DeskMessage>, lines: &[&str]) -> Vec<String> {
    let mut shown = Vec::new();
    for line in lines {
        let Some(DeskMessage::Question(mut question)) = inbox.recv().await else { panic!("no question for {line}") };
        shown.push(anstream::adapter::strip_str(&question.begin()).to_string());
        assert_eq!(question.on_input(DialogInput::Line((*line).to_owned())), None);
    }
    shown
}

fn sender() -> (QuestionSender, mpsc::Receiver<DeskMessage>) {
    let (inbox, messages) = mpsc::channel(4);
    (QuestionSender { inbox, samples: Arc::default() }, messages)
}

fn console() -> Console {
    Console::new(OutputMode { json: false, debug: false, info: false, color: anstream::ColorChoice::Never })
}

async fn model(api: &Modeld) -> Model {
    let provider = ModelProvider {
        format: ApiFormat::ChatCompletions,
        base_url: url::Url::parse(&api.url()).unwrap(),
        key: None,
        model: "small".to_owned(),
        max_tokens: 4096,
        headers: Vec::new(),
    };
    Model::new(provider, Net::open(&NetOptions::default()).await.unwrap()).unwrap()
}

fn ask() -> SamplingAsk {
    SamplingAsk { server: ServerName::new("demo").unwrap(), call: None, request: request(AHOY) }
}

#[tokio::test]
async fn sampling_requires_consent_before_and_after() {
    for (lines, answer) in [
        (
            &["y", "y"][..],
            Ok(
                r#"{"content":{"text":"High water at six.","type":"text"},"model":"small","role":"assistant","stopReason":"endTurn"}"#,
            ),
        ),
        (&["y", "n"], Err(SamplingError::Declined)),
        (&["n"], Err(SamplingError::Declined)),
    ] {
        let script = Script { keyless: true, ..Script::from_turns([modeld::Answer::text("High water at six.")]) };
        let api = Modeld::start(script).unwrap();
        let ((sender, messages), (reply, answered)) = (sender(), AskReply::pair());
        let (console, model, ask) = (console(), model(&api).await, ask());
        let (shown, ()) = tokio::join!(person(messages, lines), sample(&sender, &console, &model, &ask, reply));
        assert_eq!(answered.await.unwrap().as_ref().map(|raw| raw.as_str()), answer.as_ref().map(|text| &**text));
        assert!(shown[0].contains("demo requests a completion from small: 3 messages, at most 50 tokens"), "{shown:?}");
        assert!(shown.get(1).is_none_or(|review| review.contains("│ High water at six.")), "{shown:?}");
        assert_eq!((api.requests().len(), api.refusals()), (usize::from(lines[0] == "y"), Vec::new()));
        let limits: Vec<_> = api.requests().iter().map(|sent| sent.body["max_tokens"].clone()).collect();
        assert!(limits.iter().all(|limit| *limit == 50), "{limits:?}");
    }
}

#[tokio::test]
async fn withdrawn_request_ends_sampling() {
    let api = Modeld::start(Script::from_turns([])).unwrap();
    let ((sender, mut messages), (reply, answered)) = (sender(), AskReply::pair());
    let (console, model, ask) = (console(), model(&api).await, ask());
    let leaving = async {
        let Some(DeskMessage::Question(question)) = messages.recv().await else { panic!("no question arrived") };
        drop(answered);
        question
    };
    let (question, ()) = tokio::join!(leaving, sample(&sender, &console, &model, &ask, reply));
    assert!(!question.has_receiver());
}
