//! The calls of one answer, and what has come of each.

use super::CallReport;
use super::repeats::Deed;
use crate::conversation::Block;

/// The calls of one answer, in the order the model made them. Bounded by how long an answer may be.
#[derive(Debug, Default)]
pub(super) struct Round {
    calls: Vec<Made>,
}

#[derive(Debug)]
struct Made {
    id: String,
    deed: Option<Deed>,
    report: Option<CallReport>,
}

impl Round {
    /// Adds a call that is being carried out.
    pub fn open(&mut self, id: String, deed: Deed) {
        self.calls.push(Made { id, deed: Some(deed), report: None });
    }

    /// Adds a call that is answered already. One that was refused is no deed.
    pub fn answer(&mut self, id: String, deed: Option<Deed>, report: CallReport) {
        self.calls.push(Made { id, deed, report: Some(report) });
    }

    /// Takes what came of a call, and says whether anybody waited for it.
    pub fn end(&mut self, id: &str, report: &CallReport) -> bool {
        let waiting = self.calls.iter_mut().find(|made| made.id == id && made.report.is_none());
        waiting.map(|made| made.report = Some(report.clone())).is_some()
    }

    /// The calls that are still being carried out.
    pub fn open_ids(&self) -> Vec<String> {
        self.calls.iter().filter(|made| made.report.is_none()).map(|made| made.id.clone()).collect()
    }

    /// Whether something of it is, or was, carried out.
    pub fn has_deeds(&self) -> bool {
        self.calls.iter().any(|made| made.deed.is_some())
    }

    pub fn is_over(&self) -> bool {
        self.calls.iter().all(|made| made.report.is_some())
    }

    /// What was done and what came of it, in order.
    pub fn deeds(&self) -> impl Iterator<Item = (Deed, &CallReport)> {
        self.calls.iter().filter_map(|made| Some((made.deed?, made.report.as_ref()?)))
    }

    /// The results in the order of the calls, whichever came first.
    pub fn into_results(self) -> Vec<Block> {
        let result = |made: Made| {
            let CallReport { content, is_error, .. } = made.report?;
            Some(Block::ToolResult { id: made.id, content, is_error })
        };
        self.calls.into_iter().filter_map(result).collect()
    }
}
