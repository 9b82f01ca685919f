//! The rows of the crossing table beside questions: one function each, for every pair of eras and every transport.

mod impossible;
mod pages;
mod tasks;

use serde_json::{Value, json};
use wharf::wire::Era;

use crate::any_client::{Answered, AnyClient};
use crate::client::Transport;
use crate::fixture::{Fixture, text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    Progress,
    Cancel,
    Logging,
    ListChanged,
    ResourceUpdates,
    Results,
    Caching,
    MissingCapability,
    Batch,
    RemovedMethods,
    Page,
    PageError,
    Task,
    TaskCancelled,
    TaskQuestion,
    TaskFollowed,
    OutsideOfCalls,
    OtherMethods,
    ServerGone,
    OlderRevision,
    SameUri,
    ForeignAnswer,
}

pub const ROWS: [Row; 22] = [
    Row::Progress,
    Row::Cancel,
    Row::Logging,
    Row::ListChanged,
    Row::ResourceUpdates,
    Row::Results,
    Row::Caching,
    Row::MissingCapability,
    Row::Batch,
    Row::RemovedMethods,
    Row::Page,
    Row::PageError,
    Row::Task,
    Row::TaskCancelled,
    Row::TaskQuestion,
    Row::TaskFollowed,
    Row::OutsideOfCalls,
    Row::OtherMethods,
    Row::ServerGone,
    Row::OlderRevision,
    Row::SameUri,
    Row::ForeignAnswer,
];

/// One cell of a row.
#[derive(Debug, Clone, Copy)]
pub struct RowCell {
    pub row: Row,
    pub client: Era,
    pub server: Era,
    pub transport: Transport,
}

impl Row {
    /// Describes the row for the evidence.
    pub fn title(self) -> &'static str {
        match self {
            Self::Progress => "progress: the client's token, the last report always",
            Self::Cancel => "a cancelled call is cancelled at its server",
            Self::Logging => "log messages of the call, at the client's level",
            Self::ListChanged => "changed lists are announced and listed",
            Self::ResourceUpdates => "updates of a subscribed resource",
            Self::Results => "structured content that is not an object: dropped for L, its text stays",
            Self::Caching => "cache hints: dropped for L, the server's or none for M",
            Self::MissingCapability => "-32021 with its data",
            Self::Batch => "a batch of 2025-03-26 is split; M refuses it",
            Self::RemovedMethods => "`ping`, `logging/setLevel`, `resources/subscribe`: answered for L, -32601 for M",
            Self::Page => "URL elicitation: asked, accepted, `elicitation/complete`",
            Self::PageError => "-32042 of L: passed to L, a question for M; M asks",
            Self::Task => "a task: started, listed, waited for; unknown to another session",
            Self::TaskCancelled => "a cancelled task is cancelled at its server",
            Self::TaskQuestion => "a question within a task",
            Self::TaskFollowed => "a task that the client did not ask for is followed to its end",
            Self::OutsideOfCalls => "(a) a question outside of any call is cancelled",
            Self::OtherMethods => "(b) a question during another method is refused",
            Self::ServerGone => "(c) the server of a waiting call is gone: outcome unknown, never sent again",
            Self::OlderRevision => "(d) 2025-03-26, or nothing declared: not asked",
            Self::SameUri => "(e) the same URI of two servers",
            Self::ForeignAnswer => "(f) a foreign answer is ignored",
        }
    }
}

impl RowCell {
    pub fn describe(&self) -> String {
        let letter = |era| if era == Era::Handshake { 'L' } else { 'M' };
        let transport = format!("{:?}", self.transport).to_lowercase();
        format!("{:?} | {} → {} | {transport}", self.row, letter(self.client), letter(self.server))
    }

    pub async fn run(self) {
        let fixture = Fixture::with_features(self.server, self.transport).await;
        match self.row {
            Row::Progress => self.progress(&fixture).await,
            Row::Cancel => self.cancel(&fixture).await,
            Row::Logging => self.logging(&fixture).await,
            Row::ListChanged => self.list_changed(&fixture).await,
            Row::ResourceUpdates => self.resource_updates(&fixture).await,
            Row::Results => self.results(&fixture).await,
            Row::Caching => self.caching(&fixture).await,
            Row::MissingCapability => self.missing_capability(&fixture).await,
            Row::Batch => self.batch(&fixture).await,
            Row::RemovedMethods => self.removed_methods(&fixture).await,
            Row::Page => self.page(&fixture).await,
            Row::PageError => self.page_error(&fixture).await,
            Row::Task => self.task(&fixture).await,
            Row::TaskCancelled => self.task_cancelled(&fixture).await,
            Row::TaskQuestion => self.task_question(&fixture).await,
            Row::TaskFollowed => self.task_followed(&fixture).await,
            Row::OutsideOfCalls => self.outside_of_calls(&fixture).await,
            Row::OtherMethods => self.other_methods(&fixture).await,
            Row::ServerGone => self.server_gone(&fixture).await,
            Row::OlderRevision => self.older_revision(&fixture).await,
            Row::SameUri => self.same_uri(&fixture).await,
            Row::ForeignAnswer => self.foreign_answer(&fixture).await,
        }
        fixture.close().await;
    }

