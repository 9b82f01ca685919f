//! One indexed field of all tools, for example their names.

use std::collections::BTreeSet;

use bm25::{Embedder, EmbedderBuilder, TokenEmbedding, Tokenizer};

/// BM25 parameter `k1`: term frequency saturation.
const BM25_K1: f32 = 1.2;
/// BM25 parameter `b`: length normalization.
const BM25_B: f32 = 0.75;

/// One field of all tools: its words per tool, and its weight.
pub(super) struct IndexedField {
    weight: f32,
    tools: Vec<BTreeSet<String>>,
    embedder: Embedder<u64, WhitespaceTokenizer>,
}

impl IndexedField {
    /// Creates a field from its words per tool.
    ///
    /// Each word is used once per tool, and the reference length is the median. So a tool gains no advantage by
    /// repeating words or by making the other tools look short.
    pub(super) fn new(weight: f32, tools: impl Iterator<Item = Vec<String>>) -> Self {
        let tools: Vec<BTreeSet<String>> = tools.map(BTreeSet::from_iter).collect();
        let embedder = embedder(median_length(&tools));
        Self { weight, tools, embedder }
    }

    /// Uses the reference length of another field.
    pub(super) fn with_reference_length_of(self, other: &Self) -> Self {
        Self { embedder: embedder(other.embedder.avgdl()), ..self }
    }

    /// Iterates over the words of this field in all tools.
    pub(super) fn words(&self) -> impl Iterator<Item = &String> {
        self.tools.iter().flatten()
    }

    /// Returns the weight of each word of a tool in this field.
    pub(super) fn word_weights(&self, at: usize) -> impl Iterator<Item = TokenEmbedding<u64>> {
        let words: Vec<&str> = self.tools[at].iter().map(String::as_str).collect();
        let weigh = |word: TokenEmbedding<u64>| TokenEmbedding { value: word.value * self.weight, ..word };
        self.embedder.embed(&words.join(" ")).0.into_iter().map(weigh)
    }
}

fn embedder(usual_length: f32) -> Embedder<u64, WhitespaceTokenizer> {
    EmbedderBuilder::with_avgdl(usual_length).k1(BM25_K1).b(BM25_B).build()
}

/// Returns the median number of words, over the tools that have this field.
fn median_length(tools: &[BTreeSet<String>]) -> f32 {
    let mut lengths: Vec<usize> = tools.iter().map(BTreeSet::len).filter(|length| *length > 0).collect();
    lengths.sort_unstable();
    let middle = lengths.get(lengths.len() / 2).copied().unwrap_or(1);
    f32::from(u16::try_from(middle).unwrap_or(u16::MAX))
}

/// Tokenizer for text that is already split into words.
#[derive(Default)]
struct WhitespaceTokenizer;

impl Tokenizer for WhitespaceTokenizer {
    fn tokenize(&self, text: &str) -> Vec<String> {
        text.split_ascii_whitespace().map(str::to_owned).collect()
    }
}
