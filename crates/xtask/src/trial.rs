//! `cargo xtask trial URL`: the agent with a real model behind it, nine tasks over real servers, in each of the three wire
//! formats. Told in docs/trial.md, with what was said and called.
//!
//! Which model answers at the address is not our business; a small one on this machine will do, and takes minutes. A task
//! counts as done right when the tool it needs was called with the arguments it needs, whatever the model says afterwards.

mod page;
mod tasks;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::peers;
use crate::run::{Outcome, cargo, not_started, run, say, target};
use tasks::{Task, tasks};

pub const FORMATS: [&str; 3] = ["anthropic", "chat", "responses"];

/// Requests that one task may take.
const REQUESTS: &str = "6";

/// One task as it went.
pub struct Try {
    pub format: &'static str,
    pub task: String,
    pub calls: Vec<Call>,
    /// Whether the call that the task needs was made.
    pub right: bool,
    pub answer: String,
    /// As `wharf run --json` names it.
    pub ending: String,
    /// Whether a call was repeated without progress, and that was noticed.
    pub noticed: bool,
    pub seconds: f64,
}

/// A call that the model made.
pub struct Call {
    pub server: String,
    pub tool: String,
    pub arguments: Value,
}

pub fn trial(words: &[&str]) -> Outcome {
    let [url] = words else { return Err("usage: cargo xtask trial URL".into()) };
    let peers = peers::install()?;
    run(cargo().args(["build", "--package", "wharf-cli", "--bin", "wharf"]))?;
    let place = Place { root: target().join("trial"), url: (*url).to_owned() };
    place.make(&peers)?;
    let mut tries = Vec::new();
    for format in FORMATS {
        for task in tasks(&place.project()) {
            place.make_project()?;
            let went = place.go(format, &task)?;
            say!("{format}: {} {}: {}", if went.right { "right" } else { "WRONG" }, went.ending, went.task);
            tries.push(went);
        }
    }
    let page = place.without_paths(&page::page(&tries));
    fs::write(crate::run::root().join("docs/trial.md"), &page)?;
    say!("wrote docs/trial.md");
    Ok(())
}

/// Where it takes place: a home with a configuration, and a project with something in it.
struct Place {
    root: PathBuf,
    url: String,
}

impl Place {
    fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    fn make(&self, peers: &Path) -> Outcome {
        let _ = fs::remove_dir_all(&self.root);
        let folder = self.home().join(".config/wharf");
        fs::create_dir_all(&folder)?;
        // So small a model has no room for a search; the definitions go with each request.
        let provider = |format: &str| json!({ "format": format, "baseUrl": self.url, "model": "local", "maxTokens": 400, "contextTokens": 200_000 });
        let providers: serde_json::Map<_, _> =
            FORMATS.iter().map(|format| (format!("local-{format}"), provider(format))).collect();
        let config = json!({ "providers": providers, "mcpServers": tasks::servers(peers, &self.project()) });
        Ok(fs::write(folder.join("config.json"), config.to_string())?)
    }

    /// The project as every task finds it.
    fn make_project(&self) -> Outcome {
        let (project, repository) = (self.project(), self.project().join("chart"));
        let _ = fs::remove_dir_all(&project);
        fs::create_dir_all(&repository)?;
        fs::write(project.join("tide.txt"), "High water is at noon.\n")?;
        fs::write(repository.join("harbour.txt"), "here be shallows\n")?;
        for words in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "chart the harbour"]] {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]).args(words);
            git.current_dir(&repository).env("HOME", self.home()).env("GIT_CONFIG_NOSYSTEM", "1");
            if !git.status().map_err(|error| not_started(&git, error))?.success() {
                return Err(format!("git {words:?} failed").into());
            }
        }
        Ok(())
    }

    fn go(&self, format: &'static str, task: &Task) -> Outcome<Try> {
        let mut command = Command::new(target().join("debug/wharf"));
        command.args(["run", "--json", "--dangerously-skip-permissions", "--max-requests", REQUESTS]);
        command.args(["--model", &format!("local-{format}/local"), &task.words]);
        command.env_clear().env("HOME", self.home()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.current_dir(self.project());
        let begun = Instant::now();
        // A task that goes wrong has an exit code of its own, and is told like the others.
        let output = command.output().map_err(|error| not_started(&command, error))?;
        let events: Vec<Value> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let Some(ended) = events.iter().find(|event| event["event"] == "ended") else {
            return Err(format!("no end: {}", String::from_utf8_lossy(&output.stderr)).into());
        };
        let calls: Vec<Call> = events.iter().filter(|event| event["event"] == "tool_begun").map(call).collect();
        Ok(Try {
            format,
            task: task.words.clone(),
            right: calls.iter().any(|call| task.needs(call)),
            calls,
            answer: text(&ended["text"]),
            ending: ending(ended),
            noticed: events.iter().any(|event| event["event"] == "repeated"),
            seconds: begun.elapsed().as_secs_f64(),
        })
    }

    /// A page says nothing of the machine it was made on.
    fn without_paths(&self, page: &str) -> String {
        page.replace(&self.project().display().to_string(), "/work")
    }
}

/// How it ended, and what went wrong where the model's API failed.
fn ending(ended: &Value) -> String {
    match (text(&ended["ending"]), text(&ended["error"]["message"])) {
        (ending, why) if ending == "failed" => format!("{ending}: {why}"),
        (ending, _) => ending,
    }
}

fn call(event: &Value) -> Call {
    let tool = if event["name"].is_string() { &event["name"] } else { &event["tool"] };
    Call { server: text(&event["server"]), tool: text(tool), arguments: event["arguments"].clone() }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
