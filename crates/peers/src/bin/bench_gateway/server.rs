//! A server of the handshake era on stdin and stdout that appends the text of every call to a journal.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, Write as _};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// Flags: `[--journal FILE] [--transcript FILE] [--child]`.
pub fn run(words: &[String]) {
    let open = |flag: &str| {
        let path = crate::value(words, flag)?;
        Some(OpenOptions::new().create(true).append(true).open(path).unwrap())
    };
    let (journal, mut transcript) = (open("--journal"), open("--transcript"));
    if let Some(transcript) = &mut transcript {
        std::env::vars().for_each(|(name, value)| writeln!(transcript, "{name}={value}").unwrap());
    }
    // A process of its own, as launchers have.
    let child = words.iter().any(|word| word == "--child").then(sleeping_child);
    let mut server = JournalServer { journal, questions: HashMap::new(), _child: child };
    for line in io::stdin().lock().lines() {
        let line = line.unwrap();
        if let Some(transcript) = &mut transcript {
            writeln!(transcript, "{line}").unwrap();
        }
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        if let Some(answer) = server.receive(&message) {
            let mut output = io::stdout().lock();
            writeln!(output, "{answer}").and_then(|()| output.flush()).unwrap();
        }
    }
}

fn sleeping_child() -> Child {
    Command::new("sleep").arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
}

struct JournalServer {
    journal: Option<File>,
    /// Ids of calls that wait for an answer, by the ids of their questions.
    questions: HashMap<String, Value>,
    _child: Option<Child>,
}

impl JournalServer {
    fn receive(&mut self, message: &Value) -> Option<Value> {
        let id = message.get("id")?;
        let Some(method) = message["method"].as_str() else { return self.receive_answer(id, message) };
        let result = match method {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "journal", "version": "1"},
            }),
            "tools/list" => tools(),
            "tools/call" => return Some(self.call(id, &message["params"])),
            "ping" => json!({}),
            _ => return Some(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no method"}})),
        };
        Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn call(&mut self, id: &Value, params: &Value) -> Value {
        let text = params["arguments"]["text"].as_str().unwrap_or_default();
        self.note(text);
        match params["name"].as_str() {
            Some("ask") => {
                let question = format!("q{id}");
                self.questions.insert(question.clone(), id.clone());
                let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
                let params = json!({"mode": "form", "message": text, "requestedSchema": schema});
                json!({"jsonrpc": "2.0", "id": question, "method": "elicitation/create", "params": params})
            }
            Some("large") => {
                let bytes = text.parse().unwrap_or_default();
                answer(id, &"x".repeat(bytes))
            }
            _ => answer(id, text),
        }
    }

    fn receive_answer(&mut self, id: &Value, message: &Value) -> Option<Value> {
        let call = self.questions.remove(id.as_str()?)?;
        let text = message["result"]["content"]["text"].as_str();
        Some(answer(&call, text.unwrap_or("not answered")))
    }

    /// Writes a line at once, so that two processes do not mix their lines.
    fn note(&mut self, text: &str) {
        if let Some(journal) = &mut self.journal {
            journal.write_all(format!("{text}\n").as_bytes()).unwrap();
        }
    }
}

fn answer(id: &Value, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
}

fn tools() -> Value {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let tool = |name: &str, what: &str| json!({"name": name, "description": what, "inputSchema": schema});
    json!({"tools": [
        tool("note", "Gives back the text."),
        tool("ask", "Asks the person and gives back the answer."),
        tool("large", "Gives back this many bytes."),
    ]})
}
