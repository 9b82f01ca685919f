use super::*;
use crate::{Base64Text, EmbeddedContents};

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}

fn image(bytes: usize) -> OutcomeBlock {
    OutcomeBlock::Image { data: Base64Text::encode(&vec![0; bytes]), mime: "image/png".into(), raw: None }
}

fn audio() -> OutcomeBlock {
    OutcomeBlock::Audio { data: Base64Text::encode(b"beep"), mime: String::new(), raw: None }
}

fn link(name: Option<&str>, uri: &str) -> OutcomeBlock {
    let name = name.map(str::to_owned);
    OutcomeBlock::Link { uri: uri.into(), name, mime: None, description: None, size: None, raw: None }
}

fn full_link() -> OutcomeBlock {
    OutcomeBlock::Link {
        uri: "file:///a".into(),
        name: Some("a".into()),
        mime: Some("text/csv".into()),
        description: Some("all of\nit".into()),
        size: Some(2_500_000),
        raw: None,
    }
}

fn resource(contents: EmbeddedContents) -> OutcomeBlock {
    OutcomeBlock::Resource { uri: "file:///x".into(), mime: Some("text/plain".into()), contents, raw: None }
}

fn file() -> OutcomeBlock {
    let note = "the first 100 lines are above".into();
    OutcomeBlock::File { path: "/tmp/out.txt".into(), mime: None, bytes: 3_200_000, note }
}

fn other(kind: Option<&str>) -> OutcomeBlock {
    OutcomeBlock::Other {
        kind: kind.map(str::to_owned),
        raw: raw(r#"{"type":"hologram","n":12345678901234567890123}"#),
    }
}

#[test]
fn every_block_kind_is_converted_to_text() {
    let hostile = "image/png]\n[image\u{1b}\u{202e}";
    let lying = OutcomeBlock::Image { data: Base64Text::encode(b""), mime: hostile.into(), raw: None };
    for (blocks, text) in [
        (vec![], ""),
        (vec![OutcomeBlock::text("a\u{1b} ü 🎉")], "a\u{1b} ü 🎉"),
        (vec![image(12_345)], "[image image/png, 12.3 kB]"),
        (vec![lying], r"[image image/png]\n[image\u{1b}\u{202e}, 0 bytes]"),
        (vec![audio()], "[audio, 4 bytes]"),
        (vec![link(None, "a:b")], "[link <a:b>]"),
        (vec![link(Some("näme"), "a:b")], "[link näme <a:b>]"),
        (vec![full_link()], r"[link a <file:///a> text/csv, 2.5 MB: all of\nit]"),
        (
            vec![resource(EmbeddedContents::Text("one\ntwo\n".into()))],
            "[resource file:///x text/plain, 2 lines]\none\ntwo\n",
        ),
        (vec![resource(EmbeddedContents::Text("one".into()))], "[resource file:///x text/plain, 1 line]\none"),
        (vec![resource(EmbeddedContents::Bytes(Base64Text::encode(b"z")))], "[resource file:///x text/plain, 1 byte]"),
        (vec![resource(EmbeddedContents::Nothing)], "[resource file:///x text/plain, empty]"),
        (vec![file()], "[file /tmp/out.txt, 3.2 MB: the first 100 lines are above]"),
        (vec![other(Some("hologram"))], "[unknown content hologram, 47 bytes]"),
        (vec![other(None)], "[unknown content, 47 bytes]"),
        (
            vec![OutcomeBlock::text("a"), image(1), OutcomeBlock::text(""), OutcomeBlock::text("b")],
            "a\n[image image/png, 1 byte]\n\nb",
        ),
    ] {
        assert_eq!(ToolOutcome::new(blocks).text(), text);
    }
}

#[test]
fn references_are_truncated() {
    let long = "x".repeat(1_000_000);
    let mime = || Some(long.clone());
    for block in [
        OutcomeBlock::Image { data: Base64Text::encode(b""), mime: long.clone(), raw: None },
        link(Some(&long), &long),
        OutcomeBlock::Resource { uri: long.clone(), mime: mime(), contents: EmbeddedContents::Nothing, raw: None },
        OutcomeBlock::File { path: long.clone().into(), mime: mime(), bytes: 0, note: long.clone() },
        other(Some(&long)),
    ] {
        let text = block.as_text();
        assert!(text.len() < 3_000, "{} bytes", text.len());
        assert!(text.contains('…'));
    }
}

#[test]
fn data_follows_the_text_unless_the_text_contains_it() {
    let number = r#"{"n":12345678901234567890123}"#;
    let formatted = "{\n \"n\": 12345678901234567890123\n}";
    let mixed = vec![OutcomeBlock::text("see"), OutcomeBlock::text("[1]"), image(1)];
    for (outcome, data, text) in [
        (ToolOutcome::from_text("found"), number, "found\n{\"n\":12345678901234567890123}"),
        (ToolOutcome::default(), "null", "null"),
        (ToolOutcome::from_text(formatted), number, formatted),
        (ToolOutcome::new(mixed), "[1]", "see\n[1]\n[image image/png, 1 byte]"),
        (ToolOutcome::from_text("plain"), r#"{"result":"plain"}"#, "plain"),
        (ToolOutcome { is_error: true, ..ToolOutcome::default() }, r#"{"code":7}"#, r#"{"code":7}"#),
        (ToolOutcome::error("[7]"), "[7]", "[7]"),
    ] {
        assert_eq!(outcome.with_data(raw(data)).text(), text);
    }
}

#[test]
fn blocks_retain_their_raw_json() {
    let came = raw(r#"{"type":"text","text":"a","annotations":{"priority":1}}"#);
    let block = OutcomeBlock::Text { text: "a".into(), raw: Some(came.clone()) };
    assert_eq!(block.raw(), Some(&came));
    assert_eq!(image(1).raw(), None);
    assert!(other(None).raw().is_some());
}
