//! What came of a call, and the views callers take of it.

use serde::Serialize;
use wharf_json::Raw;

use crate::{Block, repeat};

/// What a tool answered, with nothing of it lost. Views are made when somebody asks for one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The blocks in the tool's order, unknown kinds included.
    pub blocks: Vec<Block>,
    /// Structured data: any JSON value; a `null` that is there is not an absent one.
    pub data: Option<Raw>,
    /// The tool says it failed.
    pub is_error: bool,
}

/// An outcome as programs read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The tool did not say it failed.
    pub success: bool,
    /// What it said, without texts that are the data once more; empty where it failed.
    pub output: String,
    /// Its structured data; not there where it gave none, and `null` where it gave that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Raw>,
    /// What it said where it failed; never empty.
    pub error: Option<String>,
}

impl Outcome {
    /// An answer of these blocks.
    pub fn new(blocks: Vec<Block>) -> Self {
        Self { blocks, data: None, is_error: false }
    }

    /// An answer of one text.
    pub fn text_of(text: impl Into<String>) -> Self {
        Self::new(vec![Block::text(text)])
    }

    /// A failure in these words.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text_of(text) }
    }

    /// The same with structured data.
    pub fn with_data(self, data: Raw) -> Self {
        Self { data: Some(data), ..self }
    }

    /// Everything as text: the blocks one below the other, each as [`Block::as_text`] has it, and the data at the end
    /// where no text says the same. Texts are as the tool gave them: whoever shows them escapes them.
    pub fn text(&self) -> String {
        let mut text = self.blocks_text(|_| true);
        if let Some(data) = self.unsaid_data() {
            text.push_str(if self.blocks.is_empty() { "" } else { "\n" });
            text.push_str(data.get());
        }
        text
    }

    /// The same outcome for whoever can take text only: every other block has become its reference.
    pub fn for_text_only(self) -> Self {
        let as_text = |block: Block| match block {
            Block::Text { .. } => block,
            other => Block::text(other.as_text()),
        };
        Self { blocks: self.blocks.into_iter().map(as_text).collect(), ..self }
    }

    /// The outcome as programs read it.
    pub fn report(&self) -> Report {
        let (output, error) = match self.is_error {
            true => (String::new(), Some(self.complaint())),
            false => (self.unrepeated_text(), None),
        };
        Report { success: !self.is_error, output, data: self.data.clone(), error }
    }

    fn complaint(&self) -> String {
        let said = self.blocks_text(|_| true);
        if !said.trim().is_empty() {
            return said;
        }
        self.data.as_ref().map_or("the tool failed and did not say why", Raw::get).to_owned()
    }

    /// The text of the blocks but for those that say the data once more, as far as they are compared.
    fn unrepeated_text(&self) -> String {
        let mut compared = 0;
        self.blocks_text(|block| {
            compared += usize::from(plain_text(block).is_some());
            compared > repeat::MOST_COMPARED || !self.repeats_data(block)
        })
    }

    fn blocks_text(&self, mut wanted: impl FnMut(&Block) -> bool) -> String {
        let texts: Vec<_> = self.blocks.iter().filter(|block| wanted(block)).map(Block::as_text).collect();
        texts.join("\n")
    }

    /// The data, where the text blocks do not say the same.
    fn unsaid_data(&self) -> Option<&Raw> {
        let texts: Vec<&str> = self.blocks.iter().filter_map(plain_text).collect();
        self.data.as_ref().filter(|data| !repeat::say(&texts, data))
    }

    fn repeats_data(&self, block: &Block) -> bool {
        let text = plain_text(block);
        text.zip(self.data.as_ref()).is_some_and(|(text, data)| repeat::is_json_of(text, data))
    }
}

fn plain_text(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text, .. } => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
