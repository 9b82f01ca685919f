//! Conversion of one entry to a server of a client's file.

use serde_json::{Map, Number, Value as Json};

use super::ExternalClient;
use super::client_schema::{ClientSchema, FieldConversion, FieldMapping, MappingDirection};
use super::client_schemas::client_schema;
use super::note::{ConversionNote, displayed_name};
use super::variables::{VariablePiece, parse_pieces};

/// State of the conversion of one entry.
pub(super) struct ServerWriter {
    client: ExternalClient,
    shape: &'static ClientSchema,
    /// Members of the entry that are not converted yet.
    rest: Map<String, Json>,
    server: Map<String, Json>,
    /// Notes so far.
    pub(super) notes: Vec<ConversionNote>,
    /// Secrets for which the client will prompt.
    pub(super) secrets: Vec<String>,
}

/// Reason for which a server is omitted: a setting that the client does not support.
pub(super) struct UnsupportedSetting(pub(super) String);

impl ServerWriter {
    pub(super) fn new(client: ExternalClient, entry: &Map<String, Json>) -> Self {
        let (notes, secrets) = (Vec::new(), Vec::new());
        Self { client, shape: client_schema(client), rest: canonical_keys(entry), server: Map::new(), notes, secrets }
    }

    /// Converts the entry to the client's format.
    pub(super) fn write_server(&mut self) -> Result<Map<String, Json>, UnsupportedSetting> {
        for field in self.shape.fields.iter().filter(|field| field.way == MappingDirection::Both) {
            self.write_field(field);
        }
        self.check_supported()?;
        self.note_remaining();
        Ok(std::mem::take(&mut self.server))
    }

    fn write_field(&mut self, field: &FieldMapping) {
        match field.kind {
            FieldConversion::Transport { words, required } => self.transport(field, words, required),
            FieldConversion::Address(transport) => self.address(field, transport),
            FieldConversion::CommandLine => self.command_line(field),
            FieldConversion::Handed => self.write_inherited_variables(field),
            FieldConversion::HeaderVariables => self.header_variables(field),
            FieldConversion::Bearer => self.bearer(field),
            kind => self.write_value(field, kind),
        }
    }

    /// Converts a field with a single value.
    fn write_value(&mut self, field: &FieldMapping, kind: FieldConversion) {
        let Some(value) = self.take(field.ours) else { return };
        let written = match (kind, &value) {
            (FieldConversion::Text, value) => self.text(field.theirs, field.ours, value),
            (FieldConversion::Texts, Json::Array(texts)) => {
                texts.iter().map(|text| self.text(field.theirs, field.ours, text)).collect()
            }
            (FieldConversion::Pairs, Json::Object(pairs)) => Some(self.pairs(field, pairs)),
            (FieldConversion::Words, Json::Array(words))
                if words.is_empty() && self.client == ExternalClient::Goose =>
            {
                self.notes.push(ConversionNote::changed(format!(
                    "`{}` is empty, which goose treats as all tools",
                    field.ours
                )));
                return;
            }
            (FieldConversion::Words, Json::Array(_)) | (FieldConversion::Flag, Json::Bool(_)) => Some(value.clone()),
            (FieldConversion::Inverse, Json::Bool(flag)) => Some(Json::Bool(!flag)),
            (FieldConversion::Milliseconds | FieldConversion::Port, Json::Number(_)) => Some(value.clone()),
            (FieldConversion::Seconds, Json::Number(number)) => seconds(number),
            (FieldConversion::WholeSeconds, Json::Number(number)) => self.whole_seconds(field, number),
            (FieldConversion::Scopes, Json::String(scope)) => Some(scope.split_whitespace().collect()),
            _ => None,
        };
        match written {
            // False is the default of an inverted flag.
            Some(Json::Bool(false)) if matches!(kind, FieldConversion::Inverse) => {}
            Some(written) => self.put(field.theirs, written),
            None => self.notes.push(ConversionNote::lost(format!("skipped `{}`: wrong type", field.ours))),
        }
    }

    fn whole_seconds(&mut self, field: &FieldMapping, milliseconds: &Number) -> Option<Json> {
        let milliseconds = milliseconds.as_u64()?;
        if milliseconds % 1000 != 0 {
            let text = format!("`{}` is rounded up to whole seconds", field.ours);
            self.notes.push(ConversionNote::changed(text));
        }
        Some(Json::from(milliseconds.div_ceil(1000)))
    }

