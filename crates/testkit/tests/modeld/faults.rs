//! Everything that goes wrong on purpose.

use serde_json::{Value, json};
use wharf_testkit::modeld::{Answer, AnswerFailure, ModelApiFormat, Pace};

use crate::client::{ask, open, saying, stream};
use crate::start;

fn streamed(format: ModelApiFormat) -> Value {
    let mut request = saying(format, "hi");
    request["stream"] = json!(true);
    request
}

#[test]
fn a_status_comes_with_its_error_and_when_to_come_again() {
    for (format, status, kind) in [
        (ModelApiFormat::Anthropic, 429, "rate_limit_error"),
        (ModelApiFormat::Anthropic, 529, "overloaded_error"),
        (ModelApiFormat::Anthropic, 500, "api_error"),
        (ModelApiFormat::ChatCompletions, 429, "requests"),
        (ModelApiFormat::Responses, 503, "server_error"),
    ] {
        let modeld = start([Answer::fail(AnswerFailure::Status(status, Some("7".to_owned()))), Answer::text("now")]);
        let reply = ask(&modeld, format, &streamed(format));
        assert_eq!((reply.status, reply.header("retry-after")), (status, Some("7")));
        assert_eq!(reply.json()["error"]["type"], kind);
        assert_eq!(ask(&modeld, format, &saying(format, "hi")).status, 200);
    }
}

#[test]
fn an_error_comes_in_place_of_the_end() {
    for (format, pointer, expected) in [
        (ModelApiFormat::Anthropic, "/error/type", "overloaded_error"),
        (ModelApiFormat::ChatCompletions, "/error/type", "server_error"),
        (ModelApiFormat::Responses, "/response/error/code", "server_error"),
    ] {
        let answer = Answer { fail: Some(AnswerFailure::ErrorEvent), ..Answer::text("half") };
        let modeld = start([answer.clone(), answer]);
        let events = stream(&modeld, format, &saying(format, "hi"));
        assert_eq!(events.last().unwrap().pointer(pointer), Some(&json!(expected)));
        assert!(events.iter().any(|event| event.to_string().contains("half")));
        assert!(ask(&modeld, format, &saying(format, "hi")).status >= 500);
    }
}

#[test]
fn a_connection_ends_at_its_byte() {
    for format in ModelApiFormat::ALL {
        for request in [streamed(format), saying(format, "hi")] {
            let modeld = start([Answer { fail: Some(AnswerFailure::CutAfter(25)), ..Answer::text("long enough") }]);
            let reply = ask(&modeld, format, &request);
            assert_eq!((reply.body.len(), reply.is_whole), (25, false), "{reply:?}");
        }
    }
}

#[test]
fn garbage_is_no_answer_and_hanging_is_none_at_all() {
    for format in ModelApiFormat::ALL {
        let modeld = start([Answer::fail(AnswerFailure::Garbage), Answer::fail(AnswerFailure::Hang)]);
        let reply = ask(&modeld, format, &streamed(format));
        assert!(reply.status == 200 && reply.body.contains("Bad Gateway"));
        let stream = open(&modeld, format, &streamed(format));
        modeld.expect_request(2);
        drop(stream);
        modeld.expect_disconnect(2);
    }
}

#[test]
fn the_size_of_writes_and_deltas_changes_nothing_else() {
    for format in ModelApiFormat::ALL {
        let pace = Pace { delta: 1, write: Some(1), hold: None };
        let modeld = start([Answer { pace, ..Answer::text("grüße") }, Answer::text("grüße")]);
        let (slow, fast) = (stream(&modeld, format, &saying(format, "hi")), stream(&modeld, format, &streamed(format)));
        assert_eq!(slow.len(), fast.len() + 4);
    }
}
