//! Tools with effects of their own: immediate, slow, or as a task.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult, JsonObject, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam,
};
use rmcp::task_manager::{TaskContext, TaskExit, TaskOptions};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::catalog::COUNTER;
use crate::input_tools::{field, is_stateless};
use crate::{RmcpContext, RmcpPeer, invalid_params};

/// State that the tools change.
#[derive(Default)]
pub struct RmcpPeerState {
    counter: AtomicU64,
    grown: AtomicU64,
    /// Log level set by a handshake-era client.
    level: Mutex<Option<LoggingLevel>>,
}

impl RmcpPeerState {
    pub fn counter(&self) -> u64 {
        self.counter.load(Ordering::Relaxed)
    }

    pub fn added_tools(&self) -> u64 {
        self.grown.load(Ordering::Relaxed)
    }

    pub fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap() = Some(level);
    }
}

pub async fn call(
    peer: &RmcpPeer,
    request: CallToolRequestParams,
    context: RmcpContext,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let text = match &*request.name {
        "echo" => string(&arguments, "text")?.to_owned(),
        "add" => (number(&arguments, "a")? + number(&arguments, "b")?).to_string(),
        "log" => log(peer, &arguments, &context).await?,
        "slow" => slow(&arguments, &context).await?,
        "touch" => increment_counter(peer, &context).await,
        "grow" => add_tool(peer, &context).await,
        "end_listen" => {
            peer.audience.end().await;
            "ended".to_owned()
        }
        "brew" if !knows_tasks(&context) => "tea".to_owned(),
        "brew" | "brew_later" => return Ok(brew(peer, &arguments)),
        name if is_added_tool(peer, name) => name.to_owned(),
        other => return Err(invalid_params(format!("no tool {other}"))),
    };
    Ok(text_result(text).into())
}

fn text_result(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn knows_tasks(context: &RmcpContext) -> bool {
    context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

fn is_added_tool(peer: &RmcpPeer, name: &str) -> bool {
    let number = name.strip_prefix("grown_").and_then(|number| number.parse().ok());
    number.is_some_and(|number: u64| (1..=peer.work.added_tools()).contains(&number))
}

/// Sends a log message if the client's level allows it. The SDK leaves this check to the server, in both eras.
async fn log(peer: &RmcpPeer, arguments: &JsonObject, context: &RmcpContext) -> Result<String, ErrorData> {
    let level = string(arguments, "level")?;
    let level: LoggingLevel =
        serde_json::from_value(level.into()).map_err(|error| invalid_params(error.to_string()))?;
    let wanted = match is_stateless(context) {
        true => context.meta.log_level().is_some_and(|least| level as u8 >= least as u8),
        false => peer.work.level.lock().unwrap().is_none_or(|least| level as u8 >= least as u8),
    };
    if wanted {
        let data = json!({"message": string(arguments, "message")?});
        let message = LoggingMessageNotificationParam::new(level, data).with_logger("quay");
        let _ = context.peer.notify_logging_message(message).await;
    }
    Ok("logged".to_owned())
}

async fn slow(arguments: &JsonObject, context: &RmcpContext) -> Result<String, ErrorData> {
    let steps = number(arguments, "steps")? as u32;
    let pause = Duration::from_millis(arguments.get("wait_ms").and_then(Value::as_u64).unwrap_or(20));
    for step in 1..=steps {
        tokio::select! {
            () = context.ct.cancelled() => return Err(cancelled_error()),
            () = sleep(pause) => {}
        }
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, step.into());
            let progress = progress.with_total(steps.into()).with_message(format!("step {step}"));
            let _ = context.peer.notify_progress(progress).await;
        }
    }
    Ok(format!("{steps} steps"))
}

/// Reports the cancellation of a call on stderr, for tests.
fn cancelled_error() -> ErrorData {
    eprintln!("stopped");
    ErrorData::internal_error("cancelled", None)
}

async fn increment_counter(peer: &RmcpPeer, context: &RmcpContext) -> String {
    let counter = peer.work.counter.fetch_add(1, Ordering::Relaxed) + 1;
    peer.audience.notify_resource_updated(COUNTER, context).await;
    counter.to_string()
}

async fn add_tool(peer: &RmcpPeer, context: &RmcpContext) -> String {
    let number = peer.work.grown.fetch_add(1, Ordering::Relaxed) + 1;
    peer.audience.notify_tools_changed(context).await;
    format!("grown_{number}")
}

/// Creates a task in any case: the SDK rejects it for a client without task support.
fn brew(peer: &RmcpPeer, arguments: &JsonObject) -> CallToolResponse {
    let steps = arguments.get("steps").and_then(Value::as_u64).unwrap_or(3);
    let flag = |name: &str| arguments.get(name) == Some(&Value::Bool(true));
    let (ask, fail) = (flag("ask"), flag("fail"));
    let options = TaskOptions::new().with_ttl_ms(60_000).with_poll_interval_ms(20).with_status_message("filling");
    let task = peer.tasks.spawn(options, move |task| Box::pin(make_tea(task, steps, ask, fail)));
    CallToolResponse::Task(CreateTaskResult::new(task))
}

async fn make_tea(task: TaskContext, steps: u64, ask: bool, fail: bool) -> Result<CallToolResult, TaskExit> {
    for step in 1..=steps {
        tokio::select! {
            () = task.cancelled() => return Err(TaskExit::Cancelled),
            () = sleep(Duration::from_millis(20)) => task.set_status_message(format!("step {step}")),
        }
    }
    if fail {
        return Err(ErrorData::internal_error("the kettle broke", None).into());
    }
    let text = match ask {
        true => task.request_input("milk", field("milk")).await?.to_string(),
        false => "tea".to_owned(),
    };
    Ok(text_result(text))
}

fn string<'a>(arguments: &'a JsonObject, name: &str) -> Result<&'a str, ErrorData> {
    let value = arguments.get(name).and_then(Value::as_str);
    value.ok_or_else(|| invalid_params(format!("{name} must be a string")))
}

fn number(arguments: &JsonObject, name: &str) -> Result<f64, ErrorData> {
    let value = arguments.get(name).and_then(Value::as_f64);
    value.ok_or_else(|| invalid_params(format!("{name} must be a number")))
}
