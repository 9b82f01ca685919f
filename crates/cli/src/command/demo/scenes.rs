//! Scenes without failures. Each performs one step, checks it, and returns the lines to show.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use wharf_client::{Connection, RequestOptions, StepOutcome};
use wharf_spec::UntrustedText;
use wharf_wire::{RawJson, ToolResult};

use super::demo_servers::{DemoServers, SECRET};
use super::tour::SceneResult;
use crate::command::call::progress_text;
use wharf_terminal::clock::DurationText;
use wharf_terminal::content::{content_text, resource_text};
use wharf_terminal::failure::render_failure;
use wharf_terminal::style::{NAME, QUIET, paint};

/// Number of parallel calls and the duration of each.
const PARALLEL_CALLS: u32 = 16;
const CALL_DURATION: Duration = Duration::from_millis(300);

pub async fn connect(cast: &mut DemoServers<'_>) -> SceneResult {
    cast.connect_all().await.map_err(|failure| render_failure(&failure))?;
    Ok(cast.servers.iter().map(connection_line).collect())
}

/// Formats the negotiated revision and the connection steps.
fn connection_line(server: &Connection) -> String {
    let steps = server.trace().steps.iter().map(|step| {
        let detour = if step.outcome == StepOutcome::Detour { " (declined)" } else { "" };
        format!("{}{detour} {}", step.name, DurationText(step.duration))
    });
    let steps = steps.collect::<Vec<_>>().join(", ");
    format!(
        "{} {}  {}",
        paint(NAME, format_args!("{:<5}", server.facts().name)),
        server.facts().revision,
        paint(QUIET, steps)
    )
}

pub async fn tools(cast: &DemoServers<'_>) -> SceneResult {
    let mut lines = Vec::new();
    for server in &cast.servers {
        let listing = server.list_tools().await.map_err(error_text)?;
        let names: Vec<&str> = listing.items.iter().map(|tool| tool.name.as_str()).collect();
        let tools = UntrustedText::new(names.join(", ")).to_string();
        lines.push(format!("{} {}", paint(NAME, format_args!("{:<5}", server.facts().name)), tools));
        ensure(names.contains(&"echo"), "the tool `echo` should be listed")?;
    }
    Ok(lines)
}

pub async fn call(cast: &DemoServers<'_>) -> SceneResult {
    let echo = call_tool(cast.north(), "echo", r#"{"text":"Ahoy!"}"#).await?;
    ensure(content_text(&echo.content) == "Ahoy!", "echo should repeat the text")?;
    let sent = r#"{"cargo":["oranges",7]}"#;
    let data = call_tool(cast.north(), "json_response", sent).await?.structured;
    let data = data.ok_or("json_response should return structured data")?;
    Ok(vec![
        format!("echo text=Ahoy!  →  {}", result_line(&echo)),
        format!("json_response '{sent}'  →  {}", UntrustedText::new(data.as_str())),
    ])
}

pub async fn progress(cast: &DemoServers<'_>) -> SceneResult {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let (collected, console) = (reports.clone(), cast.session.console.clone());
    let options = RequestOptions::default().progress(move |progress| {
        console.show_status(&format!("north · slow  {}", progress_text(&progress)));
        let percent = progress.progress / progress.total.unwrap_or(1.0) * 100.0;
        collected.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{percent:.0}%"));
    });
    let arguments = raw(r#"{"seconds":0.8,"steps":4}"#)?;
    let answer = cast.north().call_tool("slow", &arguments, options).await;
    cast.session.console.clear_status();
    let answer = answer.map_err(error_text)?;
    let reports = std::mem::take(&mut *reports.lock().unwrap_or_else(PoisonError::into_inner));
    ensure(reports.len() == 4, "there should be four progress updates")?;
    Ok(vec![format!("slow seconds=0.8 steps=4  →  {}  →  {}", reports.join(", "), result_line(&answer))])
}

pub async fn parallel(cast: &DemoServers<'_>) -> SceneResult {
    let began = Instant::now();
    let mut calls = JoinSet::new();
    for _ in 0..PARALLEL_CALLS {
        let server = cast.north().clone();
        let arguments = raw(&format!(r#"{{"seconds":{},"steps":1}}"#, CALL_DURATION.as_secs_f64()))?;
        calls.spawn(async move { server.call_tool("slow", &arguments, RequestOptions::default()).await });
    }
    while let Some(joined) = calls.join_next().await {
        joined.map_err(|error| error.to_string())?.map_err(error_text)?;
    }
    let duration = began.elapsed();
    ensure(duration < CALL_DURATION * PARALLEL_CALLS / 2, "the calls should run in parallel")?;
    Ok(vec![format!(
        "{PARALLEL_CALLS} calls of {} each, together: {}",
        DurationText(CALL_DURATION),
        DurationText(duration)
    )])
}

pub async fn environment(cast: &DemoServers<'_>) -> SceneResult {
    let answer = call_tool(cast.north(), "environment", "{}").await?;
    let text = content_text(&answer.content);
    let names: Vec<&str> = text.lines().collect();
    ensure(!names.contains(&SECRET), "the server should not see the secret")?;
    let (ours, theirs) = (cast.session.environment.env.len() + 1, names.len());
    Ok(vec![
        format!("you have {ours} variables, including {SECRET}; the server received {theirs}:"),
        UntrustedText::new(names.join(" ")).truncate(400).to_string(),
        "pass more with --env NAME, or all with --inherit-env".to_owned(),
    ])
}

pub async fn read(cast: &DemoServers<'_>) -> SceneResult {
    let read = cast.east().read_resource("demo://greeting", RequestOptions::default()).await.map_err(error_text)?;
    let text = read.contents.iter().map(resource_text).collect::<Vec<_>>().join(" ");
    ensure(text.contains("Ahoy"), "the greeting should contain `Ahoy`")?;
    let name = [("name".to_owned(), "Ada".to_owned())];
    let prompt = cast.west().get_prompt("welcome", &name, RequestOptions::default()).await.map_err(error_text)?;
    let message = prompt.messages.first().map(|message| content_text(std::slice::from_ref(&message.content)));
    let message = message.ok_or("the prompt should have a message")?;
    Ok(vec![
        format!("demo://greeting  →  {}", UntrustedText::new(text)),
        format!("welcome name=Ada  →  {}", UntrustedText::new(message)),
    ])
}

/// Calls a tool with the given JSON arguments.
///
/// # Errors
///
/// Returns the text of the error if the arguments are not JSON or the call fails.
pub async fn call_tool(server: &Connection, tool: &str, arguments: &str) -> Result<ToolResult, String> {
    server.call_tool(tool, &raw(arguments)?, RequestOptions::default()).await.map_err(error_text)
}

pub fn raw(json: &str) -> Result<RawJson, String> {
    RawJson::parse(json.to_owned()).map_err(|error| error.to_string())
}

/// Returns the text of a result on one line.
pub fn result_line(answer: &ToolResult) -> String {
    UntrustedText::new(content_text(&answer.content)).truncate(200).to_string()
}

pub fn ensure(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
pub fn error_text(error: wharf_client::CallError) -> String {
    error.to_string()
}
