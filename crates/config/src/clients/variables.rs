//! Texts with variable references, in Wharf's syntax.

use crate::expand::{TemplatePart, parse_reference};

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VariablePiece {
    Text(String),
    Variable {
        name: String,
        default: Option<String>,
    },
    Secret(String),
    /// Any other reference, as written.
    Other(String),
}

/// Parses a text in Wharf's syntax.
pub(super) fn parse_pieces(text: &str) -> Vec<VariablePiece> {
    let mut pieces = PieceBuilder::default();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        if rest[..start].ends_with('$') {
            pieces.push_text(&rest[..start - 1]);
            pieces.push_text("${");
            rest = &rest[start + 2..];
            continue;
        }
        pieces.push_text(&rest[..start]);
        let Some(end) = rest[start..].find('}').map(|end| start + end) else {
            rest = &rest[start..];
            break;
        };
        match parse_reference_piece(&rest[start + 2..end]) {
            Some(piece) => pieces.0.push(piece),
            None => pieces.0.push(VariablePiece::Other(rest[start..=end].to_owned())),
        }
        rest = &rest[end + 1..];
    }
    pieces.push_text(rest);
    pieces.0
}

fn parse_reference_piece(inner: &str) -> Option<VariablePiece> {
    match parse_reference(inner) {
        TemplatePart::Secret(name) => Some(VariablePiece::Secret(name.to_owned())),
        TemplatePart::Variable { name, default } => {
            Some(VariablePiece::Variable { name: name.to_owned(), default: default.map(str::to_owned) })
        }
        TemplatePart::Text(_) | TemplatePart::Project | TemplatePart::Foreign(_) | TemplatePart::Unclosed => None,
    }
}

/// Parses `V` or `V:-default`.
pub(super) fn parse_variable(inner: &str) -> Option<VariablePiece> {
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (inner, None),
    };
    is_variable_name(name).then(|| VariablePiece::Variable { name: name.to_owned(), default })
}

/// Reports whether this is a valid variable name.
pub(super) fn is_variable_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Writes a text in Wharf's syntax. Returns `None` if a reference directly follows a `$`, because `$${` is an escape.
pub(super) fn write_pieces(pieces: &[VariablePiece]) -> Option<String> {
    let mut text = String::new();
    for piece in pieces {
        let reference = match piece {
            VariablePiece::Text(literal) => {
                text.push_str(&literal.replace("${", "$${"));
                continue;
            }
            VariablePiece::Variable { name, default: None } => format!("${{{name}}}"),
            VariablePiece::Variable { name, default: Some(default) } => format!("${{{name}:-{default}}}"),
            VariablePiece::Secret(name) => format!("${{secret:{name}}}"),
            VariablePiece::Other(written) => written.clone(),
        };
        if text.ends_with('$') {
            return None;
        }
        text.push_str(&reference);
    }
    Some(text)
}

/// A list of pieces without adjacent texts.
#[derive(Default)]
pub(super) struct PieceBuilder(pub(super) Vec<VariablePiece>);

impl PieceBuilder {
    pub(super) fn push_text(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(VariablePiece::Text(last)) => last.push_str(text),
            _ => self.0.push(VariablePiece::Text(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_texts_round_trip() {
        for text in ["", "a", "${A}", "$${A}", "$$${A}", "${A:-b c}${secret:x}$", "$", "a$b", "${b c}"] {
            assert_eq!(write_pieces(&parse_pieces(text)).as_deref(), Some(text));
        }
        assert_eq!(
            parse_pieces("${env:A:-b}"),
            [VariablePiece::Variable { name: "A".to_owned(), default: Some("b".to_owned()) }]
        );
    }
}
