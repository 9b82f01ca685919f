//! Log lines of concurrent calls are told apart by the span they are in.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::Barrier;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use wharf_client::{
    ClosureServer, ConnectOptions, Direction, RequestOptions, Tap, TappedMessage, ToolReply, connect_local,
};
use wharf_wire::RawJson;

/// Name and fields of a span.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SeenSpan {
    name: String,
    fields: BTreeMap<String, String>,
}

impl Visit for SeenSpan {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

/// Records each event with the span it is in. For one thread.
#[derive(Clone, Default)]
struct Recorder {
    spans: Arc<Mutex<BTreeMap<u64, SeenSpan>>>,
    entered: Arc<Mutex<Vec<u64>>>,
    events: Arc<Mutex<Vec<(Value, SeenSpan)>>>,
    last: Arc<AtomicU64>,
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("wharf") || metadata.target() == "spans"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut seen = SeenSpan { name: span.metadata().name().to_owned(), ..SeenSpan::default() };
        span.record(&mut seen);
        self.spans.lock().unwrap().insert(id, seen);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(self.spans.lock().unwrap().get_mut(&span.into_u64()).unwrap());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = SeenSpan::default();
        event.record(&mut line);
        let Some(text) = line.fields.get("text").filter(|_| event.metadata().target() == "spans") else { return };
        let current = self.entered.lock().unwrap().last().copied().unwrap_or_default();
        let span = self.spans.lock().unwrap().get(&current).cloned().unwrap_or_default();
        self.events.lock().unwrap().push((serde_json::from_str(text).unwrap(), span));
    }

    fn enter(&self, span: &Id) {
        self.entered.lock().unwrap().push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let mut entered = self.entered.lock().unwrap();
        let last = entered.iter().rposition(|entered| *entered == span.into_u64()).unwrap();
        entered.remove(last);
    }
}

/// Logs every message.
struct LoggingTap;

impl Tap for LoggingTap {
    fn message(&self, passing: &TappedMessage<'_>) {
        let text = String::from_utf8_lossy(passing.bytes);
        match passing.direction {
            Direction::Sent => tracing::debug!(target: "spans", %text, "sent"),
            Direction::Received => tracing::debug!(target: "spans", %text, "received"),
        }
    }
}

/// A server that answers a call only when the other one has arrived as well.
fn paired() -> ClosureServer {
    let both = Arc::new(Barrier::new(2));
    let mut server = ClosureServer::new("paired", "1");
    for tool in ["one", "two"] {
        let both = both.clone();
        server = server.tool(tool, "Waits for the other.", json!({ "type": "object" }), move |_| {
            let both = both.clone();
            async move {
                both.wait().await;
                Ok(ToolReply::text("done"))
            }
        });
    }
    server
}

#[tokio::test]
async fn lines_of_concurrent_calls_have_their_own_server_tool_and_id() {
    let recorder = Recorder::default();
    let _default = tracing::subscriber::set_default(recorder.clone());
    let mut options = ConnectOptions::default();
    options.name = "pair".to_owned();
    options.tap = Some(Arc::new(LoggingTap));
    let connection = connect_local(paired(), options).await.unwrap();
    let arguments = RawJson::empty_object();
    let call = |tool| connection.call_tool(tool, &arguments, RequestOptions::default());
    let (one, two) = tokio::join!(call("one"), call("two"));
    one.and(two).unwrap();

    let events = recorder.events.lock().unwrap().clone();
    let sent = |method: &str| events.iter().filter(|(message, _)| message["method"] == method).collect::<Vec<_>>();
    let calls = sent("tools/call");
    assert_eq!(calls.len(), 2, "{events:?}");
    for (message, span) in &calls {
        let field = |name: &str| span.fields.get(name).map(String::as_str);
        assert_eq!((span.name.as_str(), field("server")), ("call", Some("pair")));
        assert_eq!((field("method"), field("tool")), (Some("tools/call"), message["params"]["name"].as_str()));
        assert_eq!(field("id").map(str::to_owned), Some(message["id"].to_string()));
    }
    assert_ne!(calls[0].1, calls[1].1);
    let (_, negotiation) = sent("server/discover")[0];
    assert_eq!((negotiation.name.as_str(), negotiation.fields["server"].as_str()), ("connection", "pair"));
}
