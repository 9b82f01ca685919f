//! `wharf serve --status` and `--stop`: the gateway that runs for this user.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_spec::UntrustedText;
use wharf_terminal::failure::{Failure, FailureKind};
use wharf_terminal::gateway_socket::{GatewayPlace, GatewayReply, GatewayRequest};
use wharf_terminal::session::CommandSession;

/// The state of a running gateway.
#[derive(Debug, Serialize, Deserialize)]
pub struct GatewayStatus {
    /// Set if the gateway keeps running after the last client.
    pub stays: bool,
    pub projects: Vec<ProjectStatus>,
}

/// The state of one project.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProjectStatus {
    pub directory: String,
    pub clients: usize,
    pub servers: Vec<String>,
    /// Further processes of servers, for clients that do not share the first.
    pub instances: BTreeMap<String, usize>,
}

#[derive(Serialize)]
struct StatusDocument {
    process: u32,
    #[serde(flatten)]
    status: GatewayStatus,
}

/// Shows the running gateway.
///
/// # Errors
///
/// Fails if none is running.
pub async fn show(session: &CommandSession) -> Result<(), Failure> {
    let (process, result) = request(session, GatewayRequest::Status).await?;
    let status: GatewayStatus = serde_json::from_value(result).map_err(Failure::other)?;
    let document = StatusDocument { process, status };
    if session.console.mode.json {
        return session.console.print_document(true, &document);
    }
    let stays = if document.status.stays { ", stays after the last client" } else { "" };
    session.console.print(format_args!("process {process}{stays}\n"))?;
    for project in &document.status.projects {
        let ProjectStatus { directory, clients, servers, instances } = project;
        let mut line = format!("{directory}  clients: {clients}  servers: {}", servers.join(", "));
        if !instances.is_empty() {
            let counts: Vec<_> = instances.iter().map(|(server, count)| format!("{server} {count}")).collect();
            line.push_str(&format!("  further instances: {}", counts.join(", ")));
        }
        session.console.print(format_args!("{}\n", UntrustedText::new(line)))?;
    }
    Ok(())
}

/// Ends the running gateway.
///
/// # Errors
///
/// Fails if none is running.
pub async fn stop(session: &CommandSession) -> Result<(), Failure> {
    let (process, _) = request(session, GatewayRequest::Stop).await?;
    session.console.say(format_args!("process {process} is ending"));
    Ok(())
}

/// Sends a request to the running gateway. Returns its process and the result.
///
/// # Errors
///
/// Fails if none is running, or it refuses the request.
pub async fn request(session: &CommandSession, request: GatewayRequest) -> Result<(u32, Value), Failure> {
    let no_gateway = || {
        Failure::new(FailureKind::Unreachable, "no gateway is running")
            .with_hint("a client that runs `wharf serve` starts one")
    };
    let place = GatewayPlace::new(session).ok_or_else(no_gateway)?;
    match place.request(request).await.ok_or_else(no_gateway)?.reply {
        GatewayReply::Done { pid, result } => Ok((pid, result)),
        GatewayReply::Refused { reason } => Err(Failure::usage(UntrustedText::new(reason))),
        GatewayReply::Attached { .. } | GatewayReply::Offered { .. } => {
            Err(Failure::other("the gateway did not understand the request"))
        }
    }
}
