//! Result of a tool call and its text for callers.

use wharf_json::RawJson;

use crate::{OutcomeBlock, duplicate_text};

/// The complete response of a tool.
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
        let texts: Vec<_> = self.blocks.iter().map(OutcomeBlock::as_text).collect();
        let mut text = texts.join("\n");
        if let Some(data) = self.data_not_in_text() {
            text.push_str(if self.blocks.is_empty() { "" } else { "\n" });
            text.push_str(data.as_str());
        }
        text
    }

    /// Returns the data unless the text blocks already contain it.
    fn data_not_in_text(&self) -> Option<&RawJson> {
        let texts: Vec<&str> = self.blocks.iter().filter_map(text_of_block).collect();
        self.data.as_ref().filter(|data| !duplicate_text::texts_contain_data(&texts, data))
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
