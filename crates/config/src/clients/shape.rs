//! What a client's file looks like, as data: every field with the name it has there and the one it has here.

use crate::Format;

use super::dialect::Dialect;

/// A client's file.
#[derive(Debug)]
pub(super) struct Shape {
    /// What it is written in.
    pub(super) format: Format,
    /// Where its servers stand. All are read, the first is written.
    pub(super) roots: &'static [&'static [&'static str]],
    /// How it spells variables.
    pub(super) dialect: Dialect,
    /// How it does so in headers, if that is another matter.
    pub(super) headers: Option<Dialect>,
    /// What a server of it is made of. Where several lead to one field of ours, the more special comes first.
    pub(super) fields: &'static [Field],
}

impl Shape {
    /// How variables are spelt in this field.
    pub(super) fn dialect(&self, field: &str) -> Dialect {
        match self.headers {
            Some(dialect) if field.starts_with("headers.") => dialect,
            _ => self.dialect,
        }
    }
}

/// A field of a server. Either name may be that of a member of an object: `oauth.client_id`.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) theirs: &'static str,
    pub(super) ours: &'static str,
    pub(super) kind: Kind,
    pub(super) way: Way,
}

/// Which way a field goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Both,
    /// It is understood when it is there, and never written.
    In,
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// The transport: their words and ours, where ours is empty if it says no more than that there is an address.
    /// A client may insist on it.
    Transport { words: &'static [(&'static str, &'static str)], required: bool },
    /// An address that is reached by this transport and by no other.
    Address(&'static str),
    /// A text in which variables are expanded.
    Text,
    /// A list of such texts.
    Texts,
    /// Such texts by name.
    Pairs,
    /// A list of names.
    Words,
    /// Yes or no.
    Flag,
    /// No or yes.
    Inverse,
    /// The number of a port.
    Port,
    /// A time as we count it.
    Milliseconds,
    /// A time in seconds.
    Seconds,
    /// A time in seconds, of which there are no fractions.
    WholeSeconds,
    /// The program and its arguments in one list.
    CommandLine,
    /// Names of variables that are handed down.
    Handed,
    /// Headers, each with the variable that holds it.
    HeaderVariables,
    /// The variable that holds a bearer token.
    Bearer,
    /// A list of what we write as one text with spaces.
    Scopes,
    /// Nothing that would be missed.
    Ignored,
    /// Something that has no counterpart here: what that means, and what to do about it.
    Missing(&'static str, &'static str),
}

/// A field that goes both ways.
pub(super) const fn both(theirs: &'static str, ours: &'static str, kind: Kind) -> Field {
    Field { theirs, ours, kind, way: Way::Both }
}

/// A field that is only ever read.
pub(super) const fn only_in(theirs: &'static str, ours: &'static str, kind: Kind) -> Field {
    Field { theirs, ours, kind, way: Way::In }
}

/// A field nobody here needs.
pub(super) const fn ignored(theirs: &'static str) -> Field {
    Field { theirs, ours: "", kind: Kind::Ignored, way: Way::In }
}

/// A field nobody here has.
pub(super) const fn missing(theirs: &'static str, means: &'static str, fix: &'static str) -> Field {
    Field { theirs, ours: "", kind: Kind::Missing(means, fix), way: Way::In }
}
