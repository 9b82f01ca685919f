//! How a text sounds: what a description of a tool rarely says, and what it mostly says, in points.
//!
//! The points were fitted to the texts in `tests/poison` and rounded. They are only ever a second opinion.

/// The classes that count, once for two sentences that follow each other, and how much.
pub(in super::super) const TONE: &[(&str, i32)] = &[
    ("ours", 3),
    ("rank", 2),
    ("law", 2),
    ("all", 2),
    ("lie", 2),
    ("speak", 1),
    ("it", 1),
    ("move", 1),
    ("away", 1),
    ("device", 1),
    ("someone", 1),
    ("cloak", 1),
    ("void", 1),
    ("you", 1),
    ("may", -1),
    ("tells", -3),
];

/// So many points are suspicious.
pub(in super::super) const TOO_MUCH: i32 = 2;
