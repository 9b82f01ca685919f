//! Variable references in the syntaxes of other clients.

use std::path::{MAIN_SEPARATOR_STR, Path};

use super::note::{ConversionNote, displayed_name};
use super::variables::{PieceBuilder, VariablePiece, is_variable_name, parse_variable, write_pieces};

/// Syntax of variable references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariableSyntax {
    /// No references: every text is literal.
    Literal,
    /// `${V}`, and `${V:-default}` if `defaults` is set. The syntax of Wharf.
    Braces { defaults: bool },
    /// The syntax of editors: `${env:V}`, `${workspaceFolder}`, and `${input:id}` if `inputs` is set.
    Editor { inputs: bool },
    /// `{env:V}`.
    Curly,
    /// Shell syntax: `$V`, `${V}`, `${V:-default}`. An unset variable is empty.
    Shell,
}

impl VariableSyntax {
    /// Parses a client's text and adds notes about unsupported references. `field` is the name of the field.
    pub(super) fn read(
        self,
        text: &str,
        field: &str,
        project: &Path,
        notes: &mut Vec<ConversionNote>,
    ) -> Vec<VariablePiece> {
        let mut reading = SyntaxReader { field, project, notes, pieces: PieceBuilder::default() };
        match self {
            Self::Literal => reading.pieces.push_text(text),
            Self::Braces { defaults } => reading.read_braced(text, "${", |_, inner| {
                parse_variable(inner).filter(|piece| defaults || !has_default(piece)).into()
            }),
            Self::Editor { inputs } => {
                reading.read_braced(text, "${", |reading, inner| reading.editor_reference(inner, inputs))
            }
            Self::Curly => reading.read_braced(text, "{", |reading, inner| reading.curly_reference(inner)),
            Self::Shell => reading.read_shell(text),
        }
        reading.pieces.0
    }

    /// Writes a text in the client's syntax and adds notes about references that cannot be expressed.
    pub(super) fn write(self, pieces: &[VariablePiece], field: &str, notes: &mut Vec<ConversionNote>) -> String {
        let mut text = String::new();
        let mut known = true;
        for piece in pieces {
            match self.reference_text(piece) {
                Some(spelling) => {
                    text.push_str(&spelling);
                    notes.extend(prompt_note(piece, field));
                }
                None => {
                    known = false;
                    text.push_str(&write_pieces(std::slice::from_ref(piece)).unwrap_or_default());
                    notes.push(unsupported_reference_note(piece, field));
                }
            }
        }
        // Parse the result again to detect ambiguities. Secrets become prompts of the client and are not compared.
        let pieces = self.with_empty_defaults(pieces, field, notes);
        let asks = pieces.iter().any(|piece| matches!(piece, VariablePiece::Secret(_)));
        if known && !asks && self.read(&text, field, Path::new("/"), &mut Vec::new()) != pieces {
            notes.push(
                ConversionNote::changed(format!("`{}` has a different meaning in that client", displayed_name(field)))
                    .fix("check it manually"),
            );
        }
        text
    }

    /// Returns the pieces as read by a client for which an unset variable is empty, and adds a note if that makes a
    /// difference.
    fn with_empty_defaults(
        self,
        pieces: &[VariablePiece],
        field: &str,
        notes: &mut Vec<ConversionNote>,
    ) -> Vec<VariablePiece> {
        let empty = |piece: &VariablePiece| match piece {
            VariablePiece::Variable { name, default: None } if self == Self::Shell => {
                VariablePiece::Variable { name: name.clone(), default: Some(String::new()) }
            }
            piece => piece.clone(),
        };
        let read: Vec<_> = pieces.iter().map(empty).collect();
        if read != pieces {
            let text =
                format!("`{}` refers to a variable that the client treats as empty if unset", displayed_name(field));
            notes.push(ConversionNote::hint(text));
        }
        read
    }

    fn reference_text(self, piece: &VariablePiece) -> Option<String> {
        match (self, piece) {
            (_, VariablePiece::Text(text)) => Some(text.clone()),
            (Self::Braces { defaults }, VariablePiece::Variable { .. }) if defaults || !has_default(piece) => {
                write_pieces(std::slice::from_ref(piece))
            }
            (Self::Editor { .. }, VariablePiece::Variable { name, default: None }) => Some(format!("${{env:{name}}}")),
            (Self::Editor { inputs: true }, VariablePiece::Secret(name)) => Some(format!("${{input:{name}}}")),
            (Self::Curly, VariablePiece::Variable { name, default: None }) => Some(format!("{{env:{name}}}")),
            (Self::Shell, VariablePiece::Variable { name, default }) => match default.as_deref() {
                None | Some("") => Some(format!("${{{name}}}")),
                Some(default) => Some(format!("${{{name}:-{default}}}")),
            },
            _ => None,
        }
    }
}

/// Returns a note if the client prompts for this secret.
fn prompt_note(piece: &VariablePiece, field: &str) -> Option<ConversionNote> {
    let VariablePiece::Secret(name) = piece else { return None };
    let text = format!(
        "`{}` refers to the secret `{}`, for which the client will prompt",
        displayed_name(field),
        displayed_name(name)
    );
    Some(ConversionNote::hint(text))
}

