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
    pub fn from_text(text: impl Into<String>) -> Self {
        Self::new(vec![OutcomeBlock::text(text)])
    }

    /// Creates an error outcome with one text block.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::from_text(text) }
    }

    /// Adds structured data.
    pub fn with_data(self, data: RawJson) -> Self {
        Self { data: Some(data), ..self }
    }

    /// Renders the whole outcome as text: the blocks joined by line breaks, each as in [`OutcomeBlock::as_text`],
    /// followed by the data unless a text block already contains it. Text blocks are verbatim; the caller must escape
    /// them before display.
    pub fn text(&self) -> String {
        let mut text = self.join_blocks(|_| true);
        if let Some(data) = self.data_not_in_text() {
            text.push_str(if self.blocks.is_empty() { "" } else { "\n" });
            text.push_str(data.as_str());
        }
        text
    }

    /// Converts the outcome for a text-only receiver: every non-text block is replaced by its text rendering.
    pub fn into_text_only(self) -> Self {
        let as_text = |block: OutcomeBlock| match block {
            OutcomeBlock::Text { .. } => block,
            other => OutcomeBlock::text(other.as_text()),
        };
        Self { blocks: self.blocks.into_iter().map(as_text).collect(), ..self }
    }

    /// Returns the machine-readable view.
    pub fn to_report(&self) -> OutcomeReport {
        let (output, error) = match self.is_error {
            true => (String::new(), Some(self.error_text())),
            false => (self.text_without_data(), None),
        };
        OutcomeReport { success: !self.is_error, output, data: self.data.clone(), error }
    }

    fn error_text(&self) -> String {
        let said = self.join_blocks(|_| true);
        if !said.trim().is_empty() {
            return said;
        }
        self.data.as_ref().map_or("the tool failed without an error message", RawJson::as_str).to_owned()
    }

    /// Returns the text of the blocks without copies of the data. Compares at most [`duplicate_text::MAX_COMPARED_TEXTS`] text
    /// blocks.
    fn text_without_data(&self) -> String {
        let mut compared = 0;
        self.join_blocks(|block| {
            compared += usize::from(text_of_block(block).is_some());
            compared > duplicate_text::MAX_COMPARED_TEXTS || !self.repeats_data(block)
        })
    }

    fn join_blocks(&self, mut wanted: impl FnMut(&OutcomeBlock) -> bool) -> String {
        let texts: Vec<_> = self.blocks.iter().filter(|block| wanted(block)).map(OutcomeBlock::as_text).collect();
        texts.join("\n")
    }

    /// Returns the data unless the text blocks already contain it.
    fn data_not_in_text(&self) -> Option<&RawJson> {
        let texts: Vec<&str> = self.blocks.iter().filter_map(text_of_block).collect();
        self.data.as_ref().filter(|data| !duplicate_text::texts_contain_data(&texts, data))
    }

    fn repeats_data(&self, block: &OutcomeBlock) -> bool {
        let text = text_of_block(block);
        text.zip(self.data.as_ref()).is_some_and(|(text, data)| duplicate_text::is_json_of(text, data))
    }
}

fn text_of_block(block: &OutcomeBlock) -> Option<&str> {
    match block {
        OutcomeBlock::Text { text, .. } => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