    async fn client(&self, fixture: &Fixture, capabilities: Value) -> AnyClient {
        AnyClient::open(fixture, self.client, capabilities).await
    }

    async fn progress(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, json!({})).await;
        let params = json!({"name": "s__progress", "arguments": {}, "_meta": {"progressToken": "own"}});
        let Answered { response, notifications } = client.call("tools/call", params).await;
        assert_eq!(text(&response), "done");
        assert!(notifications.iter().all(|message| message["method"] == "notifications/progress"), "{notifications:?}");
        let last = &notifications.last().expect("progress")["params"];
        assert_eq!((&last["progressToken"], &last["progress"], &last["total"]), (&json!("own"), &json!(3), &json!(3)));
        client.close().await;
    }

    async fn cancel(&self, fixture: &Fixture) {
        let call = json!({"name": "s__wait", "arguments": {}});
        match self.client(fixture, json!({})).await {
            AnyClient::Session(mut client) => {
                client.request(1, "tools/call", call).await;
                fixture.received.wait_for("tools/call").await;
                let params = json!({"requestId": 1, "reason": "enough"});
                client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
                fixture.received.wait_for("notifications/cancelled").await;
                client.close().await;
            }
            AnyClient::Stateless(mut client) => {
                let stream = client.open_stream("tools/call", call).await;
                fixture.received.wait_for("tools/call").await;
                stream.cancel().await;
                fixture.received.wait_for("notifications/cancelled").await;
                client.close().await;
            }
        }
        let sent = &fixture.received.all("tools/call")[0]["id"];
        let cancelled = &fixture.received.all("notifications/cancelled")[0]["params"]["requestId"];
        assert_eq!(sent, cancelled);
    }

    async fn logging(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, json!({})).await;
        match &mut client {
            AnyClient::Session(session) => {
                session.request(1, "logging/setLevel", json!({"level": "info"})).await;
                assert_eq!(session.response(1).await["result"], json!({}));
            }
            AnyClient::Stateless(stateless) => stateless.log_level = Some("info"),
        }
        let params = json!({"name": "s__log", "arguments": {}});
        let Answered { response, notifications } = client.call("tools/call", params).await;
        assert_eq!(text(&response), "logged");
        let data: Vec<&Value> = notifications.iter().map(|message| &message["params"]["data"]).collect();
        assert_eq!(data, [&json!("here")], "{notifications:?}");
        client.close().await;
    }

    async fn list_changed(&self, fixture: &Fixture) {
        let mut other = self.client(fixture, json!({})).await;
        match self.client(fixture, json!({})).await {
            AnyClient::Session(mut client) => {
                client.open_stream().await;
                assert_eq!(text(&other.tool("change").await), "changed");
                client.find(|message| message["method"] == "notifications/tools/list_changed").await;
                client.close().await;
            }
            AnyClient::Stateless(mut client) => {
                let listen = json!({"notifications": {"toolsListChanged": true}});
                let mut stream = client.open_stream("subscriptions/listen", listen).await;
                let granted = stream.next().await;
                assert_eq!(granted["params"]["notifications"], json!({"toolsListChanged": true}), "{granted}");
                assert_eq!(text(&other.tool("change").await), "changed");
                let changed = stream.find(|message| message["method"] == "notifications/tools/list_changed").await;
                let subscription = &changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
                assert_eq!(subscription, &granted["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]);
                stream.cancel().await;
                client.close().await;
            }
        }
        let list = other.call("tools/list", json!({})).await.response;
        assert!(list["result"]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "s__extra"), "{list}");
        other.close().await;
    }

    async fn resource_updates(&self, fixture: &Fixture) {
        let mut other = self.client(fixture, json!({})).await;
        let is_update = |message: &Value| message["method"] == "notifications/resources/updated";
        match self.client(fixture, json!({})).await {
            AnyClient::Session(mut client) => {
                client.open_stream().await;
                client.request(1, "resources/subscribe", json!({"uri": "f://plain"})).await;
                assert_eq!(client.response(1).await["result"], json!({}));
                assert_eq!(text(&other.tool("change").await), "changed");
                assert_eq!(client.find(is_update).await["params"]["uri"], "f://plain");
                client.close().await;
            }
            AnyClient::Stateless(mut client) => {
                let listen = json!({"notifications": {"resourceSubscriptions": ["f://plain"]}});
                let mut stream = client.open_stream("subscriptions/listen", listen).await;
                assert_eq!(stream.next().await["method"], "notifications/subscriptions/acknowledged");
                assert_eq!(text(&other.tool("change").await), "changed");
                assert_eq!(stream.find(is_update).await["params"]["uri"], "f://plain");
                stream.cancel().await;
                client.close().await;
            }
        }
        other.close().await;
    }

    async fn results(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, json!({})).await;
        let response = client.tool("array").await;
        assert_eq!(text(&response), "[1,2]");
        match self.client {
            Era::Handshake => assert!(response["result"]["structuredContent"].is_null(), "{response}"),
            Era::Stateless => {
                assert_eq!(response["result"]["structuredContent"], json!([1, 2]));
                assert_eq!(response["result"]["resultType"], "complete");
            }
        }
        client.close().await;
    }

    async fn caching(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, json!({})).await;
        let read = client.call("resources/read", json!({"uri": "f://plain"})).await.response["result"].clone();
        let list = client.call("tools/list", json!({})).await.response["result"].clone();
        let hints = |result: &Value| (result["ttlMs"].clone(), result["cacheScope"].clone());
        let private = (json!(0), json!("private"));
        match (self.client, self.server) {
            (Era::Handshake, _) => {
                assert_eq!((hints(&read), hints(&list)), ((Value::Null, Value::Null), (Value::Null, Value::Null)));
            }
            (Era::Stateless, Era::Handshake) => assert_eq!((hints(&read), hints(&list)), (private.clone(), private)),
            (Era::Stateless, Era::Stateless) => {
                assert_eq!((hints(&read), hints(&list)), ((json!(5000), json!("public")), private));
            }
        }
        client.close().await;
    }

    async fn missing_capability(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, json!({})).await;
        let error = client.tool("error").await["error"].clone();
        assert_eq!(
            (&error["code"], &error["data"]),
            (&json!(-32021), &json!({"requiredCapabilities": {"sampling": {}}}))
        );
        client.close().await;
        let mut client = self.client(fixture, json!({"sampling": {}})).await;
        assert_eq!(text(&client.tool("error").await), "can sample");
        client.close().await;
    }

    async fn batch(&self, fixture: &Fixture) {
        let call = json!({"name": "s__plain", "arguments": {}});
        let batch = json!([
            {"jsonrpc": "2.0", "id": 7, "method": "ping"},
            {"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": call},
        ]);
        if self.client == Era::Stateless {
            let mut client = fixture.stateless(json!({}));
            client.call("tools/list", json!({})).await;
            let refused = client.send_raw(batch).await;
            assert_eq!(refused["error"]["code"], -32600, "{refused}");
            return client.close().await;
        }
        let mut client = fixture.session_at("2025-03-26", json!({})).await;
        client.send(batch).await;
        let answers = client.find(Value::is_array).await;
        let mut ids: Vec<u64> =
            answers.as_array().unwrap().iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [7, 8]);
        client.close().await;
    }

    async fn removed_methods(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, json!({})).await;
        for (method, params) in [
            ("ping", json!({})),
            ("logging/setLevel", json!({"level": "error"})),
            ("resources/subscribe", json!({"uri": "f://plain"})),
        ] {
            let response = client.call(method, params).await.response;
            match self.client {
                Era::Handshake => assert_eq!(response["result"], json!({}), "{method}"),
                Era::Stateless => assert_eq!(response["error"]["code"], -32601, "{method}"),
            }
        }
        client.close().await;
    }
}

fn retry(mut params: Value, asked: &Value, answer: Value) -> Value {
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap();
    params["inputResponses"] = json!({ key: answer });
    params["requestState"] = asked["result"]["requestState"].clone();
    params
}

/// Returns all cells.
pub fn cells() -> Vec<RowCell> {
    let mut cells = Vec::new();
    for row in ROWS {
        for (client, server) in crate::matrix::ERAS {
            for transport in crate::matrix::transports(client) {
                cells.push(RowCell { row, client, server, transport });
            }
        }
    }
    cells
}
