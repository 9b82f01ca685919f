//! `/mcp connect`, `disconnect`, `reconnect`, `enable`, `disable` and `auth`, for this session only.

use wharf::{HostError, ServerState};
use wharf_spec::{ActivationState, ServerName};

use super::{resolve_configured, resolve_in_host};
use crate::slash::{CommandContext, ReplAction};
use wharf_terminal::config_context::usage_refusal;
use wharf_terminal::failure::{Failure, FailureKind};
use wharf_terminal::status::show::status_line;
use wharf_terminal::status::status_rows::StatusRow;
use wharf_terminal::style::{NAME, paint};

pub async fn connect(server: &str, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let name = resolve_in_host(server, context)?;
    report_connected(&name, context.managed_host.host.connect(name.as_str()).await, context).await
}

pub async fn reconnect(server: &str, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let name = resolve_in_host(server, context)?;
    report_connected(&name, context.managed_host.host.reconnect(name.as_str()).await, context).await
}

pub async fn disconnect(server: &str, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let name = resolve_in_host(server, context)?;
    context.managed_host.host.disconnect(name.as_str()).await.map_err(|error| switch_failure(&name, error, context))?;
    print_state(&name, &format!(" (reconnect with /mcp connect {name})"), context)
}

pub async fn enable(server: &str, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let name = resolve_configured(server, context)?;
    let known = context.managed_host.loaded_config();
    // Enabling does not help a server that is unapproved or invalid.
    let barred = known.config.server(name.as_str()).filter(|server| server.activation() != ActivationState::Disabled);
    if let Some(failure) = barred.and_then(usage_refusal) {
        return Err(failure);
    }
    if let Err(error) = context.managed_host.enable(&name).await {
        return Err(
            resolve_in_host(server, context).map_or_else(|why| why, |name| switch_failure(&name, error, context))
        );
    }
    print_state(&name, &format!(" (enabled for this session; `wharf enable {name}` makes it permanent)"), context)
}

pub async fn disable(server: &str, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let name = resolve_in_host(server, context)?;
    context.managed_host.host.disable(name.as_str()).await.map_err(|error| switch_failure(&name, error, context))?;
    print_state(&name, &format!(" (disabled for this session; `wharf disable {name}` makes it permanent)"), context)
}

pub fn log_in(server: &str, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let name = resolve_in_host(server, context)?;
    match context.managed_host.host.status_of(name.as_str()).map(|status| status.transport) {
        Ok("stdio" | "in-process") => {
            Err(Failure::unsupported("local (stdio) servers have no login; /mcp auth applies to HTTP servers only")
                .about_server(name.as_str()))
        }
        _ => Ok(ReplAction::LogIn(name.to_string())),
    }
}

/// Reports the result of connecting, after waiting until the server's tools are known.
async fn report_connected(
    name: &ServerName,
    connected: Result<(), HostError>,
    context: &CommandContext<'_>,
) -> Result<ReplAction, Failure> {
    let ready = match connected {
        Ok(()) => context.managed_host.host.wait_until_ready(name.as_str()).await.map(|_| ()),
        Err(error) => Err(error),
    };
    ready.map_err(|error| switch_failure(name, error, context))?;
    print_state(name, "", context)
}

/// Prints the current state of a server, followed by `suffix`.
fn print_state(name: &ServerName, suffix: &str, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let is_this = |row: &StatusRow| row.id == name.as_str() && row.state != ServerState::Unapproved;
    let row = context.managed_host.rows().into_iter().find(is_this);
    let now = row.map_or_else(|| paint(NAME, name).to_string(), |row| status_line(&row));
    context.print(format_args!("{now}{suffix}\n"))
}

/// Converts a host error and adds the next step.
fn switch_failure(name: &ServerName, error: HostError, context: &CommandContext<'_>) -> Failure {
    let failure = context.managed_host.failure(name, error);
    match failure.kind {
        FailureKind::LoginNeeded => failure.with_hint(format_args!("/mcp auth {name}")),
        FailureKind::Denied | FailureKind::Usage => failure,
        _ => failure.with_hint(format_args!("see /mcp debug {name} for the connection steps")),
    }
}
