//! Expansion of `${…}` references.
//!
//! `${VAR}` and `${env:VAR}` refer to a variable, `${VAR:-default}` to one with a default, `${secret:NAME}` to a stored
//! secret and `${project}` to the project's directory. `$${` is a literal `${`. A bare `$VAR` is literal.

use std::path::Path;

use wharf_spec::{Environment, UntrustedText};

/// A function that returns a secret by name, or the reason for which it is unavailable.
pub type SecretSource<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// Error of the expansion of a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpandError {
    /// A variable is not set.
    #[error("the variable `{0}` is not set")]
    Unset(String),
    /// A variable's value is not UTF-8.
    #[error("the variable `{0}` is not valid UTF-8")]
    NotText(String),
    /// A secret is unavailable.
    #[error("cannot read the secret `{name}`: {why}")]
    NoSecret {
        /// Name of the secret.
        name: String,
        /// Reason.
        why: String,
    },
    /// The reference is not supported.
    #[error("`${{{0}}}` is not a supported reference")]
    Foreign(String),
    /// The reference is not closed.
    #[error("`${{` is not closed")]
    Unclosed,
}

/// A text after expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpandedText {
    pub text: String,
    /// Values that replaced references. Not to be displayed.
    pub taken: Vec<String>,
}

/// One part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePart<'a> {
    /// Literal text. An escaped `$${` appears as `${`.
    Text(&'a str),
    /// A variable.
    Variable {
        /// Name of the variable.
        name: &'a str,
        /// Value to use if the variable is unset or empty.
        default: Option<&'a str>,
    },
    /// A secret, by name.
    Secret(&'a str),
    /// The project's directory.
    Project,
    /// A reference that is not supported.
    Foreign(&'a str),
    /// A reference that is not closed.
    Unclosed,
}

impl ExpandError {
    /// Returns a stable error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unset(_) => "unset_variable",
            Self::NotText(_) => "not_text",
            Self::NoSecret { .. } => "no_secret",
            Self::Foreign(_) | Self::Unclosed => "bad_reference",
        }
    }

    /// Returns a suggested fix.
    pub fn fix(&self) -> String {
        match self {
            Self::Unset(name) => format!("set {name}, or give a default: ${{{name}:-…}}"),
            Self::NotText(name) => format!("set {name} to a value in UTF-8"),
            Self::NoSecret { name, .. } => format!("wharf secret set {name}"),
            Self::Foreign(_) => "use ${VAR}, ${VAR:-default} or ${secret:NAME}, or $${ for a literal ${".to_owned(),
            Self::Unclosed => "close it with }, or use $${ for a literal ${".to_owned(),
        }
    }
}

/// Sources for the values of references.
pub(crate) struct ReferenceSources<'a> {
    pub around: &'a Environment,
    pub secrets: &'a SecretSource<'a>,
    /// The project's directory, for texts that may refer to it.
    pub project: Option<&'a Path>,
}

/// Expands all references in a text.
pub(crate) fn expand(text: &str, references: &ReferenceSources<'_>) -> Result<ExpandedText, ExpandError> {
    let ReferenceSources { around, secrets, project } = references;
    let mut expanded = ExpandedText { text: String::with_capacity(text.len()), taken: Vec::new() };
    for part in parse_template(text) {
        let value = match part {
            TemplatePart::Text(text) => {
                expanded.text.push_str(text);
                continue;
            }
            TemplatePart::Project => {
                // A path is not secret, so it is not recorded as a substituted value.
                expanded.text.push_str(project_path(*project)?);
                continue;
            }
            TemplatePart::Variable { name, default } => lookup_variable(name, default, around)?,
            TemplatePart::Secret(name) => {
                secrets(name).map_err(|why| ExpandError::NoSecret { name: name.to_owned(), why })?
            }
            TemplatePart::Foreign(what) => {
                return Err(ExpandError::Foreign(UntrustedText::new(what).truncate(80).to_string()));
            }
            TemplatePart::Unclosed => return Err(ExpandError::Unclosed),
        };
        expanded.text.push_str(&value);
        expanded.taken.push(value);
    }
    Ok(expanded)
}

