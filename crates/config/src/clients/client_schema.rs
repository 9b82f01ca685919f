//! Schema of a client's file: a table that maps its fields to those of an entry.

use crate::FileFormat;

use super::variable_syntax::VariableSyntax;

/// Schema of a client's file.
#[derive(Debug)]
pub(super) struct ClientSchema {
    /// File format.
    pub(super) format: FileFormat,
    /// Paths of the objects that hold servers. Import reads all of them, export writes the first.
    pub(super) roots: &'static [&'static [&'static str]],
    /// Syntax of variable references.
    pub(super) dialect: VariableSyntax,
    /// Syntax of variable references in headers, if different.
    pub(super) headers: Option<VariableSyntax>,
    /// Fields of a server. If several map to the same field of an entry, the more specific one comes first.
    pub(super) fields: &'static [FieldMapping],
}

impl ClientSchema {
    /// Returns the syntax of variable references in a field.
    pub(super) fn syntax_of(&self, field: &str) -> VariableSyntax {
        match self.headers {
            Some(dialect) if field.starts_with("headers.") => dialect,
            _ => self.dialect,
        }
    }
}

/// Mapping of one field. Either name may be the path of a nested member: `oauth.client_id`.
#[derive(Debug)]
pub(super) struct FieldMapping {
    pub(super) theirs: &'static str,
    pub(super) ours: &'static str,
    pub(super) kind: FieldConversion,
    pub(super) way: MappingDirection,
}

/// Direction of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MappingDirection {
    Both,
    /// Import only.
    In,
}

/// Type and conversion of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldConversion {
    /// The transport: pairs of the client's word and ours. Ours is empty if the word only means that the server is
    /// remote. `required` is set if the client requires the field.
    Transport { words: &'static [(&'static str, &'static str)], required: bool },
    /// A URL for exactly this transport.
    Address(&'static str),
    /// A text with variable references.
    Text,
    /// A list of texts with variable references.
    Texts,
    /// A map of texts with variable references.
    Pairs,
    /// A list of names.
    Words,
    /// A boolean.
    Flag,
    /// A negated boolean.
    Inverse,
    /// A port number.
    Port,
    /// A time in milliseconds.
    Milliseconds,
    /// A time in seconds.
    Seconds,
    /// A time in whole seconds.
    WholeSeconds,
    /// The command and its arguments in one list.
    CommandLine,
    /// Names of inherited variables.
    Handed,
    /// Headers, each with the variable that holds its value.
    HeaderVariables,
    /// The variable that holds a bearer token.
    Bearer,
    /// A list of scopes, written as one space-separated text in an entry.
    Scopes,
    /// A command that prints headers: a shell command line, or an object with `command` and `args`.
    HeadersCommand,
    /// A field without effect.
    Ignored,
    /// An unsupported field: the consequence and a suggested fix.
    Missing(&'static str, &'static str),
}

/// Maps a field in both directions.
pub(super) const fn two_way(theirs: &'static str, ours: &'static str, kind: FieldConversion) -> FieldMapping {
    FieldMapping { theirs, ours, kind, way: MappingDirection::Both }
}

/// Maps a field of the same name in both directions.
pub(super) const fn same_name(name: &'static str, kind: FieldConversion) -> FieldMapping {
    two_way(name, name, kind)
}

/// Maps a field for import only.
pub(super) const fn import_only(theirs: &'static str, ours: &'static str, kind: FieldConversion) -> FieldMapping {
    FieldMapping { theirs, ours, kind, way: MappingDirection::In }
}

/// Ignores a field.
pub(super) const fn ignored_field(theirs: &'static str) -> FieldMapping {
    FieldMapping { theirs, ours: "", kind: FieldConversion::Ignored, way: MappingDirection::In }
}

/// Reports a field as unsupported.
pub(super) const fn unsupported_field(theirs: &'static str, means: &'static str, fix: &'static str) -> FieldMapping {
    FieldMapping { theirs, ours: "", kind: FieldConversion::Missing(means, fix), way: MappingDirection::In }
}
