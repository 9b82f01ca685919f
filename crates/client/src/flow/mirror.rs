//! Tool calls whose arguments are repeated in headers (2026-07-28, Streamable HTTP): who asks for what has to be known
//! from the list of tools before the first call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use wharf_spec::Untrusted;
use wharf_wire::{Bounds, Mirrored, Raw, ToolDefinition, code, mirrored};

use super::paginate::{Listing, Withheld};
use super::settle::{Settled, WhenTask, settle_until};
use crate::connection::Connection;
use crate::engine::Effect;
use crate::error::CallError;
use crate::options::CallOptions;
use crate::request::{Outgoing, tool_members, tool_name};
use crate::transport::Mirroring;

/// What the tools of one server want repeated.
pub(crate) struct Mirror {
    mirroring: Mirroring,
    learned: Mutex<Option<Arc<Tools>>>,
}

type Tools = HashMap<String, Wish>;

enum Wish {
    Headers(Vec<Mirrored>),
    /// The tool cannot be called; why.
    Withheld(String),
}

impl Mirror {
    pub fn new(mirroring: Mirroring) -> Self {
        Self { mirroring, learned: Mutex::default() }
    }

    /// Learns what a list of tools says, and takes out of it what cannot be called.
    pub fn learn(&self, listing: &mut Listing<ToolDefinition>, bounds: &Bounds) {
        let mut tools = Tools::new();
        let mut position = 0;
        listing.items.retain(|tool| {
            position += 1;
            let wish = self.wish(tool, bounds);
            let kept = match &wish {
                Wish::Headers(_) => true,
                Wish::Withheld(reason) => {
                    let name = Some(Untrusted::new(tool.name.as_str()).shortened(100).to_string());
                    tracing::warn!(tool = name.as_deref(), %reason, "a tool is withheld");
                    listing.withheld.push(Withheld { position: position - 1, name, reason: reason.clone() });
                    false
                }
            };
            tools.insert(tool.name.clone(), wish);
            kept
        });
        *self.learned.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(tools));
    }

    fn wish(&self, tool: &ToolDefinition, bounds: &Bounds) -> Wish {
        let found = tool.input_schema.as_ref().map_or(Ok(Vec::new()), |schema| mirrored(schema, bounds));
        match found {
            Ok(headers) if headers.is_empty() || self.mirroring == Mirroring::Repeat => Wish::Headers(headers),
            Ok(_) => Wish::Withheld("it wants arguments repeated in headers, which is switched off".to_owned()),
            Err(fault) => Wish::Withheld(fault.to_string()),
        }
    }

    fn known(&self) -> Option<Arc<Tools>> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Calls a tool, with the headers it wants.
pub(crate) async fn call(
    connection: &Connection,
    tool: &str,
    arguments: &Raw,
    options: CallOptions,
    when_task: WhenTask,
) -> Result<Settled, CallError> {
    let name = tool_name(tool, arguments)?;
    let body = tool_members(&name, arguments);
    let outgoing = Outgoing::new("tools/call", &body, Effect::MayWrite).naming(tool);
    let Some(mirror) = &connection.inner().mirror else {
        return settle_until(connection, outgoing, options, when_task).await;
    };
    let headers = headers_of(connection, tool, arguments).await?;
    let first = settle_until(connection, Outgoing { mirrored: &headers, ..outgoing }, options.clone(), when_task).await;
    let Err(CallError::Refused(error)) = &first else { return first };
    if error.code != code::HEADER_MISMATCH {
        return first;
    }
    // It was refused before anything was done: perhaps the tool has changed since it was listed.
    Box::pin(async move {
        connection.forget_kept();
        let known = listed(connection, mirror).await?;
        let headers = self::headers(&known, tool, arguments, &connection.limits().bounds)?;
        settle_until(connection, Outgoing { mirrored: &headers, ..outgoing }, options, when_task).await
    })
    .await
}

/// What a tool wants repeated of these arguments. The tools are listed first if they have not been.
pub(crate) async fn headers_of(
    connection: &Connection,
    tool: &str,
    arguments: &Raw,
) -> Result<Vec<(String, String)>, CallError> {
    let Some(mirror) = &connection.inner().mirror else { return Ok(Vec::new()) };
    let known = match mirror.known() {
        Some(known) => known,
        None => listed(connection, mirror).await?,
    };
    headers(&known, tool, arguments, &connection.limits().bounds)
}

async fn listed(connection: &Connection, mirror: &Mirror) -> Result<Arc<Tools>, CallError> {
    Box::pin(connection.list_tools()).await?;
    Ok(mirror.known().unwrap_or_default())
}

fn headers(tools: &Tools, tool: &str, arguments: &Raw, bounds: &Bounds) -> Result<Vec<(String, String)>, CallError> {
    match tools.get(tool) {
        // Whether there is such a tool is the server's to say.
        None => Ok(Vec::new()),
        Some(Wish::Withheld(reason)) => Err(CallError::Invalid(format!("the tool is withheld: {reason}"))),
        Some(Wish::Headers(wanted)) => {
            let mut headers = Vec::new();
            for one in wanted {
                let value = one.value(arguments, bounds).map_err(|error| CallError::Invalid(error.to_string()))?;
                headers.extend(value.map(|value| (one.header.clone(), value)));
            }
            Ok(headers)
        }
    }
}
