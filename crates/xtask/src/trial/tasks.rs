//! The nine tasks, their required calls, and the servers.

use std::path::Path;

use serde_json::{Value, json};

use super::TrialCall;

/// A task for the model.
pub struct TrialTask {
    pub words: String,
    server: &'static str,
    tool: &'static str,
    /// Arguments that the call must include.
    arguments: Value,
}

impl TrialTask {
    /// Reports whether a call solves the task. Numbers compare by value; a trailing slash in paths is ignored.
    pub fn is_solved_by(&self, call: &TrialCall) -> bool {
        let wanted = self.arguments.as_object().into_iter().flatten();
        call.server == self.server
            && call.tool == self.tool
            && wanted.into_iter().all(|(name, value)| matches_argument(value, &call.arguments[name]))
    }
}

pub fn tasks(project: &Path) -> Vec<TrialTask> {
    let at = |name: &str| project.join(name).display().to_string();
    let here = project.display().to_string();
    let task = |words: String, server, tool, arguments| TrialTask { words, server, tool, arguments };
    vec![
        task("What is 1234 plus 4321?".into(), "sums", "get-sum", json!({"a": 1234, "b": 4321})),
        task(
            "What time is it in Asia/Tokyo now?".into(),
            "time",
            "get_current_time",
            json!({"timezone": "Asia/Tokyo"}),
        ),
        task(
            "It is 12:00 in UTC. What time is that in Asia/Tokyo?".into(),
            "time",
            "convert_time",
            json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
        ),
        task(
            format!("What does the file {} say?", at("tide.txt")),
            "files",
            "read_text_file",
            json!({"path": at("tide.txt")}),
        ),
        task(format!("What is in the directory {here}?"), "files", "list_directory", json!({"path": here})),
        task(
            format!("Write the word ahoy into the file {}.", at("note.txt")),
            "files",
            "write_file",
            json!({"path": at("note.txt"), "content": "ahoy"}),
        ),
        task(
            format!("What is the last commit of the git repository {}?", at("chart")),
            "git",
            "git_log",
            json!({"repo_path": at("chart")}),
        ),
        task(
            format!("Is anything not committed in the git repository {}?", at("chart")),
            "git",
            "git_status",
            json!({"repo_path": at("chart")}),
        ),
        task("Echo the message: all aboard".into(), "sums", "echo", json!({"message": "all aboard"})),
    ]
}

/// Returns the configuration of servers from npm and PyPI, with few enough tools for a small model.
pub fn servers(peers: &Path, project: &Path) -> Value {
    let npm = |package: &str| peers.join(format!("node_modules/@modelcontextprotocol/{package}/dist/index.js"));
    let python = peers.join("py1/bin/python");
    json!({
        "sums": {"command": "node", "args": [npm("server-everything"), "stdio"], "includeTools": ["get-sum", "echo"]},
        "files": {
            "command": "node", "args": [npm("server-filesystem"), project],
            "includeTools": ["read_text_file", "list_directory", "write_file"],
        },
        "time": {"command": python, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]},
        "git": {
            "command": python, "args": ["-m", "mcp_server_git"], "includeTools": ["git_log", "git_status"],
        },
    })
}

fn matches_argument(wanted: &Value, given: &Value) -> bool {
    match (wanted, given) {
        (Value::Number(wanted), Value::Number(given)) => wanted.as_f64() == given.as_f64(),
        (Value::String(wanted), Value::String(given)) => wanted == given.trim().trim_end_matches('/'),
        _ => wanted == given,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_calls_are_recognised() {
        let project = Path::new("/p");
        let call =
            |server: &str, tool: &str, arguments| TrialCall { server: server.into(), tool: tool.into(), arguments };
        for (number, call, expected) in [
            (0, call("sums", "get-sum", json!({"a": 1234.0, "b": 4321})), true),
            (0, call("sums", "get-sum", json!({"a": "1234", "b": 4321})), false),
            (0, call("files", "get-sum", json!({"a": 1234, "b": 4321})), false),
            (4, call("files", "list_directory", json!({"path": "/p/"})), true),
            (4, call("files", "list_directory", json!({"path": "/"})), false),
            (5, call("files", "write_file", json!({"path": "/p/note.txt", "content": "ahoy\n"})), true),
            (6, call("git", "git_log", json!({"repo_path": "/p/chart", "max_count": 1})), true),
            (6, call("git", "git_log", json!({})), false),
        ] {
            assert_eq!(tasks(project)[number].is_solved_by(&call), expected, "{number} {}", call.arguments);
        }
    }
}
