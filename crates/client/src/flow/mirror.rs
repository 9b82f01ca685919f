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
use crate::error::{CallError, TimeLimit};
use crate::options::CallOptions;
use crate::request::{Outgoing, tool_members, tool_name};
use crate::transport::Mirroring;

/// What the tools of one server want repeated.
pub(crate) struct Mirror {
    mirroring: Mirroring,
    learned: Mutex<Option<Learned>>,
}

struct Learned {
    tools: Arc<Tools>,
    /// How often the tools had been said to change by then.
    changes: u64,
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

    /// Learns what a list of tools says that was asked for after so many changes, and takes out of it what cannot be
    /// called.
    pub fn learn(&self, listing: &mut Listing<ToolDefinition>, changes: u64, bounds: &Bounds) {
        let mut tools = Tools::new();
        let Listing { items, withheld, .. } = listing;
        let mut places = Places::without(withheld);
        items.retain(|tool| {
            let position = places.next();
            let wish = self.wish(tool, bounds);
            if let Wish::Withheld(reason) = &wish {
                let name = Some(Untrusted::new(tool.name.as_str()).shortened(100).to_string());
                tracing::warn!(tool = name.as_deref(), %reason, "a tool is withheld");
                withheld.push(Withheld { position, name, reason: reason.clone() });
            }
            let kept = matches!(wish, Wish::Headers(_));
            tools.insert(tool.name.clone(), wish);
            kept
        });
        withheld.sort_by_key(|item| item.position);
        let learned = Learned { tools: Arc::new(tools), changes };
        *self.learned.lock().unwrap_or_else(PoisonError::into_inner) = Some(learned);
    }

    fn wish(&self, tool: &ToolDefinition, bounds: &Bounds) -> Wish {
        let found = tool.input_schema.as_ref().map_or(Ok(Vec::new()), |schema| mirrored(schema, bounds));
        match found {
            Ok(headers) if headers.is_empty() || self.mirroring == Mirroring::Repeat => Wish::Headers(headers),
            Ok(_) => Wish::Withheld("it wants arguments repeated in headers, which is switched off".to_owned()),
            Err(fault) => Wish::Withheld(fault.to_string()),
        }
    }

    /// What is known, if the tools have not changed since.
    fn known(&self, changes: u64) -> Option<Arc<Tools>> {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.as_ref().filter(|learned| learned.changes == changes).map(|learned| learned.tools.clone())
    }
}

/// The places in the server's list of what is left when some items have been taken out.
struct Places {
    taken: Vec<usize>,
    at: usize,
}

impl Places {
    fn without(withheld: &[Withheld]) -> Self {
        Self { taken: withheld.iter().map(|item| item.position).collect(), at: 0 }
    }

    fn next(&mut self) -> usize {
        while self.taken.contains(&self.at) {
            self.at += 1;
        }
        self.at += 1;
        self.at - 1
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
    let total = options.total(connection.limits());
    let headers = match tokio::time::timeout(total, headers_of(connection, tool, arguments)).await {
        Ok(headers) => headers?,
        Err(_) => return Err(CallError::TimedOut { after: total, limit: TimeLimit::Total, hint: None }),
    };
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
    let known = match mirror.known(connection.inner().manners.bulletin.tools_changes()) {
        Some(known) => known,
        None => listed(connection, mirror).await?,
    };
    headers(&known, tool, arguments, &connection.limits().bounds)
}

async fn listed(connection: &Connection, mirror: &Mirror) -> Result<Arc<Tools>, CallError> {
    match Box::pin(connection.list_tools()).await {
        Ok(_) => {}
        // A server whose list cannot be read may still have the tool; if it wants headers, it will say so.
        Err(CallError::Refused(_) | CallError::Listing { .. } | CallError::Protocol(_)) => return Ok(Arc::default()),
        Err(error) => return Err(error),
    }
    // Changed meanwhile, what was listed is still the best that is known.
    let learned = mirror.learned.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(learned.as_ref().map(|learned| learned.tools.clone()).unwrap_or_default())
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
