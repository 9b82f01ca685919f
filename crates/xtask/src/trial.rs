//! `cargo xtask trial URL`: runs the agent with a real model on nine tasks with real servers, in each of the three wire
//! formats. Writes evidence/trial.md with answers and calls.
//!
//! The model behind the URL is arbitrary; a small local one is sufficient and takes minutes. A task succeeds if the
//! required tool was called with the required arguments, independent of the model's final answer.

mod page;
mod tasks;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::peers;
use crate::run::{TaskResult, cargo, run, say, start_error, target};
use tasks::{TrialTask, tasks};

pub const FORMATS: [&str; 3] = ["anthropic", "chat", "responses"];

/// Maximum model requests per task.
const MAX_REQUESTS: &str = "6";

/// The result of one task.
pub struct TrialResult {
    pub format: &'static str,
    pub task: String,
    pub calls: Vec<TrialCall>,
    /// Set if the required call was made.
    pub right: bool,
    pub answer: String,
    /// The outcome as reported by `wharf run --json`.
    pub ending: String,
    /// Set if the loop detector reported a repeated call.
    pub noticed: bool,
    pub seconds: f64,
}

/// A tool call made by the model.
pub struct TrialCall {
    pub server: String,
    pub tool: String,
    pub arguments: Value,
}

pub fn trial(words: &[&str]) -> TaskResult {
    let [url] = words else { return Err("usage: cargo xtask trial URL".into()) };
    let peers = peers::install()?;
    run(cargo().args(["build", "--package", "wharf-cli", "--bin", "wharf"]))?;
    let place = TrialEnvironment { root: target().join("trial"), url: (*url).to_owned() };
    place.create(&peers)?;
    let mut tries = Vec::new();
    for format in FORMATS {
        for task in tasks(&place.project()) {
            place.create_project()?;
            let went = place.run_task(format, &task)?;
            say!("{format}: {} {}: {}", if went.right { "right" } else { "WRONG" }, went.ending, went.task);
            tries.push(went);
        }
    }
    let page = place.without_paths(&page::page(&tries));
    fs::write(crate::run::root().join("evidence/trial.md"), &page)?;
    say!("wrote evidence/trial.md");
    Ok(())
}

/// The test environment: a home with a configuration, and a project with files.
struct TrialEnvironment {
    root: PathBuf,
    url: String,
}

impl TrialEnvironment {
    fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    fn create(&self, peers: &Path) -> TaskResult {
        let _ = fs::remove_dir_all(&self.root);
        let folder = self.home().join(".config/wharf");
        fs::create_dir_all(&folder)?;
        // A model of this size has no capacity for tool search; all definitions are sent with each request.
        let provider = |format: &str| json!({ "format": format, "baseUrl": self.url, "model": "local", "maxTokens": 400, "contextTokens": 200_000 });
        let providers: serde_json::Map<_, _> =
            FORMATS.iter().map(|format| (format!("local-{format}"), provider(format))).collect();
        let config = json!({ "providers": providers, "mcpServers": tasks::servers(peers, &self.project()) });
        Ok(fs::write(folder.join("config.json"), config.to_string())?)
    }

    /// Creates the project in its initial state.
    fn create_project(&self) -> TaskResult {
        let (project, repository) = (self.project(), self.project().join("chart"));
        let _ = fs::remove_dir_all(&project);
        fs::create_dir_all(&repository)?;
        fs::write(project.join("tide.txt"), "High water is at noon.\n")?;
        fs::write(repository.join("harbour.txt"), "here be shallows\n")?;
        for words in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "chart the harbour"]] {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]).args(words);
            git.current_dir(&repository).env("HOME", self.home()).env("GIT_CONFIG_NOSYSTEM", "1");
            if !git.status().map_err(|error| start_error(&git, error))?.success() {
                return Err(format!("git {words:?} failed").into());
            }
        }
        Ok(())
    }

    fn run_task(&self, format: &'static str, task: &TrialTask) -> TaskResult<TrialResult> {
        let mut command = Command::new(target().join("debug/wharf"));
        command.args(["run", "--json", "--dangerously-skip-permissions", "--max-requests", MAX_REQUESTS]);
        command.args(["--model", &format!("local-{format}/local"), &task.words]);
        command.env_clear().env("HOME", self.home()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.current_dir(self.project());
        let begun = Instant::now();
        // A failing task has its own exit code and is reported like the others.
        let output = command.output().map_err(|error| start_error(&command, error))?;
        let events: Vec<Value> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let Some(ended) = events.iter().find(|event| event["event"] == "ended") else {
            return Err(format!("no `ended` event: {}", String::from_utf8_lossy(&output.stderr)).into());
        };
        let calls: Vec<TrialCall> =
            events.iter().filter(|event| event["event"] == "tool_begun").map(parse_call).collect();
        Ok(TrialResult {
            format,
            task: task.words.clone(),
            right: calls.iter().any(|call| task.is_solved_by(call)),
            calls,
            answer: text(&ended["text"]),
            ending: ending(ended),
            noticed: events.iter().any(|event| event["event"] == "repeated"),
            seconds: begun.elapsed().as_secs_f64(),
        })
    }

    /// Replaces the paths of the machine in a page.
    fn without_paths(&self, page: &str) -> String {
        page.replace(&self.project().display().to_string(), "/work")
    }
}

/// Returns the outcome, with the error message if the model API failed.
fn ending(ended: &Value) -> String {
    match (text(&ended["ending"]), text(&ended["error"]["message"])) {
        (ending, why) if ending == "failed" => format!("{ending}: {why}"),
        (ending, _) => ending,
    }
}

fn parse_call(event: &Value) -> TrialCall {
    let tool = if event["name"].is_string() { &event["name"] } else { &event["tool"] };
    TrialCall { server: text(&event["server"]), tool: text(tool), arguments: event["arguments"].clone() }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
