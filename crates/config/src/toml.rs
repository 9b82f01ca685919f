//! TOML parser. TOML has no null and rejects duplicate keys itself. Dates become strings.

use std::ops::Range;

use toml_edit::{Array, ArrayOfTables, Document, InlineTable, Item, Key, Table, Value as Parsed};

use crate::format::{NodeBudget, SourceText, lowercase_fragment};
use crate::tree::{ConfigMember, ConfigNode, ConfigValue, ParseFailure, TextPosition};

/// Parses a text without a byte order mark.
pub(crate) fn parse_toml(source: &SourceText<'_>) -> Result<ConfigNode, ParseFailure> {
    let document = Document::parse(source.text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        source.unreadable(offset, lowercase_fragment(error.message()))
    })?;
    let mut reading = TomlReader { source, budget: NodeBudget::default() };
    Ok(ConfigNode { at: TextPosition::START, value: reading.table(document.as_table(), 1)? })
}

struct TomlReader<'a> {
    source: &'a SourceText<'a>,
    budget: NodeBudget,
}

impl TomlReader<'_> {
    fn table(&mut self, table: &Table, depth: usize) -> Result<ConfigValue, ParseFailure> {
        let mut members = Vec::with_capacity(table.len());
        for (name, item) in table {
            let start = span_start(table.key(name).and_then(Key::span));
            members.push(self.member(name, start, |reading| reading.item(item, start, depth + 1))?);
        }
        Ok(ConfigValue::Map(members))
    }

    fn inline_table(&mut self, table: &InlineTable, depth: usize) -> Result<ConfigValue, ParseFailure> {
        let mut members = Vec::with_capacity(table.len());
        for (name, value) in table {
            let start = span_start(table.key(name).and_then(Key::span));
            members.push(self.member(name, start, |reading| reading.value(value, start, depth + 1))?);
        }
        Ok(ConfigValue::Map(members))
    }

    fn member(
        &mut self,
        name: &str,
        start: usize,
        read: impl FnOnce(&mut Self) -> Result<ConfigNode, ParseFailure>,
    ) -> Result<ConfigMember, ParseFailure> {
        Ok(ConfigMember { key: name.to_owned(), at: self.source.position_at(start), node: read(self)? })
    }

    /// Converts the item of the key at this offset. An item without a position gets the position of its key.
    fn item(&mut self, item: &Item, key: usize, depth: usize) -> Result<ConfigNode, ParseFailure> {
        let value = match item {
            Item::Value(value) => return self.value(value, key, depth),
            Item::Table(table) => {
                self.charge_node(key, depth)?;
                self.table(table, depth)?
            }
            Item::ArrayOfTables(tables) => {
                self.charge_node(key, depth)?;
                self.tables(tables, key, depth)?
            }
            Item::None => ConfigValue::Null,
        };
        let at = item.span().map_or(key, |span| span.start);
        Ok(ConfigNode { at: self.source.position_at(at), value })
    }

    fn tables(&mut self, tables: &ArrayOfTables, key: usize, depth: usize) -> Result<ConfigValue, ParseFailure> {
        let mut nodes = Vec::with_capacity(tables.len());
        for table in tables {
            let at = table.span().map_or(key, |span| span.start);
            self.charge_node(at, depth + 1)?;
            nodes.push(ConfigNode { at: self.source.position_at(at), value: self.table(table, depth + 1)? });
        }
        Ok(ConfigValue::List(nodes))
    }

    fn value(&mut self, parsed: &Parsed, key: usize, depth: usize) -> Result<ConfigNode, ParseFailure> {
        let span = parsed.span().unwrap_or(key..key);
        self.charge_node(span.start, depth)?;
        let value = match parsed {
            Parsed::String(text) => ConfigValue::Text(text.value().clone()),
            Parsed::Integer(number) => ConfigValue::Number(number.value().to_string()),
            Parsed::Float(float) if float.value().is_finite() => self.float(span.clone()),
            Parsed::Float(float) => ConfigValue::Text(float.value().to_string()),
            Parsed::Boolean(truth) => ConfigValue::Bool(*truth.value()),
            Parsed::Datetime(datetime) => ConfigValue::Text(datetime.value().to_string()),
            Parsed::Array(array) => self.list(array, depth)?,
            Parsed::InlineTable(table) => self.inline_table(table, depth)?,
        };
        Ok(ConfigNode { at: self.source.position_at(span.start), value })
    }

    fn list(&mut self, array: &Array, depth: usize) -> Result<ConfigValue, ParseFailure> {
        let nodes = array.iter().map(|value| self.value(value, 0, depth + 1));
        Ok(ConfigValue::List(nodes.collect::<Result<_, _>>()?))
    }

    /// Returns a finite float as written, without `+` and `_`, which JSON does not allow.
    fn float(&self, span: Range<usize>) -> ConfigValue {
        let written = self.source.text.get(span).unwrap_or_default();
        ConfigValue::Number(written.trim_start_matches('+').replace('_', ""))
    }

    fn charge_node(&mut self, offset: usize, depth: usize) -> Result<(), ParseFailure> {
        self.budget.charge_node(depth).map_err(|text| self.source.unreadable(offset, text))
    }
}

