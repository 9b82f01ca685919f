//! One field of all tools, for instance their names.

use std::collections::BTreeSet;

use bm25::{Embedder, EmbedderBuilder, TokenEmbedding, Tokenizer};

/// How soon saying a word again is worth nothing more.
const SATURATION: f32 = 1.2;
/// How much it costs a text to be longer than others.
const LENGTH_COST: f32 = 0.75;

/// One field of all tools: the words it has in each, and what it counts for.
pub(super) struct Field {
    weight: f32,
    tools: Vec<BTreeSet<String>>,
    embedder: Embedder<u64, Spaced>,
}

impl Field {
    /// The field, of which these are the words, tool by tool.
    ///
    /// A word counts once, and how long the field usually is says the tool in the middle: so nobody gains by repeating
    /// words, or by making the others look short.
    pub(super) fn of(weight: f32, tools: impl Iterator<Item = Vec<String>>) -> Self {
        let tools: Vec<BTreeSet<String>> = tools.map(BTreeSet::from_iter).collect();
        let embedder = embedder(usual_length(&tools));
        Self { weight, tools, embedder }
    }

    /// The same, held to the length that another one usually has.
    pub(super) fn with_length_of(self, other: &Self) -> Self {
        Self { embedder: embedder(other.embedder.avgdl()), ..self }
    }

    /// The words this has in any tool.
    pub(super) fn words(&self) -> impl Iterator<Item = &String> {
        self.tools.iter().flatten()
    }

    /// What each word of a tool is worth here.
    pub(super) fn worth(&self, at: usize) -> impl Iterator<Item = TokenEmbedding<u64>> {
        let words: Vec<&str> = self.tools[at].iter().map(String::as_str).collect();
        let weigh = |word: TokenEmbedding<u64>| TokenEmbedding { value: word.value * self.weight, ..word };
        self.embedder.embed(&words.join(" ")).0.into_iter().map(weigh)
    }
}

fn embedder(usual_length: f32) -> Embedder<u64, Spaced> {
    EmbedderBuilder::with_avgdl(usual_length).k1(SATURATION).b(LENGTH_COST).build()
}

/// How many words the field has in the tool in the middle, of those that have it at all.
fn usual_length(tools: &[BTreeSet<String>]) -> f32 {
    let mut lengths: Vec<usize> = tools.iter().map(BTreeSet::len).filter(|length| *length > 0).collect();
    lengths.sort_unstable();
    let middle = lengths.get(lengths.len() / 2).copied().unwrap_or(1);
    f32::from(u16::try_from(middle).unwrap_or(u16::MAX))
}

/// Takes a text for what was made of words that had been cut before.
#[derive(Default)]
struct Spaced;

impl Tokenizer for Spaced {
    fn tokenize(&self, text: &str) -> Vec<String> {
        text.split_ascii_whitespace().map(str::to_owned).collect()
    }
}
