//! Parser for YAML 1.2 with the core schema: `no` and `on` are strings, merge keys are not supported, and aliases are
//! expanded.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, Tag};

use crate::format::{NodeBudget, SourceText, lowercase_fragment};
use crate::tree::{ConfigMember, ConfigNode, ConfigValue, ParseFailure, TextPosition};

/// Maximum bytes that anchors and aliases may add to a file.
const MAX_ALIAS_BYTES: usize = 1 << 20;

/// Parses a text without a byte order mark. An empty text is null.
pub(crate) fn parse_yaml(source: &SourceText<'_>) -> Result<ConfigNode, ParseFailure> {
    let parser = Parser::new_from_str(source.text);
    let mut reading =
        YamlReader { source, parser, budget: NodeBudget::default(), anchors: HashMap::new(), room: MAX_ALIAS_BYTES };
    let mut root = None;
    loop {
        match reading.next()? {
            (Event::StreamEnd, _) => {
                return Ok(root.unwrap_or(ConfigNode { at: TextPosition::START, value: ConfigValue::Null }));
            }
            (Event::DocumentStart(..), span) if root.is_some() => {
                return Err(reading.unreadable(span.start, "contains more than one document"));
            }
            (event, span) if event.is_node() => root = Some(reading.node(event, span, 1)?),
            _ => {}
        }
    }
}

struct YamlReader<'a> {
    source: &'a SourceText<'a>,
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    budget: NodeBudget,
    /// Values of completed anchors.
    anchors: HashMap<usize, ConfigNode>,
    /// Remaining bytes that anchors and aliases may add.
    room: usize,
}

impl<'a> YamlReader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), ParseFailure> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(self.unreadable(*error.marker(), lowercase_fragment(&error.info()))),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<ConfigNode, ParseFailure> {
        self.budget.charge_node(depth).map_err(|text| self.unreadable(span.start, text))?;
        let (value, anchor) = match event {
            Event::Alias(id) => return self.resolve_alias(id, span, depth),
            Event::Scalar(text, style, anchor, tag) => (self.scalar(text, style, tag, span)?, anchor),
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag(tag, "seq", span)?;
                (ConfigValue::List(self.list(depth)?), anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag(tag, "map", span)?;
                (ConfigValue::Map(self.members(depth)?), anchor)
            }
            _ => return Err(self.unreadable(span.start, "expected a value")),
        };
        let node = ConfigNode { at: position(span.start), value };
        if anchor != 0 {
            self.charge_copy(&node, depth).map_err(|text| self.unreadable(span.start, text))?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<ConfigNode>, ParseFailure> {
        let mut nodes = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(nodes),
                (event, span) => nodes.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn members(&mut self, depth: usize) -> Result<Vec<ConfigMember>, ParseFailure> {
        let mut members = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(members);
            }
            let key = self.key(event, span)?;
            let (event, value_span) = self.next()?;
            let node = self.node(event, value_span, depth + 1)?;
            members.push(ConfigMember { key, at: position(span.start), node });
        }
    }

    fn key(&mut self, event: Event<'a>, span: Span) -> Result<String, ParseFailure> {
        match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<" => {
                Err(self.unreadable(span.start, "merge keys (`<<`) are not supported: repeat the members"))
            }
            Event::Scalar(text, _, anchor, _) => {
                let value = ConfigValue::Text(text.into_owned());
                let node = ConfigNode { at: position(span.start), value };
                let key = node.text().unwrap_or_default().to_owned();
                if anchor != 0 {
                    self.anchors.insert(anchor, node);
                }
                Ok(key)
            }
            Event::Alias(id) => match self.resolve_alias(id, span, 1)?.value {
                ConfigValue::Text(text) => Ok(text),
                _ => Err(self.unreadable(span.start, "a key must be a string")),
            },
            _ => Err(self.unreadable(span.start, "a key must be a string")),
        }
    }

    /// Returns the value of an alias, with the alias's position.
    fn resolve_alias(&mut self, id: usize, span: Span, depth: usize) -> Result<ConfigNode, ParseFailure> {
        let Some(node) = self.anchors.remove(&id) else {
            return Err(self.unreadable(span.start, "an alias refers to its own anchor"));
        };
        self.charge_copy(&node, depth).map_err(|text| self.unreadable(span.start, text))?;
        let expanded = ConfigNode { at: position(span.start), value: node.value.clone() };
        self.anchors.insert(id, node);
        Ok(expanded)
    }

    /// Charges the limits for a copy of an anchored value.
    fn charge_copy(&mut self, node: &ConfigNode, depth: usize) -> Result<(), String> {
        self.budget.charge_node(depth)?;
        match &node.value {
            ConfigValue::List(nodes) => nodes.iter().try_for_each(|node| self.charge_copy(node, depth + 1)),
            ConfigValue::Map(members) => members.iter().try_for_each(|member| {
                self.charge_bytes(member.key.len())?;
                self.charge_copy(&member.node, depth + 1)
            }),
            ConfigValue::Text(text) | ConfigValue::Number(text) => self.charge_bytes(text.len()),
            ConfigValue::Null | ConfigValue::Bool(_) => Ok(()),
        }
    }

    fn charge_bytes(&mut self, bytes: usize) -> Result<(), String> {
        let room = self.room.checked_sub(bytes);
        self.room = room.ok_or_else(|| format!("aliases expand to more than {MAX_ALIAS_BYTES} bytes"))?;
        Ok(())
    }

    fn scalar(
        &self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        tag: Option<Cow<'_, Tag>>,
        span: Span,
    ) -> Result<ConfigValue, ParseFailure> {
        let core = tag.as_deref().map(Tag::core_suffix);
        match core {
            None if style == ScalarStyle::Plain => Ok(parse_plain_scalar(&text)),
            None | Some(Some("str")) => Ok(ConfigValue::Text(text.into_owned())),
            Some(Some("null" | "bool" | "int" | "float")) => Ok(parse_plain_scalar(&text)),
            Some(_) => Err(self.unknown_tag(span)),
        }
    }

    fn check_tag(&self, tag: Option<Cow<'_, Tag>>, expected: &str, span: Span) -> Result<(), ParseFailure> {
        match tag {
            Some(tag) if !tag.is_yaml_core_schema_tag(expected) => Err(self.unknown_tag(span)),
            _ => Ok(()),
        }
    }

    fn unknown_tag(&self, span: Span) -> ParseFailure {
        self.unreadable(span.start, "unsupported tag")
    }

    fn unreadable(&self, marker: Marker, text: impl AsRef<str>) -> ParseFailure {
        ParseFailure { at: position(marker), ..self.source.unreadable(0, text) }
    }
}