fn span_start(span: Option<Range<usize>>) -> usize {
    span.map_or(0, |span| span.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FileFormat, parse_text};

    #[test]
    fn values_are_parsed() {
        for (text, expected) in [
            ("1_000", ConfigValue::Number("1000".to_owned())),
            ("+0x1F", ConfigValue::Null),
            ("0x1F", ConfigValue::Number("31".to_owned())),
            ("0o17", ConfigValue::Number("15".to_owned())),
            ("+1_0.50e+3", ConfigValue::Number("10.50e+3".to_owned())),
            ("inf", ConfigValue::Text("inf".to_owned())),
            ("true", ConfigValue::Bool(true)),
            ("2026-01-02T03:04:05Z", ConfigValue::Text("2026-01-02T03:04:05Z".to_owned())),
            ("'a\\'", ConfigValue::Text("a\\".to_owned())),
            ("\"\"\"\na\\u00fc\"\"\"", ConfigValue::Text("aü".to_owned())),
        ] {
            let read = parse_text(&format!("x = {text}"), FileFormat::Toml);
            let value = read.map(|tree| tree.member("x").unwrap().node.value.clone()).unwrap_or(ConfigValue::Null);
            assert_eq!(value, expected, "{text}");
        }
    }

    #[test]
    fn positions_are_recorded() {
        let text = "top = 1\n[servers.'ä']\nargs = [ 'ü', 2]\nenv = {A = 'b'}\ne.f = 1\n[[list]]\nx = 1\n[[list]]\n";
        let tree = parse_text(text, FileFormat::Toml).unwrap();
        assert_eq!(places(&tree), ["top 1:1 1:7", "servers 2:2 2:2", "list 6:3 6:1"]);
        let server = &tree.member("servers").unwrap().node.member("ä").unwrap().node;
        assert_eq!(server.at.to_string(), "2:1");
        assert_eq!(places(server), ["args 3:1 3:8", "env 4:1 4:7", "e 5:1 5:1"]);
        let ConfigValue::List(tables) = &tree.member("list").unwrap().node.value else { panic!("no list") };
        assert_eq!(tables.iter().map(|table| table.at.to_string()).collect::<Vec<_>>(), ["6:1", "8:1"]);
    }

    fn places(node: &ConfigNode) -> Vec<String> {
        node.members().iter().map(|member| format!("{} {} {}", member.key, member.at, member.node.at)).collect()
    }

    #[test]
    fn invalid_toml_is_rejected() {
        for (text, expected) in [
            ("a = 1\na = 2", "2:1: duplicate key"),
            ("a = ", "1:5: string values must be quoted, expected literal string"),
            ("[a\n", "1:3: unclosed table, expected `]`"),
            ("ä = yes", "1:1: invalid unquoted key, expected letters, numbers, `-`, `_`"),
        ] {
            let error = parse_text(text, FileFormat::Toml).unwrap_err();
            assert_eq!(format!("{}: {error}", error.at), expected, "{text}");
        }
    }

    #[test]
    fn nesting_and_value_count_are_limited() {
        let nested = |levels: usize| format!("a = {}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse_text(&nested(63), FileFormat::Toml).is_ok());
        assert_eq!(parse_text(&nested(64), FileFormat::Toml).unwrap_err().text, "is nested more than 64 levels deep");
        assert!(parse_text(&nested(100_000), FileFormat::Toml).is_err());
        assert!(parse_text(&format!("{}a = 1", "a.".repeat(100_000)), FileFormat::Toml).is_err());
        let wide = format!("a = [{}]", "0,".repeat(200_000));
        assert_eq!(parse_text(&wide, FileFormat::Toml).unwrap_err().text, "contains more than 200000 values");
    }
}
