//! The event parser against the standard's own words, and against itself however a stream is cut.

use proptest::prelude::*;

#[path = "../fuzz/check.rs"]
mod check;

/// Streams made of what matters to a parser, so that fields, ends and marks meet in every order.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => one_of(&["\n", "\r", "\r\n", "\n\n", "\r\r", "\n\r"]),
        6 => one_of(&["data", "id", "event", "retry", "dat", ""]),
        4 => one_of(&[":", ": ", ":  ", " "]),
        2 => one_of(&["1", "30", "\0", "x", "é", "\u{feff}"]),
        2 => prop::collection::vec(any::<u8>(), 0..4),
        4 => "(data|id|event|retry|x)?: ?[a-z0-9:]{0,5}(\n|\r|\r\n)".prop_map(String::into_bytes),
    ];
    (any::<bool>(), prop::collection::vec(piece, 0..40)).prop_map(|(marked, pieces)| {
        let mark: &[u8] = if marked { b"\xef\xbb\xbf" } else { b"" };
        [mark, &pieces.concat()].concat()
    })
}

fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(texts).prop_map(|text| text.as_bytes().to_vec())
}

/// A stream in pieces of these lengths, and then the rest of it.
fn cut<'a>(mut stream: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for length in lengths {
        let (piece, rest) = stream.split_at((*length).min(stream.len()));
        pieces.push(piece);
        stream = rest;
    }
    pieces.push(stream);
    pieces
}

proptest! {
    #[test]
    fn parser_agrees_with_the_standard(stream in stream()) {
        check::check(&stream);
    }

    #[test]
    fn chunk_boundaries_do_not_change_the_events(
        stream in stream(),
        lengths in prop::collection::vec(0..9_usize, 0..60),
        limit in prop_oneof![Just(1 << 20), 0..40_usize],
    ) {
        prop_assert_eq!(check::read(limit, cut(&stream, &lengths)), check::read(limit, [&stream[..]]));
    }
}
