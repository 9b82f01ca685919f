//! Members that every result of a revision has.

use serde_json::{Value, json};

use super::message::{MISSING_CAPABILITY, RpcError};
use super::questions::ClientNeed;
use super::revision::DemoRevision;
use super::tools::error_result;

/// Adds the common members to results of one revision.
#[derive(Clone)]
pub struct ResultEnvelope {
    pub revision: DemoRevision,
    /// Server info, as reported to clients.
    pub introduction: Value,
}

impl ResultEnvelope {
    /// Wraps a complete result.
    pub fn complete(&self, result: Value) -> Value {
        self.with_type("complete", result)
    }

    /// Adds the members that every result of a stateless revision has (2026-07-28 basic, "Results").
    pub fn with_type(&self, result_type: &str, mut result: Value) -> Value {
        if self.revision.is_stateless() {
            result["resultType"] = result_type.into();
            result["_meta"]["io.modelcontextprotocol/serverInfo"] = self.introduction.clone();
        }
        result
    }

    /// Returns the reply of a tool that needs a capability the client did not declare.
    ///
    /// In a handshake revision this is a tool result, because capabilities are declared only once. In a stateless
    /// revision it is an error, because the client can declare more and call again.
    pub fn missing_capability_reply(&self, need: ClientNeed) -> Result<Value, RpcError> {
        let needed = need.as_capabilities();
        if self.revision.is_stateless() {
            return Err(missing_capability(&needed));
        }
        Ok(self.complete(error_result(&format!("This tool needs a client that declares {needed}."))))
    }
}

/// Returns the error for a request that must declare `needed` (2026-07-28 basic, "Errors").
pub fn missing_capability(needed: &Value) -> RpcError {
    let message = format!("the request must declare the capabilities {needed}");
    RpcError::new(MISSING_CAPABILITY, message).with_data(json!({"requiredCapabilities": needed}))
}