    fn transport(&mut self, field: &FieldMapping, words: &[(&str, &str)], required: bool) {
        let said = self.rest.get("type").and_then(Json::as_str).map(str::to_owned);
        let implied = if self.rest.contains_key("command") { "stdio" } else { "http" };
        let wanted = match &said {
            Some(said) => said.as_str(),
            None if required => implied,
            None => return,
        };
        let find = |wanted: &str| words.iter().find(|(_, ours)| *ours == wanted).map(|(theirs, _)| *theirs);
        if let Some(word) = find(wanted) {
            self.rest.remove("type");
            self.put(field.theirs, Json::from(word));
        } else if let Some(word) = find("") {
            // The word only says that the server is remote. The exact type stays for the notes.
            self.put(field.theirs, Json::from(word));
        }
    }

    fn address(&mut self, field: &FieldMapping, transport: &str) {
        let said = self.rest.get("type").and_then(Json::as_str);
        let is_other = said.is_some_and(|said| said != transport);
        if is_other || !self.rest.contains_key("url") {
            return;
        }
        self.rest.remove("type");
        self.write_value(field, FieldConversion::Text);
    }

    fn command_line(&mut self, field: &FieldMapping) {
        let Some(command) = self.take("command") else { return };
        let args = self.take("args").unwrap_or_else(|| Json::Array(Vec::new()));
        let Json::Array(args) = args else {
            self.notes.push(ConversionNote::lost("skipped `args`: wrong type"));
            return;
        };
        let named = std::iter::once((&command, "command")).chain(args.iter().map(|argument| (argument, "args")));
        let line: Option<Json> = named.map(|(text, ours)| self.text(field.theirs, ours, text)).collect();
        match line {
            Some(line) => self.put(field.theirs, line),
            None => self.notes.push(ConversionNote::lost("skipped `command`: wrong type")),
        }
    }

    fn write_inherited_variables(&mut self, field: &FieldMapping) {
        let is_handed = |key: &str, pieces: &[VariablePiece]| matches!(pieces, [only] if is_variable(only, key));
        let handed = self.take_pairs("env", is_handed);
        if !handed.is_empty() {
            self.put(field.theirs, handed.into_iter().map(|(key, _)| Json::String(key)).collect());
        }
    }

    fn header_variables(&mut self, field: &FieldMapping) {
        let is_variable =
            |_: &str, pieces: &[VariablePiece]| matches!(pieces, [VariablePiece::Variable { default: None, .. }]);
        let headers = self.take_pairs("headers", is_variable);
        if !headers.is_empty() {
            let named = headers.into_iter().map(|(key, pieces)| (key, Json::from(variable(&pieces))));
            self.put(field.theirs, Json::Object(named.collect()));
        }
    }

    fn bearer(&mut self, field: &FieldMapping) {
        let is_bearer = |key: &str, pieces: &[VariablePiece]| match pieces {
            [VariablePiece::Text(scheme), VariablePiece::Variable { default: None, .. }] => {
                key == "Authorization" && scheme == "Bearer "
            }
            _ => false,
        };
        if let Some((_, pieces)) = self.take_pairs("headers", is_bearer).first() {
            self.put(field.theirs, Json::from(variable(pieces)));
        }
    }

    fn pairs(&mut self, field: &FieldMapping, pairs: &Map<String, Json>) -> Json {
        let mut written = Map::new();
        for (key, value) in pairs {
            let (theirs, ours) = (format!("{}.{key}", field.theirs), format!("{}.{key}", field.ours));
            match self.text(&theirs, &ours, value) {
                Some(text) => {
                    written.insert(key.clone(), text);
                }
                None => {
                    self.notes.push(ConversionNote::lost(format!("skipped `{}`: not a string", displayed_name(&ours))))
                }
            }
        }
        Json::Object(written)
    }

    fn text(&mut self, theirs: &str, name: &str, value: &Json) -> Option<Json> {
        let text = match value {
            Json::String(text) => text.clone(),
            Json::Number(number) => number.to_string(),
            Json::Bool(flag) => flag.to_string(),
            _ => return None,
        };
        let pieces = parse_pieces(&text);
        if self.client == ExternalClient::VsCode {
            self.secrets.extend(pieces.iter().filter_map(secret));
        }
        Some(Json::String(self.shape.syntax_of(theirs).write(&pieces, name, &mut self.notes)))
    }

