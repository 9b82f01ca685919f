//! Agents of other makers, unchanged from npm, through `wharf serve`, against a model that is a script.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::clients::{installed, program, wharf};
use crate::served::ServedHome;
use crate::{Findings, Scale};

/// The key that the scripted model takes.
const KEY: &str = "k-1";
const PROMPT: &str = "Say ahoy with the tool.";

/// An agent: writes its configuration and returns its command.
type Agent = fn(&ServedHome, &str) -> Command;

pub fn agents(scale: Scale) -> Findings {
    let mut found = Findings::new("list, call");
    if !scale.is_full {
        found.figure("only with --full");
        return found;
    }
    let agents =
        [("Claude Code 2.1.326", claude_code as Agent), ("Codex 0.169.0", codex), ("Gemini CLI 0.61.0", gemini_cli)];
    for (name, agent) in agents {
        match run(agent) {
            Ok(listed) => found.figure(format!("{name}: {listed}")),
            Err(problem) => found.problems.push(format!("{name}: {problem}")),
        }
    }
    found
}

/// Returns how the tool is listed to the model.
fn run(agent: Agent) -> Result<String, String> {
    let served = ServedHome::new(1);
    let (mut model, url, lines) = start_model();
    let output = agent(&served, &url).stdin(Stdio::null()).output().unwrap();
    let _ = model.kill();
    let _ = model.wait();
    let said: Vec<Value> = lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()).collect();
    let journal = std::fs::read_to_string(served.journal(0)).unwrap_or_default();
    let has_result = said.iter().any(|line| line["result"] == true);
    if journal.trim() != "ahoy" || !has_result {
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let all = format!("the server noted {journal:?}; {said:?}; {stdout} {stderr}");
        return Err(all.chars().take(1000).collect());
    }
    let listed = said.iter().find_map(|line| line["listed"].as_str());
    Ok(listed
        .map_or_else(|| "called, not listed in the request".to_owned(), |name| format!("listed as `{name}`, called")))
}

fn start_model() -> (Child, String, std::io::Lines<BufReader<std::process::ChildStdout>>) {
    let mut command = Command::new("node");
    command.arg(installed("servers/agent_model.mjs")).args(["s0__note", "mcp__wharf__s0__note"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    (child, first["url"].as_str().unwrap().to_owned(), lines)
}

fn claude_code(served: &ServedHome, url: &str) -> Command {
    let config = json!({"mcpServers": {"wharf": {"command": wharf(), "args": ["serve"]}}});
    let config = served.home.write("mcp.json", &config.to_string());
    let mut command = program(served, &package("@anthropic-ai/claude-code-linux-x64/claude"));
    command.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", KEY);
    command.env("DISABLE_TELEMETRY", "1").env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    command.args(["-p", PROMPT, "--strict-mcp-config", "--allowedTools", "mcp__wharf__s0__note", "--mcp-config"]);
    command.arg(config);
    command
}

fn codex(served: &ServedHome, url: &str) -> Command {
    let config = format!(
        "model = \"gpt-5\"\nmodel_provider = \"script\"\napproval_policy = \"never\"\n\
         sandbox_mode = \"danger-full-access\"\n\n[model_providers.script]\nname = \"script\"\nbase_url = \"{url}/v1\"\n\
         wire_api = \"responses\"\nenv_key = \"SCRIPT_KEY\"\n\n[mcp_servers.wharf]\ncommand = {:?}\nargs = [\"serve\"]\n",
        wharf()
    );
    served.home.write("home/.codex/config.toml", &config);
    let mut command = program(served, Path::new("node"));
    command.arg(package("@openai/codex/bin/codex.js")).env("SCRIPT_KEY", KEY);
    command.args(["exec", "--skip-git-repo-check", PROMPT]);
    command
}

fn gemini_cli(served: &ServedHome, url: &str) -> Command {
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"disableAutoUpdate": true},
        "mcpServers": {"wharf": {"command": wharf(), "args": ["serve"], "trust": true}},
    });
    served.home.write("home/.gemini/settings.json", &settings.to_string());
    let mut command = program(served, Path::new("node"));
    command.arg(package("@google/gemini-cli/bundle/gemini.js"));
    command.env("GEMINI_API_KEY", KEY).env("GOOGLE_GEMINI_BASE_URL", url);
    command.args(["-p", PROMPT, "--approval-mode", "yolo"]);
    command
}

fn package(file: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("peers-agents").join("node_modules").join(file)
}
