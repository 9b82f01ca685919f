//! Model test of the engine: for any order of calls, responses, malformed messages, drops, deadlines and disconnection,
//! each call has exactly one outcome, and it is its own.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;
use wharf_spec::Redactor;
use wharf_wire::Revision;

use super::{
    CallEffect, CallRequest, CancelPolicy, Engine, HeaderFields, Link, OutgoingMessage, PendingCall, RawResult,
    SubmitError, Ticket,
};
use crate::era::ProtocolState;
use crate::error::{CallError, DisconnectCause, DisconnectReport};
use crate::limits::Limits;
use crate::notifications::NotificationHub;
use crate::server_requests::ServerRequestHandler;
use crate::services::ClientServices;
use crate::tap::WireObserver;

/// A link that records its messages. Messages with an even ticket may have been sent.
#[derive(Default)]
struct RecordingLink(Mutex<Vec<String>>);

impl Link for RecordingLink {
    fn submit(&self, message: OutgoingMessage<'_>) -> Result<Ticket, SubmitError> {
        let mut lines = self.0.lock().unwrap();
        lines.push(String::from_utf8(message.parts.concat()).unwrap());
        Ok(Ticket(lines.len() as u64 - 1))
    }

    fn may_have_been_sent(&self, ticket: Ticket) -> bool {
        ticket.0.is_multiple_of(2)
    }

    fn wake(&self) {}
}

#[derive(Debug, Clone)]
enum EngineEvent {
    Call {
        may_write: bool,
    },
    /// Responds to the nth pending call; `how` selects the form of the response.
    Answer {
        which: usize,
        how: SimulatedResponse,
    },
    /// A response to a call that has ended or never existed.
    Stray(u64),
    Drop(usize),
    Progress(usize),
    Expire,
    Lose,
}

#[derive(Debug, Clone, Copy)]
enum SimulatedResponse {
    Result,
    Error,
    Both,
    UnknownType,
    Truncated,
    TextId,
}

fn event() -> impl Strategy<Value = EngineEvent> {
    let how = prop_oneof![
        4 => Just(SimulatedResponse::Result), 1 => Just(SimulatedResponse::Error), 1 => Just(SimulatedResponse::Both),
        1 => Just(SimulatedResponse::UnknownType), 1 => Just(SimulatedResponse::Truncated), 1 => Just(SimulatedResponse::TextId),
    ];
    prop_oneof![
        6 => any::<bool>().prop_map(|may_write| EngineEvent::Call { may_write }),
        6 => (0usize..8, how).prop_map(|(which, how)| EngineEvent::Answer { which, how }),
        2 => (0u64..(1 << 22)).prop_map(EngineEvent::Stray),
        2 => (0usize..8).prop_map(EngineEvent::Drop),
        1 => (0usize..8).prop_map(EngineEvent::Progress),
        1 => Just(EngineEvent::Expire),
        1 => Just(EngineEvent::Lose),
    ]
}

/// A call without an observed outcome.
struct TrackedCall {
    call: Pin<Box<PendingCall>>,
    may_write: bool,
    ticket: u64,
    /// The expected outcome, once it is determined.
    expected: Option<&'static str>,
}

struct EngineModel {
    engine: Arc<Engine>,
    link: Arc<RecordingLink>,
    calls: BTreeMap<u64, TrackedCall>,
    closed: bool,
}

impl EngineModel {
    fn new() -> Self {
        Self::with_redactor(Redactor::default())
    }

    fn with_redactor(redactor: Redactor) -> Self {
        let link = Arc::new(RecordingLink::default());
        let request_handler =
            ServerRequestHandler::new("model".to_owned(), ClientServices::default(), Limits::default(), Arc::default());
        let protocol = Arc::new(ProtocolState::new(request_handler, NotificationHub::default(), None));
        protocol.set_revision(Revision::LATEST_STATELESS);
        let observer = WireObserver { redactor: Arc::new(redactor), ..WireObserver::default() };
        let limits = Limits::default();
        let budget = limits.memory_budget_in_all.for_server(limits.memory_budget);
        let engine = Engine::new(observer, link.clone(), protocol, limits, budget);
        Self { engine, link, calls: BTreeMap::new(), closed: false }
    }

    fn waiting(&self, which: usize) -> Option<u64> {
        let waiting: Vec<u64> =
            self.calls.iter().filter(|(_, call)| call.expected.is_none()).map(|(id, _)| *id).collect();
        (!waiting.is_empty()).then(|| waiting[which % waiting.len()])
    }

    fn expect_outcome(&mut self, id: u64, word: &'static str) {
        self.calls.get_mut(&id).unwrap().expected = Some(word);
    }