    /// Takes the pairs that satisfy a predicate out of an object of the entry.
    fn take_pairs(
        &mut self,
        ours_key: &str,
        is_it: impl Fn(&str, &[VariablePiece]) -> bool,
    ) -> Vec<(String, Vec<VariablePiece>)> {
        let Some(Json::Object(pairs)) = self.rest.get_mut(ours_key) else { return Vec::new() };
        let mut taken = Vec::new();
        pairs.retain(|key, value| {
            let pieces = parse_pieces(value.as_str().unwrap_or_default());
            let is_it = is_it(key, &pieces);
            if is_it {
                taken.push((key.clone(), pieces));
            }
            !is_it
        });
        if pairs.is_empty() && !taken.is_empty() {
            self.rest.remove(ours_key);
        }
        taken
    }

    fn take(&mut self, path: &str) -> Option<Json> {
        let Some((object, key)) = path.split_once('.') else { return self.rest.remove(path) };
        let Some(Json::Object(members)) = self.rest.get_mut(object) else { return None };
        let taken = members.remove(key);
        if members.is_empty() {
            self.rest.remove(object);
        }
        taken
    }

    fn put(&mut self, path: &str, value: Json) {
        match path.split_once('.') {
            None => {
                self.server.insert(path.to_owned(), value);
            }
            Some((object, key)) => {
                let object = self.server.entry(object).or_insert_with(|| Json::Object(Map::new()));
                if let Json::Object(members) = object {
                    members.insert(key.to_owned(), value);
                }
            }
        }
    }

    /// Rejects servers that the client would handle differently.
    fn check_supported(&self) -> Result<(), UnsupportedSetting> {
        let name = self.client.name();
        if self.rest.contains_key("url") {
            return Err(UnsupportedSetting(format!("{name} does not support this transport")));
        }
        if self.rest.get("enabled") == Some(&Json::Bool(false)) {
            return Err(UnsupportedSetting(format!("it is disabled, and {name} has no setting for that")));
        }
        Ok(())
    }

    fn note_remaining(&mut self) {
        let name = self.client.name();
        for (key, value) in std::mem::take(&mut self.rest) {
            match (key.as_str(), value) {
                ("enabled", Json::Bool(true)) => {}
                ("type", Json::String(word)) if word == "stdio" => {}
                ("type", _) => self
                    .notes
                    .push(ConversionNote::hint(format!("{name} selects the transport (`type`) automatically"))),
                ("oauth", Json::Object(members)) => {
                    self.notes
                        .extend(members.keys().map(|member| unsupported_key_note(name, &format!("oauth.{member}"))));
                }
                (key, _) => self.notes.push(unsupported_key_note(name, key)),
            }
        }
    }
}

fn unsupported_key_note(name: &str, key: &str) -> ConversionNote {
    ConversionNote::lost(format!("{name} does not support `{}`", displayed_name(key)))
}

/// Replaces alternative key names with the canonical ones.
fn canonical_keys(entry: &Map<String, Json>) -> Map<String, Json> {
    let mut entry = entry.clone();
    for (other, usual) in [("transport", "type"), ("request_timeout_ms", "timeout")] {
        if let Some(value) = entry.remove(other) {
            entry.entry(usual).or_insert(value);
        }
    }
    if let Some(url) = entry.remove("httpUrl") {
        entry.entry("url").or_insert(url);
        entry.entry("type").or_insert_with(|| Json::from("http"));
    }
    entry
}

fn is_variable(piece: &VariablePiece, wanted: &str) -> bool {
    matches!(piece, VariablePiece::Variable { name, default: None } if name == wanted)
}

/// Returns the variable that these pieces refer to.
fn variable(pieces: &[VariablePiece]) -> &str {
    let name = pieces.iter().find_map(|piece| match piece {
        VariablePiece::Variable { name, .. } => Some(name.as_str()),
        _ => None,
    });
    name.unwrap_or_default()
}

fn secret(piece: &VariablePiece) -> Option<String> {
    match piece {
        VariablePiece::Secret(name) => Some(name.clone()),
        _ => None,
    }
}

/// Converts milliseconds to seconds, to an integer if possible.
fn seconds(milliseconds: &Number) -> Option<Json> {
    match milliseconds.as_u64() {
        Some(whole) if whole % 1000 == 0 => Some(Json::from(whole / 1000)),
        Some(whole) => Some(Json::from(whole as f64 / 1000.0)),
        None => None,
    }
}
