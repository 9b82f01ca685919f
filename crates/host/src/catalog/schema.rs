//! The copy of a tool's schema that a model gets.
//!
//! What a server says stays verbatim in its definition. The copy is a plain object without what providers refuse, small
//! enough to send, neutral in every string, and complete in itself: nothing is ever fetched for it. It advises a model;
//! arguments are judged by the server, against the original.

mod copy;
mod flatten;
mod keyword;
mod measure;
mod refer;

use std::borrow::Cow;

use wharf_json::{Bounds, DecodeError, Raw, TooComplex};

use super::marks::{Mark, SchemaFault};
use super::tree::{Members, Tree};
use measure::Measures;

/// The most bytes of a schema.
const LARGEST: usize = 256 * 1024;
/// How much of it is read; the schemas in it are counted on their own.
const BOUNDS: Bounds = Bounds { depth: 128, nodes: 100_000 };

/// A schema for a model, and what is to be said about it.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The schema: an object with `"type":"object"`.
    pub schema: Raw,
    /// What had to be done to it.
    pub marks: Vec<Mark>,
}

/// Makes the copy of a schema that a model gets.
///
/// One that needs no change is the same bytes, shared. In one that does, keys keep their order and numbers their
/// digits. One that is missing, is no schema of an object or is too much is replaced by one that takes any object.
pub fn compile(schema: Option<&Raw>) -> Compiled {
    schema.ok_or(SchemaFault::Missing).and_then(compiled).unwrap_or_else(|fault| Compiled {
        schema: Raw::known(r#"{"type":"object","additionalProperties":true}"#),
        marks: vec![Mark::SchemaReplaced(fault)],
    })
}

fn compiled(schema: &Raw) -> Result<Compiled, SchemaFault> {
    if schema.as_bytes().len() > LARGEST {
        return Err(SchemaFault::TooLarge);
    }
    let tree = Tree::parse(schema, &BOUNDS).map_err(fault)?;
    if !may_be_object(&tree) {
        return Err(SchemaFault::NotObject);
    }
    if tree.has_twins() {
        return Err(SchemaFault::Invalid);
    }
    let (mut members, mut marks) = copy::copy(&tree, &Measures::take(&tree)?);
    if !flatten::is_flat(&members) {
        members = flatten::flatten(members);
        marks.push(Mark::SchemaFlattened);
    }
    let (top, dropped) = refer::complete(of_type_object(members));
    if let Some(reference) = dropped.filter(|_| !marks.iter().any(|mark| matches!(mark, Mark::ReferenceDropped(_)))) {
        marks.push(Mark::ReferenceDropped(reference));
    }
    Ok(Compiled { schema: if top == tree { schema.clone() } else { written(&top) }, marks })
}

fn fault(error: DecodeError) -> SchemaFault {
    match error {
        DecodeError::TooComplex(TooComplex::Depth(_)) => SchemaFault::TooDeep,
        DecodeError::TooComplex(TooComplex::Nodes(_)) => SchemaFault::TooMany,
        DecodeError::Shape(_) => SchemaFault::Invalid,
    }
}

/// Whether a schema can describe an object, as far as its type says.
fn may_be_object(schema: &Tree<'_>) -> bool {
    match (schema, schema.member("type")) {
        (Tree::Object(_), None) => true,
        (_, Some(Tree::Text(name))) => name == "object",
        (_, Some(Tree::List(names))) => names.iter().any(|name| name.text() == Some("object")),
        _ => false,
    }
}

fn of_type_object(mut members: Members<'_>) -> Members<'_> {
    let object = Tree::Text(Cow::Borrowed("object"));
    match members.iter_mut().find(|(key, _)| key == "type") {
        Some((_, value)) => *value = object,
        None => members.insert(0, (Cow::Borrowed("type"), object)),
    }
    members
}

fn written(tree: &Tree<'_>) -> Raw {
    let mut text = String::new();
    tree.write(&mut text);
    Raw::known(text)
}

#[cfg(test)]
mod tests;
