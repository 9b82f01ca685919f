//! The rows of the crossing table beside questions: one function each, for every pair of eras and every transport.

use serde_json::{Value, json};
use wharf::wire::Era;

use crate::any_client::{Answered, AnyClient};
use crate::client::Transport;
use crate::fixture::{Fixture, text};

const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
const TASKS: &str = "io.modelcontextprotocol/tasks";

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

    async fn page(&self, fixture: &Fixture) {
        let pages = json!({"elicitation": {"form": {}, "url": {}}});
        let call = json!({"name": "s__page", "arguments": {}});
        match self.client(fixture, pages).await {
            AnyClient::Session(mut client) => {
                client.request(1, "tools/call", call).await;
                let question = client.question().await;
                let params = &question["params"];
                assert_eq!((&params["mode"], &params["url"]), (&json!("url"), &json!("https://harbour.example/form")));
                client.respond(&question, Ok(json!({"action": "accept"}))).await;
                let done = client.find(|message| message["method"] == "notifications/elicitation/complete").await;
                assert_eq!(done["params"]["elicitationId"], params["elicitationId"]);
                assert!(params["elicitationId"].is_string());
                assert_eq!(text(&client.response(1).await), r#"{"action":"accept"}"#);
                client.close().await;
            }
            AnyClient::Stateless(mut client) => {
                let asked = client.call("tools/call", call.clone()).await;
                assert_eq!(only_request(&asked)["params"]["mode"], "url");
                let retry = retry(call, &asked, json!({"action": "accept"}));
                assert_eq!(text(&client.call("tools/call", retry).await), r#"{"action":"accept"}"#);
                client.close().await;
            }
        }
    }

    async fn page_error(&self, fixture: &Fixture) {
        let pages = json!({"elicitation": {"form": {}, "url": {}}});
        let call = json!({"name": "s__page-error", "arguments": {}});
        let done = if self.server == Era::Handshake { "visited" } else { r#"{"action":"accept"}"# };
        match self.client(fixture, pages).await {
            AnyClient::Session(mut client) if self.server == Era::Handshake => {
                client.request(1, "tools/call", call.clone()).await;
                let error = client.response(1).await["error"].clone();
                assert_eq!(error["code"], -32042);
                assert_eq!(error["data"]["elicitations"][0]["elicitationId"], "e-1");
                client.request(2, "tools/call", call).await;
                assert_eq!(text(&client.response(2).await), done);
                client.close().await;
            }
            AnyClient::Session(mut client) => {
                client.request(1, "tools/call", call).await;
                let question = client.question().await;
                client.respond(&question, Ok(json!({"action": "accept"}))).await;
                assert_eq!(text(&client.response(1).await), done);
                client.close().await;
            }
            AnyClient::Stateless(mut client) => {
                let asked = client.call("tools/call", call.clone()).await;
                assert_eq!(only_request(&asked)["params"]["url"], "https://harbour.example/form");
                let retry = retry(call, &asked, json!({"action": "accept"}));
                assert_eq!(text(&client.call("tools/call", retry).await), done);
                client.close().await;
            }
        }
    }

    /// Starts a task and returns its id.
    async fn start_task(&self, client: &mut AnyClient, tool: &str) -> String {
        let mut params = json!({"name": format!("s__{tool}"), "arguments": {}});
        if self.client == Era::Handshake {
            params["task"] = json!({"ttl": 30000});
        }
        let result = client.call("tools/call", params).await.response["result"].clone();
        let task = if self.client == Era::Handshake { &result["task"] } else { &result };
        if self.client == Era::Stateless {
            assert_eq!(result["resultType"], "task", "{result}");
        }
        let id = task["taskId"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned();
        assert!(!id.contains("up-") && task["createdAt"].is_string() && task["lastUpdatedAt"].is_string(), "{task}");
        id
    }

    /// Polls a task until it has a status.
    async fn poll(&self, client: &mut AnyClient, id: &str, status: &str) -> Value {
        for _ in 0..600 {
            let task = client.call("tasks/get", json!({"taskId": id})).await.response["result"].clone();
            if task["status"] == status {
                return task;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("the task is never {status}");
    }

    fn task_capabilities() -> Value {
        json!({"elicitation": {}, "extensions": {TASKS: {}}})
    }

    async fn task(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, Self::task_capabilities()).await;
        let id = self.start_task(&mut client, "job").await;
        let done = r#""done""#;
        match self.client {
            Era::Handshake => {
                let waited = client.call("tasks/result", json!({"taskId": id})).await.response;
                assert_eq!(text(&waited), done);
                assert_eq!(waited["result"]["_meta"][RELATED_TASK]["taskId"], id.as_str(), "{waited}");
                let task = client.call("tasks/get", json!({"taskId": id})).await.response["result"].clone();
                assert_eq!((&task["status"], &task["ttl"]), (&json!("completed"), &json!(30000)));
                let list = client.call("tasks/list", json!({})).await.response["result"]["tasks"].clone();
                // Another description of the same task: its id is sealed again.
                assert_eq!((list.as_array().unwrap().len(), &list[0]["status"]), (1, &json!("completed")));
                let mut other = self.client(fixture, Self::task_capabilities()).await;
                for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
                    let refused = other.call(method, json!({"taskId": id})).await.response;
                    assert_eq!(refused["error"]["code"], -32602, "{method}");
                }
                assert_eq!(other.call("tasks/list", json!({})).await.response["result"]["tasks"], json!([]));
                other.close().await;
            }
            Era::Stateless => {
                let task = self.poll(&mut client, &id, "completed").await;
                assert_eq!((text(&task), &task["resultType"]), (done.to_owned(), &json!("complete")));
                let refused = client.call("tasks/get", json!({"taskId": "up-1"})).await.response;
                assert_eq!(refused["error"]["code"], -32602);
                for method in ["tasks/list", "tasks/result"] {
                    let refused = client.call(method, json!({"taskId": id})).await.response;
                    assert_eq!(refused["error"]["code"], -32601, "{method}");
                }
            }
        }
        client.close().await;
    }

    async fn task_cancelled(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, Self::task_capabilities()).await;
        let id = self.start_task(&mut client, "job-wait").await;
        fixture.received.wait_for("tasks/get").await;
        let cancelled = client.call("tasks/cancel", json!({"taskId": id})).await.response["result"].clone();
        match self.client {
            Era::Handshake => assert_eq!(cancelled["status"], "cancelled"),
            Era::Stateless => assert_eq!(cancelled, json!({"resultType": "complete"})),
        }
        fixture.received.wait_for("tasks/cancel").await;
        self.poll(&mut client, &id, "cancelled").await;
        client.close().await;
    }

    async fn task_question(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, Self::task_capabilities()).await;
        let id = self.start_task(&mut client, "job-ask").await;
        let answer = json!({"action": "accept", "content": {"berth": 7}});
        self.poll(&mut client, &id, "input_required").await;
        let done = match client {
            AnyClient::Session(mut client) => {
                client.request(1, "tasks/result", json!({"taskId": id})).await;
                let question = client.question().await;
                assert_eq!(question["params"]["_meta"][RELATED_TASK]["taskId"], id.as_str(), "{question}");
                client.respond(&question, Ok(answer.clone())).await;
                let done = text(&client.response(1).await);
                client.close().await;
                done
            }
            AnyClient::Stateless(mut stateless) => {
                let task = stateless.call("tasks/get", json!({"taskId": id})).await["result"].clone();
                let (key, question) = task["inputRequests"].as_object().unwrap().iter().next().unwrap();
                assert_eq!(question["params"]["message"], "Which berth?");
                assert!(question["params"]["_meta"].is_null(), "the server's own id is not for clients: {question}");
                let update = json!({"taskId": id, "inputResponses": {key: answer}});
                assert_eq!(stateless.call("tasks/update", update).await["result"], json!({"resultType": "complete"}));
                let mut client = AnyClient::Stateless(stateless);
                let done = text(&self.poll(&mut client, &id, "completed").await);
                client.close().await;
                done
            }
        };
        assert_eq!(serde_json::from_str::<Value>(&done).unwrap_or_else(|_| panic!("{done}")), answer);
    }

    async fn task_followed(&self, fixture: &Fixture) {
        for capabilities in [json!({}), json!({"elicitation": {}})] {
            let mut client = self.client(fixture, capabilities).await;
            assert_eq!(text(&client.tool("must").await), r#""done""#);
            client.close().await;
        }
    }

    async fn outside_of_calls(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, json!({"elicitation": {}})).await;
        assert_eq!(text(&client.tool("outside").await), "later");
        if self.server == Era::Handshake {
            let answered = fixture.received.find(|message| message["id"] == "outside").await;
            assert_eq!(answered["result"], json!({"action": "cancel"}));
        }
        assert_eq!(text(&client.tool("plain").await), "ok");
        client.close().await;
    }

    async fn other_methods(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, json!({"elicitation": {}})).await;
        let reference = json!({"type": "ref/resource", "uri": "f://plain"});
        let params = json!({"ref": reference, "argument": {"name": "a", "value": "h"}});
        let Answered { response, notifications } = client.call("completion/complete", params).await;
        assert_eq!(response["result"]["completion"]["values"], json!(["here"]), "{response}");
        assert!(notifications.is_empty(), "{notifications:?}");
        if self.server == Era::Handshake {
            let refused = fixture.received.find(|message| message["id"] == "during").await;
            assert_eq!(refused["error"]["code"], -32601);
        }
        client.close().await;
    }

    async fn server_gone(&self, fixture: &Fixture) {
        let pages = json!({"elicitation": {"form": {}, "url": {}}});
        let call = json!({"name": "s__page", "arguments": {}});
        let accepted = json!({"action": "accept"});
        let response = match self.client(fixture, pages).await {
            AnyClient::Session(mut client) => {
                client.request(1, "tools/call", call).await;
                let question = client.question().await;
                fixture.gateway.close().await;
                client.respond(&question, Ok(accepted)).await;
                let response = client.response(1).await;
                client.close().await;
                response
            }
            AnyClient::Stateless(mut client) => {
                let asked = client.call("tools/call", call.clone()).await;
                fixture.gateway.close().await;
                let response = client.call("tools/call", retry(call, &asked, accepted)).await;
                client.close().await;
                response
            }
        };
        match self.server {
            Era::Handshake => {
                assert_eq!(response["error"]["data"]["reason"], "outcome_unknown", "{response}");
                assert_eq!(fixture.received.count("tools/call"), 1);
            }
            // Nothing waits at a stateless server: the call is repeated with the answer.
            Era::Stateless => assert_eq!(text(&response), r#"{"action":"accept"}"#),
        }
    }

    async fn older_revision(&self, fixture: &Fixture) {
        let mut client = match self.client {
            Era::Handshake => {
                let pages = json!({"elicitation": {"form": {}, "url": {}}});
                AnyClient::Session(Box::new(fixture.session_at("2025-03-26", pages).await))
            }
            Era::Stateless => self.client(fixture, json!({})).await,
        };
        assert_eq!(text(&client.tool("page").await), "not asked");
        assert_eq!(fixture.gateway.instances(), 0);
        client.close().await;
    }

    async fn same_uri(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, json!({})).await;
        let list = client.call("resources/list", json!({})).await.response;
        let uris: Vec<&str> = list["result"]["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["uri"].as_str().unwrap())
            .collect();
        assert_eq!(uris, ["f://plain", "t+f://plain"]);
        for uri in uris {
            let read = client.call("resources/read", json!({"uri": uri})).await.response;
            assert_eq!(read["result"]["contents"][0]["uri"], "f://plain", "results are not rewritten: {read}");
        }
        client.close().await;
    }

    async fn foreign_answer(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, json!({"elicitation": {}})).await;
        match &mut client {
            AnyClient::Session(session) => {
                session.send(json!({"jsonrpc": "2.0", "id": "wharf-77", "result": {"action": "accept"}})).await;
            }
            AnyClient::Stateless(stateless) => {
                let params =
                    json!({"name": "s__plain", "arguments": {}, "inputResponses": {"q1": {"action": "accept"}}});
                assert_eq!(text(&stateless.call("tools/call", params).await), "ok");
            }
        }
        assert_eq!(text(&client.tool("plain").await), "ok");
        client.close().await;
    }
}

fn only_request(asked: &Value) -> &Value {
    let requests = asked["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("no question in {asked}"));
    assert_eq!(requests.len(), 1);
    requests.values().next().unwrap()
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