fn project_path(project: Option<&Path>) -> Result<&str, ExpandError> {
    let project = project.ok_or_else(|| ExpandError::Foreign("project".to_owned()))?;
    project.to_str().ok_or_else(|| ExpandError::NotText("project".to_owned()))
}

/// Returns the value of a variable. As in a shell, an empty variable is treated as unset if there is a default.
pub(crate) fn lookup_variable(name: &str, default: Option<&str>, around: &Environment) -> Result<String, ExpandError> {
    let found = around.var(name).filter(|value| default.is_none() || !value.is_empty());
    match (found, default) {
        (Some(value), _) => match value.to_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(ExpandError::NotText(name.to_owned())),
        },
        (None, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(ExpandError::Unset(name.to_owned())),
    }
}

/// Splits a text into literal parts and references.
pub fn parse_template(text: &str) -> Vec<TemplatePart<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            found.push(TemplatePart::Text(&rest[..at - 1]));
            found.push(TemplatePart::Text("${"));
            rest = &rest[at + 2..];
            continue;
        }
        if at > 0 {
            found.push(TemplatePart::Text(&rest[..at]));
        }
        let Some(end) = rest[at..].find('}') else {
            found.push(TemplatePart::Unclosed);
            return found;
        };
        found.push(parse_reference(&rest[at + 2..at + end]));
        rest = &rest[at + end + 1..];
    }
    if !rest.is_empty() {
        found.push(TemplatePart::Text(rest));
    }
    found
}

/// Parses the text between `${` and `}`.
pub(crate) fn parse_reference(inner: &str) -> TemplatePart<'_> {
    if let Some(name) = inner.strip_prefix("secret:") {
        return TemplatePart::Secret(name);
    }
    if inner == "project" {
        return TemplatePart::Project;
    }
    let inside = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = inside.split_once(":-").map_or((inside, None), |(name, default)| (name, Some(default)));
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
    if begins && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        TemplatePart::Variable { name, default }
    } else {
        TemplatePart::Foreign(inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_environment() -> Environment {
        let env = [("A", "alpha"), ("EMPTY", ""), ("B_2", "${A}")];
        Environment { env: env.map(|(name, value)| (name.into(), value.into())).to_vec(), ..Environment::default() }
    }

    #[test]
    fn references_are_expanded_once() {
        let secrets = |name: &str| match name {
            "known" => Ok("hush".to_owned()),
            _ => Err("not kept".to_owned()),
        };
        for (text, expected) in [
            ("", Ok("")),
            ("plain $A {A}", Ok("plain $A {A}")),
            ("${A}", Ok("alpha")),
            ("x${A}y${A}", Ok("xalphayalpha")),
            ("${env:A}", Ok("alpha")),
            ("${B_2}", Ok("${A}")),
            ("$${A}", Ok("${A}")),
            ("$$${A}", Ok("$${A}")),
            ("${EMPTY}", Ok("")),
            ("${EMPTY:-d}", Ok("d")),
            ("${NONE:-}", Ok("")),
            ("${NONE:-a:-b}", Ok("a:-b")),
            ("Bearer ${secret:known}", Ok("Bearer hush")),
            ("${project}/src", Ok("/work/project/src")),
            ("${NONE}", Err("unset_variable")),
            ("${secret:other}", Err("no_secret")),
            ("${input:token}", Err("bad_reference")),
            ("${}", Err("bad_reference")),
            ("${A B}", Err("bad_reference")),
            ("${A", Err("bad_reference")),
        ] {
            let around = test_environment();
            let references =
                ReferenceSources { around: &around, secrets: &secrets, project: Some(Path::new("/work/project")) };
            let found = expand(text, &references);
            let found = found.as_ref().map(|expanded| expanded.text.as_str()).map_err(ExpandError::code);
            assert_eq!(found, expected, "{text}");
        }
    }
}
