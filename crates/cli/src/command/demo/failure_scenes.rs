//! Scenes with deliberate failures.

use std::sync::Arc;

use tokio::sync::Notify;
use wharf_client::{CallError, ProcessExit, RequestOptions, connect};
use wharf_spec::{ServerSpec, StdioSpec};

use super::demo_servers::DemoServers;
use super::processes::leftover_processes;
use super::scenes::{call_tool, ensure, raw, result_line};
use super::tour::SceneResult;
use wharf_terminal::clock::DurationText;
use wharf_terminal::failure::{Failure, output_line, render_failure};

pub async fn error(cast: &DemoServers<'_>) -> SceneResult {
    let answer = call_tool(cast.west(), "fail", "{}").await?;
    ensure(answer.is_error, "fail should report an error")?;
    Ok(vec![format!("fail  →  error: {}", result_line(&answer))])
}

/// Drops a call after its first progress update.
pub async fn cancel(cast: &DemoServers<'_>) -> SceneResult {
    let sent_before = cast.cancellations.sent();
    let begun = Arc::new(Notify::new());
    let signal = begun.clone();
    let options = RequestOptions::default().progress(move |_| signal.notify_one());
    let arguments = raw(r#"{"seconds":60,"steps":1000}"#)?;
    tokio::select! {
        _ = cast.east().call_tool("slow", &arguments, options) => return Err("the call should have taken a minute".to_owned()),
        () = begun.notified() => {}
    }
    ensure(cast.cancellations.sent() == sent_before + 1, "the server should have been notified")?;
    let next = call_tool(cast.east(), "echo", r#"{"text":"still here"}"#).await?;
    Ok(vec![
        "slow seconds=60  →  cancelled after it started; the server was notified".to_owned(),
        format!("echo  →  {}", result_line(&next)),
    ])
}

pub async fn crash(cast: &DemoServers<'_>) -> SceneResult {
    let arguments = raw(r#"{"exit_code":3}"#)?;
    let failed = match cast.east().call_tool("crash", &arguments, RequestOptions::default()).await {
        Ok(_) => return Err("crash should not return a result".to_owned()),
        Err(failed) => failed,
    };
    let CallError::OutcomeUnknown(gone) = &failed else { return Err(failed.to_string()) };
    ensure(gone.exit == Some(ProcessExit::Code(3)), "the exit code should be 3")?;
    let mut lines = vec![format!("east: {failed}")];
    lines.extend(gone.stderr.iter().map(|line| output_line(line)));
    for server in [cast.north(), cast.west()] {
        let answer = call_tool(server, "echo", r#"{"text":"all well here"}"#).await?;
        lines.push(format!("{}: {}", server.facts().name, result_line(&answer)));
    }
    Ok(lines)
}

pub async fn missing(cast: &DemoServers<'_>) -> SceneResult {
    let spec = StdioSpec { program: "no-such-server".into(), ..StdioSpec::default() };
    match connect(&spec, cast.options("missing")).await {
        Ok(_) => Err("the command should not exist".to_owned()),
        Err(error) => {
            let failure =
                Failure::from_connect_error("missing", &ServerSpec::Stdio(spec), &cast.session.environment, error);
            Ok(render_failure(&failure).lines().map(str::to_owned).collect())
        }
    }
}

pub async fn close(cast: &DemoServers<'_>) -> SceneResult {
    let pids: Vec<i32> =
        cast.servers.iter().filter_map(|server| server.facts().process).map(|process| process.pid).collect();
    let began = std::time::Instant::now();
    cast.session.close().await;
    let duration = DurationText(began.elapsed());
    let left = leftover_processes(&pids);
    ensure(left.is_empty(), &format!("processes left running: {left:?}"))?;
    let pids = pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Ok(vec![format!("closed in {duration}; processes {pids} and their guards have exited")])
}
