//! Lists of resources and templates, from the catalog.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use wharf_spec::ServerName;
use wharf_tools::{ToolError, ToolInvocation, ToolOutcome};

use super::arguments::{ListArguments, decode_arguments, permitted_server};
use super::output::{
    JsonArrayBuilder, MAX_LISTED_NAME_BYTES, MAX_LISTED_TEXT_BYTES, MAX_LISTED_URI_BYTES, outcome_with_remarks,
    sanitize_optional, sanitize_text,
};
use crate::catalog::{ListFreshness, ListName, Section};
use crate::context::HostContext;
use crate::tool::to_tool_error;

/// Maximum number of servers named in a remark.
const MAX_NAMED_SERVERS: usize = 10;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceEntry<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri_template: Option<Cow<'a, str>>,
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    server: &'a str,
}

/// Lists resources.
pub(super) async fn list_resources(context: Arc<HostContext>, call: ToolInvocation) -> Result<ToolOutcome, ToolError> {
    let listed = select_sections(&context, &call, ListName::Resources).await?;
    Ok(listed.into_outcome(&context, |section, entries| {
        for resource in &section.resources {
            entries.push(&ResourceEntry {
                uri: Some(sanitize_text(&resource.uri, MAX_LISTED_URI_BYTES)),
                uri_template: None,
                name: sanitize_text(&resource.name, MAX_LISTED_NAME_BYTES),
                mime_type: sanitize_optional(resource.mime_type.as_ref(), MAX_LISTED_NAME_BYTES),
                description: sanitize_optional(resource.description.as_ref(), MAX_LISTED_TEXT_BYTES),
                server: section.server.as_str(),
            });
        }
    }))
}

/// Lists resource templates.
pub(super) async fn list_templates(context: Arc<HostContext>, call: ToolInvocation) -> Result<ToolOutcome, ToolError> {
    let listed = select_sections(&context, &call, ListName::Templates).await?;
    Ok(listed.into_outcome(&context, |section, entries| {
        for template in &section.templates {
            entries.push(&ResourceEntry {
                uri: None,
                uri_template: Some(sanitize_text(&template.uri_template, MAX_LISTED_URI_BYTES)),
                name: sanitize_text(&template.name, MAX_LISTED_NAME_BYTES),
                mime_type: sanitize_optional(template.mime_type.as_ref(), MAX_LISTED_NAME_BYTES),
                description: sanitize_optional(template.description.as_ref(), MAX_LISTED_TEXT_BYTES),
                server: section.server.as_str(),
            });
        }
    }))
}

/// The sections to list, and remarks about them.
pub(super) struct SectionListing {
    sections: Vec<Arc<Section>>,
    remarks: Vec<String>,
}

/// Returns the section of the named server, waiting for it if necessary, or the current sections of all servers.
pub(super) async fn select_sections(
    context: &HostContext,
    call: &ToolInvocation,
    what: ListName,
) -> Result<SectionListing, ToolError> {
    let ListArguments { server } = decode_arguments(context, &call.arguments)?;
    let (sections, mut remarks) = match server {
        Some(name) => (vec![load_section(context, &name, what, call.timeout).await?], Vec::new()),
        None => {
            let (catalog, servers) = (context.publisher.catalog(), context.servers.load());
            let is_denied = |name: &ServerName| servers.get(name).is_some_and(|one| context.denial_of(one).is_some());
            let is_unknown = |name: &&ServerName| {
                catalog.section(name.as_str()).is_none_or(|section| section.unasked.contains(&what))
            };
            let unknown = servers.keys().filter(is_unknown).filter(|name| !is_denied(name)).cloned().collect();
            let sections = catalog.sections().iter().filter(|section| !is_denied(&section.server)).cloned().collect();
            (sections, Vec::from_iter(server_remark(unknown, "not listed yet:", "pass its name to list it")))
        }
    };
    let kept = sections.iter().filter(|section| section.freshness != ListFreshness::Live);
    let kept = kept.map(|section| section.server.clone()).collect();
    remarks.extend(server_remark(kept, "not running, listed from the cache:", "reading a resource starts the server"));
    for section in &sections {
        let failures = section.failures.iter().filter(|(list, _)| *list == what);
        remarks.extend(failures.map(|(list, why)| format!("listing the {list} of {} failed: {why}", section.server)));
    }
    Ok(SectionListing { sections, remarks })
}

async fn load_section(
    context: &HostContext,
    name: &str,
    what: ListName,
    timeout: Option<Duration>,
) -> Result<Arc<Section>, ToolError> {
    let server = permitted_server(context, name)?;
    if let Some(section) = context.publisher.peek().section(name).filter(|section| !section.unasked.contains(&what)) {
        return Ok(Arc::clone(section));
    }
    let catalog = context.wait_for_lists(&server, timeout).await.map_err(|failed| to_tool_error(&failed))?;
    // The server was removed in the meantime.
    let gone = || to_tool_error(&server.unavailable_error(&server.snapshot.borrow()));
    catalog.section(name).cloned().ok_or_else(gone)
}

/// Creates a remark about servers, if there are any.
fn server_remark(mut servers: Vec<ServerName>, what: &str, next: &str) -> Option<String> {
    servers.sort();
    let more = if servers.len() > MAX_NAMED_SERVERS { " and others" } else { "" };
    let names: Vec<&str> = servers.iter().take(MAX_NAMED_SERVERS).map(ServerName::as_str).collect();
    (!names.is_empty()).then(|| format!("{what} {}{more}; {next}", names.join(", ")))
}

impl SectionListing {
    /// Creates the outcome from the entries that each section adds.
    pub fn into_outcome(
        mut self,
        context: &HostContext,
        mut add: impl FnMut(&Section, &mut JsonArrayBuilder),
    ) -> ToolOutcome {
        let mut entries = JsonArrayBuilder::new(context.options.results.text);
        self.sections.iter().for_each(|section| add(section, &mut entries));
        let (data, left_out) = entries.finish();
        if left_out > 0 {
            let next = if self.sections.len() > 1 { "; pass a server name to list fewer" } else { "" };
            self.remarks.push(format!("{left_out} more are not shown{next}"));
        }
        outcome_with_remarks(&self.remarks, data)
    }
}
