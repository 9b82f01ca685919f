//! What every result of a revision has around it.

use serde_json::{Value, json};

use super::message::{MISSING_CAPABILITY, RpcError};
use super::questions::Need;
use super::revision::Revision;
use super::tools::failure;

/// Wraps results in the manner of one revision.
#[derive(Clone)]
pub struct Envelope {
    pub revision: Revision,
    /// How the server introduces itself.
    pub introduction: Value,
}

impl Envelope {
    /// A result that needs nothing more of the client.
    pub fn complete(&self, result: Value) -> Value {
        self.typed("complete", result)
    }

    /// Adds what every result of a stateless revision has (2026-07-28 basic, "Results").
    pub fn typed(&self, result_type: &str, mut result: Value) -> Value {
        if self.revision.is_stateless() {
            result["resultType"] = result_type.into();
            result["_meta"]["io.modelcontextprotocol/serverInfo"] = self.introduction.clone();
        }
        result
    }

    /// The answer of a tool that needs what the client has not declared.
    ///
    /// A result where declaring happens once and cannot be made up for; an error where the client
    /// may declare more and call again.
    pub fn lacking(&self, need: Need) -> Result<Value, RpcError> {
        let needed = need.as_capabilities();
        if self.revision.is_stateless() {
            return Err(missing_capability(&needed));
        }
        Ok(self.complete(failure(&format!("This tool needs a client that declares {needed}."))))
    }
}

/// The error of a request that had to declare `needed` (2026-07-28 basic, "Errors").
pub fn missing_capability(needed: &Value) -> RpcError {
    let message = format!("the request must declare the capabilities {needed}");
    RpcError::new(MISSING_CAPABILITY, message).with_data(json!({"requiredCapabilities": needed}))
}
