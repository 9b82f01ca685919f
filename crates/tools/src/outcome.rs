//! Result of a tool call and its views for callers.

use serde::Serialize;
use wharf_json::RawJson;

use crate::{OutcomeBlock, duplicate_text};

/// The complete response of a tool. Views are computed on demand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolOutcome {
    /// The blocks in the tool's order, unknown kinds included.
    pub blocks: Vec<OutcomeBlock>,
    /// Structured data: any JSON value. `Some` of a JSON `null` differs from `None`.
    pub data: Option<RawJson>,
    /// The tool reports failure.
    pub is_error: bool,
}

/// Machine-readable view of an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OutcomeReport {
    /// The tool did not report failure.
    pub success: bool,
    /// Text of the blocks without copies of the data. Empty on failure.
    pub output: String,
    /// Structured data. Omitted if the tool returned none, and `null` if the tool returned `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<RawJson>,
    /// Error text on failure; never empty.
    pub error: Option<String>,
}

impl ToolOutcome {
    /// Creates a successful outcome from blocks.
    pub fn new(blocks: Vec<OutcomeBlock>) -> Self {
        Self { blocks, data: None, is_error: false }
    }

    /// Creates a successful outcome with one text block.
    pub fn text_of(text: impl Into<String>) -> Self {
        Self::new(vec![OutcomeBlock::text(text)])
    }

    /// Creates an error outcome with one text block.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text_of(text) }
    }

    /// Adds structured data.
    pub fn with_data(self, data: RawJson) -> Self {
        Self { data: Some(data), ..self }
    }

    /// Renders the whole outcome as text: the blocks joined by line breaks, each as in [`Block::as_text`], followed by
    /// the data unless a text block already contains it. Text blocks are verbatim; the caller must escape them before
    /// display.
    pub fn text(&self) -> String {
        let mut text = self.blocks_text(|_| true);
        if let Some(data) = self.unsaid_data() {
            text.push_str(if self.blocks.is_empty() { "" } else { "\n" });
            text.push_str(data.get());
        }
        text
    }

    /// Converts the outcome for a text-only receiver: every non-text block is replaced by its text rendering.
    pub fn for_text_only(self) -> Self {
        let as_text = |block: OutcomeBlock| match block {
            OutcomeBlock::Text { .. } => block,
            other => OutcomeBlock::text(other.as_text()),
        };
        Self { blocks: self.blocks.into_iter().map(as_text).collect(), ..self }
    }

    /// Returns the machine-readable view.
    pub fn report(&self) -> OutcomeReport {
        let (output, error) = match self.is_error {
            true => (String::new(), Some(self.complaint())),
            false => (self.unrepeated_text(), None),
        };
        OutcomeReport { success: !self.is_error, output, data: self.data.clone(), error }
    }

    fn complaint(&self) -> String {
        let said = self.blocks_text(|_| true);
        if !said.trim().is_empty() {
            return said;
        }
        self.data.as_ref().map_or("the tool failed without an error message", RawJson::get).to_owned()
    }

    /// Returns the text of the blocks without copies of the data. Compares at most [`repeat::MAX_COMPARED_TEXTS`] text
    /// blocks.
    fn unrepeated_text(&self) -> String {
        let mut compared = 0;
        self.blocks_text(|block| {
            compared += usize::from(plain_text(block).is_some());
            compared > duplicate_text::MAX_COMPARED_TEXTS || !self.repeats_data(block)
        })
    }

    fn blocks_text(&self, mut wanted: impl FnMut(&OutcomeBlock) -> bool) -> String {
        let texts: Vec<_> = self.blocks.iter().filter(|block| wanted(block)).map(OutcomeBlock::as_text).collect();
        texts.join("\n")
    }

    /// Returns the data unless the text blocks already contain it.
    fn unsaid_data(&self) -> Option<&RawJson> {
        let texts: Vec<&str> = self.blocks.iter().filter_map(plain_text).collect();
        self.data.as_ref().filter(|data| !duplicate_text::say(&texts, data))
    }

    fn repeats_data(&self, block: &OutcomeBlock) -> bool {
        let text = plain_text(block);
        text.zip(self.data.as_ref()).is_some_and(|(text, data)| duplicate_text::is_json_of(text, data))
    }
}

fn plain_text(block: &OutcomeBlock) -> Option<&str> {
    match block {
        OutcomeBlock::Text { text, .. } => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
