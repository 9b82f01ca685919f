//! Server info and capabilities.

use serde_json::{Value, json};

use super::DemoServer;
use crate::envelope::ResultEnvelope;
use crate::revision::DemoRevision;
use crate::{icons, skills};

/// Extension of 2026-07-28 for calls that become tasks.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

const INSTRUCTIONS: &str = "A demo server: its tools are harmless and exist to be tried. \
                            `fail` always fails and `crash` ends the server; both mean to.";

impl DemoServer {
    pub(super) fn initialize(&self, revision: DemoRevision) -> Value {
        json!({
            "protocolVersion": revision.as_str(),
            "capabilities": capabilities(revision),
            "serverInfo": self.server_info(revision),
            "instructions": INSTRUCTIONS,
        })
    }

    pub(super) fn discover(&self, revision: DemoRevision) -> Value {
        json!({
            "supportedVersions": self.negotiation.supported(),
            "capabilities": capabilities(revision),
            "instructions": INSTRUCTIONS,
        })
    }

    pub(super) fn envelope(&self, revision: DemoRevision) -> ResultEnvelope {
        ResultEnvelope { revision, introduction: self.server_info(revision) }
    }

    fn server_info(&self, revision: DemoRevision) -> Value {
        let mut introduction = json!({"name": self.nature.name, "version": env!("CARGO_PKG_VERSION")});
        if revision.has_titles() {
            introduction["title"] = "Wharf demo server".into();
        }
        if revision.has_descriptions() {
            introduction["description"] = "A harmless server to try an MCP host on.".into();
        }
        icons::add_icons(&mut introduction, revision);
        introduction
    }
}

fn capabilities(revision: DemoRevision) -> Value {
    let mut capabilities = json!({
        "tools": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true},
        "prompts": {"listChanged": true},
        "logging": {},
    });
    if revision.has_completions_capability() {
        capabilities["completions"] = json!({});
    }
    if revision.has_core_tasks() {
        capabilities["tasks"] = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    }
    if revision.is_stateless() {
        capabilities["extensions"] = json!({TASKS_EXTENSION: {}, skills::EXTENSION: {}});
    }
    capabilities
}
