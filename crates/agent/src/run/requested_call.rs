//! Tool calls requested by a model, and their resolution.

use wharf_json::RawJson;
use wharf_spec::EscapedText;
use wharf_tools::ToolOutcome;

use super::CallReport;
use super::call_report::report_from_outcome;
use super::loop_detector::CallSignature;
use super::partial_response::SkippedCalls;
use crate::conversation::TurnBlock;
use crate::tool_offer::{ResolvedCall, ToolOffer};

/// A tool call requested by the model.
pub(super) struct RequestedCall {
    pub id: String,
    pub tool: String,
    pub arguments: RawJson,
    pub signature: CallSignature,
    /// The result, if it is known without executing the call.
    pub answer: Option<CallReport>,
}

impl RequestedCall {
    /// Resolves a call against the offered tools. Returns `None` if the block is not a call.
    pub fn from_block(block: &TurnBlock, tool_offer: Option<&ToolOffer>) -> Option<Self> {
        let TurnBlock::ToolCall { id, name, arguments, malformed } = block else { return None };
        let resolved = match (malformed, tool_offer) {
            (Some(text), _) => ResolvedCall::Answer(ToolOutcome::error(malformed_message(text))),
            (None, Some(tool_offer)) => tool_offer.resolve(name, arguments),
            (None, None) => ResolvedCall::Call { tool: name.clone(), arguments: arguments.clone() },
        };
        let (tool, arguments, answer) = match resolved {
            ResolvedCall::Call { tool, arguments } => (tool, arguments, None),
            ResolvedCall::Answer(outcome) => (name.clone(), arguments.clone(), Some(report_from_outcome(&outcome))),
        };
        let signature = CallSignature::from_call(&tool, &arguments, malformed.as_deref());
        Some(Self { id: id.clone(), tool, arguments, signature, answer })
    }

    /// Sets an error result if the call is among those that must not be executed.
    pub fn skip_if_listed(mut self, skipped: &SkippedCalls) -> Self {
        self.answer = skipped.get(&self.id).map(|why| CallReport::error((*why).to_owned())).or(self.answer);
        self
    }
}

fn malformed_message(text: &str) -> String {
    let text = EscapedText::single_line(text, 200);
    format!("not executed: the arguments are not a JSON object: {text}\nCall the tool again with a JSON object.")
}
