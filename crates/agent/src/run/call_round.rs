//! The calls of one response and their results.

use super::CallReport;
use super::loop_detector::CallSignature;
use crate::conversation::TurnBlock;

/// The calls of one response in the model's order. Bounded by the maximum length of a response.
#[derive(Debug, Default)]
pub(super) struct CallRound {
    calls: Vec<RoundCall>,
}

#[derive(Debug)]
struct RoundCall {
    id: String,
    signature: Option<CallSignature>,
    report: Option<CallReport>,
}

impl CallRound {
    /// Adds a call that is being executed.
    pub fn add_pending(&mut self, id: String, signature: CallSignature) {
        self.calls.push(RoundCall { id, signature: Some(signature), report: None });
    }

    /// Adds a call with a known result. A call refused as a repetition has no signature.
    pub fn add_finished(&mut self, id: String, signature: Option<CallSignature>, report: CallReport) {
        self.calls.push(RoundCall { id, signature, report: Some(report) });
    }

    /// Stores the result of a call. Reports whether the call was pending.
    pub fn finish_call(&mut self, id: &str, report: &CallReport) -> bool {
        let waiting = self.calls.iter_mut().find(|call| call.id == id && call.report.is_none());
        waiting.map(|call| call.report = Some(report.clone())).is_some()
    }

    /// Returns the signature of a call.
    pub fn signature(&self, id: &str) -> Option<CallSignature> {
        self.calls.iter().find(|call| call.id == id)?.signature
    }

    /// Returns the ids of the pending calls.
    pub fn pending_ids(&self) -> Vec<String> {
        self.calls.iter().filter(|call| call.report.is_none()).map(|call| call.id.clone()).collect()
    }

    /// Reports whether at least one call was not refused as a repetition.
    pub fn has_accepted_calls(&self) -> bool {
        self.calls.iter().any(|call| call.signature.is_some())
    }

    pub fn is_over(&self) -> bool {
        self.calls.iter().all(|call| call.report.is_some())
    }

    /// Returns the calls that were not refused, with their results, in order.
    pub fn accepted_calls(&self) -> impl Iterator<Item = (CallSignature, &CallReport)> {
        self.calls.iter().filter_map(|call| Some((call.signature?, call.report.as_ref()?)))
    }

    /// Returns the results in the order of the calls, regardless of the order of completion.
    pub fn into_results(self) -> Vec<TurnBlock> {
        let result = |call: RoundCall| {
            let CallReport { content, is_error, .. } = call.report?;
            Some(TurnBlock::ToolResult { id: call.id, content, is_error })
        };
        self.calls.into_iter().filter_map(result).collect()
    }
}
