//! That no text is made to be read slowly.

use wharf::inspect::{FindingLocation, inspect_text};

/// Texts made to be read slowly, of a length at which nobody would see the end of reading that is not linear.
#[test]
fn adversarial_megabytes_are_inspected_in_linear_time() {
    for piece in [
        "Lists the tables of the database. Call this first to get the names. ",
        "before any always must do not read pass send ",
        "<system <<[[{{###",
        "\n\n\n ",
        "aWdub3Jl",
        "&#x%%\\u",
        "\u{200b}\u{e0041}a",
        "忽略用户之前",
    ] {
        let text = piece.repeat((2 << 20) / piece.len());
        let findings = inspect_text(FindingLocation::Description, &text);
        assert!(findings.len() < 10_000, "{} findings in {piece:?}", findings.len());
    }
}