    fn step(&mut self, event: &EngineEvent) {
        let mut wakers = Vec::new();
        match *event {
            EngineEvent::Call { may_write } => self.call(may_write),
            EngineEvent::Answer { which, how } => {
                let Some(id) = self.waiting(which) else { return };
                let (line, word) = response_line(id, how);
                self.engine.deliver(line.as_bytes(), &mut wakers).unwrap();
                self.expect_outcome(id, word);
                // A second response changes nothing.
                let again = format!(r#"{{"id":{id},"error":{{"code":1,"message":"again"}}}}"#);
                self.engine.deliver(again.as_bytes(), &mut wakers).unwrap();
            }
            EngineEvent::Stray(id) => {
                if !self.calls.contains_key(&id) {
                    self.engine.deliver(format!(r#"{{"id":{id},"result":{{}}}}"#).as_bytes(), &mut wakers).unwrap();
                }
            }
            EngineEvent::Drop(which) => {
                let Some(id) = self.waiting(which) else { return };
                drop(self.calls.remove(&id));
                let told = self
                    .link
                    .0
                    .lock()
                    .unwrap()
                    .iter()
                    .any(|line| line.contains("cancelled") && line.contains(&format!(":{id},")));
                assert!(told, "the server was not told");
                self.engine.deliver(format!(r#"{{"id":{id},"result":{{}}}}"#).as_bytes(), &mut wakers).unwrap();
            }
            EngineEvent::Progress(which) => {
                let Some(id) = self.waiting(which) else { return };
                let line =
                    format!(r#"{{"method":"notifications/progress","params":{{"progressToken":{id},"progress":1}}}}"#);
                self.engine.deliver(line.as_bytes(), &mut wakers).unwrap();
            }
            EngineEvent::Expire => {
                self.engine.expire(Instant::now() + Duration::from_secs(3600), &mut wakers);
                while let Some(id) = self.waiting(0) {
                    self.expect_outcome(id, "timeout");
                }
            }
            EngineEvent::Lose => {
                self.engine.close(DisconnectReport {
                    cause: DisconnectCause::Exited,
                    exit: None,
                    stderr: Vec::new(),
                    hint: None,
                });
                self.closed = true;
                while let Some(id) = self.waiting(0) {
                    let made = &self.calls[&id];
                    let unknown = made.may_write && made.ticket.is_multiple_of(2);
                    self.expect_outcome(id, if unknown { "unknown" } else { "gone" });
                }
            }
        }
    }

    fn call(&mut self, may_write: bool) {
        let reserved = self.engine.reserve(CallRequest {
            timeout: Duration::from_secs(30),
            timeout_max: Duration::from_secs(60),
            progress: None,
            effect: if may_write { CallEffect::MayWrite } else { CallEffect::Reads },
            cancel_policy: CancelPolicy::Withdraw,
            tag: None,
        });
        let Ok(reserved) = reserved else { return assert!(self.closed, "refused while the server is there") };
        assert!(!self.closed, "taken after the server was lost");
        let id = reserved.id_text();
        let ticket = self.link.0.lock().unwrap().len() as u64;
        let call = self.engine.send(reserved, HeaderFields::default(), &[b"request ", id.text()]).unwrap();
        let id: u64 = std::str::from_utf8(id.text()).unwrap().parse().unwrap();
        let made = TrackedCall { call: Box::pin(call), may_write, ticket, expected: None };
        assert!(self.calls.insert(id, made).is_none(), "an id was used again");
    }

    /// Checks that every call is in the state of the model.
    fn check(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        let mut ended = Vec::new();
        for (id, made) in &mut self.calls {
            match (made.call.as_mut().poll(&mut context), made.expected) {
                (Poll::Pending, None) => {}
                (Poll::Ready(outcome), Some(word)) => {
                    assert_eq!(outcome_name(*id, &outcome), word);
                    ended.push(*id);
                }
                (Poll::Pending, Some(word)) => panic!("call {id} should have ended as {word}"),
                (Poll::Ready(outcome), None) => panic!("call {id} ended by itself as {}", outcome_name(*id, &outcome)),
            }
        }
        for id in ended {
            self.calls.remove(&id);
        }
    }
}

fn response_line(id: u64, how: SimulatedResponse) -> (String, &'static str) {
    match how {
        SimulatedResponse::Result => (format!(r#"{{"result":{{"own":{id}}},"id":{id}}}"#), "result"),
        SimulatedResponse::Error => (format!(r#"{{"id":{id},"error":{{"code":-1,"message":"no"}}}}"#), "refused"),
        SimulatedResponse::Both => (format!(r#"{{"id":{id},"result":{{}},"error":{{}}}}"#), "protocol"),
        SimulatedResponse::UnknownType => (format!(r#"{{"id":{id},"result":{{"resultType":"x"}}}}"#), "protocol"),
        SimulatedResponse::Truncated => (format!(r#"{{"id":{id},"result":{{"own""#), "protocol"),
        SimulatedResponse::TextId => (format!(r#"{{"id":"{id}","result":{{"own":{id}}}}}"#), "result"),
    }
}

fn outcome_name(id: u64, outcome: &Result<RawResult, CallError>) -> &'static str {
    match outcome {
        Ok(answer) if answer.result.as_str() == format!(r#"{{"own":{id}}}"#) => "result",
        Ok(_) => "another call's result",
        Err(CallError::ErrorResponse(_)) => "refused",
        Err(CallError::Protocol(_)) => "protocol",
        Err(CallError::TimedOut { .. }) => "timeout",
        Err(CallError::RetryableDisconnect(_)) => "gone",
        Err(CallError::OutcomeUnknown(_)) => "unknown",
        Err(_) => "other",
    }
}

fn model_with_secrets(secrets: &[&str]) -> EngineModel {
    let mut redactor = Redactor::default();
    secrets.iter().for_each(|secret| redactor.add(secret));
    EngineModel::with_redactor(redactor)
}

#[test]
fn only_server_text_in_anomalies_is_redacted() {
    let world = model_with_secrets(&["server", "message", "hushhush"]);
    let lose = |world: &EngineModel| {
        let gone = DisconnectReport {
            hint: world.engine.last_anomaly(),
            ..DisconnectReport::from_cause(DisconnectCause::Exited)
        };
        world.engine.redact_report(gone).hint.clone()
    };
    for (line, expected) in [
        ("a server: hushhush", "server wrote a line to stdout that is not a message: a ***: ***"),
        (
            r#"{"error":{"code":1,"message":"no server"}}"#,
            "server reported an error without a request id: no *** (code 1)",
        ),
    ] {
        world.engine.deliver(line.as_bytes(), &mut Vec::new()).unwrap();
        assert_eq!(world.engine.last_anomaly().as_deref(), Some(expected));
        assert_eq!(lose(&world).as_deref(), Some(expected));
    }
    world.engine.deliver(br#"{"x":"server""#, &mut Vec::new()).unwrap();
    let told = world.engine.last_anomaly().unwrap();
    assert!(told.starts_with("server sent a malformed message: ") && told.contains("***"), "{told}");
    let said = DisconnectReport {
        hint: Some("it said: hushhush".to_owned()),
        ..DisconnectReport::from_cause(DisconnectCause::Exited)
    };
    assert_eq!(world.engine.redact_report(said).hint.as_deref(), Some("it said: ***"));
}

#[test]
fn progress_messages_are_redacted() {
    let (world, told) = (model_with_secrets(&["hushhush"]), Arc::new(Mutex::new(Vec::new())));
    let heard = told.clone();
    let reserved = world.engine.reserve(CallRequest {
        timeout: Duration::from_secs(30),
        timeout_max: Duration::from_secs(60),
        progress: Some(Arc::new(move |progress| heard.lock().unwrap().push(progress.message))),
        effect: CallEffect::Reads,
        cancel_policy: CancelPolicy::Withdraw,
        tag: None,
    });
    let reserved = reserved.unwrap();
    for (at, message) in ["at hushhush", "at hushhus"].into_iter().enumerate() {
        let params = format!(r#"{{"progressToken":{},"progress":{at},"message":"{message}"}}"#, reserved.call_id());
        let line = format!(r#"{{"method":"notifications/progress","params":{params}}}"#);
        world.engine.deliver(line.as_bytes(), &mut Vec::new()).unwrap();
    }
    assert_eq!(*told.lock().unwrap(), [Some("at ***".to_owned()), Some("at ***".to_owned())]);
}

#[test]
fn call_without_a_practical_timeout_is_accepted() {
    let world = EngineModel::new();
    let request = CallRequest {
        timeout: Duration::MAX,
        timeout_max: Duration::MAX,
        progress: None,
        effect: CallEffect::Reads,
        cancel_policy: CancelPolicy::Withdraw,
        tag: None,
    };
    assert!(world.engine.reserve(request).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_gets_exactly_one_outcome_of_its_own(events in prop::collection::vec(event(), 0..60)) {
        let mut world = EngineModel::new();
        for event in &events {
            world.step(event);
            world.check();
        }
    }
}
