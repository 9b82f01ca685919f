//! Parser for JSON with comments and trailing commas, and no other extensions.

use jsonc_parser::ast::{Object, ObjectProp, Value as Parsed};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use crate::format::{NodeBudget, SourceText, lowercase_fragment};
use crate::tree::{ConfigMember, ConfigNode, ConfigValue, ParseFailure};

/// Parses a text without a byte order mark.
pub(crate) fn parse_json(source: &SourceText<'_>) -> Result<ConfigNode, ParseFailure> {
    let parsed = parse_to_ast(source.text, &CollectOptions::default(), &OPTIONS)
        .map_err(|error| source.unreadable(error.range().start, lowercase_fragment(&error.kind().to_string())))?;
    let Some(value) = parsed.value else {
        return Err(source.unreadable(0, "is empty, expected at least `{}`"));
    };
    JsoncReader { source, budget: NodeBudget::default() }.node(value, 1)
}

/// Parser options for reading and editing: JSON with comments and trailing commas, and no other extensions.
pub(crate) const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

struct JsoncReader<'a> {
    source: &'a SourceText<'a>,
    budget: NodeBudget,
}

impl JsoncReader<'_> {
    fn node(&mut self, parsed: Parsed<'_>, depth: usize) -> Result<ConfigNode, ParseFailure> {
        let offset = parsed.start();
        self.budget.charge_node(depth).map_err(|text| self.source.unreadable(offset, text))?;
        let value = match parsed {
            Parsed::NullKeyword(_) => ConfigValue::Null,
            Parsed::BooleanLit(literal) => ConfigValue::Bool(literal.value),
            Parsed::NumberLit(literal) => ConfigValue::Number(literal.value.to_owned()),
            Parsed::StringLit(literal) => {
                self.check_closed(literal.range.start, literal.range.end)?;
                ConfigValue::Text(literal.value.into_owned())
            }
            Parsed::Array(array) => {
                let nodes = array.elements.into_iter().map(|element| self.node(element, depth + 1));
                ConfigValue::List(nodes.collect::<Result<_, _>>()?)
            }
            Parsed::Object(object) => ConfigValue::Map(self.members(object, depth)?),
        };
        Ok(ConfigNode { at: self.source.position_at(offset), value })
    }

    fn members(&mut self, object: Object<'_>, depth: usize) -> Result<Vec<ConfigMember>, ParseFailure> {
        object.properties.into_iter().map(|property| self.member(property, depth)).collect()
    }

    fn member(&mut self, property: ObjectProp<'_>, depth: usize) -> Result<ConfigMember, ParseFailure> {
        let (start, end) = (property.name.start(), property.name.end());
        self.check_closed(start, end)?;
        let node = self.node(property.value, depth + 1)?;
        Ok(ConfigMember { key: property.name.into_string(), at: self.source.position_at(start), node })
    }

    /// Rejects a string that spans a line break, because its closing quote is probably missing.
    fn check_closed(&self, start: usize, end: usize) -> Result<(), ParseFailure> {
        if self.source.text[start..end].contains('\n') {
            return Err(self.source.unreadable(start, "unterminated string literal"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::format::{FileFormat, parse_text};
    use crate::tree::{ConfigValue, TextPosition};

    #[test]
    fn json_extensions_are_rejected() {
        for (text, expected) in [
            ("", "1:1: is empty, expected at least `{}`"),
            (" // nothing\n", "1:1: is empty, expected at least `{}`"),
            ("{a: 1}", "1:2: expected string for object property"),
            ("{'a': 1}", "1:2: single-quoted strings are not allowed"),
            ("{\"a\": 0x1f}", "1:7: hexadecimal numbers are not allowed"),
            ("[+1]", "1:2: unary plus on numbers is not allowed"),
            ("[.5]", "1:2: leading or trailing decimal points on numbers are not allowed"),
            ("[NaN]", "1:2: unexpected token"),
            ("[01]", "1:3: expected comma"),
            ("[1 2]", "1:3: expected comma"),
            ("[1,,2]", "1:4: unexpected comma"),
            ("{\"ä\":\n \"b", "2:2: unterminated string literal"),
            ("{\"ä\":\n \"b\nc\"}", "2:2: unterminated string literal"),
            ("[\"\\x41\"]", "1:3: invalid escape"),
            ("{} {}", "1:4: text cannot contain more than one JSON value"),
            ("{\"a\":", "1:6: expected value after colon in object property"),
            ("/* ", "1:1: unterminated comment block"),
        ] {
            let error = parse_text(text, FileFormat::Json).unwrap_err();
            assert_eq!(format!("{}: {error}", error.at), expected, "{text}");
        }
    }

    #[test]
    fn positions_and_duplicate_keys_are_preserved() {
        let text =
            "\u{feff}{ // first\n\t\"ä\": [1.50, -2e3,], /* and */ \"b\": null,\n\"ä\": {\"ü\": \"\\u00fc\\n\"},}";
        let tree = parse_text(text, FileFormat::Json).unwrap();
        let mut places = Vec::new();
        for member in tree.members() {
            places.push((member.key.as_str(), member.at.to_string(), member.node.at.to_string()));
        }
        assert_eq!(
            places,
            [
                ("ä", "2:2".to_owned(), "2:7".to_owned()),
                ("b", "2:32".to_owned(), "2:37".to_owned()),
                ("ä", "3:1".to_owned(), "3:6".to_owned()),
            ]
        );
        assert_eq!(tree.at, TextPosition::START);
        let ConfigValue::List(numbers) = &tree.members()[0].node.value else { panic!("no list") };
        assert_eq!(numbers[0].value, ConfigValue::Number("1.50".to_owned()));
        assert_eq!(numbers[1].value, ConfigValue::Number("-2e3".to_owned()));
        assert_eq!(tree.members()[2].node.member("ü").unwrap().node.text(), Some("ü\n"));
    }

    #[test]
    fn nesting_and_value_count_are_limited() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse_text(&nested(64), FileFormat::Json).is_ok());
        assert_eq!(parse_text(&nested(65), FileFormat::Json).unwrap_err().text, "is nested more than 64 levels deep");
        assert!(parse_text(&nested(100_000), FileFormat::Json).is_err());
        let wide = |values: usize| format!("[{}]", "0,".repeat(values));
        assert!(parse_text(&wide(199_999), FileFormat::Json).is_ok());
        assert_eq!(parse_text(&wide(200_000), FileFormat::Json).unwrap_err().text, "contains more than 200000 values");
    }
}
