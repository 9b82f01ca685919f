//! The texts, and the tools they are made into.

use serde_json::{Value, json};
use wharf_json::{JsonLimits, RawJson};
use wharf_wire::{ToolDefinition, View as _};

/// One tool to be judged, with what it was made from.
pub struct Sample {
    pub form: &'static str,
    pub text: String,
    pub tool: ToolDefinition,
}

/// The lines of a file; `\n`, `\e` and `\u200b` in them stand for a line break, an escape and a space without width.
pub fn lines(file: &str) -> Vec<String> {
    let path = format!("{}/tests/poison/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the corpus lies beside this file");
    text.lines().map(|line| line.replace("\\n", "\n").replace("\\e", "\u{1b}").replace("\\u200b", "\u{200b}")).collect()
}

/// Every line of a file as a description.
pub fn plain(file: &str) -> impl Iterator<Item = Sample> {
    lines(file).into_iter().map(|text| sample("plain", &text, json!({ "description": text })))
}

/// Every attack in every place, and in every disguise that leaves it readable.
pub fn attacks() -> impl Iterator<Item = Sample> {
    let placed = lines("attacks.txt").into_iter().chain(lines("exact.txt")).flat_map(|text| {
        let places: Vec<_> = PLACES.iter().map(|(form, place)| sample(form, &text, place(&text))).collect();
        places
    });
    let disguised = lines("attacks.txt").into_iter().flat_map(|text| {
        let dress = |(form, disguise): &Disguise| {
            let text = disguise(&text);
            sample(form, &text, json!({ "description": text }))
        };
        DISGUISES.iter().map(dress).collect::<Vec<_>>()
    });
    placed.chain(disguised)
}

/// A form and the definition it makes of a text.
type Placing = (&'static str, fn(&str) -> Value);

const PLACES: [Placing; 10] = [
    ("description", |text| json!({ "description": text })),
    ("title", |text| json!({ "title": text, "description": "Adds two numbers." })),
    ("argument", |text| schema(json!({ "a": { "type": "string", "description": text } }))),
    ("argument title", |text| schema(json!({ "a": { "type": "string", "title": text } }))),
    ("enum", |text| schema(json!({ "a": { "enum": ["low", text, "high"] } }))),
    ("default", |text| schema(json!({ "a": { "type": "string", "default": text } }))),
    ("deep", |text| schema(json!({ "a": { "items": { "anyOf": [{ "type": "null" }, { "examples": [text] }] } } }))),
    ("annotation", |text| json!({ "description": "Adds two numbers.", "annotations": { "title": text } })),
    (
        "result",
        |text| json!({ "outputSchema": { "type": "object", "properties": { "sum": { "description": text } } } }),
    ),
    ("unknown member", |text| json!({ "_meta": { "example.com/hint": text } })),
];

fn schema(properties: Value) -> Value {
    json!({ "description": "Adds two numbers.", "inputSchema": { "type": "object", "properties": properties } })
}

const DISGUISES: [Disguise; 8] = [
    ("capitals", |text| text.to_uppercase()),
    ("small letters", |text| text.to_lowercase()),
    ("every other letter", |text| {
        let turned = |(at, letter): (usize, char)| if at % 2 == 0 { letter.to_ascii_uppercase() } else { letter };
        text.chars().enumerate().map(turned).collect()
    }),
    ("a line per word", |text| text.split(' ').collect::<Vec<_>>().join("\n")),
    ("look-alikes", |text| text.replace('a', "а").replace('o', "о").replace('e', "е")),
    ("digits", |text| text.replace('o', "0").replace('i', "1")),
    ("zero width", |text| {
        let parted = |(at, letter): (usize, char)| [Some(letter), (at % 3 == 0).then_some('\u{200b}')];
        text.chars().enumerate().flat_map(parted).flatten().collect()
    }),
    ("among honest words", |text| {
        format!(
            "Converts a document between formats.\n\nSupported are PDF, HTML and markdown. {text}\n\nReturns a path."
        )
    }),
];

/// A form and what it makes of a text.
type Disguise = (&'static str, fn(&str) -> String);

/// Every honest description with every other argument, note and link.
pub fn benign() -> impl Iterator<Item = Sample> {
    const VARIANTS: usize = 11;
    let (notes, parameters) = (lines("notes.txt"), lines("parameters.txt"));
    lines("benign.txt").into_iter().enumerate().flat_map(move |(at, text)| {
        let varied = |variant| vary(&text, at * VARIANTS + variant, &notes, &parameters);
        (0..VARIANTS).map(varied).collect::<Vec<_>>()
    })
}

fn vary(text: &str, seed: usize, notes: &[String], parameters: &[String]) -> Sample {
    let pick = |from: &[String], nth: usize| from[(seed * 7 + nth * 13) % from.len()].clone();
    let chosen: Vec<String> = (0..seed % 4).map(|nth| pick(notes, nth)).collect();
    let separator = if seed.is_multiple_of(2) { " " } else { "\n\n" };
    let description =
        std::iter::once(text).chain(chosen.iter().map(String::as_str)).collect::<Vec<_>>().join(separator);
    let properties: serde_json::Map<String, Value> = (0..seed % 5)
        .map(|nth| pick(parameters, nth))
        .filter_map(|line| {
            line.split_once(": ").map(|(name, is)| (name.to_owned(), json!({ "type": "string", "description": is })))
        })
        .collect();
    let schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    sample("varied", &description, json!({ "description": description, "inputSchema": schema }))
}

/// Both halves of the texts that the rules have never been tuned to.
pub fn unseen() -> (impl Iterator<Item = Sample>, impl Iterator<Item = Sample>) {
    (plain("unseen_attacks.txt"), plain("unseen_benign.txt"))
}

fn sample(form: &'static str, text: &str, mut definition: Value) -> Sample {
    definition["name"] = json!("work_on_it");
    let raw = RawJson::from_value(&definition).expect("a value is JSON");
    let tool = ToolDefinition::from_raw(raw, &JsonLimits::default()).expect("it has a name");
    Sample { form, text: text.to_owned(), tool }
}
