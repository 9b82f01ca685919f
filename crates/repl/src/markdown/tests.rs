use proptest::prelude::*;
use unicode_width::UnicodeWidthStr as _;

use super::*;

fn shown(text: &str, width: usize) -> String {
    let mut markdown = MarkdownRenderer::new(width);
    let mut out = markdown.push(text);
    out.push_str(&markdown.finish());
    out
}

/// Strips the colours.
#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(anstream::adapter::strip_str(&shown(text, 40)).to_string(), expected);
}

#[test]
fn blocks_are_rendered() {
    check("one\ntwo\n\nthree", "one two\n\nthree\n");
    check("# Title #\ntext\n## Next", "# Title\n\ntext\n\n## Next\n");
    check("Title\n===\ntext", "# Title\n\ntext\n");
    check("*a* **b** `c` ~~d~~ \\* &amp;", "a b `c` d * &\n");
    check("one  \ntwo\n\n---\n", &format!("one\ntwo\n\n{}\n", "─".repeat(40)));
    check("> a quote\n> goes on\n>\n> > deeper", "│ a quote goes on\n│\n│ │ deeper\n");
    check("<b>bold</b> and\n\n<div>\n x\n</div>", "<b>bold</b> and\n\n<div>\nx\n</div>\n");
    check(
        "a long paragraph that does not fit into a single line",
        "a long paragraph that does not fit into\na single line\n",
    );
}

#[test]
fn lists_are_rendered_item_by_item() {
    check("- one\n- two\n  goes on\n\ntext", "• one\n• two goes on\n\ntext\n");
    check("1. one\n1. two\n1. three", "1. one\n2. two\n3. three\n");
    check("7. one\n8. two\n\n1. again", "7. one\n8. two\n\n9. again\n");
    check(
        "text:\n- one\n  - inner\n    1. deep\n  - second\n- two",
        "text:\n\n• one\n  • inner\n    1. deep\n  • second\n• two\n",
    );
    check("- [x] done\n- [ ] open", "• [x] done\n• [ ] open\n");
    check("- one\n\n- two\n\n  more", "• one\n\n• two\n\n  more\n");
    check("- a:\n  ```sh\n  ls\n\n  pwd\n  ```\n- b", "• a:\n\n    [sh]\n    ls\n\n    pwd\n• b\n");
}

#[test]
fn code_is_streamed_and_not_wrapped() {
    check("see:\n```rust\nlet x = 1;\n\n  y();\n```\nafter", "see:\n\n  [rust]\n  let x = 1;\n\n    y();\n\nafter\n");
    let long = "x".repeat(60);
    check(&format!("```\n{long}\n"), &format!("  {long}\n"));
    let mut markdown = MarkdownRenderer::new(40);
    assert_eq!(markdown.push("```\nfir"), "");
    assert_eq!(anstream::adapter::strip_str(&markdown.push("st\nsec")).to_string(), "  first\n");
    assert_eq!(markdown.pending(), "sec");
}

#[test]
fn tables_are_aligned_or_listed() {
    let table = "| name | n |\n|:--|--:|\n| one | 1 |\n| three | 22 |\n";
    check(table, "name    n\n─────  ──\none     1\nthree  22\n");
    let wide = format!("| name | about |\n|--|--|\n| a | {} |\n| b | x |\n", "word ".repeat(10));
    let about = "about: word word word word word word\nword word word word\n";
    check(&wide, &format!("name: a\n{about}\nname: b\nabout: x\n"));
}

#[test]
fn link_urls_are_shown() {
    check("[here](http://a/b) <http://c/>", "here (http://a/b) http://c/\n");
    check("![a cat](cat.png)", "a cat (cat.png)\n");
    check("[x](http://a/\u{202e}b)", "x (http://a/\\u{202e}b)\n");
}

#[test]
fn control_characters_are_escaped() {
    check("a\u{1b}[2J \u{1b}]8;;http://x\u{7}b", "a\\u{1b}[2J \\u{1b}]8;;http://x\\u{7}b\n");
    check("```\u{1b}[1m\n\u{9b}2J\n```", "  [\\u{1b}[1m]\n  \\u{9b}2J\n");
    check("| \u{1b}a |\n|--|\n| \u{7}b |", "\\u{1b}a\n───────\n\\u{7}b\n");
}

#[test]
fn complete_blocks_are_returned_immediately() {
    let mut markdown = MarkdownRenderer::new(40);
    assert_eq!(markdown.push("one\n"), "");
    assert_eq!(markdown.push("\n"), "");
    assert_eq!(markdown.push("two"), "");
    assert_eq!(markdown.pending(), "one\n\ntwo");
    assert_eq!(markdown.push("\n"), "one\n\n");
    assert_eq!(markdown.finish(), "two\n");
    assert_eq!(markdown.finish(), "");
}

#[test]
fn rendering_cost_is_linear() {
    let mut markdown = MarkdownRenderer::new(80);
    let mut longest = 0;
    for number in 0..20_000 {
        markdown.push(&format!("- item {number} with **some** text\n"));
        longest = longest.max(markdown.pending().len());
    }
    assert!(longest < 100, "{longest} bytes are parsed at once");
}

/// Generates texts that resemble Markdown more than random characters do.
fn texts() -> impl Strategy<Value = String> {
    let parts = [
        "word",
        " ",
        "  ",
        "\n",
        "\n\n",
        "# ",
        "- ",
        "1. ",
        "> ",
        "```",
        "~~~\n",
        "`",
        "**",
        "_",
        "[a](b)",
        "|",
        "---",
        "\t",
        "\u{1b}[1m",
        "\u{9b}",
        "\r",
        "<b>",
        "\\",
        "漢",
        "    ",
        "[ ] ",
        "| a | b |\n|--|--|\n| c | d |\n",
        "&#27;",
        "&#x9b;",
    ];
    prop::collection::vec(prop::sample::select(parts.to_vec()), 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn output_is_independent_of_chunking(text in texts(), cuts in prop::collection::vec(0_usize..200, 0..20)) {
        let mut markdown = MarkdownRenderer::new(30);
        let (mut out, mut rest) = (String::new(), text.as_str());
        for cut in cuts {
            let cut = rest.char_indices().map(|(at, _)| at).nth(cut % 7).unwrap_or(rest.len());
            out.push_str(&markdown.push(&rest[..cut]));
            rest = &rest[cut..];
        }
        out.push_str(&markdown.push(rest));
        out.push_str(&markdown.finish());
        prop_assert_eq!(out, shown(&text, 30));
    }

    #[test]
    fn only_own_escape_sequences_are_emitted(text in texts()) {
        let out = shown(&text, 30);
        let plain = anstream::adapter::strip_str(&out).to_string();
        prop_assert!(!plain.contains(|letter: char| letter.is_control() && letter != '\n'), "{:?}", plain);
        let colours = out.matches("\x1b[").count();
        prop_assert_eq!(colours, out.matches('\x1b').count());
        prop_assert!(plain.is_empty() || plain.ends_with('\n'));
    }

    #[test]
    fn paragraphs_fit_the_width(words in prop::collection::vec("[a-z]{1,12}", 1..50)) {
        for line in anstream::adapter::strip_str(&shown(&words.join(" "), 30)).to_string().lines() {
            prop_assert!(line.width() <= 30, "{}", line);
        }
    }
}
