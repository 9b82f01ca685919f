//! Arguments of tool calls that a server requires in HTTP headers (2026-07-28, Streamable HTTP). The tool list must be
//! known before the first such call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use wharf_spec::UntrustedText;
use wharf_wire::{HeaderParam, JsonLimits, RawJson, ToolDefinition, code, header_params};

use super::call_rounds::{CompletedCall, TaskHandling, ToolRequest, run_with_task_handling};
use super::paginate::{Listing, WithheldEntry};
use crate::connection::Connection;
use crate::error::{CallError, TimeoutKind};
use crate::options::RequestOptions;
use crate::request::OutgoingRequest;
use crate::transport::HeaderParamMode;

/// The header requirements of one server's tools.
pub(crate) struct HeaderParamTable {
    mode: HeaderParamMode,
    learned: Mutex<Option<ToolHeaderSnapshot>>,
}

struct ToolHeaderSnapshot {
    tools: Arc<ToolHeaderMap>,
    /// Number of tool list changes when the list was requested.
    changes: u64,
}

type ToolHeaderMap = HashMap<String, HeaderRequirement>;

enum HeaderRequirement {
    Headers(Vec<HeaderParam>),
    /// The tool cannot be called; the reason.
    Withheld(String),
}

impl HeaderParamTable {
    pub fn new(mode: HeaderParamMode) -> Self {
        Self { mode, learned: Mutex::default() }
    }

    /// Records the header requirements of a tool list, and withholds tools that cannot be called. `changes` is the
    /// number of tool list changes when the list was requested.
    pub fn record_listing(&self, listing: &mut Listing<ToolDefinition>, changes: u64, bounds: &JsonLimits) {
        let mut tools = ToolHeaderMap::new();
        let Listing { items, withheld, .. } = listing;
        let mut places = VisiblePositions::excluding(withheld);
        items.retain(|tool| {
            let position = places.next();
            let wish = self.requirement_of(tool, bounds);
            if let HeaderRequirement::Withheld(reason) = &wish {
                let name = Some(UntrustedText::new(tool.name.as_str()).truncate(100).to_string());
                tracing::warn!(tool = name.as_deref(), %reason, "tool withheld");
                withheld.push(WithheldEntry { position, name, reason: reason.clone() });
            }
            let kept = matches!(wish, HeaderRequirement::Headers(_));
            tools.insert(tool.name.clone(), wish);
            kept
        });
        withheld.sort_by_key(|item| item.position);
        let learned = ToolHeaderSnapshot { tools: Arc::new(tools), changes };
        *self.learned.lock().unwrap_or_else(PoisonError::into_inner) = Some(learned);
    }

    fn requirement_of(&self, tool: &ToolDefinition, bounds: &JsonLimits) -> HeaderRequirement {
        let found = tool.input_schema.as_ref().map_or(Ok(Vec::new()), |schema| header_params(schema, bounds));
        match found {
            Ok(headers) if headers.is_empty() || self.mode == HeaderParamMode::Repeat => {
                HeaderRequirement::Headers(headers)
            }
            Ok(_) => HeaderRequirement::Withheld("requires arguments in HTTP headers, which is disabled".to_owned()),
            Err(fault) => HeaderRequirement::Withheld(fault.to_string()),
        }
    }

    /// Returns the known requirements, if the tools have not changed since.
    fn current_headers(&self, changes: u64) -> Option<Arc<ToolHeaderMap>> {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.as_ref().filter(|learned| learned.changes == changes).map(|learned| learned.tools.clone())
    }
}

/// Iterator over the positions in the server's list that are not withheld.
struct VisiblePositions {
    taken: Vec<usize>,
    at: usize,
}

impl VisiblePositions {
    fn excluding(withheld: &[WithheldEntry]) -> Self {
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

/// Calls a tool with the headers it requires.
pub(super) async fn call_with_headers(
    connection: &Connection,
    table: &HeaderParamTable,
    call: ToolRequest<'_>,
    options: RequestOptions,
    when_task: TaskHandling,
) -> Result<CompletedCall, CallError> {
    let ToolRequest { tool, arguments, outgoing } = call;
    let total = options.total_timeout(connection.limits());
    let headers = match tokio::time::timeout(total, headers_for_call(connection, tool, arguments)).await {
        Ok(headers) => headers?,
        Err(_) => return Err(CallError::TimedOut { after: total, limit: TimeoutKind::Total, hint: None }),
    };
    let first = run_with_task_handling(
        connection,
        OutgoingRequest { header_params: &headers, ..outgoing },
        options.clone(),
        when_task,
    )
    .await;
    let Err(CallError::ErrorResponse(error)) = &first else { return first };
    if error.code != code::HEADER_MISMATCH {
        return first;
    }
    // The server rejected the call before executing it: the tool may have changed since it was listed.
    Box::pin(async move {
        connection.clear_cache();
        let known = refresh_from_list(connection, table).await?;
        let headers = build_headers(&known, tool, arguments, &connection.limits().bounds)?;
        run_with_task_handling(connection, OutgoingRequest { header_params: &headers, ..outgoing }, options, when_task)
            .await
    })
    .await
}

/// Returns the headers a tool requires for these arguments. Lists the tools first if necessary.
pub(crate) async fn headers_for_call(
    connection: &Connection,
    tool: &str,
    arguments: &RawJson,
) -> Result<Vec<(String, String)>, CallError> {
    let Some(table) = &connection.inner().header_params else { return Ok(Vec::new()) };
    let known = match table.current_headers(connection.inner().protocol.notifications.tools_changes()) {
        Some(known) => known,
        None => refresh_from_list(connection, table).await?,
    };
    build_headers(&known, tool, arguments, &connection.limits().bounds)
}

async fn refresh_from_list(connection: &Connection, table: &HeaderParamTable) -> Result<Arc<ToolHeaderMap>, CallError> {
    match Box::pin(connection.list_tools()).await {
        Ok(_) => {}
        // A server with an unreadable list may still have the tool. If the tool requires headers, the server rejects
        // the call.
        Err(CallError::ErrorResponse(_) | CallError::Listing { .. } | CallError::Protocol(_)) => {
            return Ok(Arc::default());
        }
        Err(error) => return Err(error),
    }
    // If the tools changed meanwhile, this list is still the best available.
    let learned = table.learned.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(learned.as_ref().map(|learned| learned.tools.clone()).unwrap_or_default())
}

fn build_headers(
    tools: &ToolHeaderMap,
    tool: &str,
    arguments: &RawJson,
    bounds: &JsonLimits,
) -> Result<Vec<(String, String)>, CallError> {
    match tools.get(tool) {
        // The server decides whether the tool exists.
        None => Ok(Vec::new()),
        Some(HeaderRequirement::Withheld(reason)) => Err(CallError::Invalid(format!("tool withheld: {reason}"))),
        Some(HeaderRequirement::Headers(wanted)) => {
            let mut headers = Vec::new();
            for one in wanted {
                let value = one.value(arguments, bounds).map_err(|error| CallError::Invalid(error.to_string()))?;
                headers.extend(value.map(|value| (one.header.clone(), value)));
            }
            Ok(headers)
        }
    }
}
