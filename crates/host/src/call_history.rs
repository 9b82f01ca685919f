//! Call statistics from the audit log.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;

use crate::audit;
use crate::stats::{CallCounter, ToolStats};

/// Maximum number of tools counted individually. Further tools share one entry.
const MAX_COUNTED_TOOLS: usize = 10_000;

/// Calls of a period, by server and tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PastCalls {
    /// Statistics, sorted by server and tool.
    pub tools: Vec<PastToolCalls>,
    /// Number of log lines that could not be read.
    pub unread: u64,
}

/// Calls of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PastToolCalls {
    /// The tool's server, or `None` for the host's own tools.
    pub server: Option<String>,
    /// Call count and latencies.
    pub stats: ToolStats,
    /// Time of the last call.
    pub last: SystemTime,
}

/// Reads the calls since a point in time from the audit log of a state directory. Blocks.
///
/// Memory use is bounded regardless of the log's size. A missing log contains no calls.
///
/// # Errors
///
/// Returns an error if the log cannot be read.
pub fn past_calls(state: &Path, since: SystemTime) -> io::Result<PastCalls> {
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    let mut counts: BTreeMap<(Option<String>, String), (CallCounter, u64)> = BTreeMap::new();
    let mut strange = 0;
    let unread =
        wharf_store::for_each_entry(&audit::log_path(state), |entry| match serde_json::from_str::<AuditLine>(entry) {
            Ok(AuditLine::Call { at_ms, success, duration_ms, server, tool }) if at_ms >= since => {
                let known = counts.len() < MAX_COUNTED_TOOLS || counts.contains_key(&(server.clone(), tool.clone()));
                let key = if known { (server, tool) } else { (None, "…".to_owned()) };
                let (count, last) = counts.entry(key).or_default();
                count.record(Duration::from_millis(duration_ms), success);
                *last = at_ms.max(*last);
            }
            Ok(_) => {}
            Err(_) => strange += 1,
        })?;
    let told = |((server, tool), (count, last)): ((Option<String>, String), (CallCounter, u64))| PastToolCalls {
        server,
        stats: count.snapshot(&tool),
        last: UNIX_EPOCH + Duration::from_millis(last),
    };
    Ok(PastCalls { tools: counts.into_iter().map(told).collect(), unread: unread + strange })
}

/// The fields of a log line that matter here.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum AuditLine {
    Call { at_ms: u64, success: bool, duration_ms: u64, server: Option<String>, tool: String },
    Decision {},
    Begin {},
    Lost {},
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_store::{Journal, JournalOptions};

    #[test]
    fn calls_are_counted_by_server_and_tool() {
        let state = tempfile::tempdir().unwrap();
        let state = state.path().canonicalize().unwrap();
        assert_eq!(past_calls(&state, UNIX_EPOCH).unwrap(), PastCalls::default());
        let journal = Journal::open(&audit::log_path(&state), JournalOptions::default()).unwrap();
        let call = |at: u64, server: &str, tool: &str, success: bool, duration: u64| {
            let entry = serde_json::json!({"schema": 1, "at_ms": at, "event": "call", "success": success,
                "duration_ms": duration, "error": null, "caller": "x", "server": server, "tool": tool, "arguments": {}});
            journal.append(&entry).unwrap();
        };
        call(5, "a", "old", true, 1);
        for n in 1..=100 {
            call(1000 + n, "b", "read", n % 10 != 0, n);
        }
        call(2000, "a", "write", true, 7);
        journal.append(&serde_json::json!({"event": "decision", "verdict": "allow"})).unwrap();
        journal.append(&serde_json::json!({"event": "begin", "server": "a", "tool": "b"})).unwrap();
        journal.append(&serde_json::json!({"event": "something else"})).unwrap();
        let found = past_calls(&state, UNIX_EPOCH + Duration::from_millis(1000)).unwrap();
        let told = found.tools.iter().map(|tool| (tool.server.as_deref(), &*tool.stats.tool, tool.stats.calls));
        assert_eq!(told.collect::<Vec<_>>(), [(Some("a"), "write", 1), (Some("b"), "read", 100)]);
        assert_eq!((found.tools[1].stats.errors, found.unread), (10, 1));
        assert!((50_000..=63_000).contains(&found.tools[1].stats.p50_us), "{found:?}");
        assert_eq!(found.tools[1].last, UNIX_EPOCH + Duration::from_millis(1100));
    }
}
