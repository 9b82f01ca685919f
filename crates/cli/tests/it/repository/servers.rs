//! Ten servers of the user's own: three by npx, two by uvx, two by `python -m`, one by node, one by an absolute program
//! and one by a program beside the user's configuration.

use serde_json::{Value, json};

use super::site::Site;
use crate::support::{WHARF, installed};

pub const NAMES: [&str; 10] = [
    "npx-everything",
    "npx-memory",
    "npx-files",
    "uvx-time",
    "uvx-git",
    "module-time",
    "module-git",
    "node-files",
    "absolute",
    "relative",
];

/// The entries, as a user would write them.
pub fn all(site: &Site) -> Value {
    let python = installed("py1/bin/python");
    let node_files = installed("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    site.write_program("home/.config/wharf/tools/server", &format!("#!/bin/sh\nexec {WHARF} demo-server --stdio\n"));
    site.write("notes/today.txt", "a note of the user's");
    let notes = site.path("notes");
    let everything = package("mcp-server-everything");
    json!({
        "npx-everything": {"command": "npx", "args": ["-y", everything]},
        "npx-memory": {"command": "npx", "args": ["-y", package("mcp-server-memory")]},
        "npx-files": {"command": "npx", "args": ["-y", package("mcp-server-filesystem"), "."], "cwd": "${project}"},
        "uvx-time": {"command": "uvx", "args": ["--from", package("mcp-server-time"), "mcp-server-time"]},
        "uvx-git": {"command": "uvx", "args": ["--from", package("mcp-server-git"), "mcp-server-git"]},
        "module-time": {"command": python, "args": ["-m", "mcp_server_time"]},
        "module-git": {"command": python, "args": ["-m", "mcp_server_git", "--repository", "."], "cwd": "${project}"},
        "node-files": {"command": "node", "args": [node_files, notes]},
        "absolute": {"command": WHARF, "args": ["demo-server", "--stdio"]},
        "relative": {"command": "./tools/server"},
    })
}

/// The package of a command, with the version that the caches have.
fn package(command: &str) -> String {
    let list = std::fs::read_to_string(installed("launchers/launchers.txt")).unwrap();
    let line = list.lines().find(|line| line.ends_with(&format!(" {command}"))).unwrap();
    line.split(' ').nth(1).unwrap().to_owned()
}

/// Whether a server starts in the project, so that it is approved there.
pub fn needs_project(server: &str) -> bool {
    matches!(server, "npx-files" | "module-git")
}

/// The words of a command about a server.
pub fn spelled(command: &str, server: &str, site: &Site) -> Vec<String> {
    let (tool, arguments) = call(server, site);
    let words = command.split(' ').flat_map(|word| match word {
        "SERVER" => vec![server.to_owned()],
        "SERVER.TOOL" => vec![format!("{server}.{tool}")],
        "ARGUMENTS" => arguments.split_whitespace().map(str::to_owned).collect(),
        word => vec![word.to_owned()],
    });
    words.collect()
}

fn call(server: &str, site: &Site) -> (&'static str, String) {
    let (tool, arguments) = match server {
        "npx-everything" => ("echo", "message=ahoy"),
        "npx-memory" => ("read_graph", ""),
        "npx-files" | "node-files" => ("list_allowed_directories", ""),
        "uvx-time" | "module-time" => ("get_current_time", "timezone=UTC"),
        "uvx-git" => return ("git_status", format!("repo_path={}", site.project().display())),
        "module-git" => ("git_status", "repo_path=."),
        _ => ("echo", "text=ahoy"),
    };
    (tool, arguments.to_owned())
}

/// A part of the right answer in an honest project.
pub fn answer(server: &str, site: &Site) -> String {
    match server {
        "npx-memory" => "entities".to_owned(),
        "npx-files" => site.project().display().to_string(),
        "node-files" => site.path("notes").display().to_string(),
        "uvx-time" | "module-time" => "UTC".to_owned(),
        "uvx-git" | "module-git" => "README.md".to_owned(),
        _ => "ahoy".to_owned(),
    }
}
