//! The scanner against serde_json: on every valid message they agree, on no input does the scanner panic,
//! and however a message is cut into pieces, the verdict is the same.

use proptest::prelude::*;
use serde_json::{Map, Value};
use wharf_wire::{Envelope, Id, JsonLimits, Scanner, Span, scan};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC*".prop_map(Value::from),
        "[\"\\\\/{}\\[\\]:,\n\t\u{0}-\u{20}]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("id".to_owned()),
        Just("method".to_owned()),
        Just("params".to_owned()),
        Just("result".to_owned()),
        Just("error".to_owned()),
        Just("resultType".to_owned()),
        "\\PC{0,12}",
    ]
}

/// An object written with every key and string escaped at random and white space in between.
fn write(value: &Value, seed: &mut u64, out: &mut String) {
    match value {
        Value::Object(members) => {
            out.push('{');
            for (n, (key, value)) in members.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                pad(seed, out);
                write_string(key, *seed, out);
                out.push(':');
                write(value, seed, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                pad(seed, out);
                write(item, seed, out);
            }
            out.push(']');
        }
        Value::String(text) => write_string(text, *seed, out),
        other => out.push_str(&other.to_string()),
    }
}

fn pad(seed: &mut u64, out: &mut String) {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    out.push_str(["", "", " ", "\t", " \r "][(*seed >> 33) as usize % 5]);
}

fn write_string(text: &str, seed: u64, out: &mut String) {
    if !seed.is_multiple_of(3) {
        out.push_str(&Value::from(text).to_string());
        return;
    }
    out.push('"');
    for unit in text.encode_utf16() {
        out.push_str(&format!("\\u{unit:04x}"));
    }
    out.push('"');
}

fn part(line: &str, span: Option<Span>) -> Option<Value> {
    span.map(|span| serde_json::from_str(&line[span.start..span.end]).expect("a span is one JSON value"))
}

fn expected(message: &Map<String, Value>, key: &str) -> Option<Value> {
    message.get(key).cloned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_serde_json_on_valid_messages(members in prop::collection::vec((key(), value()), 0..8), mut seed: u64) {
        let message: Map<String, Value> = members.into_iter().collect();
        let mut line = String::new();
        write(&Value::Object(message.clone()), &mut seed, &mut line);
        // Floats may not survive their own text to the last bit: what the text says is what counts.
        let message: Map<String, Value> = serde_json::from_str(&line).expect("written as JSON");
        let envelope = scan(line.as_bytes()).expect("valid JSON");
        prop_assert_eq!(part(&line, envelope.id), expected(&message, "id"));
        prop_assert_eq!(part(&line, envelope.method), expected(&message, "method"));
        prop_assert_eq!(part(&line, envelope.params), expected(&message, "params"));
        prop_assert_eq!(part(&line, envelope.result), expected(&message, "result"));
        prop_assert_eq!(part(&line, envelope.error), expected(&message, "error"));
        let result_type = message.get("result").and_then(|result| result.get("resultType")).cloned();
        prop_assert_eq!(part(&line, envelope.result_type), result_type);
        if let Some(Value::String(method)) = message.get("method") {
            let found = envelope.method(line.as_bytes());
            prop_assert_eq!(found.as_deref(), Some(method.as_str()));
        }
        if let Some(Value::String(id)) = message.get("id") {
            prop_assert_eq!(envelope.id(line.as_bytes()), Some(Id::Text(id.as_str().into())));
        }
    }

    #[test]
    fn split_text_scans_like_whole_text(line in ".{0,200}", cuts in prop::collection::vec(0usize..200, 0..6)) {
        agree_on_pieces(line.as_bytes(), cuts);
    }

    #[test]
    fn split_messages_scan_like_whole_messages(members in prop::collection::vec((key(), value()), 0..6), mut seed: u64,
                                         cuts in prop::collection::vec(0usize..400, 0..8), lost in 0usize..4) {
        let mut line = String::new();
        write(&Value::Object(members.into_iter().collect()), &mut seed, &mut line);
        let kept = line.len().saturating_sub(lost);
        agree_on_pieces(&line.as_bytes()[..kept], cuts);
    }

    #[test]
    fn fast_path_and_scanner_agree_on_near_messages(text in "[{}\\[\\]:,\" a1\\\\]{0,12}", key in key(), other in key(), cut in 0usize..40) {
        let line = format!("{{\"{key}\":{text},\"{other}\":{{\"resultType\":1}}}}").replace('\u{0}', " ");
        agree_on_pieces(line.as_bytes(), vec![cut]);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = scan(&bytes);
        let _ = JsonLimits::default().check(&bytes);
        let _ = Id::parse(&bytes);
    }

    #[test]
    fn scanned_result_agrees_with_serde_json(text in "[\\[\\]{}:,\"\\\\a-e0-9 ]{0,24}") {
        let line = format!("{{\"id\":1,\"result\":{text}}}");
        let whole: Result<Map<String, Value>, _> = serde_json::from_str(&line);
        if let Ok(message) = &whole && message.len() == 2 {
            let Envelope { result, .. } = scan(line.as_bytes()).expect("valid JSON");
            prop_assert_eq!(part(&line, result), expected(message, "result"));
        }
    }
}

fn agree_on_pieces(line: &[u8], mut cuts: Vec<usize>) {
    let mut whole = Scanner::new();
    whole.push(line);
    // The straight road, which `scan` tries first, says nothing the scanner would not.
    if let Ok(envelope) = scan(line) {
        assert_eq!(whole.finish(), Ok(envelope));
    } else if std::str::from_utf8(line).is_ok() && !line.contains(&0) {
        assert!(whole.finish().is_err());
    }
    cuts.retain(|&cut| cut <= line.len());
    cuts.sort_unstable();
    let mut pieces = Scanner::new();
    let mut from = 0;
    for cut in cuts.into_iter().chain([line.len()]) {
        pieces.push(&line[from..cut]);
        from = cut;
    }
    assert_eq!(whole.finish(), pieces.finish());
    assert_eq!(whole.id_so_far(), pieces.id_so_far());
}