/// Converts a marker to a position. Columns of markers start at 0.
fn position(marker: Marker) -> TextPosition {
    let bounded = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    TextPosition { line: bounded(marker.line()), column: bounded(marker.col()).saturating_add(1) }
}

/// Returns the value of a plain scalar (YAML 1.2.2, section 10.3.2).
fn parse_plain_scalar(text: &str) -> ConfigValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => ConfigValue::Null,
        "true" | "True" | "TRUE" => ConfigValue::Bool(true),
        "false" | "False" | "FALSE" => ConfigValue::Bool(false),
        _ => parse_number(text).map_or_else(|| ConfigValue::Text(text.to_owned()), ConfigValue::Number),
    }
}

/// Converts a number of the core schema to JSON syntax. Infinity and NaN are not numbers in JSON and stay strings.
fn parse_number(text: &str) -> Option<String> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let digits = Some(digits).filter(|digits| !digits.starts_with('+'))?;
            return u64::from_str_radix(digits, radix).ok().map(|number| number.to_string());
        }
    }
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = unsigned.split_at(unsigned.find(['e', 'E']).unwrap_or(unsigned.len()));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !is_digits(whole) || !is_digits(fraction) || whole.len() + fraction.len() == 0 || !is_exponent(exponent) {
        return None;
    }
    let whole = Some(whole.trim_start_matches('0')).filter(|whole| !whole.is_empty()).unwrap_or("0");
    let fraction = if mantissa.contains('.') { format!(".{:0<1}", fraction) } else { String::new() };
    Some(format!("{sign}{whole}{fraction}{exponent}"))
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_exponent(text: &str) -> bool {
    let Some(signed) = text.strip_prefix(['e', 'E']) else { return text.is_empty() };
    let digits = signed.strip_prefix(['-', '+']).unwrap_or(signed);
    !digits.is_empty() && is_digits(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FileFormat, parse_text};

    #[test]
    fn core_schema_scalars_are_parsed() {
        let texts =
            ["no", "on", "yes", "off", "1_000", "12:30", ".inf", ".nan", "-", "1.2.3", "0x", "0xg", "0x+1", "1e", "."];
        for text in texts {
            assert_eq!(parse_plain_scalar(text), ConfigValue::Text(text.to_owned()));
        }
        for (text, expected) in [
            ("12", "12"),
            ("+12", "12"),
            ("-007", "-7"),
            ("0", "0"),
            ("0x1F", "31"),
            ("0o17", "15"),
            (".5", "0.5"),
            ("1.", "1.0"),
            ("-1.50e+3", "-1.50e+3"),
        ] {
            assert_eq!(parse_plain_scalar(text), ConfigValue::Number(expected.to_owned()), "{text}");
        }
        for (text, expected) in [
            ("~", ConfigValue::Null),
            ("TRUE", ConfigValue::Bool(true)),
            ("'true'", ConfigValue::Text("true".to_owned())),
            ("\"1\"", ConfigValue::Text("1".to_owned())),
            ("!!str 1", ConfigValue::Text("1".to_owned())),
            ("!!int '1'", ConfigValue::Number("1".to_owned())),
            ("|\n  a\n  b\n", ConfigValue::Text("a\nb\n".to_owned())),
            ("", ConfigValue::Null),
        ] {
            assert_eq!(parse_text(text, FileFormat::Yaml).unwrap().value, expected, "{text}");
        }
    }

    #[test]
    fn positions_and_duplicate_keys_are_preserved() {
        let text = "# first\nä:\n  - 1 # one\n  - {ü: x, y: no}\nb: \"é\"\nä:\n";
        let tree = parse_text(text, FileFormat::Yaml).unwrap();
        let places: Vec<_> = tree.members().iter().map(|m| format!("{} {} {}", m.key, m.at, m.node.at)).collect();
        assert_eq!(places, ["ä 2:1 3:3", "b 5:1 5:4", "ä 6:1 6:2"]);
        let ConfigValue::List(nodes) = &tree.members()[0].node.value else { panic!("no list") };
        assert_eq!(nodes[1].at.to_string(), "4:5");
        assert_eq!(nodes[1].member("y").unwrap().at.to_string(), "4:12");
        assert_eq!(nodes[1].member("y").unwrap().node.text(), Some("no"));
    }

    #[test]
    fn alias_has_the_value_of_its_anchor() {
        let tree = parse_text("a: &x {b: 1}\nc: *x\n", FileFormat::Yaml).unwrap();
        assert_eq!(tree.member("c").unwrap().node.value, tree.member("a").unwrap().node.value);
        assert_eq!(tree.member("c").unwrap().node.at.to_string(), "2:4");
    }

    #[test]
    fn unsupported_yaml_is_rejected() {
        for (text, expected) in [
            ("a: &x [*x]", "1:8: an alias refers to its own anchor"),
            ("a: &x {b: 1}\n<<: *x", "2:1: merge keys (`<<`) are not supported: repeat the members"),
            ("[a]: 1", "1:1: a key must be a string"),
            ("a: !secret b", "1:12: unsupported tag"),
            ("a\n---\nb", "2:1: contains more than one document"),
            ("a: *nobody", "1:4: while parsing node, found unknown anchor"),
        ] {
            let error = parse_text(text, FileFormat::Yaml).unwrap_err();
            assert_eq!(format!("{}: {error}", error.at), expected, "{text}");
        }
        for text in ["a: [", "a:\n\t- b", "{a", "'a"] {
            assert!(parse_text(text, FileFormat::Yaml).is_err(), "{text}");
        }
    }

    #[test]
    fn nesting_value_count_and_alias_expansion_are_limited() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse_text(&nested(64), FileFormat::Yaml).is_ok());
        assert_eq!(parse_text(&nested(65), FileFormat::Yaml).unwrap_err().text, "is nested more than 64 levels deep");
        assert!(parse_text(&nested(100_000), FileFormat::Yaml).is_err());
        assert_eq!(
            parse_text(&"- 0\n".repeat(200_000), FileFormat::Yaml).unwrap_err().text,
            "contains more than 200000 values"
        );
        let mut laughs = "a0: &a0 x\n".to_owned();
        for n in 1..60 {
            laughs += &format!("a{n}: &a{n} [*a{0},*a{0},*a{0},*a{0}]\n", n - 1);
        }
        assert_eq!(parse_text(&laughs, FileFormat::Yaml).unwrap_err().text, "contains more than 200000 values");
        let long = format!("a: &a {}\nb: [{}]", "x".repeat(10_000), "*a, ".repeat(1000));
        assert!(parse_text(&long, FileFormat::Yaml).unwrap_err().text.contains("expand to more than"));
    }
}
