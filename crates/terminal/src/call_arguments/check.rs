//! Collects all problems of a call's arguments, to report them together.

use wharf_wire::RawJson;

use super::{ArgumentValue, InputSchema, TypedArgument};
use crate::failure::Failure;
use crate::suggestions::similar_names;
use crate::table::truncate_columns;

/// Maximum characters of a value in a message.
const MAX_VALUE_SHOWN: usize = 200;

/// Checks arguments one by one, then as a whole.
pub struct ArgumentChecker<'a> {
    tool: &'a str,
    schema: Option<&'a InputSchema>,
    given: Vec<String>,
    problems: Vec<String>,
    hints: Vec<String>,
    warnings: Vec<String>,
    /// Likely intended names of unknown arguments, not reported as missing as well.
    meant: Vec<String>,
}

impl<'a> ArgumentChecker<'a> {
    pub fn new(tool: &'a str, schema: Option<&'a InputSchema>) -> Self {
        let (given, problems, hints, warnings, meant) = Default::default();
        Self { tool, schema, given, problems, hints, warnings, meant }
    }

    /// Returns the value to send for an argument, or `None` if it is invalid.
    pub fn check_argument(&mut self, given: TypedArgument) -> Option<RawJson> {
        let TypedArgument { name, value } = given;
        self.check_name(&name);
        let value = match value {
            ArgumentValue::Json(json) => Some(json),
            ArgumentValue::Member(json) => self.check_value(&name, json.as_str(), Ok(json.clone())),
            ArgumentValue::Text(text) => {
                let types = self.schema.map(|schema| schema.types_of(&name)).unwrap_or_default();
                self.check_value(&name, &text, types.parse(&text))
            }
        };
        self.given.push(name);
        value
    }

    /// Checks a value against the schema, or records the type that was expected.
    fn check_value(&mut self, name: &str, given_text: &str, value: Result<RawJson, String>) -> Option<RawJson> {
        let expected = match value {
            Ok(json) => match self.schema.and_then(|schema| schema.mismatch(name, &json)) {
                None => return Some(json),
                Some(expected) => expected,
            },
            Err(expected) => expected,
        };
        let given_text = truncate_columns(given_text, MAX_VALUE_SHOWN);
        self.problems.push(format!("`{name}` must be {expected}, not `{given_text}`"));
        self.hints.push(format!("to send a value unchecked, write {name}:=JSON"));
        None
    }

    fn check_name(&mut self, name: &str) {
        let Some(schema) = self.schema.filter(|schema| !schema.has(name)) else { return };
        let close = similar_names(name, schema.names()).first().map(|close| (*close).to_owned());
        let meant = close.as_ref().map(|close| format!("did you mean `{close}`?"));
        if schema.is_closed() {
            self.problems.push(format!("the tool `{}` takes no argument `{name}`", self.tool));
            self.hints.push(meant.unwrap_or_else(|| schema.usage()));
            self.meant.extend(close);
        } else if schema.leaves_others_open() {
            let meant = meant.map(|meant| format!("; {meant}")).unwrap_or_default();
            self.warnings.push(format!("the tool `{}` does not declare an argument `{name}`{meant}", self.tool));
        }
    }

    /// Returns the warnings.
    ///
    /// # Errors
    ///
    /// Fails with all problems if there are any.
    pub fn finish(mut self) -> Result<Vec<String>, Failure> {
        let needed = self.schema.into_iter().flat_map(InputSchema::required);
        let is_missing = |name: &&str| !self.given.iter().chain(&self.meant).any(|other| other == name);
        let missing: Vec<String> = needed.filter(is_missing).map(|name| format!("`{name}`")).collect();
        if !missing.is_empty() {
            self.problems.push(format!("the tool `{}` needs {}", self.tool, missing.join(", ")));
            self.hints.extend(self.schema.map(InputSchema::usage));
        }
        if self.problems.is_empty() {
            return Ok(self.warnings);
        }
        let mut failure = Failure::usage(self.problems.join("; "));
        for hint in self.hints {
            if !failure.hints.contains(&hint) {
                failure = failure.with_hint(hint);
            }
        }
        Err(failure)
    }
}