fn has_default(piece: &VariablePiece) -> bool {
    matches!(piece, VariablePiece::Variable { default: Some(_), .. })
}

fn unsupported_reference_note(piece: &VariablePiece, field: &str) -> ConversionNote {
    let field = displayed_name(field);
    let note = match piece {
        VariablePiece::Secret(name) => {
            format!("`{field}` refers to the secret `{}`, which only Wharf can read", displayed_name(name))
        }
        VariablePiece::Variable { name, default: Some(_) } => {
            format!("`{field}` has a default for `{}`, but the client does not support defaults", displayed_name(name))
        }
        VariablePiece::Variable { name, .. } => {
            format!("`{field}` refers to the variable `{}`, which the client does not expand", displayed_name(name))
        }
        VariablePiece::Other(_) => format!("`{field}` contains a reference that only Wharf supports"),
        VariablePiece::Text(_) => format!("`{field}` has a different meaning in that client"),
    };
    ConversionNote::changed(note).fix("enter the value manually")
}

/// Meaning of a text between braces.
enum BraceMeaning {
    Piece(VariablePiece),
    Text(String),
    /// Not a reference. The text stays as written.
    Nothing,
}

impl From<Option<VariablePiece>> for BraceMeaning {
    fn from(piece: Option<VariablePiece>) -> Self {
        piece.map_or(Self::Nothing, Self::Piece)
    }
}

struct SyntaxReader<'a> {
    field: &'a str,
    project: &'a Path,
    notes: &'a mut Vec<ConversionNote>,
    pieces: PieceBuilder,
}

impl SyntaxReader<'_> {
    fn read_braced(&mut self, text: &str, open: &str, meaning: impl Fn(&mut Self, &str) -> BraceMeaning) {
        let mut rest = text;
        while let Some(start) = rest.find(open) {
            let inside = start + open.len();
            let Some(end) = rest[inside..].find('}').map(|end| inside + end) else { break };
            self.pieces.push_text(&rest[..start]);
            match meaning(self, &rest[inside..end]) {
                BraceMeaning::Piece(piece) => self.pieces.0.push(piece),
                BraceMeaning::Text(text) => self.pieces.push_text(&text),
                BraceMeaning::Nothing => self.pieces.push_text(&rest[start..=end]),
            }
            rest = &rest[end + 1..];
        }
        self.pieces.push_text(rest);
    }

    fn editor_reference(&mut self, inner: &str, inputs: bool) -> BraceMeaning {
        match inner.split_once(':') {
            Some(("env", name)) if is_variable_name(name) => parse_variable(name).into(),
            Some(("input", id)) if inputs => BraceMeaning::Piece(self.input_variable(id)),
            Some((kind @ ("env" | "input" | "config" | "command" | "file"), _)) => {
                self.unsupported_reference(&format!("${{{kind}:…}}"))
            }
            _ => self.editor_variable(inner),
        }
    }

    fn editor_variable(&mut self, inner: &str) -> BraceMeaning {
        match inner {
            "workspaceFolder" => BraceMeaning::Text(self.project.display().to_string()),
            "workspaceFolderBasename" => {
                BraceMeaning::Text(self.project.file_name().unwrap_or_default().to_string_lossy().into_owned())
            }
            "userHome" => parse_variable("HOME").into(),
            "pathSeparator" | "/" => BraceMeaning::Text(MAIN_SEPARATOR_STR.to_owned()),
            _ => {
                let text = format!(
                    "`{}` contains a `${{…}}` that is not a variable for that client and stays literal",
                    self.field()
                );
                self.notes.push(ConversionNote::hint(text).fix("write `${NAME}` to expand a variable"));
                BraceMeaning::Nothing
            }
        }
    }

    /// Converts an input prompt to a variable.
    fn input_variable(&mut self, id: &str) -> VariablePiece {
        let fit = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
        let name: String = id.chars().map(fit).take(64).collect();
        let name = if is_variable_name(&name) { name } else { format!("INPUT_{name}") };
        let text =
            format!("`{}` prompts for `{}`, which becomes the variable `{name}`", self.field(), displayed_name(id));
        let fix = format!("set `{name}`, or store a secret of that name and write `${{secret:{name}}}`");
        self.notes.push(ConversionNote::hint(text).fix(fix));
        VariablePiece::Variable { name, default: None }
    }

    fn curly_reference(&mut self, inner: &str) -> BraceMeaning {
        match inner.split_once(':') {
            Some(("env", name)) if is_variable_name(name) => parse_variable(name).into(),
            Some(("file", _)) => self.unsupported_reference("{file:…}"),
            _ => BraceMeaning::Nothing,
        }
    }

    fn unsupported_reference(&mut self, spelling: &str) -> BraceMeaning {
        let text = format!(
            "`{}` contains `{}`, which is not supported and stays literal",
            self.field(),
            displayed_name(spelling)
        );
        self.notes.push(ConversionNote::lost(text).fix("replace it with the value"));
        BraceMeaning::Nothing
    }

    /// Parses `$V` and `${V}`. Any other use of `$` is literal.
    fn read_shell(&mut self, text: &str) {
        let mut rest = text;
        while let Some(start) = rest.find('$') {
            self.pieces.push_text(&rest[..start]);
            let (piece, length) = shell_reference(&rest[start..]);
            match piece {
                Some(piece) => self.pieces.0.push(piece),
                None => self.pieces.push_text(&rest[start..start + length]),
            }
            rest = &rest[start + length..];
        }
        self.pieces.push_text(rest);
    }

    fn field(&self) -> String {
        displayed_name(self.field)
    }
}

