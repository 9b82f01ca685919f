//! A server of either era with a tool for each feature that crosses.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use wharf::spec::{ServerName, ServerSettings};
use wharf::wire::Era;
use wharf::{HostBuilder, LocalFactory, LocalServer, ServerEnd, Workers};
use wharf_client::{BoxedFuture, ClientSender};

use crate::server::ReceivedMessages;

const PREFIX: &str = "io.modelcontextprotocol/";
const TOOLS: [&str; 14] = [
    "array",
    "change",
    "error",
    "job",
    "job-ask",
    "job-wait",
    "log",
    "must",
    "outside",
    "page",
    "page-error",
    "plain",
    "progress",
    "wait",
];

/// Adds a server to a host.
pub fn add_feature_server(builder: HostBuilder, name: &str, era: Era, received: &ReceivedMessages) -> HostBuilder {
    let received = received.clone();
    let factory: LocalFactory = Arc::new(move || {
        Ok(Box::new(FeatureServer {
            era,
            received: received.clone(),
            capabilities: Value::Null,
            listen: Value::Null,
            has_extra: false,
            visited: false,
            calls: HashMap::new(),
            tasks: HashMap::new(),
        }))
    });
    builder.local_with(ServerName::new(name).unwrap(), ServerSettings::default(), factory)
}

struct FeatureServer {
    era: Era,
    received: ReceivedMessages,
    capabilities: Value,
    listen: Value,
    has_extra: bool,
    /// The page of `page-error` was shown.
    visited: bool,
    /// Calls that wait for an answer, by the id of the question.
    calls: HashMap<String, Value>,
    tasks: HashMap<String, JobState>,
}

struct JobState {
    tool: String,
    polls: usize,
    status: &'static str,
    answer: Value,
    /// Id of a `tasks/result` that waits.
    waiting: Value,
}

impl LocalServer for FeatureServer {
    fn serve(mut self: Box<Self>, mut end: ServerEnd, _: Workers) -> BoxedFuture<()> {
        Box::pin(async move {
            let out = end.sender();
            while let Some(message) = end.receive().await {
                let message: Value = serde_json::from_slice(&message.text).unwrap();
                self.received.push(&message);
                self.handle(&message, &out);
            }
        })
    }
}

