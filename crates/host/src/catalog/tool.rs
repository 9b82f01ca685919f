//! A tool of the catalog: its original definition and its description for models.

use std::sync::Arc;

use wharf_spec::{ServerName, ToolId, UntrustedText};
use wharf_tools::{Fingerprint, PermissionRequirement, ToolDescription, ToolHints, ToolRisk, ToolSource};
use wharf_wire::{ToolAnnotations, ToolDefinition, skeleton};

use super::server_lists::ListFreshness;
use super::{DESCRIPTION, NameStyle, TITLE, ToolNames, ToolWarning, compile_schema, fingerprint, sanitize, tool_names};

/// Maximum characters of a tool's own name in its origin line.
const MAX_ORIGIN_NAME_CHARS: usize = 200;
/// Maximum length of a regular name.
const MAX_REGULAR_NAME_LENGTH: usize = 128;

/// A tool in the catalog.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CatalogTool {
    /// The server, and the tool's name there.
    pub id: ToolId,
    /// The definition as received from the server.
    pub definition: ToolDefinition,
    /// The description for callers: texts sanitized, schema compiled, origin included.
    pub description: Arc<ToolDescription>,
    /// Fingerprint of the whole definition.
    pub fingerprint: Fingerprint,
    /// Warnings about the tool itself and relative to its server's other tools. [`super::Catalog::warnings_of`] adds the
    /// rest.
    pub marks: Vec<ToolWarning>,
    /// Canonical form of the name: equal for names that look alike.
    pub(super) skeleton: Box<str>,
}

/// Properties that all tools of a section share.
pub(super) struct SectionContext<'a> {
    pub server: &'a ServerName,
    pub provider: Arc<str>,
    pub style: NameStyle,
    pub freshness: ListFreshness,
}

impl CatalogTool {
    pub(super) fn new(making: &SectionContext<'_>, definition: ToolDefinition) -> Self {
        let id = ToolId::new(making.server, definition.name.as_str());
        let fingerprint = fingerprint(&definition);
        let mut marks = Vec::new();
        if is_irregular(&definition.name) {
            marks.push(ToolWarning::OddName);
        }
        let source = ToolSource { provider: making.provider.clone(), name: id.tool.clone(), fingerprint };
        let description = Arc::new(describe(making, &id, &definition, source, &mut marks));
        let skeleton = skeleton(definition.name.trim()).collect::<String>().into();
        Self { id, definition, description, fingerprint, marks, skeleton }
    }

    /// Returns the name under which a model calls the tool.
    pub fn alias(&self) -> &Arc<str> {
        &self.description.name
    }

    /// Returns the reason for the tool's quarantine, if it is quarantined.
    pub fn quarantine(&self) -> Option<&str> {
        self.marks
            .iter()
            .find_map(|mark| if let ToolWarning::Quarantined(reason) = mark { Some(&**reason) } else { None })
    }

    /// Reports whether the names look alike and differ.
    pub(super) fn looks_like(&self, other: &Self) -> bool {
        self.skeleton == other.skeleton && self.id.tool != other.id.tool
    }
}

fn describe(
    making: &SectionContext<'_>,
    id: &ToolId,
    definition: &ToolDefinition,
    source: ToolSource,
    marks: &mut Vec<ToolWarning>,
) -> ToolDescription {
    let ToolNames { shown, alias } = tool_names(making.style, id);
    let compiled = compile_schema(definition.input_schema.as_ref());
    compiled.marks.into_iter().for_each(|mark| add_warning(marks, mark));
    let annotations = &definition.annotations;
    let title = definition.title.as_deref().or(annotations.title.as_deref());
    // The origin comes first, so that no text of the server can precede it.
    let mut text = format!("[{}: {}]", id.server, UntrustedText::new(&*id.tool).truncate(MAX_ORIGIN_NAME_CHARS));
    if let Some(said) = &definition.description {
        text.push('\n');
        text.push_str(&sanitize_into(said, DESCRIPTION, marks));
    }
    let mut description = ToolDescription::new(alias, text, compiled.schema);
    description.shown = shown;
    description.title = title.map(|title| sanitize_into(title, TITLE, marks));
    description.source = Some(source);
    description.hints = hints(annotations, making.freshness);
    description.risk = ToolRisk::High;
    description.permission = PermissionRequirement::Needed;
    description
}

pub(super) fn sanitize_into(text: &str, limit: usize, marks: &mut Vec<ToolWarning>) -> String {
    let found = sanitize(text, limit);
    if found.revealed {
        add_warning(marks, ToolWarning::Neutralised);
    }
    if found.cut {
        add_warning(marks, ToolWarning::Shortened);
    }
    found.text.into_owned()
}

fn add_warning(marks: &mut Vec<ToolWarning>, mark: ToolWarning) {
    if !marks.contains(&mark) {
        marks.push(mark);
    }
}

/// Returns the server's hints. A cached hint may have been withdrawn since, so only those that warn are used.
fn hints(annotations: &ToolAnnotations, freshness: ListFreshness) -> ToolHints {
    let live = freshness == ListFreshness::Live;
    let claim = |claimed: Option<bool>, warns: bool| claimed.filter(|claimed| live || *claimed == warns);
    ToolHints {
        read_only: claim(annotations.read_only_hint, false),
        destructive: claim(annotations.destructive_hint, true),
        idempotent: claim(annotations.idempotent_hint, false),
        open_world: claim(annotations.open_world_hint, true),
    }
}

fn is_irregular(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    !(1..=MAX_REGULAR_NAME_LENGTH).contains(&name.len()) || !name.bytes().all(fits)
}