/// Parses the reference at a `$`. Returns the reference, if it is one, and the length of the text consumed.
fn shell_reference(text: &str) -> (Option<VariablePiece>, usize) {
    let empty_if_unset = |piece: VariablePiece| match piece {
        VariablePiece::Variable { name, default } => {
            VariablePiece::Variable { name, default: Some(default.unwrap_or_default()) }
        }
        piece => piece,
    };
    if let Some(inner) = text.strip_prefix("${") {
        let Some(end) = inner.find('}') else { return (None, 2) };
        return (parse_variable(&inner[..end]).map(empty_if_unset), end + 3);
    }
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = text.bytes().skip(1).take_while(is_part).count();
    (parse_variable(&text[1..1 + length]).map(empty_if_unset), length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::variables::parse_pieces;

    const BRACES: VariableSyntax = VariableSyntax::Braces { defaults: true };
    const EDITOR: VariableSyntax = VariableSyntax::Editor { inputs: true };

    #[test]
    fn client_variables_are_parsed() {
        for (dialect, theirs, expected) in [
            (VariableSyntax::Literal, "a${B}$${C}", "a$${B}$$${C}"),
            (BRACES, "a${B}-${C:-d}", "a${B}-${C:-d}"),
            (BRACES, "${not a name} ${", "$${not a name} $${"),
            (EDITOR, "Bearer ${env:TOKEN}", "Bearer ${TOKEN}"),
            (EDITOR, "${workspaceFolder}${/}${workspaceFolderBasename}", "/home/me/code/code"),
            (EDITOR, "${userHome}/x", "${HOME}/x"),
            (EDITOR, "${input:api-key}", "${api_key}"),
            (EDITOR, "${input:1}", "${INPUT_1}"),
            (EDITOR, "${config:a.b} ${FOO}", "$${config:a.b} $${FOO}"),
            (VariableSyntax::Curly, "{env:A}{b}${C}{file:x}", "${A}{b}$${C}{file:x}"),
            (VariableSyntax::Shell, "$A-${B}-${C:-d}-$1-$$", "${A:-}-${B:-}-${C:-d}-$1-$$"),
        ] {
            let pieces = dialect.read(theirs, "env.X", Path::new("/home/me/code"), &mut Vec::new());
            assert_eq!(write_pieces(&pieces).as_deref(), Some(expected), "{theirs}");
        }
    }

    #[test]
    fn variables_are_written_in_client_syntax() {
        for (dialect, text, expected, noted) in [
            (VariableSyntax::Literal, "a$${B}", "a${B}", false),
            (VariableSyntax::Literal, "a${B}", "a${B}", true),
            (BRACES, "${B:-c}", "${B:-c}", false),
            (BRACES, "$${B}", "${B}", true),
            (VariableSyntax::Braces { defaults: false }, "${B}", "${B}", false),
            (VariableSyntax::Braces { defaults: false }, "${B:-c}", "${B:-c}", true),
            (EDITOR, "${B}", "${env:B}", false),
            (EDITOR, "$${B}", "${B}", false),
            (EDITOR, "$${env:B}", "${env:B}", true),
            (EDITOR, "${B:-c}", "${B:-c}", true),
            (VariableSyntax::Curly, "${B}", "{env:B}", false),
            (VariableSyntax::Curly, "{env:B}", "{env:B}", true),
            (VariableSyntax::Shell, "${B:-}", "${B}", false),
            (VariableSyntax::Shell, "${B}", "${B}", true),
            (VariableSyntax::Shell, "$B", "$B", true),
            (VariableSyntax::Shell, "${secret:b}", "${secret:b}", true),
            (EDITOR, "${secret:b}", "${input:b}", true),
            (BRACES, "${other:b}", "${other:b}", true),
        ] {
            let mut notes = Vec::new();
            assert_eq!(dialect.write(&parse_pieces(text), "env.X", &mut notes), expected, "{text}");
            assert_eq!(!notes.is_empty(), noted, "{dialect:?} {text} {notes:?}");
        }
    }

    #[test]
    fn reference_after_a_dollar_cannot_be_written() {
        let pieces = EDITOR.read("$${env:A}", "env.X", Path::new("/"), &mut Vec::new());
        assert_eq!(write_pieces(&pieces), None);
    }
}