fn reply(out: &ClientSender, id: &Value, result: Value) {
    out.send(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
}

fn fail(out: &ClientSender, id: &Value, error: Value) {
    out.send(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
}

fn notify(out: &ClientSender, method: &str, params: Value) {
    out.send(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn page() -> Value {
    json!({"mode": "url", "message": "Open the page", "url": "https://harbour.example/form", "elicitationId": "e-1"})
}

impl FeatureServer {
    fn is_handshake(&self) -> bool {
        self.era == Era::Handshake
    }

    fn handle(&mut self, message: &Value, out: &ClientSender) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str() {
            Some("server/discover") if !self.is_handshake() => reply(out, id, self.discovery()),
            Some("initialize") if self.is_handshake() => {
                self.capabilities = params["capabilities"].clone();
                let info = json!({"name": "s", "version": "1"});
                let offered = self.offered();
                reply(out, id, json!({"protocolVersion": "2025-11-25", "capabilities": offered, "serverInfo": info}));
            }
            Some("tools/list") => reply(out, id, json!({"tools": self.tools()})),
            Some("prompts/list") => reply(out, id, json!({"prompts": []})),
            Some("resources/list") => {
                reply(out, id, json!({"resources": [{"uri": "f://plain", "name": "plain"}]}));
            }
            Some("resources/templates/list") => reply(out, id, json!({"resourceTemplates": []})),
            Some("resources/read") => {
                let mut result = json!({"contents": [{"uri": params["uri"], "text": "read"}]});
                if !self.is_handshake() {
                    (result["ttlMs"], result["cacheScope"]) = (5000.into(), "public".into());
                }
                reply(out, id, result);
            }
            Some("subscriptions/listen") => {
                self.listen = id.clone();
                let params = self.tagged(json!({"notifications": params["notifications"]}));
                notify(out, "notifications/subscriptions/acknowledged", params);
            }
            Some("logging/setLevel" | "resources/subscribe" | "resources/unsubscribe") => reply(out, id, json!({})),
            Some("tools/call") => self.call(message, out),
            Some("completion/complete") => {
                if self.is_handshake() {
                    out.send(form("during").to_string());
                }
                reply(out, id, json!({"completion": {"values": ["here"]}}));
            }
            Some(method) if method.starts_with("tasks/") => self.task_request(message, out),
            Some(method) if !method.starts_with("notifications/") => {
                fail(out, id, json!({"code": -32601, "message": "unknown"}));
            }
            None => self.answered(message, out),
            Some("notifications/cancelled") if self.is_handshake() && self.can(message, "/elicitation") => {
                out.send(form("late").to_string());
            }
            _ => {}
        }
    }

    fn offered(&self) -> Value {
        let list = json!({"listChanged": true});
        let mut offered = json!({"tools": list, "prompts": {}, "resources": {"subscribe": true}, "logging": {}});
        offered["completions"] = json!({});
        if self.is_handshake() {
            offered["tasks"] = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        } else {
            offered["extensions"] = json!({format!("{PREFIX}tasks"): {}});
        }
        offered
    }

    fn discovery(&self) -> Value {
        let offered = self.offered();
        json!({"supportedVersions": ["2026-07-28"], "capabilities": offered, "ttlMs": 0, "cacheScope": "private"})
    }

    fn tools(&self) -> Vec<Value> {
        let tool = |name: &str| {
            let mut tool = json!({"name": name, "inputSchema": {"type": "object"}});
            if self.is_handshake() && (name.starts_with("job") || name == "must") {
                let support = if name == "must" { "required" } else { "optional" };
                tool["execution"] = json!({"taskSupport": support});
            }
            tool
        };
        TOOLS.iter().copied().chain(self.has_extra.then_some("extra")).map(tool).collect()
    }

    /// Adds the id of the listen, which notifications of the stateless era name.
    fn tagged(&self, mut params: Value) -> Value {
        if !self.is_handshake() {
            params["_meta"][format!("{PREFIX}subscriptionId")] = self.listen.clone();
        }
        params
    }

    fn can(&self, call: &Value, capability: &str) -> bool {
        let declared = &call["params"]["_meta"][format!("{PREFIX}clientCapabilities")];
        let declared = if self.is_handshake() { &self.capabilities } else { declared };
        declared.pointer(capability).is_some_and(Value::is_object)
    }

    fn call(&mut self, call: &Value, out: &ClientSender) {
        let (id, params) = (&call["id"], &call["params"]);
        match params["name"].as_str().unwrap_or_default() {
            "wait" => {}
            "progress" => {
                for number in 1..=3 {
                    let token = &params["_meta"]["progressToken"];
                    let params = json!({"progressToken": token, "progress": number, "total": 3, "message": "m"});
                    if !token.is_null() {
                        notify(out, "notifications/progress", params);
                    }
                }
                reply(out, id, text("done"));
            }
            "log" => {
                if self.is_handshake() || !params["_meta"][format!("{PREFIX}logLevel")].is_null() {
                    notify(out, "notifications/message", json!({"level": "warning", "logger": "s", "data": "here"}));
                    notify(out, "notifications/message", json!({"level": "debug", "logger": "s", "data": "too low"}));
                }
                reply(out, id, text("logged"));
            }
            "change" => {
                self.has_extra = !self.has_extra;
                notify(out, "notifications/tools/list_changed", self.tagged(json!({})));
                notify(out, "notifications/resources/updated", self.tagged(json!({"uri": "f://plain"})));
                reply(out, id, text("changed"));
            }
            "array" => {
                let mut result = text("[1,2]");
                result["structuredContent"] = json!([1, 2]);
                reply(out, id, result);
            }
            "error" => {
                let data = json!({"requiredCapabilities": {"sampling": {}}});
                match self.can(call, "/sampling") {
                    true => reply(out, id, text("can sample")),
                    false => fail(out, id, json!({"code": -32021, "message": "missing", "data": data})),
                }
            }
            "page" | "page-error" => self.show_page(call, out),
            "outside" => {
                reply(out, id, text("later"));
                if self.is_handshake() && self.can(call, "/elicitation") {
                    out.send(form("outside").to_string());
                }
            }
            "must" if self.is_handshake() && params["task"].is_null() => {
                fail(out, id, json!({"code": -32601, "message": "only as a task"}));
            }
            "job" | "job-ask" | "job-wait" | "must" => self.start_job(call, out),
            _ => reply(out, id, text("ok")),
        }
    }

    fn show_page(&mut self, call: &Value, out: &ClientSender) {
        let (id, name) = (&call["id"], &call["params"]["name"]);
        let answer = &call["params"]["inputResponses"]["page"];
        if !self.can(call, "/elicitation/url") {
            return reply(out, id, text("not asked"));
        }
        match self.era {
            Era::Handshake if name == "page-error" && self.visited => reply(out, id, text("visited")),
            Era::Handshake if name == "page-error" => {
                self.visited = true;
                let data = json!({"elicitations": [page()]});
                fail(out, id, json!({"code": -32042, "message": "open a page", "data": data}));
            }
            Era::Handshake => {
                self.calls.insert("page".to_owned(), call.clone());
                let asking = json!({"jsonrpc": "2.0", "id": "page", "method": "elicitation/create", "params": page()});
                out.send(asking.to_string());
            }
            Era::Stateless if answer.is_null() => {
                let mut params = page();
                params.as_object_mut().unwrap().remove("elicitationId");
                let requests = json!({"page": {"method": "elicitation/create", "params": params}});
                reply(
                    out,
                    id,
                    json!({"resultType": "input_required", "inputRequests": requests, "requestState": "st"}),
                );
            }
            Era::Stateless => reply(out, id, text(&answer.to_string())),
        }
    }

    /// Takes an answer to a question of this server.
    fn answered(&mut self, message: &Value, out: &ClientSender) {
        let Some(name) = message["id"].as_str() else { return };
        let answer = if message["error"].is_null() { &message["result"] } else { &message["error"] };
        if let Some(call) = self.calls.remove(name) {
            notify(out, "notifications/elicitation/complete", json!({"elicitationId": "e-1"}));
            return reply(out, &call["id"], text(&answer.to_string()));
        }
        if let Some(job) = self.tasks.get_mut(name) {
            (job.status, job.answer) = ("completed", answer.clone());
            reply(out, &job.waiting, text(&job.answer.to_string()));
        }
    }

    fn start_job(&mut self, call: &Value, out: &ClientSender) {
        let (id, params) = (&call["id"], &call["params"]);
        let is_wanted = match self.era {
            Era::Handshake => params["task"].is_object(),
            Era::Stateless => self.can(call, "/extensions/io.modelcontextprotocol~1tasks"),
        };
        let tool = params["name"].as_str().unwrap_or_default().to_owned();
        if !is_wanted {
            return reply(out, id, text("not a task"));
        }
        let task = format!("up-{}", self.tasks.len() + 1);
        let state = JobState { tool, polls: 0, status: "working", answer: Value::Null, waiting: Value::Null };
        self.tasks.insert(task.clone(), state);
        let mut result = self.describe(&task);
        match self.era {
            Era::Handshake => reply(out, id, json!({ "task": result })),
            Era::Stateless => {
                result["resultType"] = "task".into();
                reply(out, id, result);
            }
        }
    }

    fn describe(&self, task: &str) -> Value {
        let time = "2026-11-18T12:00:00Z";
        let status = self.tasks[task].status;
        let (ttl, poll) = if self.is_handshake() { ("ttl", "pollInterval") } else { ("ttlMs", "pollIntervalMs") };
        json!({"taskId": task, "status": status, "createdAt": time, "lastUpdatedAt": time, ttl: 60000, poll: 20})
    }

    fn task_request(&mut self, message: &Value, out: &ClientSender) {
        let (id, params) = (&message["id"], &message["params"]);
        let task = params["taskId"].as_str().unwrap_or_default().to_owned();
        let (era, Some(job)) = (self.era, self.tasks.get_mut(&task)) else {
            return fail(out, id, json!({"code": -32602, "message": "unknown task"}));
        };
        match message["method"].as_str().unwrap_or_default() {
            "tasks/get" => {
                job.polls += 1;
                match (job.tool.as_str(), job.status) {
                    ("job" | "must", "working") if job.polls > 1 => job.status = "completed",
                    ("job-ask", "working") => job.status = "input_required",
                    _ => {}
                }
                let (status, answer) = (job.status, job.answer.clone());
                let mut result = self.describe(&task);
                if era == Era::Stateless && status == "completed" {
                    result["result"] = text(&if answer.is_null() { json!("done") } else { answer }.to_string());
                }
                if era == Era::Stateless && status == "input_required" {
                    result["inputRequests"] = json!({"form": question(None)});
                }
                reply(out, id, result);
            }
            "tasks/update" => {
                (job.status, job.answer) = ("completed", params["inputResponses"]["form"].clone());
                reply(out, id, json!({}));
            }
            "tasks/result" if job.status == "input_required" => {
                job.waiting = id.clone();
                let mut asking = question(Some(&task));
                (asking["jsonrpc"], asking["id"]) = ("2.0".into(), task.into());
                out.send(asking.to_string());
            }
            "tasks/result" => reply(out, id, text("\"done\"")),
            "tasks/cancel" => {
                job.status = "cancelled";
                let result = if era == Era::Handshake { self.describe(&task) } else { json!({}) };
                reply(out, id, result);
            }
            _ => fail(out, id, json!({"code": -32601, "message": "unknown"})),
        }
    }
}

fn form(id: &str) -> Value {
    let params = json!({"message": "Outside", "requestedSchema": {"type": "object", "properties": {}}});
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params})
}

fn question(task: Option<&str>) -> Value {
    let schema = json!({"type": "object", "properties": {"berth": {"type": "integer"}}, "required": ["berth"]});
    let mut params = json!({"message": "Which berth?", "requestedSchema": schema});
    if let Some(task) = task {
        params["_meta"][format!("{PREFIX}related-task")] = json!({ "taskId": task });
    }
    json!({"method": "elicitation/create", "params": params})
}
